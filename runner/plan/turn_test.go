package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/admission"
)

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

// simple is a plan of one agent, one tool and one policy.
func simple() *admission.Plan {
	return &admission.Plan{
		Agent:    &v1alpha1.Agent{ObjectMeta: meta("a"), Spec: v1alpha1.AgentSpec{Instructions: "look"}},
		Model:    &v1alpha1.Model{ObjectMeta: meta("m")},
		Tools:    []admission.PlannedTool{{Tool: &v1alpha1.Tool{ObjectMeta: meta("read")}}},
		Policies: []*v1alpha1.Policy{{ObjectMeta: meta("p")}},
	}
}

func TestWhatDiffersFromTheTurnBefore(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		change func(*admission.Plan)
		want   []string
		rules  bool
	}{
		"nothing":      {"equal plans are equal", func(*admission.Plan) {}, nil, false},
		"instructions": {"they give no permission", func(p *admission.Plan) { p.Agent.Spec.Instructions = "write" }, []string{"the instructions of agent a differ"}, false},
		"model":        {"a model is not asked what may be done", func(p *admission.Plan) { p.Model.Name = "n" }, []string{"the model was m and is n"}, false},
		"limits":       {"limits are no rules", func(p *admission.Plan) { p.Limits.MaxSteps = 3 }, []string{"the limits differ"}, false},
		"agent":        {"another agent has approvals of its own", func(p *admission.Plan) { p.Agent.Name = "b" }, []string{"the agent was a and is b"}, true},
		"tool":         {"a tool is another program", func(p *admission.Plan) { p.Tools[0].Tool.Spec.Risk = "R3" }, []string{"tool read is declared otherwise"}, true},
		"tools":        {"so is a tool in its place", func(p *admission.Plan) { p.Tools[0].Tool.Name = "bash" }, []string{"tool bash is new", "tool read is gone"}, true},
		"policy":       {"a policy decides", func(p *admission.Plan) { p.Policies[0].Spec.Default = "deny" }, []string{"policy p differs"}, true},
		"ceiling": {
			"and so does one that narrows", func(p *admission.Plan) {
				p.Ceilings = []admission.Ceiling{{Policies: []*v1alpha1.Policy{{ObjectMeta: meta("repository:r")}}}}
			}, []string{"policy repository:r is new"}, true,
		},
		"no policy": {"one that is left out widens", func(p *admission.Plan) { p.Policies = nil }, []string{"policy p is gone"}, true},
	} {
		now := simple()
		c.change(now)
		got := (&Plan{Plan: now}).Since(&Earlier{Run: &view.Run{}, Record: &Record{Plan: simple()}})
		if diff := cmp.Diff(Changes{Texts: c.want, Rules: c.rules}, got); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, c.reason, diff)
		}
	}
}

// A clone is what programs have made of it: the policies that it brings now are not read.
func TestATurnKeepsThePoliciesOfAClone(t *testing.T) {
	was := simple()
	was.Ceilings = []admission.Ceiling{{Repository: true, Policies: []*v1alpha1.Policy{{ObjectMeta: meta("repository:strict")}}}, {Policies: []*v1alpha1.Policy{{ObjectMeta: meta("run")}}}}
	e := &Earlier{Run: &view.Run{Started: event.RunStarted{Workspace: event.Workspace{Source: t.TempDir(), Git: &event.GitClone{}}}}, Record: &Record{Plan: was}}
	o := &Options{Earlier: e}
	p := &Plan{Plan: simple()}
	p.keep(e, o)
	if err := p.bring(t.Context(), nil, o); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"strict"}, p.Repository()); diff != "" || len(p.Ceilings) != 1 {
		t.Errorf("%d ceilings, (-want +got):\n%s", len(p.Ceilings), diff)
	}
}

func TestInputsGoOnWithTheirAgent(t *testing.T) {
	e := &Earlier{Run: &view.Run{Started: event.RunStarted{Agent: "a", Inputs: []byte(`{"issue":"42"}`)}}}
	same, other := &Options{}, &Options{}
	e.inputs(same, "a")
	e.inputs(other, "b")
	if string(same.RecordedInputs["issue"]) != `"42"` || len(other.RecordedInputs) != 0 {
		t.Errorf("the same agent has %v, another one %v", same.RecordedInputs, other.RecordedInputs)
	}
	(*Earlier)(nil).inputs(same, "a") // a run that begins
}
