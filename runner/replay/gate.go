package replay

import (
	"context"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// Gate decides as the recorded policies did: the files and programs that they
// judged by are not there. It implements loop.Gate.
type Gate struct{ p *Player }

// Gate returns the judge of the replay.
func (p *Player) Gate() *Gate { return &Gate{p} }

// Decide returns the recorded decision. If the call is decided about again and the
// recorded run has no event of that, the first decision is returned again. For a call that
// never ran, because the run was stopped, it waits for the stop.
func (g *Gate) Decide(ctx context.Context, call message.ToolCall) (message.Decision, error) {
	p := g.p
	p.mu.Lock()
	var next event.Event
	if place := p.tape.next(call.ID); place >= 0 {
		next = p.tape.entries[place].Event
	}
	decision := p.decisions[call.ID]
	p.mu.Unlock()
	if d, ok := next.Data.(event.PolicyDecision); ok {
		return d.Decision, nil
	}
	if !call.Again {
		return message.Decision{Action: message.Deny, Rule: "replay", Message: "the recording holds no decision about the call"}, nil
	}
	switch next.Data.(type) {
	case event.ToolCall, event.ApprovalRequested:
	default:
		_ = p.untilStopped(ctx) // the loop checks ctx, and a divergence has been recorded
	}
	return decision, nil
}

// Review returns what the recorded run was shown.
func (g *Gate) Review(_ context.Context, _ message.ToolCall, result *message.ToolResult) (*message.ToolResult, error) {
	return result, nil
}
