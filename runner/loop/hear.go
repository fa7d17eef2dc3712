package loop

import (
	"context"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
)

// closings is how often a run that has its final answer looks again because
// something was left that very moment; what cannot be taken must not keep it.
const closings = 3

// incoming returns what people have sent since the run last looked.
func (l *loop) incoming(ctx context.Context) (fresh []message.Incoming) {
	if l.Inbox == nil {
		return nil
	}
	for _, m := range l.Inbox.Take(ctx) {
		if l.View.Received(m.ID) { // by a process that was killed before it could acknowledge it
			l.Inbox.Heard([]message.Incoming{m})
			continue
		}
		fresh = append(fresh, m)
	}
	return fresh
}

// hear adds new messages to the conversation. They are kept elsewhere until
// they are durable in the journal.
func (l *loop) hear(messages []message.Incoming) error {
	if len(messages) == 0 {
		return nil
	}
	for _, m := range messages {
		if l.View.Received(m.ID) {
			continue
		}
		if err := l.record(event.Event{Message: l.NewID("msg"), Part: l.NewID("part"), Data: event.MessageReceived{Incoming: m, Origin: &message.Origin{Kind: message.OriginUser, Name: m.By}}}); err != nil {
			return err
		}
		if err := l.remember(l.View.Message()); err != nil {
			return err
		}
	}
	if err := l.durable(); err != nil {
		return err
	}
	l.Inbox.Heard(messages)
	l.guard.renew()
	l.emptyBefore, l.corrections = false, 0
	return nil
}

// lastWord judges an answer without calls. If new messages have come, the
// answer is not the last one, whatever its text, and the run continues.
func (l *loop) lastWord(ctx context.Context, out *message.Output) (end *End, err error) {
	out = l.wholeTurn(out)
	for range closings {
		if ctx.Err() == nil { // a run that is stopped takes no more messages, and keeps its answer
			if more := l.incoming(ctx); len(more) > 0 {
				if err := l.remember(l.current); err != nil {
					return nil, err
				}
				return nil, l.hear(more)
			}
		}
		end, err = l.answered(out)
		if end == nil || err != nil || l.Inbox == nil || l.Inbox.Close() {
			return end, err
		}
	}
	return end, nil
}

// posted reports whether a message was sent by somebody to the run after its
// start.
func posted(v *view.Run, m *message.Message) bool { return m != v.Messages[0] && byPeople(m) }

// byPeople reports whether a message is neither the model's nor the runner's.
func byPeople(m *message.Message) bool {
	return m.Role == message.RoleUser && len(m.Parts) > 0 && !m.Parts[0].Synthetic
}

// renew forgets what was done so far: after a new message the model may well
// make the same calls again.
func (g *guard) renew() { *g = guard{Guard: g.Guard} }
