package approval

import (
	"context"
	"errors"
	"time"

	"agentctl.dev/agentctl/api/message"
)

// look is how often the inbox is looked at while something is asked.
const look = 150 * time.Millisecond

// Remote is what lets people answer from outside the run's process, and
// what they approved for always.
type Remote struct {
	// Run is the id of the run.
	Run    string
	Inbox  *Inbox
	Memory *Memory
	Now    func() time.Time
	// Binding returns the open question about a call as one word: its hash, the
	// rule, the facts, the plan of the run.
	Binding func(call string) string
	// Used reports whether a request has been an answer before.
	Used func(call, request string) bool
	// Refused is called for requests that are not accepted, with the reason.
	Refused func(name string, why error)
}

// remoteApprover asks an approver and polls the inbox at the same time: the first answer counts.
type remoteApprover struct {
	Remote
	next Approver
}

// elsewhereError ends a question that was answered from outside.
type elsewhereError struct{ answer message.Answer }

func (elsewhereError) Error() string { return "answered elsewhere" }

// Ask returns a remembered answer without asking. It returns only after the other approver
// has.
func (a *remoteApprover) Ask(ctx context.Context, q message.Question) (message.Answer, error) {
	if err := ctx.Err(); err != nil {
		return message.Answer{}, context.Cause(ctx)
	}
	if a.Memory.Covers(q) {
		return a.settle(recalled(q), q), nil
	}
	if answer, ok := a.left(q); ok {
		return a.settle(answer, q), nil
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	type result struct {
		answer message.Answer
		err    error
	}
	done := make(chan result, 1)
	go func() {
		answer, err := a.next.Ask(inner, q)
		done <- result{answer, err}
	}()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case r := <-done:
			return a.settle(r.answer, q), r.err
		case <-tick.C:
			answer, ok := a.left(q)
			if !ok {
				continue
			}
			cancel(elsewhereError{answer})
			if r := <-done; r.err == nil && r.answer.State != message.Unanswered {
				answer = r.answer // it was quicker; what was left is not used
			}
			return a.settle(answer, q), nil
		}
	}
}

// recalled is the answer to a call that is covered.
func recalled(q message.Question) message.Answer {
	return message.Answer{State: message.Approved, By: "remembered: " + Summary(q.Decision.Always)}
}

// left returns the answer in the inbox for the question.
func (a *remoteApprover) left(q message.Question) (message.Answer, bool) {
	r, ok := a.take(q.Call.ID, func(r *Request) error {
		if r.Answer != nil {
			return errors.New("it answers a question, and the call waits for an approval")
		}
		return nil
	})
	if !ok {
		return message.Answer{}, false
	}
	answer := message.Answer{State: r.State, By: r.By, Reason: r.Reason, EndRun: r.EndRun, Scope: r.Scope, Request: r.ID}
	if answer.State == message.Approved {
		answer.ExpiresAt = time.UnixMilli(r.Time).Add(Life).UnixMilli()
	}
	return answer, true
}

// take returns the request that was left for the open question about a call, or
// of a call.
func (a *Remote) take(call string, check func(*Request) error) (*Request, bool) {
	binding := a.Binding(call)
	return a.Inbox.take(call, func(r *Request) error {
		switch {
		case r.Run != a.Run || r.Call != call:
			return errors.New("it is for another call")
		case a.Used(r.Call, r.ID):
			return errors.New("it was used before")
		case binding == "" || r.Binding != binding:
			return errors.New("the call, or what it would do, is not what was approved or denied")
		}
		return check(r)
	}, a.Refused)
}

// settle completes an answer: what holds for always is remembered, and no
// approval holds for ever.
func (a *remoteApprover) settle(answer message.Answer, q message.Question) message.Answer {
	if answer.Scope == message.Always && (answer.State != message.Approved || !rememberable(q)) {
		answer.Scope = message.Once
	}
	if answer.Scope == message.Always {
		answer.Remember = q.Decision.Always
		a.Memory.add(answer.Remember)
	}
	if answer.State == message.Approved && answer.ExpiresAt == 0 {
		answer.ExpiresAt = a.Now().Add(Life).UnixMilli()
	}
	return answer
}

// Decided removes the request that brought an answer, once the answer is in the journal.
func (a *remoteApprover) Decided(call string, answer message.Answer) {
	if answer.Request != "" {
		_ = a.Inbox.Remove(call, answer.Request) // used; should it stay, it is refused
	}
}
