package modeltest

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
)

// reasoning holds that what a model thought goes back to it as it came, and to
// no other model. The server refuses a thought that was changed.
func (s suite) reasoning(t *testing.T) {
	shown, hidden := full, full
	hidden.Reasoning, hidden.Hidden = "", true
	streams := map[string]string{"shown": string(s.wire.Stream(shown)), "hidden": string(s.wire.Stream(hidden))}
	if more := s.wire.traits().thoughts; more != nil {
		maps.Copy(streams, more())
	}
	for name, stream := range streams {
		t.Run(name, func(t *testing.T) { s.goesBack(t, stream) })
	}
}

// goesBack answers with a stream and looks at what is sent of it: to the model
// that said it, to the same one after a reset, and to another.
func (s suite) goesBack(t *testing.T, stream string) {
	done := Answer{Text: "done"}.Step()
	k := s.talk(t, Events(stream), done, done, done)
	out, err := k.next(t, t.Context(), message.Request{ID: "r1"})
	if err != nil {
		t.Fatal(err)
	}
	m := ToMessage(out, "m2", &message.ToolResult{Text: "a.txt"}, &message.ToolResult{Text: "b"})
	k.say(t, m)
	k.say(t, user("Go on."))
	k.says(t, "done")
	other := *m
	other.Model = &message.ModelRef{Name: "other", Provider: "elsewhere", Model: "another"}
	for _, m := range []*message.Message{m, &other} {
		if err := k.Reset([]*message.Message{user("What is in the folder?"), m, user("Go on.")}); err != nil {
			t.Fatal(err)
		}
		k.says(t, "done")
	}
	sent := k.Requests()
	if d := cmp.Diff(string(sent[1].Body), string(sent[2].Body)); d != "" {
		t.Errorf("a reset changed the same conversation (-before +after):\n%s", d)
	}
	marks := signature.FindAllString(stream, -1)
	if s.wire.traits().signed != (len(marks) > 0) {
		t.Fatalf("the stream holds the signatures %q", marks)
	}
	once := said(stream)
	for _, mark := range marks {
		if strings.Count(string(sent[1].Body), mark) != strings.Count(once, mark) {
			t.Errorf("back to the same model, the request has to hold %q as often as the answer did: %s", mark, sent[1].Body)
		}
		if strings.Contains(string(sent[3].Body), mark) {
			t.Errorf("another model was sent %q: %s", mark, sent[3].Body)
		}
	}
}

// said is a stream in which nothing is said twice: the responses API has every
// item in an event at its begin, in one at its end, and in the last of all.
func said(stream string) string {
	var once strings.Builder
	for e := range strings.SplitAfterSeq(stream, "\n\n") {
		if !strings.HasPrefix(e, "event: response.output_item.added\n") && !strings.HasPrefix(e, "event: response.completed\n") {
			once.WriteString(e)
		}
	}
	return once.String()
}

func (k *talk) says(t *testing.T, text string) {
	t.Helper()
	if out, err := k.next(t, t.Context(), message.Request{}); err != nil || out.Text != text {
		t.Fatalf("answer %+v, %v, want %q", out, err, text)
	}
}

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

// unknown puts events of a later version into a stream, at its beginning, in
// front of the last event that says something, and everywhere.
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
