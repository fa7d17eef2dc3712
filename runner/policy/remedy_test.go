package policy

import (
	"slices"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// Each remedy is applied and the call is judged again, until it is allowed.
func TestTheRemediesOfADecisionWorkWhenFollowed(t *testing.T) {
	policies := map[string]string{
		"nothing":     "{}",
		"asks":        "default: ask",
		"denies":      "default: deny",
		"list":        "permissions: [{permission: bash, pattern: '*', action: ask}, {permission: bash, pattern: 'git log *', action: allow}]",
		"list, deny":  "permissions: [{permission: '*', action: allow}, {permission: bash, pattern: 'rm *', action: deny}, {permission: read, pattern: '*.go', action: deny}, {permission: edit, pattern: 'src/*', action: ask}]",
		"inside":      "rules: [{name: stay-inside, when: \"paths.exists(p, !p.inWorkspace)\", action: deny}]",
		"secrets":     "rules: [{name: secrets, when: \"paths.exists(p, p.secret)\", action: deny}, {name: dynamic, match: {tools: [bash]}, when: cmd.dynamic || cmd.opaque, action: ask}]",
		"only read":   "rules: [{name: no-go, match: {tools: [read]}, when: \"paths.exists(p, p.clean.endsWith('.go'))\", action: deny}]",
		"network":     "rules: [{name: hosts, when: \"cmd.network && !cmd.hosts.all(h, h in ['proxy.test'])\", action: ask}, {name: quiet, when: \"!cmd.network\", action: allow}]",
		"always":      "rules: [{name: no-shell, match: {tools: [bash]}, action: ask}, {name: no-send, match: {tools: [send]}, action: deny}]",
		"two at once": "default: ask\nrules: [{name: rm, when: \"cmd.commands.exists(c, c.name == 'rm')\", action: deny}]\npermissions: [{permission: bash, action: ask}]",
	}
	calls := []message.ToolCall{
		bash("ls -la"), bash("git log --oneline"), bash("rm -rf build"), bash("frobnicate --all rm x"), bash("cat src/a.go > out.txt"), bash("cat /etc/passwd .env"), bash("cat $x"), bash("$x"),
		bash("for f in *.go; do cat $f; done"), bash("curl -s http://a.test/x"), bash("echo \"it's\" | wc -l"), bash("git push"), bash("grep -r x ."), bash("sudo ls"), bash("./run.sh a"),
		call("read", map[string]any{"path": "src/a.go"}), call("read", map[string]any{"path": "/etc/passwd"}), call("write", map[string]any{"path": "src/a.go", "content": "x"}),
		call("send", map[string]any{"to": "x", "amount": 2.5}), call("free", map[string]any{"url": "https://a.test/x", "odd key": 1}), call("free", nil),
	}
	for name, text := range policies {
		for _, c := range calls {
			t.Run(name+"/"+c.Tool+" "+string(c.Args), func(t *testing.T) {
				p := parse(t, text)
				root := t.TempDir()
				put(t, root, "src/a.go", "b.go", "run.sh", ".env")
				for round := 0; ; round++ {
					compiled, problems := Compile(p, testTools())
					if slices.ContainsFunc(problems, func(p Problem) bool { return !p.Warning }) {
						t.Fatalf("round %d: %v", round, problems)
					}
					e := NewEngine([]*Compiled{compiled}, Context{Workspace: Workspace{Root: root}, Tools: testTools()})
					d := decide(t, e, c)
					if d.Action == message.Allow {
						return
					}
					blockers := e.Blockers(t.Context(), c)
					if round > 8 || len(blockers) == 0 {
						t.Fatalf("round %d: still %s by %s (%s)\n%+v", round, d.Action, d.Rule, d.Message, p.Spec)
					}
					apply(t, p, blockers[0], e.Remedy(t.Context(), c, blockers[0]))
				}
			})
		}
	}
}

// apply changes a policy as a remedy says.
func apply(t *testing.T, p *v1alpha1.Policy, d message.Decision, r Remedy) {
	t.Helper()
	at := slices.IndexFunc(p.Spec.Rules, func(x v1alpha1.Rule) bool { return strings.HasSuffix(d.Rule, "/"+x.Name) })
	switch {
	case r.Rule != nil:
		p.Spec.Rules = append(p.Spec.Rules, *r.Rule)
	case len(r.Entries) > 0:
		p.Spec.Permissions = append(p.Spec.Permissions, r.Entries...)
	case at >= 0 && r.Omit:
		p.Spec.Rules = slices.Delete(p.Spec.Rules, at, at+1)
	case at >= 0 && r.Except != "" && p.Spec.Rules[at].When == "":
		p.Spec.Rules[at].When = r.Except
	case at >= 0 && r.Except != "":
		p.Spec.Rules[at].When = "(" + p.Spec.Rules[at].When + ") && " + r.Except
	default:
		t.Fatalf("%s by %s has no remedy", d.Action, d.Rule)
	}
}
