package runner

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/reason"
)

// gitRepository is a repository with one file in one commit.
func gitRepository(t *testing.T, text string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "project")
	write(t, filepath.Join(dir, "hello.txt"), text)
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "one"}} {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return dir
}

// TestACloneThatWasKilledIsClonedAgain: a control plane begins a run under its own id, also
// after it was killed while git cloned. What has begun is not begun a second time.
func TestACloneThatWasKilledIsClonedAgain(t *testing.T) {
	repository := gitRepository(t, "hello\n")
	p := newPlace(t, agent("", "\n- say: done\n")+"---\napiVersion: agentctl.dev/v1alpha1\nkind: Run\nmetadata: {name: r}\nspec: {agentRef: {name: worker}, workspace: {source: {git: {url: \"file://"+repository+"\"}}}}\n", nil)
	left := filepath.Join(p.state, "runs", "one", "workspace", "project_one")
	write(t, filepath.Join(left, ".git", "objects", "pack", "tmp_pack_1"), "half of it")
	write(t, filepath.Join(left, "hello.txt"), "of another process\n")
	begin := func() (*Outcome, error) {
		return Run(t.Context(), p.options(func(o *RunOptions) { o.Workspace, o.ID = "", "one" }))
	}
	out, err := begin()
	if err != nil {
		t.Fatal(err)
	}
	want(t, out, reason.Completed)
	clone := out.Run.Started.Workspace
	if clone.Git == nil || len(clone.Git.Commit) != 40 || clone.Dir != left {
		t.Errorf("the run worked on %+v", clone)
	}
	if b, err := os.ReadFile(filepath.Join(left, "hello.txt")); err != nil || string(b) != "hello\n" {
		t.Errorf("the file is %q, %v", b, err)
	}
	if _, err := os.Lstat(filepath.Join(left, ".git", "objects", "pack", "tmp_pack_1")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was left is still there: %v", err)
	}
	write(t, filepath.Join(left, "kept"), "")
	if _, err := begin(); err == nil {
		t.Error("a run that has begun was begun again")
	}
	if _, err := os.Lstat(filepath.Join(left, "kept")); err != nil {
		t.Errorf("its clone was replaced: %v", err)
	}
	if strings.Contains(out.Run.Started.Workspace.Source, repository) {
		t.Errorf("it worked on %s", out.Run.Started.Workspace.Source)
	}
}
