package runner

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"agentctl.dev/agentctl/api/reason"
)

// TestEveryManifestFolderRuns runs what stands in manifests/ to its end, each
// on a small git repository that looks like this one.
func TestEveryManifestFolderRuns(t *testing.T) {
	folders, err := os.ReadDir("../manifests")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, f := range folders {
		if !f.IsDir() {
			continue
		}
		ran++
		t.Run(f.Name(), func(t *testing.T) {
			p := newPlace(t, "", map[string]string{
				"README.md": "# agentctl\n\nA small copy.\n", "LICENSE": "Apache License\n", "AGENTS.md": "Be brief.\n",
				"cmd/x/main.go": "package main\n\nfunc main() {}\n",
			})
			for _, args := range [][]string{
				{"init", "-q", "-b", "main"},
				{"add", "-A"},
				{"-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "-q", "-m", "begin"},
			} {
				cmd := exec.CommandContext(t.Context(), "git", args...)
				cmd.Dir = p.workspace
				cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("git %v: %v\n%s", args, err, out)
				}
			}
			p.manifests = filepath.Join("..", "manifests", f.Name())
			out := p.run(t)
			want(t, out, reason.Completed)
			if f.Name() == "hello" {
				hello(t, out)
			}
		})
	}
	if ran == 0 {
		t.Error("manifests/ holds no folder")
	}
}

// hello is the story that README and demo tell: one call is denied by a rule,
// one question is not answered, and the run still ends with its answer.
func hello(t *testing.T, out *Outcome) {
	t.Helper()
	tools, denied, unanswered := map[string]bool{}, 0, 0
	for _, c := range out.Result().ToolCalls {
		tools[c.Tool] = tools[c.Tool] || c.Error == nil
		if *c.Decision == "deny" && *c.Rule == "hello/keep-licence" {
			denied++
		}
		if c.Approval != nil && *c.Approval == "unanswered" && *c.Rule == "hello/ask-before-publishing" {
			unanswered++
		}
	}
	for _, name := range []string{"read", "grep", "bash", "edit", "count"} {
		if !tools[name] {
			t.Errorf("no call of %s succeeded", name)
		}
	}
	if denied != 1 || unanswered != 1 {
		t.Errorf("%d calls denied, %d questions unanswered, want one each", denied, unanswered)
	}
	if files := out.Result().ChangedFiles; len(files) != 1 || files[0].Path != "README.md" {
		t.Errorf("changed %v, want the README", files)
	}
}
