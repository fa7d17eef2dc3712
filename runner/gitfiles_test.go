package runner

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/reason"
)

// What a program does so that git runs its words for the person who works in the
// folder is undone at the end, and stands in the result.
func TestInPlaceWhatGitWouldRunStandsInTheResult(t *testing.T) {
	p := newPlace(t, agent("tools: [{name: bash}]", `
- calls: [{tool: bash, args: {command: "printf '[core]\\n\\tfsmonitor = touch ran\\n' >> .git/config; git init -q sub; printf '[core]\\n\\tpager = touch ran\\n' >> sub/.git/config"}}]
- say: done
`), map[string]string{"a.txt": "one\n"})
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", p.workspace).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	before, err := os.ReadFile(filepath.Join(p.workspace, ".git/config"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := Run(t.Context(), p.options(func(o *RunOptions) { o.Approve, o.InPlace = "all", true }))
	if err != nil {
		t.Fatal(err)
	}
	want(t, out, reason.Completed)
	warnings := strings.Join(out.Result().Warnings, "\n")
	for _, text := range []string{"a program changed .git/config", "a program made the repository sub/.git"} {
		if !strings.Contains(warnings, text) {
			t.Errorf("no warning %q in:\n%s", text, warnings)
		}
	}
	if after, err := os.ReadFile(filepath.Join(p.workspace, ".git/config")); err != nil || string(after) != string(before) {
		t.Errorf("the config is now %q, %v", after, err)
	}
	if _, err := os.Lstat(filepath.Join(p.workspace, "sub/.git/config")); err == nil {
		t.Error("the config of the new repository is still found")
	}
}
