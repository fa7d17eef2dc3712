package execution

import (
	"encoding/json"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
	"github.com/google/go-cmp/cmp"
)

func TestTheStrictestOfThePlannedAndThePresentDecisionHolds(t *testing.T) {
	args := json.RawMessage(`{"a":1}`)
	for name, c := range map[string]struct {
		reason       string
		planned, now message.Decision
		want         message.Action
		rule         string
	}{
		"ask, deny":          {"a new deny wins", message.Decision{Action: message.Ask, Rule: "p"}, message.Decision{Action: message.Deny, Rule: "n"}, message.Deny, "n"},
		"allow, deny":        {"also over what needed no approval", message.Decision{Action: message.Allow, Rule: "p"}, message.Decision{Action: message.Deny, Rule: "n"}, message.Deny, "n"},
		"ask, ask":           {"the approval stays valid", message.Decision{Action: message.Ask, Rule: "p"}, message.Decision{Action: message.Ask, Rule: "n"}, message.Ask, "p"},
		"ask, allow":         {"a milder policy approves nothing", message.Decision{Action: message.Ask, Rule: "p"}, message.Decision{Action: message.Allow, Rule: "n"}, message.Ask, "p"},
		"allow, ask":         {"another question is asked", message.Decision{Action: message.Allow, Rule: "p"}, message.Decision{Action: message.Ask, Rule: "n"}, message.Ask, "n"},
		"ask, redact":        {"another call would run than was approved", message.Decision{Action: message.Ask, Rule: "p"}, message.Decision{Action: message.Redact, Rule: "n", Args: args}, message.Deny, "n"},
		"redact, redact":     {"the same is taken out", message.Decision{Action: message.Redact, Rule: "p", Args: args}, message.Decision{Action: message.Redact, Rule: "n", Args: args}, message.Redact, "p"},
		"allow, allow":       {"nothing has changed", message.Decision{Action: message.Allow, Rule: "p"}, message.Decision{Action: message.Allow, Rule: "n"}, message.Allow, "p"},
		"ask, unknown words": {"an unknown decision is a refusal", message.Decision{Action: message.Ask, Rule: "p"}, message.Decision{Action: "maybe", Rule: "n"}, message.Deny, "n"},
	} {
		if got := strictest(c.planned, c.now); got.Action != c.want || got.Rule != c.rule {
			t.Errorf("%s: %s: got %+v", name, c.reason, got)
		}
	}
}

func TestAResumedRunRemembersWhatWasJudged(t *testing.T) {
	call := func(tool string, state message.ToolState, action message.Action) message.Part {
		p := &message.ToolPart{Tool: tool, State: state}
		if action != "" {
			p.Decision = &message.Decision{Action: action}
		}
		return message.Part{Type: message.PartTool, Tool: p}
	}
	v := &view.Run{Messages: []*message.Message{{Parts: []message.Part{
		call("bash", message.StateCompleted, message.Allow), call("bash", message.StateError, message.Deny), call("read", message.StateError, message.Deny),
		call("bash", message.StateRunning, message.Allow), // is judged again
		call("bash", message.StateError, ""),              // never came before a judge
	}}}}
	calls, denials := Judged(v)
	if diff := cmp.Diff(map[string]int{"bash": 2, "read": 1}, calls); diff != "" || denials != 2 {
		t.Errorf("%d denials, calls (-want +got):\n%s", denials, diff)
	}
}
