package modeltest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
)

// finishes holds every word a stream may end with against its meaning.
func (s suite) finishes(t *testing.T) {
	for word, want := range s.wire.traits().finishes {
		k := s.talk(t, Answer{Text: "so far", Finish: word, Usage: full.Usage}.Step())
		out, err := k.next(t, t.Context(), message.Request{})
		if err != nil || out.Finish != want || out.Text != "so far" {
			t.Errorf("%s: %+v, %v, want finish %s", word, out, err, want)
		}
	}
	// Calls count whatever the word for the end is, as long as they are whole.
	for _, finish := range []string{"", s.wire.traits().stop} {
		k := s.talk(t, Answer{Calls: full.Calls, Finish: finish}.Step())
		out, err := k.next(t, t.Context(), message.Request{})
		if err != nil || out.Finish != message.FinishToolCalls || len(out.Calls) != 2 {
			t.Errorf("calls and %q: %+v, %v", finish, out, err)
		}
	}
}

// usage holds the counts against what was sent, each token counted once.
func (s suite) usage(t *testing.T) {
	u := Usage{Prompt: 100, Completion: 20, Cached: 40, CacheWrite: 25, Reasoning: 5}
	want := message.Usage{Input: 35, Output: 20, Reasoning: 5, CacheRead: 40, CacheWrite: 25}
	if !s.wire.traits().writes {
		u.CacheWrite, want.CacheWrite, want.Input = 0, 0, 60
	}
	k := s.talk(t, Answer{Text: "ok", Usage: &u}.Step(), Answer{Text: "ok"}.Step(), Answer{Text: "ok", Usage: &Usage{}}.Step())
	for i, want := range []message.Usage{want, {}, {}} {
		out, err := k.next(t, t.Context(), message.Request{})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, out.Usage); d != "" {
			t.Errorf("usage of answer %d (-want +got):\n%s", i+1, d)
		}
		if out.Uncounted != (i == 1) {
			t.Errorf("answer %d: uncounted %v", i+1, out.Uncounted)
		}
	}
}

// unknown puts events of a later version into a stream, at its beginning, before the last
// event with content, and everywhere.
func (s suite) unknown(t *testing.T) {
	parts := strings.SplitAfter(string(s.wire.Stream(full)), "\n\n")
	for _, e := range s.wire.traits().unknown {
		k := s.talk(t, Events(e+strings.Join(parts, "")), Events(e+strings.Join(parts[:len(parts)-2], e)+e+strings.Join(parts[len(parts)-2:], "")))
		for range 2 {
			k.wants(t, wantFull())
			if t.Failed() {
				t.Fatalf("with the event %q", e)
			}
		}
	}
}
