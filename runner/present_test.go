package runner

import (
	"encoding/json"
	"testing"

	"agentctl.dev/agentctl/api/message"
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
