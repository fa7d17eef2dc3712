package policytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/policy"
)

func testTools() []policy.Tool {
	schema := func(fields ...string) json.RawMessage {
		return json.RawMessage(`{"type":"object","properties":{"` + strings.Join(fields, `":{"type":"string"},"`) + `":{"type":"string"}}}`)
	}
	return []policy.Tool{
		{Name: "read", Builtin: "read", Source: "builtin", Risk: "R0", Effects: []v1alpha1.Effect{"Read"}, Category: "Read", Schema: schema("path")},
		{Name: "write", Builtin: "write", Source: "builtin", Risk: "R1", Effects: []v1alpha1.Effect{"Write"}, Category: "Edit", Schema: schema("path", "content")},
		{Name: "bash", Builtin: "bash", Source: "builtin", Risk: "R2", Effects: []v1alpha1.Effect{"Execute"}, Category: "Execute", Schema: schema("command")},
	}
}

func subject(t testing.TB, text string) Subject {
	t.Helper()
	p := &v1alpha1.Policy{}
	if err := yaml.UnmarshalStrict([]byte(text), &p.Spec); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	p.Name = "p"
	compiled, problems := policy.Compile(p, testTools())
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	s := Subject{Policy: p, Compiled: compiled, Where: func(path string) manifest.Position { return manifest.Position{File: path, Line: 1, Col: 1} }}
	for i, c := range p.Spec.Tests {
		s.Cases = append(s.Cases, Case{PolicyTest: c, Position: manifest.Position{File: "cases", Line: i + 1}})
	}
	return s
}

func run(t testing.TB, text string, opts Options) PolicyReport {
	t.Helper()
	opts.Tools = testTools()
	r, err := Run(t.Context(), []Subject{subject(t, text)}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return r.Policies[0]
}

const careful = `
mode: Audit
rules:
- {name: outside, match: {tools: [write]}, when: "paths.exists(p, !p.inWorkspace)", action: deny, messageExpression: "'not ' + paths[0].clean"}
- {name: often, match: {tools: [read]}, when: "has(session.calls.read) && session.calls.read > 2 && session.denials == 1", action: ask}
- {name: mine, match: {agents: [me]}, when: "has(agent.labels.team) && agent.labels.team == 'a' && now.getFullYear() == 2026 && budget.steps.used == 0", action: deny}
- {name: keys, "on": Result, action: redact, redact: {secrets: true}}
- {name: failed, "on": Result, match: {tools: [bash]}, when: "result.exitCode == 3 && result.error == 'ToolError'", action: deny}
default: allow
tests:
`

func TestCasesPassOrFail(t *testing.T) {
	for name, tt := range map[string]struct {
		reason, text string
		pass         bool
		problem      string
	}{
		"action":           {"the action is what is expected", "{call: {tool: write, args: {path: /etc/x}}, expect: deny}", true, ""},
		"another action":   {"and not another one", "{call: {tool: write, args: {path: /etc/x}}, expect: ask}", false, ""},
		"rule":             {"the rule is named without its policy", "{call: {tool: write, args: {path: /etc/x}}, expect: deny, rule: outside}", true, ""},
		"another rule":     {"the right action by the wrong rule is luck", "{call: {tool: write, args: {path: /etc/x}}, expect: deny, rule: often}", false, ""},
		"default":          {"the policy's default", "{call: {tool: read, args: {path: x}}, expect: allow, rule: default}", true, ""},
		"message":          {"the message is compared as a whole", "{call: {tool: write, args: {path: /etc/x}}, expect: deny, message: not /etc/x}", true, ""},
		"another message":  {"not as a part", "{call: {tool: write, args: {path: /etc/x}}, expect: deny, message: not}", false, ""},
		"workspace":        {"the folder has a name in arguments", `{call: {tool: write, args: {path: "${workspace}/x"}}, expect: allow}`, true, ""},
		"above":            {"and in messages", `{call: {tool: write, args: {path: "${workspace}x"}}, expect: deny, message: "not ${workspace}x"}`, true, ""},
		"link":             {"links are real", "{links: [{path: a/b, to: /etc}], call: {tool: write, args: {path: a/b/x}}, expect: deny}", true, ""},
		"no link":          {"and there is none in the next case", "{call: {tool: write, args: {path: a/b/x}}, expect: allow}", true, ""},
		"session":          {"what came before is counted", "{session: {calls: {read: 3}, denials: 1}, call: {tool: read}, expect: ask, rule: often}", true, ""},
		"shorter session":  {"as it is said", "{session: {calls: {read: 2}, denials: 1}, call: {tool: read}, expect: allow}", true, ""},
		"agent":            {"an agent has its labels, the time is fixed, nothing is used", "{agent: me, call: {tool: read}, expect: deny, rule: mine}", true, ""},
		"other agent":      {"an unknown agent has only its name", "{agent: you, call: {tool: read}, expect: allow}", true, ""},
		"result":           {"a result is withheld", "{call: {tool: bash}, result: {exitCode: 3, error: ToolError}, expect: deny, rule: failed}", true, ""},
		"redacted":         {"a result is changed", "{call: {tool: read}, result: {text: token=abcdef, want: 'token=[redacted]'}, expect: redact, rule: keys}", true, ""},
		"redacted so":      {"as it should be", "{call: {tool: read}, result: {text: token=abcdef, want: 'token=***'}, expect: redact}", false, ""},
		"clean result":     {"a rule that changes nothing has not counted", "{call: {tool: read}, result: {text: hello}, expect: allow}", true, ""},
		"no tool":          {"a deny for a tool that is not there tests nothing", "{call: {tool: wrote}, expect: deny}", false, "there is no tool wrote, did you mean write?"},
		"no such tool":     {"without a name that is near", "{call: {tool: github}, expect: deny}", false, "there is no tool github: give its manifest, too"},
		"wrong args":       {"nor does a call that no run would judge", "{call: {tool: read, args: {pth: x}}, expect: allow}", false, "no run would judge this call: no pth"},
		"ambiguous args":   {"what cannot be judged is denied", "{call: {tool: read, args: {Path: x}}, expect: deny}", true, ""},
		"denied in result": {"the call itself is not judged beside a result", "{call: {tool: write, args: {path: /etc/x}}, result: {text: ok}, expect: allow}", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := run(t, careful+"- {name: x, "+tt.text[1:], Options{
				Agents: map[string]policy.Agent{"me": {Name: "me", Labels: map[string]string{"team": "a"}}},
				Check: func(_ string, args json.RawMessage) error {
					if strings.Contains(string(args), "pth") {
						return errors.New("no pth")
					}
					return nil
				},
			})
			c := p.Cases[0]
			if c.Pass != tt.pass || c.Problem != tt.problem {
				t.Errorf("pass %t %q, want %t %q: %s\ngot %+v", c.Pass, c.Problem, tt.pass, tt.problem, tt.reason, c.Got)
			}
			if (c.Got == nil) != (tt.problem != "") {
				t.Errorf("got %+v beside the problem %q", c.Got, c.Problem)
			}
		})
	}
}

func TestTheRuleThatDecidedHasAPlace(t *testing.T) {
	p := run(t, `
permissions: [{permission: read, pattern: "*.key", action: deny}]
rules: [{name: a, match: {tools: [bash]}, action: ask}]
default: ask
tests:
- {name: rule, call: {tool: bash, args: {command: ls}}, expect: ask}
- {name: list, call: {tool: read, args: {path: a.key}}, expect: deny}
- {name: default, call: {tool: read, args: {path: x}}, expect: ask}`, Options{})
	for i, want := range []string{"spec.rules[0]", "spec.permissions", "spec.default"} {
		if at := p.Cases[i].RulePosition; at == nil || at.File != want {
			t.Errorf("case %s: decided at %v, want %s", p.Cases[i].Name, at, want)
		}
	}
}

func TestCoverageNamesWhatNoCaseDoes(t *testing.T) {
	const rules = `
permissions:
- {permission: bash, pattern: "*", action: ask}
- {permission: bash, pattern: "ls *", action: allow}
rules:
- {name: outside, match: {tools: [write]}, when: "paths.exists(p, !p.inWorkspace)", action: deny}
- {name: shell, match: {tools: [bash]}, action: ask}
- {name: all, action: ask}
- {name: failed, "on": Result, when: "result.exitCode == 1", action: deny}
tests:
`
	for name, tt := range map[string]struct {
		reason, cases string
		want          []string
	}{
		"one call": {
			"a deny does not hide the rules beside it", "- {name: x, call: {tool: write, args: {path: /x}}, expect: deny}",
			[]string{"outside false", "shell matched", "failed true", "failed false", `bash "*" won`, `bash "ls *" won`},
		},
		"everything": {"then nothing is missing", `
- {name: a, call: {tool: write, args: {path: /x}}, expect: deny}
- {name: b, call: {tool: write, args: {path: x}}, expect: ask}
- {name: c, call: {tool: bash, args: {command: ls}}, expect: ask}
- {name: d, call: {tool: bash, args: {command: rm x}}, expect: ask}
- {name: e, call: {tool: read}, result: {exitCode: 1}, expect: deny}
- {name: f, call: {tool: read}, result: {}, expect: allow}`, nil},
		"a case that tests nothing": {
			"covers nothing", "- {name: x, call: {tool: none}, expect: deny}",
			[]string{"outside true", "outside false", "shell matched", "shell unmatched", "all matched", "failed true", "failed false", `bash "*" won`, `bash "ls *" won`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := run(t, rules+tt.cases, Options{}).Coverage
			var got []string
			for _, g := range slices.Concat(c.Rules.Missing, c.Permissions.Missing) {
				got = append(got, g.Name+" "+g.Never)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s\n%s", tt.reason, diff)
			}
			if c.Complete() != (len(tt.want) == 0) {
				t.Errorf("complete is %t with %d gaps", c.Complete(), len(got))
			}
		})
	}
}

func TestMutantsThatNoCaseNotices(t *testing.T) {
	const rules = `
rules:
- {name: outside, match: {tools: [write]}, when: "paths.exists(p, !p.inWorkspace)", action: deny}
default: allow
tests:
- {name: outside, call: {tool: write, args: {path: /x}}, expect: deny}
`
	m := run(t, rules, Options{Mutate: true}).Mutation
	if m.Mutants != 4 || m.Killed != 3 || m.Score != 75 {
		t.Errorf("got %d of %d, %.1f %%; want 3 of 4", m.Killed, m.Mutants, m.Score)
	}
	if len(m.Survivors) != 1 || m.Survivors[0].Change != "default deny instead of allow" || m.Survivors[0].Position.File != "spec.default" {
		t.Errorf("survivors %+v", m.Survivors)
	}
	m = run(t, rules+"- {name: inside, call: {tool: write, args: {path: x}}, expect: allow}\n", Options{Mutate: true}).Mutation
	if m.Score != 100 || len(m.Survivors) != 0 {
		t.Errorf("got %.1f %% with %+v", m.Score, m.Survivors)
	}
	if m = run(t, rules+"- {name: wrong, call: {tool: read}, expect: deny}\n", Options{Mutate: true}).Mutation; m != nil {
		t.Errorf("mutants were tried although a case fails: %+v", m)
	}
}

func TestOnlySomeCases(t *testing.T) {
	p := run(t, "default: allow\ntests:\n- {name: a, call: {tool: read}, expect: allow}\n- {name: b, call: {tool: read}, expect: deny}\n", Options{Only: regexp.MustCompile("^a$")})
	if len(p.Cases) != 1 || !p.Cases[0].Pass || p.Coverage != nil {
		t.Errorf("got %+v", p)
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	run(t, "default: allow\ntests:\n- {name: a, links: [{path: x, to: /etc}], call: {tool: read}, expect: allow}\n", Options{})
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	t.Setenv("TMPDIR", tmp+"/none")
	if _, err := Run(t.Context(), nil, Options{}); err == nil {
		t.Error("no folder for the cases, and no error")
	}
	t.Setenv("TMPDIR", tmp)
	s := subject(t, "tests:\n- {name: a, links: [{path: x, to: /etc}, {path: x, to: /etc}], call: {tool: read}, expect: allow}\n")
	if _, err := Run(t.Context(), []Subject{s}, Options{Tools: testTools()}); err == nil {
		t.Error("a link that cannot be made is no error")
	}
}

// thousand is a policy with many cases, half of them over the shell.
func thousand() string {
	var b strings.Builder
	b.WriteString("rules:\n")
	for i := range 50 {
		fmt.Fprintf(&b, "- {name: r%d, match: {tools: [bash, write]}, when: \"paths.exists(p, p.clean.endsWith('/x%d'))\", action: deny}\n", i, i)
	}
	b.WriteString("default: allow\ntests:\n")
	for i := range 500 {
		fmt.Fprintf(&b, "- {name: w%d, call: {tool: write, args: {path: a/x%d}}, expect: deny}\n", i, i%50)
		fmt.Fprintf(&b, "- {name: b%d, call: {tool: bash, args: {command: \"cat b | grep x > a/x%d\"}}, expect: deny}\n", i, i%50)
	}
	return b.String()
}

func BenchmarkThousandCases(b *testing.B) {
	s := subject(b, thousand())
	b.ReportAllocs()
	for b.Loop() {
		r, err := Run(b.Context(), []Subject{s}, Options{Tools: testTools()})
		if err != nil || r.Failed > 0 {
			b.Fatal(r.Failed, err)
		}
	}
	b.ReportMetric(float64(1000*b.N)/b.Elapsed().Seconds(), "cases/s")
}

func BenchmarkMutants(b *testing.B) {
	s := subject(b, thousand())
	for b.Loop() {
		r, err := Run(b.Context(), []Subject{s}, Options{Tools: testTools(), Mutate: true})
		if err != nil || r.Mutants != 151 {
			b.Fatal(r.Mutants, err)
		}
	}
}
