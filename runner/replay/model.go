package replay

import (
	"context"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/cassette"
)

// Model answers as the recorded models did, in their order. It implements loop.Model; the
// content of the conversation follows from earlier events, which have been compared.
type Model struct{ p *Player }

// Model returns the model of the replay, which writes its summaries, too.
func (p *Player) Model() *Model { return &Model{p} }

// Append implements loop.Model.
func (m *Model) Append(*message.Message) error { return nil }

// Reset implements loop.Model.
func (m *Model) Reset([]*message.Message) error { return nil }

// Next emits the recorded answer to the next request in the recorded pieces, or fails as
// the recorded request did.
func (m *Model) Next(ctx context.Context, req message.Request, emit func(message.Delta) error) (*message.Output, error) {
	p := m.p
	p.mu.Lock()
	if p.asked >= len(p.requests) {
		defer p.mu.Unlock()
		return nil, p.diverge(p.surplus(event.Event{Data: event.ModelRequest{Summary: req.Aside != nil}}))
	}
	r, last := &p.requests[p.asked], p.asked == len(p.requests)-1
	p.asked++
	p.mu.Unlock()
	err := p.speak(r, emit)
	p.pace(0, false)
	switch {
	case err != nil:
		return nil, err
	case r.Output != nil:
		out := *r.Output
		out.Calls = append([]message.CallRequest(nil), r.Output.Calls...)
		return &out, nil
	case !last:
		// The conversation was shortened and the answer asked for again.
		return nil, reason.New(reason.ContextExhausted, "the recorded request was refused as too long")
	case p.stopped():
		p.cancel(p.cause())
		return nil, context.Cause(ctx)
	}
	return nil, p.cause()
}

// pace sets how far the clock is ahead, and whether it stands still.
func (p *Player) pace(ahead time.Duration, still bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clock.still = still
	if ahead == 0 {
		p.clock.ahead = 0
	}
	p.clock.ahead += ahead
}

// speech is an answer on its way to the loop.
type speech struct {
	p    *Player
	emit func(message.Delta) error
	// calls are the places of the calls that are being written.
	calls map[string]int
	// closing: the parts are being closed, so what is emitted from here on was gathered
	// before.
	closing bool
}

// speak emits the pieces of an answer so that the loop records them as in the recording.
func (p *Player) speak(r *cassette.Request, emit func(message.Delta) error) error {
	s := &speech{p: p, emit: emit, calls: map[string]int{}}
	for i := range r.Events {
		if err := s.say(&r.Events[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *speech) say(e *cassette.Entry) error {
	switch d := e.Data.(type) {
	case event.ModelRetry:
		s.calls, s.closing = map[string]int{}, false
		return s.piece(message.Delta{Kind: message.DeltaRetry, Retry: &d.Retry})
	case event.TextEnd, event.ReasoningEnd:
		s.closing = true
	case event.TextStart:
		return s.begin(message.Delta{Kind: message.DeltaText})
	case event.TextDelta:
		return s.piece(message.Delta{Kind: message.DeltaText, Text: d.Text})
	case event.ReasoningStart:
		return s.begin(message.Delta{Kind: message.DeltaReasoning})
	case event.ReasoningDelta:
		return s.piece(message.Delta{Kind: message.DeltaReasoning, Text: d.Text})
	case event.ToolInputStart:
		if !s.closing {
			s.calls[e.Call] = len(s.calls)
		}
		return s.begin(message.Delta{Kind: message.DeltaTool, Index: s.calls[e.Call], Call: e.Call, Tool: d.Tool})
	case event.ToolInputDelta:
		if at, ok := s.calls[e.Call]; ok && len(d.Metadata) == 0 {
			return s.piece(message.Delta{Kind: message.DeltaTool, Index: at, Call: e.Call, Text: d.Text})
		}
	}
	return nil
}

// begin opens a part, unless the answer itself brings it.
func (s *speech) begin(d message.Delta) error {
	if s.closing {
		return nil
	}
	return s.piece(d)
}

func (s *speech) piece(d message.Delta) error {
	s.p.pace(leap, s.closing)
	return s.emit(d)
}
