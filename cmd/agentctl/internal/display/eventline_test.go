package display

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

func TestEveryEventThatIsWholeHasALine(t *testing.T) {
	pieces := map[event.Type]bool{
		event.TypeTextStart: true, event.TypeTextDelta: true, event.TypeReasoningStart: true, event.TypeReasoningDelta: true,
		event.TypeToolInputStart: true, event.TypeToolInputDelta: true, event.TypeToolProgress: true,
	}
	for _, p := range event.Payloads() {
		var b bytes.Buffer
		if err := EventLine(&Screen{w: &b}, event.Event{Seq: 12, Time: time.Unix(0, 0), Data: p}); err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(b.String(), "\n"); lines == 1 == pieces[p.Type()] || !pieces[p.Type()] && !strings.Contains(b.String(), string(p.Type())) {
			t.Errorf("%s: got %q", p.Type(), b.String())
		}
	}
}

func TestEventLinesSayWhatHappened(t *testing.T) {
	two := 2
	for want, e := range map[string]event.Event{
		"agent a · model m (p x) · go on":                      {Data: event.RunStarted{Agent: "a", Model: message.ModelRef{Name: "m", Provider: "p", Model: "x"}, Prompt: "go\non"}},
		"Failed · MaxSteps · exit code 5 · 2 steps · too many": {Data: event.RunFinished{Phase: "Failed", Reason: "MaxSteps", ExitCode: 5, Steps: 2, Message: "too many"}},
		"c1  bash · ls -l":                                     {Call: "c1", Data: event.ToolInputEnd{Tool: "bash", Input: []byte(`{"command":"ls -l"}`)}},
		"c1  deny · p/r · R3":                                  {Call: "c1", Data: event.PolicyDecision{Decision: message.Decision{Action: message.Deny, Rule: "p/r", Risk: "R3"}}},
		"c1  exit 2 · 1.0ms · no file":                         {Call: "c1", Data: event.ToolResult{ToolResult: message.ToolResult{ExitCode: &two, DurationMicros: 1000, Output: "no file\n"}}},
		`{"new":1}`:                                            {Data: event.Unknown{Of: "news", Raw: []byte(`{"new":1}`)}},
		"\u2026":                                               {Data: event.TextEnd{Text: strings.Repeat("x", 9000)}},
		"<U+001B>[2Jturned<U+202E>":                            {Data: event.TextEnd{Text: "\x1b[2Jturned\u202e"}},
	} {
		var b bytes.Buffer
		if err := EventLine(&Screen{w: &b}, e); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSuffix(b.String(), "\n"); !strings.HasSuffix(got, want) || len(got) > 400 {
			t.Errorf("got %q, want it to end with %q", got, want)
		}
	}
}
