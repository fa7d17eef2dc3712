package runner

import (
	"context"
	"strconv"

	"agentctl.dev/agentctl/api/message"
)

// placedGate adds to a refusal and to a question where its rule is written. It
// implements loop.Gate.
type placedGate struct {
	*presentGate
	plan *plan
}

// Decide judges a call as the gate of the run does.
func (g placedGate) Decide(ctx context.Context, call message.ToolCall) (message.Decision, error) {
	d, err := g.presentGate.Decide(ctx, call)
	if err != nil || d.Action != message.Deny && d.Action != message.Ask {
		return d, err
	}
	if file, line := g.plan.where(g.Origin(ctx, g.plan.compiled, call, d)); file != "" {
		d.Source = file
		if line > 0 {
			d.Source += ":" + strconv.Itoa(line)
		}
	}
	return d, nil
}
