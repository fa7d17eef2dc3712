package agentctl_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner"
	"agentctl.dev/agentctl/runner/decisions"
)

// TestFirstStepsWork takes the steps of docs/start.md that need no model: who
// copies them sees what the page shows.
func TestFirstStepsWork(t *testing.T) {
	page := string(read(t, "docs/start.md"))
	reviewer := strings.NewReplacer(
		"policyRefs: [{name: careful}]", "policyRefs: [{name: careful}, {name: publish}]",
		"{name: bash}]", "{name: bash}, {name: todos}]",
	).Replace(fenceAfter(t, string(read(t, "README.md")), "`reviewer.yaml`"))
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{
		"reviewer.yaml": reviewer,
		"publish.yaml":  fenceAfter(t, page, "`agents/publish.yaml`"),
		"todos.yaml":    fenceAfter(t, page, "`agents/todos.yaml`"),
		"todos.py":      fenceAfter(t, page, "`agents/todos.py`"),
	} {
		if err := os.MkdirAll("agents", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join("agents", name), []byte(text), 0o700); err != nil { //nolint:gosec // one of them is a program
			t.Fatal(err)
		}
	}
	agents := []string{"agents"}

	report, err := runner.Validate(t.Context(), runner.ValidateOptions{Paths: agents})
	if err != nil || report.HasErrors() {
		t.Fatalf("validate: %+v, %v", report, err)
	}
	cases, err := runner.TestPolicies(t.Context(), runner.PolicyTestOptions{Paths: agents})
	if err != nil || cases.Failed > 0 {
		t.Errorf("policy test: %+v, %v", cases, err)
	}
	push, err := decisions.CanI(t.Context(), decisions.AccessOptions{Paths: agents, Tool: "bash", Args: json.RawMessage(`{"command": "make && git push"}`)})
	if err != nil {
		t.Fatal(err)
	}
	shown := fmt.Sprintf("%s  by %s/%s (%s:%d)\n%s\n", push.Decision, push.Policy, push.Rule, push.File, push.Line, push.Reason)
	if !strings.Contains(page, shown) {
		t.Errorf("docs/start.md does not show what auth can-i answers: %q", shown)
	}
	todos, err := decisions.CanI(t.Context(), decisions.AccessOptions{Paths: agents, Tool: "todos", Args: json.RawMessage(`{"word": "TODO"}`)})
	if err != nil || todos.Decision != message.Allow {
		t.Errorf("a call of todos: %+v, %v", todos, err)
	}
}

// TestFirstToolAnswers: the tool of docs/start.md takes its arguments from
// standard input and refuses others.
func TestFirstToolAnswers(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 to run the tool with")
	}
	script := fenceAfter(t, string(read(t, "docs/start.md")), "`agents/todos.py`")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.py"), []byte("x = 1\n# TODO: more\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	answer := func(args string) (string, error) {
		cmd := exec.CommandContext(t.Context(), python, "-c", script)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(args)
		out, err := cmd.Output()
		return string(out), err
	}
	if got, err := answer(`{"word": "TODO"}`); err != nil || got != "a.py:2: # TODO: more\n" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, bad := range []string{`{}`, `{"word": 5}`, `{"word": "x", "more": 1}`, `[`} {
		if got, err := answer(bad); err == nil {
			t.Errorf("%s: accepted with %q", bad, got)
		}
	}
}

// fenceAfter is the first block behind the first mention of a file.
func fenceAfter(t *testing.T, text, mention string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, mention)
	_, rest, fenced := strings.Cut(rest, "\n```")
	_, rest, _ = strings.Cut(rest, "\n")
	block, _, closed := strings.Cut(rest, "```")
	if !found || !fenced || !closed {
		t.Fatalf("no block behind %s", mention)
	}
	return block
}
