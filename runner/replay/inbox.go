package replay

import (
	"context"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// Inbox holds what people sent to the recorded run: each message comes where it
// came. It implements loop.Inbox.
type Inbox struct{ p *Player }

// Inbox returns what people say in the replay.
func (p *Player) Inbox() *Inbox { return &Inbox{p} }

// Take returns the messages that the recorded run read at this place.
func (b *Inbox) Take(context.Context) (messages []message.Incoming) {
	p := b.p
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, place := range p.tape.lanes[""] {
		d, ok := p.tape.entries[place].Data.(event.MessageReceived)
		if !ok {
			break
		}
		messages = append(messages, d.Incoming)
	}
	return messages
}

// Heard implements loop.Inbox.
func (b *Inbox) Heard([]message.Incoming) {}

// Close reports whether the recorded run read no further message at this point.
func (b *Inbox) Close() bool { return len(b.Take(context.Background())) == 0 }
