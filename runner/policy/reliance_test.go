package policy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
)

func TestWhatTheFactsOfACallAreTakenFrom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "run.sh"), []byte("cat a.txt\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := NewEngine(nil, Context{Workspace: Workspace{Root: dir}, Tools: []Tool{
		{Name: "bash", Builtin: "bash", Risk: v1alpha1.RiskR2}, {Name: "read", Builtin: "read", Risk: v1alpha1.RiskR0},
	}})
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, c := range map[string]struct {
		reason, tool, args string
		want               Reliance
	}{
		"a file":         {"its links count", "read", `{"path": "d/a.txt"}`, Reliance{Paths: []string{at("d/a.txt")}}},
		"a script":       {"its text counts, and what it names", "bash", `{"command": "sh run.sh"}`, Reliance{Paths: []string{at("run.sh"), at("a.txt")}, Texts: []string{at("run.sh")}}},
		"a pattern":      {"the names in its folder count", "bash", `{"command": "cat d/*.txt"}`, Reliance{Paths: []string{at("d"), at("d/*.txt")}, Folders: []string{at("d")}}},
		"a word":         {"it may be a file", "bash", `{"command": "frobnicate word"}`, Reliance{Names: []string{at("word")}}},
		"unknown tool":   {"it has no facts", "nope", `{}`, Reliance{}},
		"no path at all": {"nothing counts", "bash", `{"command": "true"}`, Reliance{}},
	} {
		got := e.Relies(message.ToolCall{ID: "c", Tool: c.tool, Args: json.RawMessage(c.args)})
		got.Facts = nil
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, c.reason, d)
		}
	}
}
