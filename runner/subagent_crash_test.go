package runner

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/runs"
)

// delegating declares an agent that has two others count at the same time, each by a
// call that must never run twice.
func delegating(t *testing.T) place {
	t.Helper()
	p := newPlace(t, "", map[string]string{"a.txt": "one\n"})
	tool := "apiVersion: agentctl.dev/v1alpha1\nkind: Tool\nmetadata: {name: never}\nspec:\n  description: Count.\n" +
		"  parameters: {type: object, properties: {num: {type: integer}}, required: [num]}\n" +
		"  source: {exec: {command: [sh, -c, 'echo $AGENTCTL_CALL $AGENTCTL_KEY >> " + p.effects("never") + "; echo done']}}\n"
	child := "apiVersion: agentctl.dev/v1alpha1\nkind: Agent\nmetadata: {name: helper}\nspec:\n  mode: Subagent\n  modelRef: {name: helper}\n  tools: [{name: never}, {name: read}]\n" +
		"---\napiVersion: agentctl.dev/v1alpha1\nkind: Model\nmetadata: {name: helper}\nspec:\n  provider: scripted\n  scripted:\n    steps:\n" +
		"    - calls: [{tool: never, args: {num: 1}}]\n    - calls: [{tool: read, args: {path: a.txt}}]\n    - say: counted\n"
	steps := `
- calls: [{tool: task, args: {agent: helper, prompt: count}}, {tool: task, args: {agent: helper, prompt: count too}}]
- say: "${last.output}"
`
	write(t, filepath.Join(p.manifests, "all.yaml"), agent("subagents: [{name: helper}]", steps, tool, child))
	return p
}

// TestAKillNeverRepeatsACallOfASubagent kills an agent while its subagents work, at
// writes of any of their journals. The run that continues has the same children, and no
// call of them has run twice.
func TestAKillNeverRepeatsACallOfASubagent(t *testing.T) {
	calm, f := delegating(t), &fate{}
	out := calm.run(t, func(o *RunOptions) { o.Approve, o.disk = "all", f.disk() })
	want(t, out, reason.Completed)
	if n := len(calm.lines(t, "never")); n != 2 || out.Run.Finished.Output != "counted" {
		t.Fatalf("undisturbed: %d calls, %q", n, out.Run.Finished.Output)
	}
	every := 3
	if os.Getenv(fullVar) == "full" {
		every = 1
	}
	for n := 1; n <= int(f.writes.Load()); n += every {
		p := delegating(t)
		killedAt(t, p, doom{"write", n, 0.5})
		out, err := Resume(t.Context(), ResumeOptions{Ref: journal.Latest, State: p.state, Approve: "all", Version: "test"})
		if _, ok := errors.AsType[*reason.UsageError](err); ok && len(p.lines(t, "never")) == 0 {
			continue // nothing was kept, and nothing has run
		}
		if err != nil {
			t.Fatalf("killed at write %d: resume: %v", n, err)
		}
		want(t, out, reason.Completed)
		calls := map[string]int{}
		for _, line := range p.lines(t, "never") {
			calls[strings.Join(line, " ")]++
		}
		for call, times := range calls {
			if times > 1 {
				t.Errorf("killed at write %d: call %s ran %d times", n, call, times)
			}
		}
		all, err := runs.List(t.Context(), p.state)
		if err != nil || len(all) != 3 {
			t.Fatalf("killed at write %d: %d runs, want 3: %v", n, len(all), err)
		}
		for _, r := range all {
			report, err := journal.Verify(t.Context(), r.Journal)
			if err != nil || !report.Anchored || r.Phase != "Succeeded" {
				t.Errorf("killed at write %d: run %s is %s: %+v, %v", n, r.Name, r.Phase, report, err)
			}
		}
	}
}

// killedAt has another process work on a new run until it is killed.
func killedAt(t *testing.T, p place, d doom) {
	t.Helper()
	text, err := json.Marshal(errand{Place: p, Doom: d})
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), errandVar+"="+string(text))
	if out, err := cmd.CombinedOutput(); err == nil && !strings.Contains(string(out), "seen") {
		t.Fatalf("it did nothing: %s", out)
	}
}

// TestASubagentIsNotResumedAlone: only the run above knows what is left of its budget.
func TestASubagentIsNotResumedAlone(t *testing.T) {
	tried := 0
	for at := 20; tried == 0 && at <= 60; at += 5 { // when the subagents work depends on the machine
		tried = resumedAlone(t, at)
	}
	if tried == 0 {
		t.Error("no subagent was interrupted")
	}
}

// resumedAlone kills a run at a write, tries to resume each subagent that was interrupted,
// and returns how many these were.
func resumedAlone(t *testing.T, at int) (tried int) {
	t.Helper()
	p := delegating(t)
	killedAt(t, p, doom{"write", at, 0})
	all, err := runs.List(t.Context(), p.state)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if !strings.HasPrefix(r.Name, "helper-") || r.EndTime != nil {
			continue
		}
		_, err := Resume(t.Context(), ResumeOptions{Ref: r.Name, State: p.state, Version: "test", Events: func(e event.Event) { t.Errorf("it continues: %s", e.Type()) }})
		if err != nil && strings.Contains(err.Error(), "was interrupted before it began") {
			continue // nothing of it was kept
		}
		tried++
		if _, ok := errors.AsType[*reason.UsageError](err); !ok || !strings.Contains(err.Error(), "was started by a call of run worker-") {
			t.Errorf("%s: %v", r.Name, err)
		}
	}
	return tried
}
