package display

import (
	"bytes"
	"fmt"
	"testing"
)

func TestMistakesStandOut(t *testing.T) {
	const text = "error: a.yaml:1:2: x\n    error: no\nwarning: b\n"
	for color, want := range map[bool]string{
		false: text,
		true:  "\x1b[31merror:\x1b[0m a.yaml:1:2: x\n    error: no\n\x1b[33mwarning:\x1b[0m b\n",
	} {
		var out bytes.Buffer
		n, err := fmt.Fprint(Mistakes(&Screen{w: &out, Color: color}), text)
		if err != nil || n != len(text) || out.String() != want {
			t.Errorf("colour %v: %d, %v, %q", color, n, err, out.String())
		}
	}
}
