package approval

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAToolAsksAPerson(t *testing.T) {
	for name, c := range map[string]struct {
		typed   string
		options []string
		want    string
		fails   string
	}{
		"a line":                {"  blue \n", nil, "blue", ""},
		"an option's number":    {"2\n", []string{"red", "blue"}, "blue", ""},
		"an option's text":      {"red\n", []string{"red", "blue"}, "red", ""},
		"a number that is text": {"2\n", []string{"2", "1"}, "2", ""},
		"not an option at once": {"green\n3\n1\n", []string{"red", "blue"}, "red", ""},
		"the end of the input":  {"", nil, "", "nobody is there"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			terminal := NewTerminal(strings.NewReader(c.typed), &out, nil)
			defer terminal.Close()
			q := &Questioner{Terminal: terminal, Timeout: time.Minute}
			got, err := q.Ask(t.Context(), "tool paint\x1b[2J", "Which\ncolour\u202e?", c.options)
			if got != c.want || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("got %q, %v", got, err)
			}
			if shown := out.String(); strings.ContainsAny(shown, "\x1b\u202e") || !strings.Contains(shown, "allows nothing") {
				t.Errorf("shown: %q", shown)
			}
		})
	}
}

func TestAQuestionOfAToolEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, typed := io.Pipe()
		terminal := NewTerminal(in, io.Discard, nil)
		q := &Questioner{Terminal: terminal, Timeout: time.Minute}
		began := time.Now()
		if _, err := q.Ask(t.Context(), "tool x", "?", nil); err == nil || time.Since(began) != time.Minute {
			t.Errorf("ended after %s with %v", time.Since(began), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := q.Ask(ctx, "tool x", "?", nil); err == nil {
			t.Error("a question outlives its call")
		}
		terminal.Close()
		_ = typed.Close()
		synctest.Wait()
	})
}
