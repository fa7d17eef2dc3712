package display

import (
	"fmt"
	"sync"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/safetext"
)

// Steps shows runs beside each other, one short line for each thing that happens.
type Steps struct {
	mu     sync.Mutex
	screen *Screen
}

// NewSteps shows runs on a screen.
func NewSteps(s *Screen) *Steps { return &Steps{screen: s} }

// Event shows an event, and returns its line without the run's id; "" for what is not
// shown.
func (s *Steps) Event(e event.Event) string {
	line := stepLine(e)
	if line == "" {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.screen.print(e.Run + "  " + line + "\n")
	return line
}

func stepLine(e event.Event) string {
	switch d := e.Data.(type) {
	case event.RunStarted:
		return "run " + e.Run + " of agent " + safetext.Visible(d.Agent, 0) + " begins"
	case event.ToolCall:
		return "calls " + safetext.Visible(d.Tool, 0)
	case event.ApprovalRequested:
		return fmt.Sprintf("%s waits for an approval (rule %s): agentctl approve %s/%s", safetext.Visible(d.Tool, 0), safetext.Visible(d.Rule, 0), e.Run, e.Call)
	case event.ToolError:
		return "a call failed: " + string(d.Code)
	case event.RunFinished:
		return "ended: " + d.Reason
	}
	return ""
}
