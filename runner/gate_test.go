package runner

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
)

func TestAResumedRunRemembersWhatWasJudged(t *testing.T) {
	call := func(tool string, state message.ToolState, action message.Action) message.Part {
		p := &message.ToolPart{Tool: tool, State: state}
		if action != "" {
			p.Decision = &message.Decision{Action: action}
		}
		return message.Part{Type: message.PartTool, Tool: p}
	}
	v := &view.Run{Messages: []*message.Message{{Parts: []message.Part{
		call("bash", message.StateCompleted, message.Allow), call("bash", message.StateError, message.Deny), call("read", message.StateError, message.Deny),
		call("bash", message.StateRunning, message.Allow), // is judged again
		call("bash", message.StateError, ""),              // never came before a judge
	}}}}
	calls, denials := judgedBefore(v)
	if diff := cmp.Diff(map[string]int{"bash": 2, "read": 1}, calls); diff != "" || denials != 2 {
		t.Errorf("%d denials, calls (-want +got):\n%s", denials, diff)
	}
}
