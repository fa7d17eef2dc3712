package replay

import (
	"context"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// Approver answers as the recorded people did. It implements loop.Approver.
type Approver struct{ p *Player }

// Approver returns the approver of the replay.
func (p *Player) Approver() *Approver { return &Approver{p} }

// Ask returns the recorded answer. A question that was never answered waits for
// the end of the run.
func (a *Approver) Ask(ctx context.Context, q message.Question) (message.Answer, error) {
	p := a.p
	place, next := p.upcoming(q.Call.ID)
	d, ok := next.Data.(event.ApprovalDecided)
	if !ok {
		return message.Answer{}, p.untilStopped(ctx)
	}
	return d.Answer, p.await(place)
}

// upcoming returns the next recorded event of a call, and its place.
func (p *Player) upcoming(call string) (place int, e event.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if place = p.tape.next(call); place >= 0 {
		e = p.tape.entries[place].Event
	}
	return place, e
}
