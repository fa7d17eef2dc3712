package httpapi

import (
	"encoding/json"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
)

// TestAnAnswerFitsIntoTheJournal is about answers that are short on the wire and
// long where they are written down.
func TestAnAnswerFitsIntoTheJournal(t *testing.T) {
	for name, piece := range map[string]string{
		"plain": "x", "control characters": "\x00", "quotes": `"`, "line separators": "\u2028", "no text": "\xff", "half a character": "\xe2\x98",
	} {
		g := NewGather(func(message.Delta) {})
		for piece := []byte(strings.Repeat(piece, 1000)); g.Err() == nil; {
			g.Text(piece)
		}
		b, err := json.Marshal(valid(g.text.String()))
		if err != nil || len(b) > maxAnswer+6000 {
			t.Errorf("%s: %d bytes when it is written down, %v", name, len(b), err)
		}
	}
}

func TestAToolHasAName(t *testing.T) {
	g := NewGather(func(message.Delta) {})
	at := g.Begin()
	g.Calls[at].Tool = strings.Repeat("x", maxName+1)
	if g.Args(at, nil); g.Err() == nil || !strings.Contains(g.Err().Error(), "name of a tool") {
		t.Errorf("%v", g.Err())
	}
}
