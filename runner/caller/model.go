package caller

import (
	"context"
	"strings"
	"time"
	"unicode"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/approval"
	"agentctl.dev/agentctl/runner/loop"
)

// Model returns what asks clients in place of a model. The run records them under a name;
// newID is that of the run.
func (c *Caller) Model(as message.ModelRef, newID func(kind string) string) loop.Model {
	return &conversation{c, as, newID}
}

// Connect lets results, questions and cancelled calls find their client.
func (c *Caller) Connect(cfg *loop.Config) {
	cfg.Journal = journal{cfg.Journal, c}
	cfg.Toolbox = toolbox{cfg.Toolbox, c}
	cfg.Approver = approver{cfg.Approver, c, cfg.Now}
	cfg.Inbox = nil // a client cannot be sent messages
	cfg.Clients = c
}

// conversation implements loop.Model: a call of a client is an answer.
type conversation struct {
	caller *Caller
	as     message.ModelRef
	newID  func(kind string) string
}

// Append implements loop.Model. Results reach their clients earlier, from the journal.
func (*conversation) Append(*message.Message) error { return nil }

// Reset implements loop.Model.
func (*conversation) Reset([]*message.Message) error { return nil }

// Next waits for a call. When no more can come, it answers without one, which ends the run.
func (m *conversation) Next(ctx context.Context, req message.Request, _ func(message.Delta) error) (*message.Output, error) {
	for more := !req.NoTools && req.Aside == nil; more; {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-m.caller.arrived:
		}
		var p *call
		if p, more = m.caller.take(m.newID); p != nil {
			m.caller.again()
			return m.answer(p), nil
		}
	}
	return &message.Output{
		Text: "No client is connected any more.", Finish: message.FinishStop, Model: m.as,
	}, nil
}

// again lets the next request look at what was left, and at the end.
func (c *Caller) again() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) > 0 || c.closed {
		c.wake()
	}
}

func (m *conversation) answer(p *call) *message.Output {
	out := &message.Output{Finish: message.FinishToolCalls, Model: m.as, Calls: []message.CallRequest{{ID: p.id, Tool: p.Tool, Args: p.Args}}}
	out.Model.Model = Shown(p.Client)
	return out
}

// mostName bounds what is recorded of the name that a client gives itself.
const mostName = 64

// Shown returns the name of a client as it may be shown.
func Shown(client string) string {
	client = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(client, ""))
	if len(client) > mostName {
		client = strings.ToValidUTF8(client[:mostName], "")
	}
	return client
}

// journal passes recorded events on to clients.
type journal struct {
	loop.Journal
	caller *Caller
}

// Append implements loop.Journal.
func (j journal) Append(e event.Event) (event.Event, error) {
	recorded, err := j.Journal.Append(e)
	if err == nil && e.Call != "" {
		j.caller.saw(recorded)
	}
	return recorded, err
}

// toolbox ends a call whose client no longer waits.
type toolbox struct {
	loop.Toolbox
	caller *Caller
}

// Run implements loop.Toolbox.
func (t toolbox) Run(ctx context.Context, c message.ToolCall, progress func(string)) (*message.ToolResult, error) {
	ctx, done := t.caller.Within(ctx, c.ID)
	defer done()
	return t.Toolbox.Run(ctx, c, progress)
}

// Within implements loop.Clients.
func (c *Caller) Within(ctx context.Context, id string) (context.Context, func()) {
	p := c.find(id)
	if p == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-p.gone:
			cancel(errGone)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-done
	}
}

// askTime is how long a client is asked where the question itself has no deadline.
const askTime = 10 * time.Minute

// approver asks the client of a call beside the run's own approver, where the request
// allows that.
type approver struct {
	loop.Approver
	caller *Caller
	now    func() time.Time
}

// Ask implements loop.Approver. An approval or a rejection counts, whoever gives it first.
// Without one, what the run's own approver has returned counts.
func (a approver) Ask(ctx context.Context, q message.Question) (message.Answer, error) {
	p := a.caller.find(q.Call.ID)
	if p == nil || p.Ask == nil {
		return a.Approver.Ask(ctx, q)
	}
	type reply struct {
		message.Answer
		err    error
		client bool
	}
	until := a.now().Add(askTime)
	if q.ExpiresAt > 0 {
		until = time.UnixMilli(q.ExpiresAt)
	}
	asking, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	replies := make(chan reply, 2)
	go func() {
		answer, err := p.Ask(asking, q)
		if answer.State == message.Approved {
			answer.ExpiresAt = a.now().Add(approval.Life).UnixMilli()
		}
		replies <- reply{answer, err, true}
	}()
	go func() {
		answer, err := a.Approver.Ask(asking, q)
		replies <- reply{answer, err, false}
	}()
	var own reply
	for n := range 2 {
		r := <-replies
		decided := r.err == nil && (r.State == message.Approved || r.State == message.Rejected)
		if !r.client {
			own = r
		}
		if decided {
			cancel()
			if n == 0 {
				<-replies // both have returned before the call continues
			}
			return r.Answer, nil
		}
	}
	return own.Answer, own.err
}

// Decided implements loop.Observer.
func (a approver) Decided(call string, answer message.Answer) {
	if o, ok := a.Approver.(loop.Observer); ok {
		o.Decided(call, answer)
	}
}
