package modeltest

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model"
)

// Begin begins a conversation that will give the answers in order.
type Begin func(t testing.TB, answers ...Answer) model.Conversation

// Basics holds a provider against what every conversation does, with a server
// behind it or without one.
func Basics(t *testing.T, begin Begin) {
	t.Helper()
	b := basics{begin}
	t.Run("AsideTakesAnAnswerAndNothingElse", b.aside)
	t.Run("ResetForgetsNoAnswer", b.reset)
	t.Run("ClosingRequestHasNoCalls", b.closing)
	t.Run("ErrorOfTheWatcherIsReturned", b.stopped)
}

type basics struct{ begin Begin }

// asked is what came of one request.
type asked struct {
	Text   string
	Calls  int
	Finish message.Finish
}

func (b basics) ask(t *testing.T, c model.Conversation, req message.Request) (asked, *message.Output) {
	t.Helper()
	out, err := c.Next(t.Context(), req, func(message.Delta) error { return nil })
	if err != nil {
		t.Fatalf("Next: %v", err)
	}
	return asked{out.Text, len(out.Calls), out.Finish}, out
}

func (b basics) says(t *testing.T, c model.Conversation, req message.Request, want asked) *message.Output {
	t.Helper()
	got, out := b.ask(t, c, req)
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("answer (-want +got):\n%s", d)
	}
	return out
}

func (b basics) appends(t *testing.T, c model.Conversation, messages ...*message.Message) {
	t.Helper()
	for _, m := range messages {
		if err := c.Append(m); err != nil {
			t.Fatalf("Append: %v", err)
		}
	}
}

func calls(text string) Answer {
	return Answer{Text: text, Calls: []Call{{ID: "call_" + text, Tool: "bash", Args: `{"command":"ls"}`}}}
}

var aside = message.Request{ID: "r2", Aside: &message.Aside{System: "Summarise.", Text: "All that was said.", MaxOutputTokens: 100}}

func (b basics) aside(t *testing.T) {
	c := b.begin(t, calls("one"), calls("aside"), calls("two"), Answer{Text: "three"})
	b.appends(t, c, user("Begin."))
	out := b.says(t, c, message.Request{ID: "r1"}, asked{"one", 1, message.FinishToolCalls})
	b.says(t, c, aside, asked{"aside", 0, message.FinishStop})
	b.appends(t, c, ToMessage(out, "m2", &message.ToolResult{Text: "a.txt"}))
	out = b.says(t, c, message.Request{ID: "r3"}, asked{"two", 1, message.FinishToolCalls})
	b.appends(t, c, ToMessage(out, "m3", &message.ToolResult{Text: "a.txt"}))
	b.says(t, c, message.Request{ID: "r4"}, asked{"three", 0, message.FinishStop})
}

func (b basics) reset(t *testing.T) {
	c := b.begin(t, calls("one"), Answer{Text: "aside"}, calls("two"), Answer{Text: "three"})
	first := user("Begin.")
	b.appends(t, c, first)
	out := b.says(t, c, message.Request{}, asked{"one", 1, message.FinishToolCalls})
	b.appends(t, c, ToMessage(out, "m2", &message.ToolResult{Text: "a.txt"}))
	b.says(t, c, aside, asked{"aside", 0, message.FinishStop})
	summary := &message.Message{ID: "m3", Role: message.RoleUser, Summary: true, Parts: []message.Part{{Type: message.PartText, Text: "aside"}}}
	if err := c.Reset([]*message.Message{first, summary}); err != nil {
		t.Fatalf("Reset: %v", err)
	}
	out = b.says(t, c, message.Request{}, asked{"two", 1, message.FinishToolCalls})
	b.appends(t, c, ToMessage(out, "m4", &message.ToolResult{Text: "a.txt"}))
	if err := c.Reset(nil); err != nil {
		t.Fatalf("Reset to nothing: %v", err)
	}
	b.appends(t, c, first)
	b.says(t, c, message.Request{}, asked{"three", 0, message.FinishStop})
}

func (b basics) closing(t *testing.T) {
	c := b.begin(t, calls("one"))
	b.appends(t, c, user("Begin."))
	b.says(t, c, message.Request{NoTools: true}, asked{"one", 0, message.FinishStop})
}

func (b basics) stopped(t *testing.T) {
	c := b.begin(t, calls("one"), calls("one"))
	b.appends(t, c, user("Begin."))
	for _, req := range []message.Request{{ID: "r1"}, aside} {
		enough := errors.New("seen enough")
		if _, err := c.Next(t.Context(), req, func(message.Delta) error { return enough }); !errors.Is(err, enough) {
			t.Errorf("emit's error: %v", err)
		}
	}
}
