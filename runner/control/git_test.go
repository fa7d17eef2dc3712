package control

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/runs"
)

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit writes a file of a repository and commits it.
func commit(t *testing.T, dir, text string) (id string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "hello.txt"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	gitIn(t, dir, "add", ".")
	gitIn(t, dir, "commit", "-qm", text)
	return gitIn(t, dir, "rev-parse", "HEAD")
}

// TestARunOnACloneContinuesWithItsCommit: the repository is cloned when the run begins, and
// is not asked again by a run that continues, which may be on another day.
func TestARunOnACloneContinuesWithItsCommit(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	repository, release := t.TempDir(), filepath.Join(t.TempDir(), "go")
	gitIn(t, repository, "init", "-q", "-b", "main")
	first := commit(t, repository, "first")
	tool := func(name, command string) string {
		return sep + head + "kind: Tool\nmetadata: {name: " + name + "}\nspec:\n  parameters: {type: object}\n  retry: Idempotent\n  isolation: {minimum: None}\n  source: {exec: {command: [/bin/sh, -c, '" + command + "']}}\n"
	}
	s.apply(head + "kind: Agent\nmetadata: {name: worker}\nspec: {modelRef: {name: script}, tools: [{name: waits}, {name: shows}], policyRefs: [{name: free}]}\n" + sep + modelYAML +
		tool("waits", "until test -e "+release+"; do sleep 0.05; done") + tool("shows", "cat hello.txt") +
		sep + head + "kind: Policy\nmetadata: {name: free}\nspec: {default: allow}\n" +
		sep + head + "kind: Skill\nmetadata: {name: steps}\nspec: {plan: {steps: [{tool: waits}, {tool: shows}], output: \"${steps.shows.output}\"}}\n" +
		sep + head + "kind: Workspace\nmetadata: {name: repo}\nspec: {retain: Always, source: {git: {url: \"file://" + repository + "\"}}}\n")
	run := func(more string) {
		s.apply(planRunYAML("one", ", skillRef: {name: steps}, workspaceRef: {name: repo}"+more))
	}
	run("")
	await(s, &v1alpha1.Run{}, &v1alpha1.RunList{}, "one", func(r *v1alpha1.Run) bool { // it has been cloned
		return r.Status.Phase == v1alpha1.PhaseRunning && r.Status.Journal != nil && r.Status.Journal.LastSeq > 0
	})
	run(", suspend: true")
	s.awaitPhase("one", v1alpha1.PhaseSuspended)
	commit(t, repository, "second")
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	run(", suspend: false")
	ended := s.awaitPhase("one", v1alpha1.PhaseSucceeded, v1alpha1.PhaseFailed)
	if !strings.HasPrefix(ended.Status.Output, "first") {
		t.Errorf("the status is %+v, %+v", ended.Status, ended.Status.Conditions)
	}
	v := &view.Run{}
	if err := runs.Fold(t.Context(), journal.Found{ID: RunID(ended), Dir: journal.Dir(shared.dir, RunID(ended))}, v); err != nil {
		t.Fatal(err)
	}
	if git := v.Started.Workspace.Git; git == nil || git.Commit != first {
		t.Errorf("the clone is of %+v, want %s", git, first)
	}
}

// TestARepositoryThatIsNotThereBeginsNoRun: no run begins, and the Run says why.
func TestARepositoryThatIsNotThereBeginsNoRun(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply(workerYAML + sep + head + "kind: Workspace\nmetadata: {name: repo}\nspec: {source: {git: {url: \"file://" + t.TempDir() + "/none\"}}}\n" +
		sep + runYAML("one", ", workspaceRef: {name: repo}"))
	run := s.awaitPhase("one", v1alpha1.PhaseFailed, v1alpha1.PhaseSucceeded)
	if c := run.Status.Conditions[0]; !strings.Contains(c.Message, "/none") {
		t.Errorf("the condition is %+v", c)
	}
}
