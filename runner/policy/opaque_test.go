package policy

import (
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
)

func TestWhatAnOpaqueCommandIsAllowed(t *testing.T) {
	const opaque, plain = "frobnicate --fast", "ls -l"
	for name, c := range map[string]struct {
		reason, policy, script string
		want                   message.Action
	}{
		"by risk":               {"nothing is said", "{}", opaque, message.Ask},
		"an entry that names":   {"the author knows the program", "permissions: [{permission: bash, pattern: 'frobnicate *', action: allow}]", opaque, message.Allow},
		"an entry for all":      {"it speaks of every command", "permissions: [{permission: bash, action: allow}]", opaque, message.Allow},
		"an entry by the end":   {"it names no program", "permissions: [{permission: bash, pattern: '* --fast', action: allow}]", opaque, message.Ask},
		"the same, plain":       {"", "permissions: [{permission: bash, pattern: '* -l', action: allow}]", plain, message.Allow},
		"a rule over names":     {"it does not say what the program may do", "rules: [{name: a, when: \"cmd.commands.all(c, c.name in ['frobnicate', 'ls'])\", action: allow}]", opaque, message.Ask},
		"the same rule, plain":  {"", "rules: [{name: a, when: \"cmd.commands.all(c, c.name in ['frobnicate', 'ls'])\", action: allow}]", plain, message.Allow},
		"a rule over paths":     {"the program may touch others", "rules: [{name: a, when: \"paths.all(p, p.inWorkspace)\", action: allow}]", opaque, message.Ask},
		"a rule over hosts":     {"the program may reach others", "rules: [{name: a, when: \"net.hosts.size() == 0\", action: allow}]", opaque, message.Ask},
		"a rule that looks":     {"", "rules: [{name: a, when: \"cmd.commands.all(c, c.name == 'frobnicate') || !cmd.opaque\", action: allow}]", opaque, message.Allow},
		"a rule that looks, 2":  {"by the command", "rules: [{name: a, when: \"cmd.commands.all(c, c.opaque == '' || c.name == 'frobnicate')\", action: allow}]", opaque, message.Allow},
		"a rule that refuses":   {"", "rules: [{name: a, when: cmd.opaque, action: deny}]", opaque, message.Deny},
		"by a variable":         {"a variable reads the facts", "variables: [{name: quiet, expression: '!cmd.network'}]\nrules: [{name: a, when: variables.quiet, action: allow}]", opaque, message.Ask},
		"a variable that looks": {"", "variables: [{name: known, expression: '!cmd.opaque'}]\nrules: [{name: a, when: '!variables.known || cmd.network', action: allow}]", opaque, message.Allow},
		"a rule of the text":    {"it reads no facts", "rules: [{name: a, match: {tools: [bash]}, when: call.args.command.startsWith('frob'), action: allow}]", opaque, message.Allow},
		"a rule for all":        {"it has no condition", "rules: [{name: a, match: {tools: [bash]}, action: allow}]", opaque, message.Allow},
		"a default":             {"", "default: allow", opaque, message.Allow},
		"opaque unknown":        {"a command that is not known may be opaque", "rules: [{name: a, when: '!cmd.opaque', action: allow}]", "$x", message.Ask},
		"ask of what is known":  {"", "permissions: [{permission: bash, action: allow}, {permission: bash, pattern: 'frobnicate *', action: ask}]", opaque, message.Ask},
	} {
		t.Run(name, func(t *testing.T) {
			d := decide(t, engine(t, c.policy), bash(c.script))
			if d.Action != c.want {
				t.Errorf("%s: %s by %s (%s), want %s", c.reason, d.Action, d.Rule, d.Message, c.want)
			}
			if d.Action == message.Ask && c.script == opaque && d.Rule != "p0/permissions" && !strings.Contains(d.Message, "frobnicate") {
				t.Errorf("the question does not name the command: %s", d.Message)
			}
		})
	}
}

// A word of an opaque command is refused as a program where a rule or an entry names it.
func TestAnOpaqueCommandMayStartItsWords(t *testing.T) {
	const list, rule = "permissions: [{permission: bash, action: allow}, {permission: bash, pattern: 'git push *', action: deny}, {permission: bash, pattern: 'rm *', action: ask}, {permission: bash, pattern: 'rm build/*', action: allow}]",
		"params: {bad: [dd, shred]}\nrules: [{name: ok, match: {tools: [bash]}, action: allow}, {name: no, when: \"cmd.commands.exists(c, c.name == 'rm' && '-rf' in c.argv || c.name in params.bad)\", action: deny}]"
	for name, c := range map[string]struct {
		reason, policy, script string
		want                   message.Action
	}{
		"entry":              {"", list, "frobnicate 5 git push origin", message.Deny},
		"entry, other words": {"another command of git", list, "frobnicate 5 git log", message.Allow},
		"ask":                {"", list, "frobnicate rm src", message.Ask},
		"later allow":        {"the last entry that matches counts", list, "frobnicate rm build/x", message.Allow},
		"rule":               {"", rule, "frobnicate rm -rf x", message.Deny},
		"rule, not so":       {"the rest of the condition counts", rule, "frobnicate rm x", message.Allow},
		"parameter":          {"", rule, "frobnicate -n shred x", message.Deny},
		"no program of it":   {"", rule, "frobnicate -n blend x", message.Allow},
		"never to allow":     {"a word is not a command that is allowed", "permissions: [{permission: bash, pattern: 'ls *', action: allow}]", "frobnicate ls", message.Ask},
		"not for all":        {"an entry for every command says nothing of a word", "permissions: [{permission: bash, action: ask}, {permission: bash, pattern: 'frobnicate *', action: allow}]", "frobnicate ls", message.Allow},
	} {
		t.Run(name, func(t *testing.T) {
			if d := decide(t, engine(t, c.policy), bash(c.script)); d.Action != c.want {
				t.Errorf("%s: %s by %s (%s), want %s", c.reason, d.Action, d.Rule, d.Message, c.want)
			}
		})
	}
}
