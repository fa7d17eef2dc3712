package control

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// planYAML is a skill whose plan calls a declared tool.
const planYAML = head + "kind: Skill\nmetadata: {name: steps}\nspec:\n  plan:\n    inputs: {schema: {type: object, properties: {word: {type: string}}, required: [word]}}\n" +
	"    steps: [{tool: echo, args: {text: \"${inputs.word}\"}}]\n    output: \"${steps.echo.output}\"\n"

func planRunYAML(name, spec string) string {
	return head + "kind: Run\nmetadata: {name: " + name + "}\nspec: {agentRef: {name: worker}" + spec + "}\n"
}

func TestARunCarriesOutAPlan(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	// It waits for its skill, which is judged without the agents that have the tools.
	s.apply(workerYAML + sep + planRunYAML("one", ", skillRef: {name: steps}, inputs: {word: twice}"))
	await(s, &v1alpha1.Run{}, &v1alpha1.RunList{}, "one", func(r *v1alpha1.Run) bool {
		return len(r.Status.Conditions) > 0 && r.Status.Conditions[0].Reason == "ReferenceNotFound" && strings.Contains(r.Status.Conditions[0].Message, `skill "steps"`)
	})
	s.apply(planYAML)
	run := s.awaitPhase("one", v1alpha1.PhaseSucceeded, v1alpha1.PhaseFailed)
	if c := run.Status.Conditions[0]; c.Reason != "Completed" || run.Status.Steps != 2 || run.Status.Calls == nil || run.Status.Calls.Done != 1 || !strings.Contains(run.Status.Output, "twice") {
		t.Errorf("the condition is %+v, the status %+v", c, run.Status)
	}
	s.awaitReady("Skill", "steps", "True", "Accepted")
	for name, c := range map[string]struct{ spec, message string }{
		"input":   {", skillRef: {name: steps}, inputs: {word: 3}", "spec.inputs.word"},
		"lacking": {", skillRef: {name: other}", `step "read" of the plan of skill "other" calls the tool "read", which agent "worker" does not have`},
		"text":    {", skillRef: {name: text}", `skill "text" has no plan to carry out`},
	} {
		s.apply(head + "kind: Skill\nmetadata: {name: other}\nspec: {plan: {steps: [{tool: read, args: {path: x}}]}}\n" + sep +
			head + "kind: Skill\nmetadata: {name: text}\nspec: {dir: " + writeSkill(t, "---\nname: text\ndescription: A text.\n---\nMend it.\n") + "}\n" + sep +
			planRunYAML(name, c.spec))
		run := s.awaitPhase(name, v1alpha1.PhaseFailed, v1alpha1.PhaseSucceeded)
		if got := run.Status.Conditions[0]; got.Reason != "SpecInvalid" || !strings.Contains(got.Message, c.message) {
			t.Errorf("%s: the condition is %+v, want %q", name, got, c.message)
		}
	}
}

// TestAPlanThatIsChangedKeepsItsSteps: a run continues with the steps that it began with,
// whatever has become of its skill.
func TestAPlanThatIsChangedKeepsItsSteps(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	release := filepath.Join(t.TempDir(), "go")
	slow := head + "kind: Tool\nmetadata: {name: slow}\nspec:\n  parameters: {type: object}\n  retry: Idempotent\n  isolation: {minimum: None}\n  source: {exec: {command: [/bin/sh, -c, 'until test -e " + release + "; do sleep 0.05; done']}}\n"
	skill := func(steps string) string {
		return head + "kind: Skill\nmetadata: {name: steps}\nspec: {plan: {steps: " + steps + ", output: \"${string(steps.last.ran)}\"}}\n"
	}
	worker := strings.NewReplacer("tools: [{name: echo}]", "tools: [{name: echo}, {name: slow}]", "policyRefs: [{name: open}]", "policyRefs: [{name: free}]").Replace(workerYAML)
	s.apply(worker + sep + slow + sep + head + "kind: Policy\nmetadata: {name: free}\nspec: {default: allow}\n" +
		sep + skill("[{tool: slow}, {name: last, tool: echo, args: {text: first}}]") + sep + planRunYAML("one", ", skillRef: {name: steps}"))
	await(s, &v1alpha1.Run{}, &v1alpha1.RunList{}, "one", func(r *v1alpha1.Run) bool { return r.Status.Phase == v1alpha1.PhaseRunning })
	s.apply(planRunYAML("one", ", skillRef: {name: steps}, suspend: true"))
	s.awaitPhase("one", v1alpha1.PhaseSuspended)
	s.apply(skill("[{name: last, tool: nothing}]"))
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.apply(planRunYAML("one", ", skillRef: {name: steps}, suspend: false"))
	run := s.awaitPhase("one", v1alpha1.PhaseSucceeded, v1alpha1.PhaseFailed)
	if run.Status.Output != "true" {
		t.Errorf("the status is %+v", run.Status)
	}
}
