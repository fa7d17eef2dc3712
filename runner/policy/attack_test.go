package policy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
)

func TestToolsThatNoCallCouldBeAllowedForAreHidden(t *testing.T) {
	tests := map[string]struct {
		reason   string
		policies []string
		hidden   string
	}{
		"nothing said":         {"", nil, ""},
		"deny all":             {"a deny without a condition", []string{"rules: [{name: a, match: {tools: [write]}, action: deny}]"}, "write"},
		"deny true":            {"a condition that always holds is none", []string{"rules: [{name: a, match: {tools: [write]}, when: 'true || cmd.dynamic', action: deny}]"}, "write"},
		"deny by effect":       {"", []string{"rules: [{name: a, match: {effects: [Write]}, action: deny}]"}, "edit write"},
		"deny sometimes":       {"", []string{"rules: [{name: a, match: {tools: [write]}, when: \"call.args.path == 'x'\", action: deny}]"}, ""},
		"list":                 {"", []string{"permissions: [{permission: bash, action: deny}]"}, "bash"},
		"list and a deny":      {"a later deny does not soften an earlier one", []string{"permissions: [{permission: bash, action: deny}, {permission: bash, pattern: 'rm *', action: deny}]"}, "bash"},
		"list and an ask":      {"", []string{"permissions: [{permission: bash, action: deny}, {permission: bash, pattern: 'rm *', action: ask}]"}, ""},
		"default":              {"nothing allows anything", []string{"default: deny"}, "bash boxed edit free grep read send write"},
		"default and a list":   {"a list that speaks of another tool allows nothing", []string{"default: deny\npermissions: [{permission: bash, pattern: 'git *', action: allow}]"}, "boxed edit free grep read send write"},
		"default, denied list": {"a list that only denies allows nothing, but what is not known of a script is asked about", []string{"default: deny\npermissions: [{permission: bash, pattern: 'git *', action: deny}]"}, "boxed edit free grep read send write"},
		"default and a rule":   {"", []string{"default: deny\nrules: [{name: a, match: {tools: [read]}, when: \"call.args.path == 'x'\", action: allow}]"}, "bash boxed edit free grep send write"},
		"a rule below R3":      {"an allow that does not name R3 does not allow send", []string{"default: deny\nrules: [{name: a, action: allow}]"}, "send"},
		"a list below R3":      {"a list never allows R3", []string{"default: deny\npermissions: [{permission: '*', action: allow}]"}, "send"},
		"a rule never true":    {"", []string{"default: deny\nrules: [{name: a, match: {tools: [read]}, when: 'cmd.dynamic && false', action: allow}]"}, "bash boxed edit free grep read send write"},
		"an ask":               {"a person may say yes", []string{"default: deny\nrules: [{name: a, match: {tools: [send]}, action: ask}]"}, "bash boxed edit free grep read write"},
		"warn":                 {"a policy that warns decides nothing", []string{"mode: Warn\ndefault: deny\nrules: [{name: a, action: deny}]"}, ""},
		"two policies":         {"another policy allows", []string{"default: deny", "rules: [{name: a, match: {tools: [read, grep]}, action: allow}]"}, "bash boxed edit free send write"},
		"another agent":        {"", []string{"rules: [{name: a, match: {agents: [other]}, action: deny}]"}, ""},
		"on the result":        {"what withholds a result does not forbid the call", []string{"rules: [{name: a, 'on': Result, action: deny}]"}, ""},
	}
	calls := []message.ToolCall{
		bash("ls"), bash("git status"), bash("rm x"), call("boxed", nil), call("free", nil), call("edit", map[string]any{"path": "x", "oldString": "a", "newString": "b"}), call("grep", map[string]any{"pattern": "x"}),
		call("read", map[string]any{"path": "x"}), call("send", map[string]any{"to": "x"}), call("write", map[string]any{"path": "x", "content": ""}),
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := engine(t, tc.policies...)
			hidden := e.HiddenTools()
			if got := strings.Join(hidden, " "); got != tc.hidden {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.hidden)
			}
			for _, c := range calls {
				if d := decide(t, e, c); slices.Contains(hidden, c.Tool) && d.Action != message.Deny {
					t.Errorf("%s is hidden, and a call of it is %s by %s", c.Tool, d.Action, d.Rule)
				}
			}
		})
	}
}

func TestRedactionOfAFieldThatNoToolHasIsTold(t *testing.T) {
	for text, want := range map[string]string{
		"rules: [{name: a, match: {tools: [send]}, action: redact, redact: {fields: [bdoy]}}]":                    "did you mean body?",
		"rules: [{name: a, match: {tools: [send, write]}, action: redact, redact: {fields: [body, contnet]}}]":    "did you mean content?",
		"rules: [{name: a, match: {tools: [send, write]}, action: redact, redact: {fields: [body, content]}}]":    "",
		"rules: [{name: a, match: {tools: [free]}, action: redact, redact: {fields: [anything]}}]":                "",
		"rules: [{name: a, match: {tools: [send]}, 'on': Result, action: redact, redact: {fields: [anything]}}]":  "",
		"rules: [{name: a, match: {tools: [send]}, action: redact, redact: {fields: [body.pin], secrets: true}}]": "",
	} {
		_, problems := Compile(parse(t, text), testTools())
		got := ""
		for _, p := range problems {
			if strings.HasPrefix(p.Path, "spec.rules[0].redact.fields") && p.Warning {
				got += p.Suggestion
			}
		}
		if got != want || want == "" && len(problems) > 0 {
			t.Errorf("%s: got %v, want %q", text, problems, want)
		}
	}
}

// What a redaction leaves is judged like any call: also by what is said about reading.
func TestARewrittenCallIsJudgedByWhatItReads(t *testing.T) {
	e := engine(t, `
rules:
- {name: hide, match: {tools: [grep]}, action: redact, redact: {fields: [path]}}
- {name: no-marks, match: {tools: [read]}, when: "paths.exists(p, p.clean.endsWith('/[redacted]'))", action: deny}`)
	d := decide(t, e, call("grep", map[string]any{"pattern": "x", "path": "a"}))
	if d.Action != message.Deny || d.Rule != "p0/no-marks" || d.Args != nil {
		t.Errorf("got %+v", d)
	}
}

// A redaction lets a call run because it is changed: one that changes nothing, and one
// that is not known to apply, let nothing run.
func TestARedactionOfNothingLetsNothingRun(t *testing.T) {
	const rules = `
rules:
- {name: body, match: {tools: [send, write, free], risks: [R0, R1, R2, R3]}, action: redact, redact: {fields: [body, content, nothing]}}
- {name: keys, match: {tools: [bash]}, action: redact, redact: {secrets: true}}
- {name: curl, match: {tools: [bash]}, when: "cmd.commands.exists(c, c.name == 'curl')", action: redact, redact: {fields: [description]}}`
	tests := map[string]struct {
		reason string
		call   message.ToolCall
		want   message.Action
		args   string
	}{
		"nothing there": {"the field is not there", call("send", map[string]any{"to": "x"}), message.Ask, ""},
		"there":         {"", call("send", map[string]any{"to": "x", "body": "y"}), message.Redact, `{"body":"[redacted]","to":"x"}`},
		"again":         {"it has been taken away before", call("send", map[string]any{"to": "x", "body": "[redacted]"}), message.Ask, ""},
		"no key":        {"a script without a credential", bash("make"), message.Ask, ""},
		"unknown":       {"nobody knows that it is curl, and the field is taken away all the same", call("bash", map[string]any{"command": "$x", "description": "y"}), message.Ask, `{"command":"$x","description":"[redacted]"}`},
		"by risk":       {"what the risk allows stays allowed", call("write", map[string]any{"path": "a"}), message.Allow, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := decide(t, engine(t, rules), tc.call)
			if d.Action != tc.want || string(d.Args) != tc.args {
				t.Errorf("%s: got %s %s by %s, want %s %s", tc.reason, d.Action, d.Args, d.Rule, tc.want, tc.args)
			}
		})
	}
}

// A rule about which files may be read applies to every tool: also if the workspace itself
// is among the files that may not be read.
func TestWhatMayBeReadIsTheSameForEveryTool(t *testing.T) {
	rules := map[string]string{
		"all but":    "rules:\n- {name: only, match: {tools: [read]}, when: \"paths.exists(p, !p.clean.contains('/src/'))\", action: deny}\n- {name: ok, action: allow}",
		"argument":   "rules:\n- {name: only, match: {tools: [read]}, when: \"!call.args.path.contains('src/')\", action: deny}\n- {name: ok, action: allow}",
		"default":    "default: deny\nrules:\n- {name: only, match: {tools: [read]}, when: \"paths.exists(p, p.clean.endsWith('.env'))\", action: deny}\n- {name: ok, match: {tools: [bash, grep]}, action: allow}",
		"list":       "permissions: [{permission: read, action: deny}, {permission: read, pattern: 'src/*', action: allow}, {permission: bash, action: allow}, {permission: grep, action: allow}]",
		"fails on .": "rules:\n- {name: only, match: {tools: [read]}, when: \"paths.exists(p, p.clean.split('/src/').size() < 2 && p.clean.split('.env')[1] == '')\", action: deny}\n- {name: ok, action: allow}",
		"variable":   "variables: [{name: outside, expression: \"paths.filter(p, !p.clean.contains('/src/'))\"}]\nrules:\n- {name: only, match: {tools: [read]}, when: size(variables.outside) > 0, action: deny}\n- {name: ok, action: allow}",
	}
	for name, text := range rules {
		t.Run(name, func(t *testing.T) {
			e := engine(t, text)
			put(t, e.context.Workspace.Root, ".env", "src/a.go", "src/b.go")
			for script, want := range map[string]message.Action{
				"cat .env": message.Deny, "grep -r x .": message.Deny, "cp -r . /tmp/out-of-here": message.Deny, "head -1 < .env": message.Deny, "cat src/a.go": message.Allow,
			} {
				if d := decide(t, e, bash(script)); d.Action != want {
					t.Errorf("%s: got %s by %s (%s), want %s", script, d.Action, d.Rule, d.Message, want)
				}
			}
			if d := decide(t, e, call("grep", map[string]any{"pattern": "x", "path": ".env"})); d.Action != message.Deny {
				t.Errorf("grep: got %s by %s", d.Action, d.Rule)
			}
			hidden, err := e.Unreadable(t.Context(), call("grep", map[string]any{"pattern": "x"}), []string{".env", "src/a.go"})
			if err != nil || !slices.Equal(hidden, []string{".env"}) {
				t.Errorf("hidden are %q, %v", hidden, err)
			}
			masked, err := e.Masked(t.Context(), []string{".env", "src/a.go"})
			if err != nil || !slices.Equal(masked, []string{".env"}) {
				t.Errorf("masked are %q, %v", masked, err)
			}
		})
	}
}

// A rule about other arguments than a path does not refuse a file.
func TestARuleAboutOtherArgumentsOfReadRefusesNoFile(t *testing.T) {
	e := engine(t, "rules:\n- {name: long, match: {tools: [read]}, when: call.args.limit > 1000, action: deny}\n- {name: ok, match: {tools: [bash]}, action: allow}")
	put(t, e.context.Workspace.Root, "a.go")
	for _, script := range []string{"cat a.go", "grep -r x ."} {
		if d := decide(t, e, bash(script)); d.Action != message.Allow {
			t.Errorf("%s: got %s by %s (%s)", script, d.Action, d.Rule, d.Message)
		}
	}
}

// Unknown facts never allow: whatever the rules are, a dynamic script is allowed only
// where every script is.
func TestUnknownFactsNeverAllow(t *testing.T) {
	conditions := []string{
		"cmd.commands.exists(c, c.name == 'ls')", "!cmd.commands.exists(c, c.name == 'rm')", "cmd.commands.all(c, c.name in ['ls', 'cat'])", "cmd.commands.size() == 1",
		"cmd.commands.size() < 9", "!cmd.network", "cmd.writes.size() == 0", "cmd.reads.all(r, r != '.env')", "paths.all(p, p.inWorkspace)", "!paths.exists(p, p.secret)",
		"net.hosts.size() == 0", "cmd.hosts.all(h, h == 'x')", "cmd.commands[0].name == 'ls'", "has(call.args.command) && cmd.commands.filter(c, c.name == 'rm').size() == 0",
		"cmd.commands.map(c, c.name).all(n, n == 'ls')", "sets.contains(['ls'], cmd.commands.map(c, c.name))", "variables.quiet", "!variables.loud", "cmd.network == false", "size(paths) == 0",
		"(cmd.network ? false : true)", "cmd == cmd", "paths == paths", "[cmd.network].exists(x, !x)", "optional.of(cmd.network).orValue(true) == false", "dyn(cmd).network == false",
	}
	scripts := []string{"$x", "ls; $x", "$(echo ls)", "eval \"$y\"", "ls `cat f`", "${a}b c", "l''s $(x)", "ls; (", "case $x in a) ls;; esac; $z", "source ./x; ls", "x=ls; $x"}
	lists := []string{"", "permissions: [{permission: bash, pattern: 'ls *', action: allow}]", "permissions: [{permission: bash, action: deny}, {permission: bash, pattern: 'ls *', action: allow}]"}
	r := rand.New(rand.NewPCG(3, 4))
	for range 120 {
		var rules strings.Builder
		for i := range 1 + r.IntN(3) {
			action := []string{"allow", "allow", "ask", "deny", "redact"}[r.IntN(5)]
			more := ""
			if action == "redact" {
				continue // lets a changed call run, and is not an allow
			}
			fmt.Fprintf(&rules, "- {name: r%d, match: {tools: [bash]}, when: %q, action: %s%s}\n", i, conditions[r.IntN(len(conditions))], action, more)
		}
		text := "variables: [{name: quiet, expression: '!cmd.network'}, {name: loud, expression: \"cmd.network || paths.exists(p, p.secret)\"}]\n" + lists[r.IntN(len(lists))]
		if rules.Len() > 0 {
			text += "\nrules:\n" + rules.String()
		}
		e := engine(t, text)
		for _, s := range scripts {
			if d := decide(t, e, bash(s)); d.Action == message.Allow {
				t.Fatalf("%s: allowed by %s\n%s", s, d.Rule, text)
			}
		}
	}
}

// TestOrderNeverMatters: of rules in a policy, of policies, and of their parts; it counts
// only inside one permission list.
func TestOrderNeverMatters(t *testing.T) {
	conditions := []string{
		"", "cmd.dynamic", "paths.exists(p, !p.inWorkspace)", "cmd.commands.exists(c, c.name == 'rm')", "1 / call.repeats == 1", "tool.risk >= 2",
		"cmd.commands.all(c, c.name == 'ls')", "[1][call.repeats + 1] == 1", "tool.effects[7] == 'Read'", "cmd.network",
	}
	actions := []string{"allow", "ask", "deny", "redact"}
	modes := []string{"", "mode: Warn\n", "mode: Audit\n", "default: deny\n", "default: ask\n", "default: allow\n", "permissions: [{permission: bash, action: allow}]\n", "permissions: [{permission: write, pattern: '*.go', action: ask}]\n"}
	calls := []message.ToolCall{
		bash("ls"), bash("rm x; $y"), bash("rm -rf /x"), bash("curl http://x.example"), call("read", map[string]any{"path": "/x"}), call("write", map[string]any{"path": "a.go", "content": "b"}),
		call("send", map[string]any{"to": "x", "body": "y"}), call("free", nil), call("boxed", nil),
	}
	r := rand.New(rand.NewPCG(5, 6))
	for range 100 {
		var policies []*v1alpha1.Policy
		for n := range 1 + r.IntN(4) {
			var s strings.Builder
			s.WriteString(modes[r.IntN(len(modes))] + "rules:\n")
			for i := range 1 + r.IntN(4) {
				fmt.Fprintf(&s, "- {name: r%d, when: %q, action: %s, redact: {fields: [body, content]}, match: {risks: [R0, R1, R2, R3]}}\n", i, conditions[r.IntN(len(conditions))], actions[r.IntN(4)])
			}
			p := parse(t, s.String())
			p.Name = fmt.Sprintf("p%d", n)
			policies = append(policies, p)
		}
		c := engine(t).context
		build := func() *Engine {
			var all []*Compiled
			for _, p := range policies {
				done, problems := Compile(p.DeepCopy(), testTools())
				for _, x := range problems {
					if !x.Warning {
						t.Fatal(x)
					}
				}
				all = append(all, done)
			}
			return NewEngine(all, c)
		}
		first := build()
		hidden := first.HiddenTools()
		var before []message.Decision
		for _, x := range calls {
			before = append(before, decide(t, first, x))
		}
		for range 3 {
			r.Shuffle(len(policies), func(i, j int) { policies[i], policies[j] = policies[j], policies[i] })
			for _, p := range policies {
				rules := p.Spec.Rules
				r.Shuffle(len(rules), func(i, j int) { rules[i], rules[j] = rules[j], rules[i] })
			}
			e := build()
			if !slices.Equal(e.HiddenTools(), hidden) {
				t.Fatalf("other tools are hidden: %v, %v", e.HiddenTools(), hidden)
			}
			for i, x := range calls {
				d := decide(t, e, x)
				if d.Action != before[i].Action || string(d.Args) != string(before[i].Args) || len(d.Warnings) != len(before[i].Warnings) || d.Hash != before[i].Hash {
					t.Fatalf("%s %s: %+v, in another order %+v", x.Tool, x.Args, before[i], d)
				}
			}
		}
	}
}
