package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const suspends = `
apiVersion: agentctl.dev/v1alpha1
kind: Agent
metadata: {name: a}
spec: {modelRef: {name: m}, tools: [{name: touch}], policyRefs: [{name: p}], approvals: {onAsk: Suspend}}
---
apiVersion: agentctl.dev/v1alpha1
kind: Tool
metadata: {name: touch}
spec:
  description: Say so.
  parameters: {type: object, properties: {name: {type: string}}}
  source: {exec: {command: [echo, touched]}}
---
apiVersion: agentctl.dev/v1alpha1
kind: Policy
metadata: {name: p}
spec: {rules: [{name: ask, action: ask}]}
---
apiVersion: agentctl.dev/v1alpha1
kind: Model
metadata: {name: m}
spec:
  provider: scripted
  scripted:
    steps:
    - calls: [{tool: touch, args: {name: x}}]
    - calls: [{tool: touch, args: {name: z}}]
    - say: done
`

func TestApproveFromAnotherTerminal(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("AGENTCTL_STATE", filepath.Join(dir, "state"))
	t.Setenv("AGENTCTL_OUTER_ISOLATION", "container")
	t.Chdir(dir)
	if err := os.WriteFile("a.yaml", []byte(suspends), 0o600); err != nil {
		t.Fatal(err)
	}
	step := func(code int, want string, args ...string) string {
		t.Helper()
		got, stdout, stderr := command("", args...)
		if got != code || !strings.Contains(stdout+stderr, want) {
			t.Fatalf("%v: exit code %d, want %d\n%s%s", args, got, code, stdout, stderr)
		}
		return stdout
	}
	step(0, "no call waits", "approve")
	step(3, "touch waits for an approval", "run", "-f", "a.yaml", "-p", "go", "--workspace", dir)
	step(0, "call of touch", "approve")
	var calls []map[string]any
	if err := json.Unmarshal([]byte(step(0, "", "approve", "-o", "json")), &calls); err != nil || len(calls) != 1 || calls[0]["state"] != "Suspended" || calls[0]["expiresAt"] != nil {
		t.Errorf("got %v, %v", calls, err)
	}
	step(0, "/call_1_1\ttouch, p/ask", "__complete", "approve", "")
	step(0, "/call_1_1\ttouch, p/ask", "__complete", "deny", "")
	step(2, "one call is answered at a time", "approve", "a", "b")
	step(2, "the call (RUN/CALL) is missing", "approve", "--reason", "x")
	step(2, "unknown flag: --always", "deny", "@latest", "--always")
	if text := step(0, "continue with: agentctl resume", "approve", "@latest", "--always"); !strings.HasPrefix(text, "apiVersion: ") || !strings.Contains(text, "has(call.args.name)") {
		t.Errorf("got %s", text)
	}
	step(0, "remembered: touch when has(call.args.name)", "resume", "@latest")
	step(2, "no call of run a-", "deny", "@latest", "-o", "json")
}

func TestWhoAnswers(t *testing.T) {
	if got := who(strings.NewReader("")); !strings.HasSuffix(got, "@agentctl") || len(got) == len("@agentctl") {
		t.Errorf("got %q", got)
	}
}

// TestARunOfAControlPlaneIsToldByItsName: nobody is told to resume one.
func TestARunOfAControlPlaneIsToldByItsName(t *testing.T) {
	for run, want := range map[string]bool{
		"fix-a8d50e59-feb5-4eac-8ce7-0cf4371aba5e":   true,
		"fix-a8d50e59-feb5-4eac-8ce7-0cf4371aba5e-2": true,
		"a-b-a8d50e59-feb5-4eac-8ce7-0cf4371aba5e":   true,
		"fix-01m7z9dgc457htd28fvbfp6xt8":             false,
		"a8d50e59-feb5-4eac-8ce7-0cf4371aba5e":       false,
		"fix-a8d50e59-feb5-4eac-8ce7-0cf4371abaXe":   false,
		"a-b-c-d-e-f-g": false,
		"":              false,
	} {
		if got := ofObject(run); got != want {
			t.Errorf("%q: %v, want %v", run, got, want)
		}
	}
}
