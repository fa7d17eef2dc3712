package loop

import (
	"context"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
)

// mostAsked is how often a person is asked about one call whose circumstances
// keep changing.
const mostAsked = 3

// confirm judges a call that has waited a second time, on the current state of
// the world: a link may have been changed while a person thought or a parallel
// call ran. The same decision, or a milder one, lets the call run; a decision
// that asks another question is asked.
func (l *loop) confirm(ctx context.Context, c *call) (ready bool, err error) {
	if !c.waited {
		return true, nil
	}
	again := c.ToolCall
	again.Again, again.Args = true, c.given // a rule that has taken something away would find nothing
	d, err := l.Gate.Decide(ctx, again)
	left := d.Args
	if len(left) == 0 {
		left = c.given
	}
	switch same := string(left) == string(c.Args); {
	case err != nil:
		d.Action, d.Message = message.Deny, "the policy could not be evaluated: "+err.Error()
	case d.Action == message.Allow && (same || len(d.Args) == 0), d.Action == message.Redact && same:
		c.decision.Outside, c.decision.Binding = d.Outside, d.Binding // links may lead elsewhere by now
		return l.fresh(c), nil
	case d.Action == message.Ask && c.questions < mostAsked:
		if c.decision.Action == message.Ask && d.Essence() == c.decision.Essence() {
			return l.fresh(c), nil
		}
		c.decision, c.approved, c.Args = d, false, left
		return false, l.tell(c, event.PolicyDecision{Decision: d})
	case d.Action == message.Ask && c.decision.Action == message.Ask && d.Essence() == c.decision.Essence():
		return l.fresh(c), nil
	case d.Action != message.Deny:
		d.Action, d.Message = message.Deny, "what the call would touch has changed since it was judged"
	}
	if err := l.tell(c, event.PolicyDecision{Decision: d}); err != nil {
		return false, err
	}
	l.mu.Lock()
	l.refused = true
	l.mu.Unlock()
	return false, l.fail(c, message.CodeDenied, denied(d))
}

// fresh reports whether the approval of a call may still be used; an approval
// that may not is forgotten.
func (l *loop) fresh(c *call) bool {
	if c.decision.Action == message.Ask && !l.usable(c.expires) {
		c.approved = false
		return false
	}
	return true
}

func (l *loop) usable(expires int64) bool {
	return expires == 0 || l.Now().UnixMilli() < expires
}

// recallAnswer finds the answer of a person from before the run was
// interrupted. The answer counts for the same question only: it is void if
// another question was asked since, or if the effect of the call has changed.
// An approval also expires.
func (l *loop) recallAnswer(c *call, d *message.Decision) {
	a := l.View.Answer(c.ID)
	if a == nil || d.Hash == "" || a.Essence == "" || a.Essence != d.Essence() {
		return
	}
	switch a.State {
	case message.Approved:
		c.expires = a.ExpiresAt
		c.approved = l.usable(c.expires)
	case message.Rejected:
		c.rejected = &a.Answer
	case message.Expired, message.Unanswered: // there is no answer yet
	}
}

// openQuestion is a question about a call that was open when the run was parked.
type openQuestion struct {
	essence string
	unknown bool
	until   int64
}

// recallQuestions notes the questions that were open when the run was parked.
func (l *loop) recallQuestions() {
	if !l.Parked {
		return
	}
	l.waiting = map[string]openQuestion{}
	for _, m := range l.View.Messages {
		for _, p := range m.Calls() {
			q, a := l.View.Question(p.CallID), l.View.Answer(p.CallID)
			if q != nil && p.Decision != nil && (a == nil || a.Time.Before(q.Time)) {
				l.waiting[p.CallID] = openQuestion{p.Decision.Essence(), q.Unknown, q.ExpiresAt}
			}
		}
	}
}

// deadline is until when a question waits for its answer. The mutex is not held.
func (l *loop) deadline(c *call, d *message.Decision, unknown bool) int64 {
	until := l.Now().Add(l.AskTime).UnixMilli()
	l.mu.Lock()
	before, was := l.waiting[c.ID]
	delete(l.waiting, c.ID)
	l.mu.Unlock()
	if was && before.unknown == unknown && before.until > 0 && (unknown || before.essence == d.Essence()) {
		until = min(until, before.until)
	}
	return until
}

// approve asks a person, or the approver in their place.
func (l *loop) approve(ctx context.Context, c *call) (*End, error) {
	d := c.decision
	if no := c.rejected; no != nil {
		c.rejected = nil
		return l.rejected(c, *no)
	}
	a, err := l.question(ctx, c, d, false)
	if err != nil {
		return nil, err
	}
	if a.Suspend {
		return &End{
			Reason: reason.ApprovalRequired, Suspended: true,
			Message: sentence("%s waits for an approval (rule %s)", c.Tool, d.Rule),
			Hint:    "answer with agentctl approve or agentctl deny, then resume the run; or set spec.approvals.onAsk of the agent",
		}, nil
	}
	switch a.State {
	case message.Approved:
		c.approved, c.expires = true, a.ExpiresAt
		return nil, nil // the intent's fsync makes the answer durable before the call runs
	case message.Rejected:
		return l.rejected(c, a)
	case message.Expired, message.Unanswered:
	}
	l.mu.Lock()
	l.unanswered = true
	// The repetition was not approved; a second question would get no answer
	// either.
	stuck := c.looping != "" && !l.guard.nudge(c.asked.signature)
	l.mu.Unlock()
	if stuck {
		return repeated(c.Tool, c.looping, c.hint), l.fail(c, message.CodeLoop, "not run: "+c.looping)
	}
	text := sentence("not run: rule %s asks for an approval and nobody answered", d.Rule)
	if d.Message != "" {
		text += " (" + d.Message + ")"
	}
	return nil, l.fail(c, message.CodeDenied, text)
}

// question records the question, asks it, and records the answer. The answer is
// empty for a run that is to wait.
func (l *loop) question(ctx context.Context, c *call, d message.Decision, unknown bool) (message.Answer, error) {
	c.questions++
	q := message.Question{Call: c.ToolCall, Decision: d, Unknown: unknown}
	if l.AskTime > 0 {
		q.ExpiresAt = l.deadline(c, &d, unknown)
	}
	if err := l.tell(c, event.ApprovalRequested{
		Tool: c.Tool, Args: c.Args, Rule: d.Rule, Risk: d.Risk, Message: d.Message, Hash: d.Hash, ExpiresAt: q.ExpiresAt, Unknown: unknown,
	}); err != nil {
		return message.Answer{}, err
	}
	a, gone, err := l.askPerson(ctx, q)
	switch {
	case err != nil && ctx.Err() != nil:
		return message.Answer{}, context.Cause(ctx)
	case gone:
		a = message.Answer{State: message.Unanswered, By: "client", Reason: errGone.Error()}
	case err != nil:
		a = message.Answer{State: message.Unanswered, By: "error", Reason: err.Error()}
	}
	if a.Suspend {
		if !unknown {
			return a, nil
		}
		a = message.Answer{State: message.Unanswered, By: a.By} // a run that waits here would wait for ever
	}
	if err := l.tell(c, event.ApprovalDecided{Answer: a}); err != nil {
		return message.Answer{}, err
	}
	if w, ok := l.Approver.(Observer); ok {
		w.Decided(c.ID, a)
	}
	if gone {
		return message.Answer{}, errGone
	}
	return a, nil
}

// askPerson waits for the answer of a person. Gone reports that there is none because the
// client of the call no longer waits for it.
func (l *loop) askPerson(ctx context.Context, q message.Question) (a message.Answer, gone bool, err error) {
	if l.Clients == nil {
		a, err = l.Approver.Ask(ctx, q)
		return a, false, err
	}
	own, release := l.Clients.Within(ctx, q.Call.ID)
	defer release()
	a, err = l.Approver.Ask(own, q)
	decided := err == nil && (a.State == message.Approved || a.State == message.Rejected)
	return a, !decided && own.Err() != nil && ctx.Err() == nil, err
}
