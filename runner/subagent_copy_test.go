package runner

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/journal"
)

// merging declares an agent that takes over what another has changed in a copy: a file that
// is changed, one that is added, one that is gone.
func merging(t *testing.T) place {
	t.Helper()
	p := newPlace(t, "", map[string]string{"a.txt": "one\n", "b.txt": "two\n"})
	child := "apiVersion: agentctl.dev/v1alpha1\nkind: Agent\nmetadata: {name: helper}\nspec:\n  mode: Subagent\n  modelRef: {name: helper}\n  tools: [{name: bash}]\n" +
		"---\napiVersion: agentctl.dev/v1alpha1\nkind: Model\nmetadata: {name: helper}\nspec:\n  provider: scripted\n  scripted:\n    steps:\n" +
		"    - calls: [{tool: bash, args: {command: 'echo more >a.txt; rm -f b.txt; mkdir -p n; echo new >n/c.txt'}}]\n    - say: changed\n"
	steps := `
- calls: [{tool: task, args: {agent: helper, prompt: change}}]
- calls: [{tool: task_apply, args: {run: last}}]
- say: "${last.output}"
`
	write(t, filepath.Join(p.manifests, "all.yaml"), agent("subagents: [{name: helper, workspace: Copy}]", steps, child))
	return p
}

// TestAKilledMergeIsMadeOnce kills a run at writes of any journal while a copy is changed and
// merged. In the run that continues the merge succeeds, whether or not it was made before.
func TestAKilledMergeIsMadeOnce(t *testing.T) {
	calm, f := merging(t), &fate{}
	out := calm.run(t, func(o *RunOptions) { o.Approve, o.disk = "all", f.disk() })
	want(t, out, reason.Completed)
	merged := func(out *Outcome) string {
		dir := out.Run.Started.Workspace.Dir
		a, err := os.ReadFile(filepath.Join(dir, "a.txt"))
		if err != nil {
			t.Fatal(err)
		}
		c, _ := os.ReadFile(filepath.Join(dir, "n", "c.txt"))
		_, gone := os.Lstat(filepath.Join(dir, "b.txt"))
		left, _ := filepath.Glob(filepath.Join(dir, ".agentctl-*"))
		if !errors.Is(gone, os.ErrNotExist) || len(left) > 0 {
			t.Errorf("b.txt: %v; left over: %v", gone, left)
		}
		return string(a) + string(c)
	}
	if got := merged(out); got != "more\nnew\n" || !strings.HasPrefix(out.Run.Finished.Output, "taken over from run/helper-") {
		t.Fatalf("undisturbed: %q, %q", got, out.Run.Finished.Output)
	}
	all := int(f.writes.Load())
	for n := 1; n <= all; n++ {
		if os.Getenv(fullVar) != "full" && n%13 != 0 && n < all-12 { // the merge is near the end
			continue
		}
		p := merging(t)
		killedAt(t, p, doom{"write", n, 0.5})
		out, err := Resume(t.Context(), ResumeOptions{Ref: journal.Latest, State: p.state, Approve: "all", Version: "test"})
		if _, ok := errors.AsType[*reason.UsageError](err); ok && n < 8 {
			continue // nothing was kept
		}
		if err != nil {
			t.Fatalf("killed at write %d: resume: %v", n, err)
		}
		want(t, out, reason.Completed)
		if got := merged(out); got != "more\nnew\n" {
			t.Errorf("killed at write %d: the files hold %q", n, got)
		}
		if text := out.Run.Finished.Output; !strings.HasPrefix(text, "taken over from") && !strings.HasPrefix(text, "the files have these changes of run/helper-") {
			t.Errorf("killed at write %d: %q", n, text)
		}
	}
}

// Agents that start one another on copies must not fill the disk of this host with them.
func TestACopyOfTheFilesNeedsRoomOnTheDisk(t *testing.T) {
	from, runs := t.TempDir(), t.TempDir()
	write(t, filepath.Join(from, "a.txt"), "one\n")
	full := &tree{copies: 1 << 62}
	if _, err := full.copy(t.Context(), from, filepath.Join(runs, "helper-1")); err == nil || !strings.Contains(err.Error(), "must stay") {
		t.Errorf("on a full disk: %v", err)
	}
	if done, err := full.copy(t.Context(), from, runs); err != nil || full.copies != 1<<62 {
		t.Errorf("a run that was begun before: %v", err)
	} else {
		done()
	}
	free := &tree{copies: -1 << 62}
	done, err := free.copy(t.Context(), from, filepath.Join(runs, "helper-1"))
	if err != nil || free.copies <= -1<<62 {
		t.Fatalf("counted as %d: %v", free.copies, err)
	}
	if done(); free.copies != -1<<62 {
		t.Errorf("counted as %d when it is made", free.copies)
	}
}
