package policy

import (
	"strings"
	"testing"
)

func TestOrdinaryCallsAreJudgedWithoutCounting(t *testing.T) {
	home := "/home/somebody/.local/state/agentctl/runs/reviewer-01kaj3w0v8q4n5x2y7z9b1c6d0/workspace/project_reviewer-01kaj3w0v8q4n5x2y7z9b1c6d0"
	for name, c := range map[string]struct {
		reason, root, script string
		large                bool
	}{
		"workspace":  {"the folder of a run is deep by itself", home, "go test ./... > out.txt", false},
		"deep":       {"more than any folder of ours", home + strings.Repeat("/deep", 30), "echo > out.txt", true},
		"long word":  {"an argument beyond what the types declare", "/w", "echo " + strings.Repeat("x", factText+1), true},
		"many words": {"more arguments than the types declare", "/w", "echo" + strings.Repeat(" x", factItems+1), true},
	} {
		w := Workspace{Root: c.root}
		args := map[string]any{"command": c.script}
		f := w.establish(&Tool{Name: "bash", Builtin: "bash"}, []byte("{}"), args)
		if f.large != c.large {
			t.Errorf("%s: %s: large is %v", name, c.reason, f.large)
		}
	}
}
