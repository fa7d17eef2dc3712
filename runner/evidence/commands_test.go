package evidence

import (
	"encoding/json"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/expect"
)

// bash is a call of bash that has ended with a status. Seen are the commands that its record
// holds; nil for a call without one.
func bash(t *testing.T, script string, status int, seen []string) *message.ToolPart {
	t.Helper()
	input, err := json.Marshal(map[string]any{"command": script})
	if err != nil {
		t.Fatal(err)
	}
	r := &message.ToolResult{ExitCode: &status}
	if seen != nil {
		r.Record = &message.Record{}
		for _, s := range seen {
			argv := strings.Fields(s)
			r.Record.Programs = append(r.Record.Programs, message.Execution{Path: "/usr/bin/" + argv[0], Argv: argv})
		}
	}
	return &message.ToolPart{CallID: "c", Tool: "bash", State: message.StateCompleted, Input: input, Result: r}
}

func TestTheTestsHavePassed(t *testing.T) {
	set := expect.NewSet(expect.Contract{Shells: map[string]string{"bash": "bash"}, Evidence: true})
	declared := []v1alpha1.Evidence{{Name: "tested", Expression: "calls.passed('go', 'test')"}}
	test := []string{"go test ./..."}
	for _, c := range []struct {
		script string
		status int
		seen   []string
		want   bool
		reason string
	}{
		{"go test ./...", 0, nil, true, "one command, without a record"},
		{"go test ./...", 0, test, true, "seen"},
		{"go -C sub test ./...", 0, []string{"go -C sub test ./..."}, true, "an option in front of the subcommand"},
		{"cd sub && go test ./...", 0, test, true, "both have succeeded"},
		{"set -e; go vet; go test ./...; echo done", 0, []string{"go vet", "go test ./..."}, true, "the first failure ends the script"},
		{"timeout 60 go test ./...", 0, []string{"timeout 60 go test ./...", "go test ./..."}, true, "timeout hands on the status"},
		{"go test ./...", 1, test, false, "it failed"},
		{"go version", 0, []string{"go version"}, false, "another subcommand"},
		{"go test ./... || true", 0, test, false, "the status is that of true"},
		{"go test ./... | cat", 0, append([]string{"cat"}, test...), false, "the status is that of cat"},
		{"! go test ./...", 0, test, false, "turned around"},
		{"go test ./... &", 0, test, false, "nobody waits for it"},
		{"go test ./...; true", 0, test, false, "the status is that of true"},
		{"if [ -f go.mod ]; then go test ./...; fi", 0, nil, false, "no record"},
		{"if [ -f go.mod ]; then go test ./...; fi", 0, []string{}, false, "the branch was not taken"},
		{"if [ -f go.mod ]; then go test ./...; fi", 0, test, true, "the branch was taken"},
		{"cd nowhere || exit 0; go test ./...", 0, []string{}, false, "the script has ended before"},
		{"cd sub && go test ./...", 0, nil, false, "no record"},
		{"go test ./... | cat; true || go test ./...", 0, append([]string{"cat"}, test...), false, "equal commands cannot be told apart"},
		{"make check | cat; true || go test ./...", 0, append([]string{"make check"}, test...), false, "make may have run what was seen"},
		{"./check.sh; exit 0; go test ./...", 0, append([]string{"./check.sh"}, test...), false, "the script may have run what was seen"},
		{"go() { true; }; go test ./...", 0, test, false, "a function takes the place of the program"},
		{"echo go test", 0, []string{}, false, "an argument"},
		{"go test -run '^$' ./...", 0, []string{"go test -run ^$ ./..."}, true, "what the tests are is for the expression to demand"},
		{"go test ./...", 0, []string{"go test ./other"}, false, "another command was seen"},
	} {
		v := &view.Run{Messages: []*message.Message{{Role: message.RoleAssistant, Parts: []message.Part{{Type: message.PartTool, Tool: bash(t, c.script, c.status, c.seen)}}}}}
		got, err := Judge(t.Context(), declared, set, v, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got[0].Met != c.want {
			t.Errorf("%q, status %d, seen %q: met %t, want %t: %s (%s)", c.script, c.status, c.seen, got[0].Met, c.want, c.reason, got[0].Message)
		}
	}
}
