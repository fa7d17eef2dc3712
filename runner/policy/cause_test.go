package policy

import (
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
)

func TestADecisionNamesWhatInTheCallItIsAbout(t *testing.T) {
	for name, c := range map[string]struct{ policy, script, rule, cause string }{
		"path of a rule":      {"rules: [{name: a, when: \"paths.exists(p, !p.inWorkspace)\", action: deny}]", "cat a.go /etc/passwd", "p0/a", "(`/etc/passwd`, argument 2 of cat, is read, outside the workspace)"},
		"message of its own":  {"rules: [{name: a, when: \"paths.exists(p, p.secret)\", action: deny, messageExpression: \"'no keys'\"}]", "ls; cat .env", "p0/a", "no keys (`.env`, argument 1 of cat, is read, named as files of credentials are)"},
		"redirection":         {"rules: [{name: a, when: \"paths.exists(p, p.op == 'write')\", action: ask}]", "ls > out", "p0/a", "(`out`, a redirection, is written)"},
		"command of a rule":   {"rules: [{name: a, when: \"cmd.commands.exists(c, c.name == 'rm')\", action: ask}]", "ls; rm -f x", "p0/a", "(`rm -f x`)"},
		"word of an opaque":   {"rules: [{name: a, when: \"cmd.commands.exists(c, c.name == 'rm')\", action: deny}]", "frobnicate rm x", "p0/a", "(`rm x`, which frobnicate may start)"},
		"command of a list":   {"permissions: [{permission: bash, action: allow}, {permission: bash, pattern: 'rm *', action: deny}]", "ls; rm x", "p0/permissions", "(`rm x`, by bash \"rm *\")"},
		"path of a list":      {"permissions: [{permission: bash, action: allow}, {permission: read, pattern: 'conf/*', action: deny}]", "cat a conf/b", "p0/permissions", "(`conf/b`, argument 2 of cat, is read)"},
		"what it runs":        {"default: ask", "frobnicate test", "p0/default", "what `frobnicate` does is not known"},
		"what is not known":   {"rules: [{name: a, when: \"paths.exists(p, p.secret)\", action: deny}]", "cat $x", "default/dynamic", "only the run can tell: a path that is not known; rule a of policy p0 may deny it"},
		"no single one":       {"rules: [{name: a, when: \"cmd.commands.size() > 1\", action: ask}]", "ls; ls", "p0/a", "asks for this call of bash"},
		"not about the facts": {"rules: [{name: a, when: call.repeats == 0, action: ask}]", "ls", "p0/a", "asks for this call of bash"},
	} {
		t.Run(name, func(t *testing.T) {
			d := decide(t, engine(t, c.policy), bash(c.script))
			if d.Action == message.Allow || d.Rule != c.rule || !strings.Contains(d.Message, c.cause) || c.cause[0] == 'a' && !strings.HasSuffix(d.Message, c.cause) {
				t.Errorf("%s by %s: %s", d.Action, d.Rule, d.Message)
			}
		})
	}
}
