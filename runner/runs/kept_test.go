package runs

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/journal"
)

// kept is a run whose journal a test writes, in place of the process that would execute
// the run.
type kept struct {
	t         *testing.T
	state, id string
	w         *journal.Writer
}

// begun is a running run: its one call waits for an approval.
func begun(t *testing.T, state, id string) *kept {
	t.Helper()
	w, err := journal.Create(context.Background(), journal.Options{Dir: journal.Dir(state, id), Run: id})
	if err != nil {
		t.Fatal(err)
	}
	k := &kept{t, state, id, w}
	t.Cleanup(func() { _ = w.Close() })
	k.tell("user", "", event.RunStarted{Agent: "worker", Model: message.ModelRef{Name: "script"}, Plan: "sha256:plan"})
	k.tell("answer", "", event.StepStart{Step: 1})
	k.tell("answer", "", event.ModelRequest{})
	k.tell("answer", "call_1", event.ToolInputStart{Tool: "bash"})
	k.tell("answer", "", event.ModelResponse{})
	for _, p := range []event.Payload{
		event.PolicyDecision{Decision: message.Decision{Action: message.Ask, Rule: "p/ask", Risk: "R2", Hash: "h"}},
		event.ApprovalRequested{Tool: "bash", Args: json.RawMessage(`{"command":"date"}`), Rule: "p/ask", Risk: "R2", Hash: "h"},
	} {
		k.tell("answer", "call_1", p)
	}
	return k
}

func (k *kept) tell(in, call string, p event.Payload) {
	k.t.Helper()
	if _, err := k.w.Append(event.Event{Run: k.id, Message: in, Part: "p" + call, Call: call, Data: p}); err != nil {
		k.t.Fatal(err)
	}
}

// end is the last thing that the process of the run writes.
func (k *kept) end(phase, reason string, code int) {
	k.t.Helper()
	k.tell("user", "", event.RunFinished{Phase: phase, Reason: reason, ExitCode: code, Steps: 1, Output: "done"})
	if err := k.w.Close(); err != nil {
		k.t.Fatal(err)
	}
}

// killed is a copy of a state folder as if all processes had been killed now: its journals
// are not locked.
func killed(t *testing.T, state string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.CopyFS(dir, os.DirFS(state)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// suspended is a run that waits without a process.
func suspended(t *testing.T) (state, id string) {
	t.Helper()
	k := begun(t, t.TempDir(), "worker-1")
	k.end(view.Suspended, "ApprovalRequired", 3)
	return k.state, k.id
}
