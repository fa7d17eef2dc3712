package admission

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/model/provider"
	"agentctl.dev/agentctl/runner/tool/source/sources"
)

// admit reads a text as a file of dir and fails the test on any error.
func admit(t *testing.T, dir, text string) *Catalog {
	t.Helper()
	path := filepath.Join(dir, "all.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	set, found := manifest.Load(t.Context(), []string{path}, nil)
	c, more := Admit(set, Options{Models: provider.All(), Tools: sources.All()})
	found = append(found, more...)
	if found.HasErrors() {
		var b strings.Builder
		_ = found.Write(&b, 0)
		t.Fatal(b.String())
	}
	return c
}

// object writes a manifest; spec is indented by two blanks already.
func object(kind, name, spec string) string {
	return "---\napiVersion: agentctl.dev/v1alpha1\nkind: " + kind + "\nmetadata: {name: " + name + "}\nspec:\n" + spec
}

const scriptedSpec = "  provider: scripted\n  scripted: {steps: [{say: hi}]}\n"

func TestResolveFollowsEveryReference(t *testing.T) {
	dir := t.TempDir()
	c := admit(t, dir, `apiVersion: agentctl.dev/v1alpha1
kind: Agent
metadata: {name: a, labels: {team: web}}
spec:
  modelRef: {name: m}
  tools:
  - {name: greet}
  - {name: write}
  - {name: shell}
  policyRefs: [{name: named}]
  limits: {maxSteps: 9, timeout: 5m, maxCost: "2.00"}
`+
		object("Model", "m", "  provider: openai\n  model: x\n  pricing: {input: \"1\"}\n  apiKey: {valueFrom: {file: secrets/key}}\n  retry: {attempts: 2}\n")+
		object("Tool", "greet", "  parameters: {type: object}\n  source: {plugin: {command: [./bin/greet, ./not-a-path]}}\n  env: [{name: K, valueFrom: {exec: [./get, x]}}, {name: L, valueFrom: {file: /abs/../key}}]\n")+
		object("Tool", "shell", "  callName: sh\n  risk: R3\n  effects: [Network]\n  source: {builtin: {name: bash}}\n")+
		object("Tool", "unused", "  parameters: {type: object}\n  source: {exec: {command: [jq, .]}}\n")+
		object("Policy", "named", "  default: ask\n")+
		object("Policy", "web", "  appliesTo: {agentSelector: {matchLabels: {team: web}}}\n  default: deny\n")+
		object("Policy", "everyone", "  appliesTo: {agentSelector: {}}\n")+
		object("Policy", "other", "  appliesTo: {agentSelector: {matchLabels: {team: ops}}}\n")+
		object("Policy", "nobody", "  default: allow\n")+
		object("Run", "r", "  agentRef: {name: a}\n  prompt: go\n  workspace: {source: {path: ../src}}\n  limits: {maxSteps: 3, timeout: 1m, maxTokens: 100, maxParallelTools: 2, maxCost: \"0.50\"}\n"))
	p, err := c.Resolve(ResolveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if p.Run == nil || p.Run.Name != "r" || p.Agent.Name != "a" || p.Model.Name != "m" {
		t.Errorf("run %v, agent %v, model %v", p.Run, p.Agent.Name, p.Model.Name)
	}
	var tools, policies []string
	for _, x := range p.Tools {
		tools = append(tools, x.CallName()+" "+string(x.Tool.Spec.Risk)+" "+string(x.Tool.Spec.WorkspaceAccess)+" "+string(x.Tool.Spec.Category)+" "+x.Tool.Spec.Source.Kind())
	}
	for _, x := range p.Policies {
		policies = append(policies, x.Name)
	}
	if diff := cmp.Diff([]string{"greet R2 ReadOnly Other plugin", "write R1 ReadWrite Edit builtin", "sh R3 ReadWrite Execute builtin"}, tools); diff != "" {
		t.Errorf("tools: %s", diff)
	}
	if diff := cmp.Diff([]string{"everyone", "named", "web"}, policies); diff != "" {
		t.Errorf("policies: %s", diff)
	}
	if n := len(p.Compiled()); n != 3 || p.Compiled()[1].Name() != "named" {
		t.Errorf("%d policies are compiled", n)
	}
	greet, sh := p.Tools[0].Tool.Spec, p.Tools[2].Tool.Spec
	for what, pair := range map[string][2]string{
		"plugin":    {greet.Source.Plugin.Command[0], filepath.Join(dir, "bin/greet")},
		"argument":  {greet.Source.Plugin.Command[1], "./not-a-path"},
		"exec":      {greet.Env[0].ValueFrom.Exec[0], filepath.Join(dir, "get")},
		"file":      {greet.Env[1].ValueFrom.File, "/key"},
		"key":       {p.Model.Spec.APIKey.ValueFrom.File, filepath.Join(dir, "secrets/key")},
		"workspace": {p.Run.Spec.Workspace.Source.Path, filepath.Join(filepath.Dir(dir), "src")},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %s, want %s", what, pair[0], pair[1])
		}
	}
	if diff := cmp.Diff([]v1alpha1.Effect{"Network", "Read", "Write", "Execute"}, sh.Effects); diff != "" {
		t.Errorf("effects are floors: %s", diff)
	}
	if !strings.Contains(string(sh.Parameters.Raw), "command") || sh.Limits.OutputBytes != 51200 {
		t.Errorf("the built-in tool is not written out: %+v", sh)
	}
	if p.Tools[1].Tool.Spec.Limits.Timeout.Duration != 2*time.Minute {
		t.Error("a built-in tool without a manifest has no defaults")
	}
	l := p.Limits
	if l.MaxSteps != 3 || l.Timeout.Duration != time.Minute || l.MaxTokens != 100 || l.MaxParallelTools != 2 || l.MaxCost != "0.50" || p.Agent.Spec.Limits.MaxSteps != 9 {
		t.Errorf("limits %+v", l)
	}
	if got := p.Sources["tool/greet"]; got != filepath.Join(dir, "all.yaml")+":22:1" {
		t.Errorf("source of tool/greet: %s", got)
	}
	roundTrip(t, p)
}

// The order is that in which a reader of the manifests would turn to them.
func TestFallbacksOfFallbacksAreInThePlan(t *testing.T) {
	dir := t.TempDir()
	with := func(name, more string) string {
		return object("Model", name, "  provider: openai\n  model: "+name+"\n  apiKey: {valueFrom: {file: keys/"+name+"}}\n"+more)
	}
	c := admit(t, dir, object("Agent", "a", "  modelRef: {name: first}\n")+
		with("first", "  fallbacks: [{name: second}, {name: fourth}, {name: second}]\n")+
		with("second", "  fallbacks: [{name: third}]\n")+
		with("third", "  fallbacks: [{name: fourth}]\n")+
		with("fourth", "")+with("stranger", "  fallbacks: [{name: third}]\n"))
	for model, want := range map[string][]string{"first": {"second", "third", "fourth"}, "third": {"fourth"}, "fourth": nil, "stranger": {"third", "fourth"}} {
		p, err := c.Resolve(ResolveOptions{Model: model})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range p.Fallbacks {
			got = append(got, m.Name)
			if file := m.Spec.APIKey.ValueFrom.File; file != filepath.Join(dir, "keys", m.Name) {
				t.Errorf("the key of %s is at %s", m.Name, file)
			}
			if p.Sources["model/"+m.Name] == "" {
				t.Errorf("nobody knows where %s was declared", m.Name)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("fallbacks of %s (-want +got):\n%s", model, diff)
		}
		roundTrip(t, p)
	}
}

// roundTrip checks that a resumed run gets the same plan from its blob.
func roundTrip(t *testing.T, p *Plan) {
	t.Helper()
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var again Plan
	if err := json.Unmarshal(raw, &again); err != nil {
		t.Fatal(err)
	}
	twice, err := json.Marshal(&again)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(raw), string(twice)); diff != "" {
		t.Errorf("the plan changes when it is read again: %s", diff)
	}
	if len(again.Compiled()) != len(p.Policies) {
		t.Error("a plan that was read does not compile its policies")
	}
}

func TestResolveAsksWhichOne(t *testing.T) {
	agents := object("Agent", "a", "  modelRef: {name: m}\n") + object("Agent", "b", "  modelRef: {name: m}\n") +
		object("Agent", "sub", "  mode: Subagent\n  modelRef: {name: m}\n")
	models := object("Model", "m", scriptedSpec) + object("Model", "other", scriptedSpec)
	one := object("Agent", "a", "  modelRef: {name: m}\n") + object("Agent", "sub", "  mode: Subagent\n  modelRef: {name: m}\n")
	runs := object("Run", "r1", "  agentRef: {name: a}\n") + object("Run", "r2", "  agentRef: {name: a}\n") + object("Run", "r3", "  agentRef: {name: b}\n")
	nameless := "---\napiVersion: agentctl.dev/v1alpha1\nkind: Run\nmetadata: {generateName: r-}\nspec: {agentRef: {name: b}}\n"
	cases := map[string]struct {
		reason, text string
		opts         ResolveOptions
		agent, run   string
		model        string
		wrong        string
	}{
		"one agent":         {"with one agent that can be started nothing is named", one, ResolveOptions{}, "a", "", "m", ""},
		"two agents":        {"two agents are a question", agents, ResolveOptions{}, "", "", "", "name one with --agent: a, b"},
		"named":             {"which is answered by a name", agents, ResolveOptions{Agent: "b"}, "b", "", "m", ""},
		"model":             {"the model can be replaced", one, ResolveOptions{Model: "other"}, "a", "", "other", ""},
		"no such model":     {"by one that exists", one, ResolveOptions{Model: "othr"}, "", "", "", `model "othr" not found; did you mean "other"?`},
		"no such agent":     {"a slip is told", agents, ResolveOptions{Agent: "zzz"}, "", "", "", "known: a, b, sub"},
		"subagent":          {"a subagent is not started by a run", agents, ResolveOptions{Agent: "sub"}, "", "", "", "mode Subagent"},
		"one run":           {"one run says what to do", agents + nameless, ResolveOptions{}, "b", "", "m", ""},
		"several runs":      {"several runs are a question", agents + runs, ResolveOptions{}, "", "", "", "3 runs: name one of r1, r2, r3"},
		"run of an agent":   {"an agent's only run is taken", agents + runs, ResolveOptions{Agent: "b"}, "b", "r3", "m", ""},
		"runs of an agent":  {"an agent's runs may be several", agents + runs, ResolveOptions{Agent: "a"}, "", "", "", `agent "a" has 2 runs`},
		"run by name":       {"a run is named", agents + runs, ResolveOptions{Run: "r2"}, "a", "r2", "m", ""},
		"run of another":    {"agent and run must fit", agents + runs, ResolveOptions{Run: "r2", Agent: "b"}, "", "", "", `is of agent "a", not "b"`},
		"no such run":       {"a run must exist", agents + runs, ResolveOptions{Run: "r9"}, "", "", "", `run "r9" not found`},
		"nothing to start":  {"models alone do nothing", "", ResolveOptions{}, "", "", "", "no Agent that a run can start"},
		"agent without run": {"an agent without runs runs without one", one, ResolveOptions{Agent: "a"}, "a", "", "m", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := admit(t, t.TempDir(), models+c.text).Resolve(c.opts)
			if c.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), c.wrong) {
					t.Errorf("%s: error %v, want %s", c.reason, err, c.wrong)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}
			run := ""
			if p.Run != nil {
				run = p.Run.Name
			}
			if p.Agent.Name != c.agent || run != c.run || p.Model.Name != c.model {
				t.Errorf("%s: agent %s, run %s, model %s", c.reason, p.Agent.Name, run, p.Model.Name)
			}
		})
	}
}

func TestAPlanIsNoViewOfTheCatalog(t *testing.T) {
	c := admit(t, t.TempDir(), object("Model", "m", scriptedSpec)+object("Agent", "a", "  modelRef: {name: m}\n  tools: [{name: bash}]\n")+
		object("Tool", "bash", "  source: {builtin: {name: bash}}\n"))
	p, err := c.Resolve(ResolveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.Tools[0].Tool.Spec.Effects = append(p.Tools[0].Tool.Spec.Effects, v1alpha1.EffectMoney)
	p.Agent.Spec.Instructions, p.Model.Spec.Scripted.Steps[0].Say = "x", "x"
	q, err := c.Resolve(ResolveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if q.Agent.Spec.Instructions != "" || q.Model.Spec.Scripted.Steps[0].Say != "hi" || len(q.Tools[0].Tool.Spec.Effects) != 3 {
		t.Error("changing one plan changed the next")
	}
}

func TestToolsOfOneCallNameAreCompiledPerPlan(t *testing.T) {
	tool := func(name, arg string) string {
		return object("Tool", name, "  callName: hit\n  parameters: {type: object, properties: {"+arg+": {type: string}}}\n  source: {exec: {command: [x]}}\n")
	}
	c := admit(t, t.TempDir(), object("Model", "m", scriptedSpec)+tool("t", "one")+tool("u", "two")+
		object("Agent", "a", "  modelRef: {name: m}\n  tools: [{name: u}]\n  policyRefs: [{name: p}]\n")+
		object("Policy", "p", "  rules: [{name: r, match: {risks: [R2]}, action: ask}]\n"))
	p, err := c.Resolve(ResolveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if p.compiled != nil || len(p.Compiled()) != 1 {
		t.Error("a policy that was compiled against another tool of the name is used")
	}
}

func TestAPlanHoldsTheNamedWorkspaceItself(t *testing.T) {
	dir := t.TempDir()
	c := admit(t, dir, object("Agent", "a", "  modelRef: {name: m}\n")+object("Model", "m", scriptedSpec)+
		object("Workspace", "repo", "  source: {path: src}\n  strategy: InPlace\n  exclude: [node_modules]\n")+
		object("Run", "r", "  agentRef: {name: a}\n  workspaceRef: {name: repo}\n"))
	p, err := c.Resolve(ResolveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w := p.Run.Spec.Workspace
	if w == nil || w.Source == nil || w.Source.Path != filepath.Join(dir, "src") || w.Strategy != v1alpha1.StrategyInPlace || len(w.Exclude) != 1 {
		t.Errorf("the workspace of the plan is %+v", w)
	}
	if p.Sources["workspace/repo"] == "" {
		t.Errorf("nobody can tell where it was declared: %v", p.Sources)
	}
	if of := c.Workspaces["repo"].Object.Spec.Source.Path; of != "src" {
		t.Errorf("the manifest was changed: %s", of)
	}
}
