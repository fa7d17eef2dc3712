package display

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode"

	"agentctl.dev/agentctl/api/event"
)

// TestJSONOnATerminalIsNotObeyed: what JSON leaves as it is, 8-bit controls and
// characters that turn text around, is escaped where a person looks, and only there.
func TestJSONOnATerminalIsNotObeyed(t *testing.T) {
	const evil = "\x1b]52;c;eA==\a \u009b31m \u202e \u2066 \U000e0041 \x7f \u2028 ü 👩‍👩 \"\\"
	write := map[string]func(*Screen) error{
		"object": func(s *Screen) error { return writeJSON(s, map[string]string{evil: evil}) },
		"lines": func(s *Screen) error {
			l := NewLines(s)
			if err := l.Add(map[string]string{evil: evil}); err != nil {
				return err
			}
			return l.Flush()
		},
		"events": func(s *Screen) error {
			r := NewRun(FormatJSONL, s, &Screen{w: &bytes.Buffer{}}, RunOptions{})
			r.Event(event.Event{Seq: 1, Data: event.Warning{Message: evil}})
			return s.Err()
		},
	}
	for name, do := range write {
		t.Run(name, func(t *testing.T) {
			var plain, shown bytes.Buffer
			if err := do(&Screen{w: &plain}); err != nil {
				t.Fatal(err)
			}
			if err := do(&Screen{w: &shown, TTY: true}); err != nil {
				t.Fatal(err)
			}
			for _, r := range shown.String() {
				if r != '\n' && (unicode.IsControl(r) || hidden(r)) {
					t.Errorf("the terminal is sent %U", r)
				}
			}
			if !bytes.Contains(plain.Bytes(), []byte("\u202e")) {
				t.Errorf("a program is sent %s", plain.Bytes())
			}
			var a, b any
			if err := json.Unmarshal(plain.Bytes(), &a); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(shown.Bytes(), &b); err != nil {
				t.Fatal(err)
			}
			x, _ := json.Marshal(a)
			if y, _ := json.Marshal(b); !bytes.Equal(x, y) {
				t.Errorf("the terminal is sent %s, a program %s", y, x)
			}
		})
	}
}
