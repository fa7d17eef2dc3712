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
	if s.wire.traits().shown {
		back := func(i int) bool { return strings.Contains(string(sent[i].Body), full.Reasoning) }
		if shown := out.Reasoning != ""; back(1) != shown || back(3) {
			t.Errorf("what was thought has to go back to the same model and to no other: %s\n%s", sent[1].Body, sent[3].Body)
		}
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
