package view

import (
	"fmt"
	"slices"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// Call returns the tool call of that id, nil when there is none.
func (r *Run) Call(id string) *message.ToolPart { return r.calls[id] }

// Step returns the step that asked for a call, counted from 1.
func (r *Run) Step(call string) int { return r.steps[call] }

func (r *Run) applyCall(e event.Event) error {
	if _, ok := e.Data.(event.Unknown); ok {
		return nil
	}
	if d, ok := e.Data.(event.ToolInputStart); ok {
		return r.openCall(e, d)
	}
	c := r.calls[e.Call]
	if c == nil {
		return fmt.Errorf("no call %q", e.Call)
	}
	switch d := e.Data.(type) {
	case event.ToolInputEnd:
		c.Tool, c.Raw, c.Input = d.Tool, d.Raw, d.Input
	case event.PolicyDecision:
		c.Decision = &d.Decision
	case event.ApprovalRequested:
		r.PendingApprovals = append(r.PendingApprovals, e.Call)
	case event.ApprovalDecided:
		c.Approval = d.State
		r.PendingApprovals = slices.DeleteFunc(r.PendingApprovals, func(id string) bool { return id == e.Call })
	case event.ToolCall:
		return r.runCall(c, d, e)
	case event.ToolProgress:
		c.Progress = d.Text
	case event.ToolResult:
		return end(c, message.StateCompleted, &d.ToolResult, e)
	case event.ToolError:
		return end(c, message.StateError, &d.ToolResult, e)
	default:
		return fmt.Errorf("no rule for events of type %s", e.Type())
	}
	return nil
}

func (r *Run) openCall(e event.Event, d event.ToolInputStart) error {
	m, err := r.message(e.Message)
	if err != nil {
		return err
	}
	if r.calls[e.Call] != nil {
		return fmt.Errorf("call %q exists", e.Call)
	}
	c := &message.ToolPart{CallID: e.Call, Tool: d.Tool, State: message.StatePending}
	m.Parts = append(m.Parts, message.Part{ID: e.Part, Type: message.PartTool, Tool: c, Start: e.Time.UnixMilli()})
	r.calls[e.Call], r.steps[e.Call] = c, r.Steps
	return nil
}

// runCall is the intent. A call that a crash has interrupted is running already
// and may be run again, once in every process.
func (r *Run) runCall(c *message.ToolPart, d event.ToolCall, e event.Event) error {
	again := c.State == message.StateRunning && d.Attempt == c.Attempt+1 && d.Attempt <= r.Attempt
	if !again {
		if err := c.Move(message.StateRunning); err != nil {
			return err
		}
	}
	c.Input, c.Start, c.Attempt = d.Args, e.Time.UnixMilli(), max(1, d.Attempt)
	return nil
}

func end(c *message.ToolPart, to message.ToolState, result *message.ToolResult, e event.Event) error {
	if err := c.Move(to); err != nil {
		return err
	}
	c.Progress, c.Result, c.End = "", result, e.Time.UnixMilli()
	return nil
}
