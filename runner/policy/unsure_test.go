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

// What is unknown of a script takes nothing away from what is known.
func TestADenyOfAKnownCommandHoldsBesideAnUnknownOne(t *testing.T) {
	for when, want := range map[string]message.Action{
		"cmd.commands.exists(c, c.name == 'git' && 'push' in c.argv)":                                      message.Deny,
		"cmd.commands.exists(c, c.name == 'git') || paths.exists(p, p.secret)":                             message.Deny,
		"cmd.inherited.exists(v, v == 'TOKEN')":                                                            message.Deny,
		"cmd.commands.exists(c, c.name == 'rm')":                                                           message.Ask, // it may be
		"cmd.commands.exists(c, c.name == 'git') && !cmd.network":                                          message.Ask, // the other one may connect
		"cmd.commands.size() == 2":                                                                         message.Ask,
		"cmd.commands.all(c, c.name == 'git')":                                                             message.Ask,
		"cmd.commands.exists(c, c.name == 'git') && cmd.commands.all(c, c.name != 'ls')":                   message.Ask,
		"cmd.commands.exists(c, c.name == 'git') && call.args.command.contains('push')":                    message.Deny,
		"cmd.commands.exists(c, c.name == 'git') && !paths.exists(p, p.op == 'write')":                     message.Ask,
		"cmd.commands.exists(c, c.name == 'git') && cmd.dynamic && cmd.commands.exists(c, c.opaque != '')": message.Ask,
	} {
		e := engine(t, "default: allow\nrules: [{name: no, match: {tools: [bash]}, when: \""+when+"\", action: deny}]")
		if d := decide(t, e, bash("git push; $x $TOKEN")); d.Action != want {
			t.Errorf("%s: %s by %s (%s), want %s", when, d.Action, d.Rule, d.Message, want)
		}
	}
}
