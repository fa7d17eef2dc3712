package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// TestADrainedRunIsLeftBetweenItsCalls drains a run in the middle of a call. The call
// ends, the next one does not begin, and nothing is unknown or done twice later.
func TestADrainedRunIsLeftBetweenItsCalls(t *testing.T) {
	folder := t.TempDir()
	slow, done, free := filepath.Join(folder, "slow"), filepath.Join(folder, "done"), filepath.Join(folder, "free")
	write(t, slow, "#!/bin/sh\nwhile [ ! -e "+free+" ]; do sleep 0.01; done\necho x >>"+done+"\necho fine\n")
	if err := os.Chmod(slow, 0o700); err != nil {
		t.Fatal(err)
	}
	// By default a call is not repeated: one that is cut off would be unknown.
	tool := "apiVersion: agentctl.dev/v1alpha1\nkind: Tool\nmetadata: {name: slow}\nspec:\n  parameters: {type: object}\n  risk: R0\n" +
		"  isolation: {minimum: None}\n  source: {exec: {command: [" + slow + "]}}\n"
	p := newPlace(t, agent("tools: [{name: slow}]", "- calls: [{tool: slow, args: {}}]\n- calls: [{tool: slow, args: {}}]\n- say: done", tool), nil)
	drain := make(chan struct{})
	out, err := Run(t.Context(), p.options(func(o *RunOptions) {
		o.Drain = drain
		o.Events = func(e event.Event) {
			if _, began := e.Data.(event.ToolCall); began {
				close(drain) // a second call would close it again
				if err := os.WriteFile(free, nil, 0o600); err != nil {
					t.Error(err)
				}
			}
		}
	}))
	if err != nil || out.Run.Finished != nil {
		t.Fatalf("got %+v, %v", out, err)
	}
	if text, err := os.ReadFile(done); err != nil || string(text) != "x\n" {
		t.Errorf("the calls did %q, %v", text, err)
	}
	for _, m := range out.Run.Messages {
		for _, c := range m.Calls() {
			if c.State == message.StateRunning {
				t.Errorf("a call was cut off: %+v", c)
			}
		}
	}
	if out, err = Resume(t.Context(), ResumeOptions{Ref: "@latest", State: p.state, Approve: "never"}); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(done); err != nil || string(text) != "x\nx\n" || out.Run.Finished == nil || !strings.Contains(out.Result().Output, "done") {
		t.Errorf("after a resume: %q, %v, %+v", text, err, out.Run.Finished)
	}
}

// TestADrainedRunThatWaitsIsLeftAtOnce: nothing goes on in it.
func TestADrainedRunThatWaitsIsLeftAtOnce(t *testing.T) {
	p := asking(t, "Wait", "\n- calls: [{tool: write, args: {path: f, content: x}}]\n- say: done\n", nil)
	drain := make(chan struct{})
	out, err := Run(t.Context(), p.options(func(o *RunOptions) {
		o.Drain = drain
		o.Events = func(e event.Event) {
			if _, asks := e.Data.(event.ApprovalRequested); asks {
				close(drain)
			}
		}
	}))
	if err != nil || out.Run.Finished != nil || len(out.Run.PendingApprovals) != 1 {
		t.Errorf("got %+v, %v", out, err)
	}
}

// TestADrainedRunWhoseToolAsksIsLeftAtOnce: the answer of a person may take days.
func TestADrainedRunWhoseToolAsksIsLeftAtOnce(t *testing.T) {
	p := painter(t, "Wait", "{}")
	drain := make(chan struct{})
	out, err := Run(t.Context(), p.options(func(o *RunOptions) {
		o.Drain = drain
		o.Events = func(e event.Event) {
			if _, asks := e.Data.(event.QuestionAsked); asks {
				close(drain)
			}
		}
	}))
	if err != nil || out.Run.Finished != nil || len(out.Run.PendingApprovals) != 1 || out.Run.Inquiry(out.Run.PendingApprovals[0]) == nil {
		t.Fatalf("got %+v, %v", out, err)
	}
}

// TestADrainedRunIsLeftWhenOnlyAQuestionIsOpen drains a run in which a call is in
// progress beside one that waits for an approval.
func TestADrainedRunIsLeftWhenOnlyAQuestionIsOpen(t *testing.T) {
	folder := t.TempDir()
	slow, free := filepath.Join(folder, "slow"), filepath.Join(folder, "free")
	write(t, slow, "#!/bin/sh\nwhile [ ! -e "+free+" ]; do sleep 0.01; done\necho fine\n")
	if err := os.Chmod(slow, 0o700); err != nil {
		t.Fatal(err)
	}
	tool := "apiVersion: agentctl.dev/v1alpha1\nkind: Tool\nmetadata: {name: slow}\nspec:\n  parameters: {type: object}\n  risk: R0\n" +
		"  isolation: {minimum: None}\n  source: {exec: {command: [" + slow + "]}}\n"
	other := strings.Replace(strings.Replace(tool, "{name: slow}", "{name: asked}", 1), slow, "/bin/true", 1)
	policy := "apiVersion: agentctl.dev/v1alpha1\nkind: Policy\nmetadata: {name: p}\nspec:\n  rules: [{name: ask, match: {tools: [asked]}, action: ask}]\n"
	p := newPlace(t, agent("approvals: {onAsk: Wait, timeout: 10m}\ntools: [{name: slow}, {name: asked}]\npolicyRefs: [{name: p}]",
		"- calls: [{tool: slow, args: {}}, {tool: asked, args: {}}]\n- say: done", tool, other, policy), nil)
	drain := make(chan struct{})
	began, asks := false, false
	out, err := Run(t.Context(), p.options(func(o *RunOptions) {
		o.Drain = drain
		o.Events = func(e event.Event) {
			switch e.Data.(type) {
			case event.ToolCall:
				began = true
			case event.ApprovalRequested:
				asks = true
			default:
				return
			}
			if began && asks {
				close(drain)
				if err := os.WriteFile(free, nil, 0o600); err != nil {
					t.Error(err)
				}
			}
		}
	}))
	if err != nil || out.Run.Finished != nil || len(out.Run.PendingApprovals) != 1 {
		t.Fatalf("got %+v, %v", out, err)
	}
	for _, m := range out.Run.Messages {
		for _, c := range m.Calls() {
			if c.State == message.StateRunning {
				t.Errorf("a call was cut off: %+v", c)
			}
		}
	}
}
