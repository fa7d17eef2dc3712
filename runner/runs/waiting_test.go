package runs

import (
	"encoding/json"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/approval"
)

// Whatever differs from what was shown makes another question.
func TestQuestionIsBoundToEverythingThatWasShown(t *testing.T) {
	type parts struct {
		run, plan, tool, args string
		decision              message.Decision
		unknown               bool
	}
	bound := func(change func(*parts)) string {
		p := parts{"r", "sha256:p", "pay", `{"amount":100}`, message.Decision{Action: message.Ask, Rule: "p/ask", Risk: "R2", Hash: "h", Facts: json.RawMessage(`{"paths":[]}`)}, false}
		change(&p)
		v := &view.Run{}
		for _, d := range []event.Payload{
			event.RunStarted{Plan: p.plan},
			event.StepStart{Step: 1},
			event.ModelRequest{},
			event.ToolInputStart{Tool: p.tool},
			event.PolicyDecision{Decision: p.decision},
			event.ApprovalRequested{Tool: p.tool, Args: json.RawMessage(p.args), Rule: p.decision.Rule, Risk: p.decision.Risk, Hash: p.decision.Hash, Unknown: p.unknown},
		} {
			in := "m2"
			if _, first := d.(event.RunStarted); first {
				in = "m1"
			}
			if err := v.Apply(event.Event{Run: p.run, Message: in, Part: "p", Call: "c", Time: time.Unix(1, 0), Data: d}); err != nil {
				t.Fatal(err)
			}
		}
		return approval.Binding(v, "c")
	}
	same := bound(func(*parts) {})
	if same == "" || same != bound(func(*parts) {}) {
		t.Fatalf("got %q", same)
	}
	for name, change := range map[string]func(*parts){
		"run":        func(p *parts) { p.run = "s" },
		"policies":   func(p *parts) { p.plan = "sha256:q" },
		"tool":       func(p *parts) { p.tool = "refund" },
		"arguments":  func(p *parts) { p.args = `{"amount":999}` },
		"tool's own": func(p *parts) { p.decision.Hash = "g" },
		"rule":       func(p *parts) { p.decision.Rule = "p/other" },
		"risk":       func(p *parts) { p.decision.Risk = "R3" },
		"facts":      func(p *parts) { p.decision.Facts = json.RawMessage(`{"paths":["x"]}`) },
		"repetition": func(p *parts) { p.unknown = true },
	} {
		if got := bound(change); got == same || got == "" {
			t.Errorf("%s differs, and the question is the same: %q", name, got)
		}
	}
	if got := bound(func(p *parts) { p.decision.Message = "in other words" }); got != same {
		t.Error("the words in which it is asked are no part of the question")
	}
}
