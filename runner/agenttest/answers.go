package agenttest

import (
	"context"
	"sync"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/approval"
	"agentctl.dev/agentctl/runner/expect"
	"agentctl.dev/agentctl/runner/manifest"
)

// by is who answers in a test.
const by = "the test"

// irreversible is the risk of a call that cannot be undone.
const irreversible = "R3"

// answers answers the questions of a run as its test declares.
type answers struct {
	entries []v1alpha1.TestApproval
	// at is the field of the entries.
	at string

	mu sync.Mutex
	// wrong is the first mistake in an entry that only a question shows: the test fails
	// then, because the run had no answer.
	wrong error
}

// fail notes a mistake in an entry.
func (a *answers) fail(err error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.wrong == nil {
		a.wrong = err
	}
	return err
}

// problem is the first mistake; nil if there was none.
func (a *answers) problem() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.wrong
}

// find returns the first entry that selects a question; nil if none does. Fits restricts
// the choice.
func (a *answers) find(ctx context.Context, q expect.Question, fits func(*v1alpha1.TestApproval) bool) (*v1alpha1.TestApproval, error) {
	for i := range a.entries {
		e := &a.entries[i]
		if e.Tool != "" && e.Tool != q.Call.Tool || e.Rule != "" && e.Rule != q.Rule || !fits(e) {
			continue
		}
		if e.When != "" {
			c, err := expect.CompileQuestion(e.When)
			if err != nil {
				return nil, a.failed(i, err)
			}
			holds, err := c.Holds(ctx, q)
			if err != nil {
				return nil, a.failed(i, err)
			}
			if !holds {
				continue
			}
		}
		return e, nil
	}
	return nil, nil //nolint:nilnil // a question may be left open
}

func (a *answers) failed(i int, err error) error {
	return a.fail(reason.Usagef("%s.when cannot be evaluated: %w", manifest.Index(a.at, i), err).WithHint("name the tool in the entry: arguments of other tools have other fields"))
}

// Approve implements approval.Person.
func (a *answers) Approve(ctx context.Context, agent string, q message.Question) (message.Answer, bool, error) {
	of := expect.Question{Agent: agent, Call: q.Call, Rule: q.Decision.Rule, Message: q.Decision.Message}
	e, err := a.find(ctx, of, func(e *v1alpha1.TestApproval) bool {
		return q.Decision.Risk != irreversible || e.Tool != "" || e.Answer != v1alpha1.TestApprove
	})
	switch {
	case err != nil || e == nil:
		return message.Answer{}, false, err
	case e.Answer == v1alpha1.TestApprove:
		return message.Answer{State: message.Approved, By: by, Scope: message.Once}, true, nil
	}
	return message.Answer{State: message.Rejected, By: by, Reason: e.Reason}, true, nil
}

// Reply implements approval.Person.
func (a *answers) Reply(ctx context.Context, agent string, call message.ToolCall, in message.Inquiry) (message.Reply, bool, error) {
	e, err := a.find(ctx, expect.Question{Agent: agent, Call: call, Message: in.Text}, func(e *v1alpha1.TestApproval) bool {
		return e.Rule == "" && (e.Answer == v1alpha1.TestReject || e.Text != "")
	})
	switch {
	case err != nil || e == nil:
		return message.Reply{}, false, err
	case e.Answer == v1alpha1.TestReject:
		return message.Reply{State: message.ReplyRefused, By: by, Reason: e.Reason}, true, nil
	}
	text, err := approval.Choose(in, e.Text)
	if err != nil {
		return message.Reply{}, false, a.fail(reason.Usagef("%s: text %q: %w", a.at, e.Text, err))
	}
	return message.Reply{State: message.ReplyAnswered, Answer: text, By: by}, true, nil
}
