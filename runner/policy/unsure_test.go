package policy

import (
	"testing"

	"agentctl.dev/agentctl/api/message"
)

func TestADenyThatMayHoldMakesNothingMilder(t *testing.T) {
	const perhaps = "{name: perhaps, match: {tools: [bash]}, when: \"cmd.commands.exists(c, c.name == 'rm')\", action: deny}"
	for name, c := range map[string]struct {
		policy string
		want   message.Action
	}{
		"a default of deny stands":            {"default: deny\nrules: [" + perhaps + "]", message.Deny},
		"alone it asks":                       {"default: allow\nrules: [" + perhaps + "]", message.Ask},
		"over an allow it asks":               {"default: deny\nrules: [" + perhaps + ", {name: all, match: {tools: [bash]}, action: allow}]", message.Ask},
		"an ask that somebody wrote stands":   {"default: deny\nrules: [" + perhaps + ", {name: ask, match: {tools: [bash]}, action: ask}]", message.Ask},
		"an ask in a list stands, too":        {"default: deny\npermissions: [{permission: bash, pattern: '*', action: ask}]\nrules: [" + perhaps + "]", message.Ask},
		"without the rule the default stands": {"default: deny", message.Deny},
	} {
		if d := decide(t, engine(t, c.policy), bash("$x a")); d.Action != c.want {
			t.Errorf("%s: %s by %s (%s)", name, d.Action, d.Rule, d.Message)
		}
	}
}
