package runs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/approval"
	"agentctl.dev/agentctl/runner/journal"
)

// Asked is a question that a run has asked, with its outcome.
type Asked struct {
	WaitingCall
	// ID distinguishes the question from every other one, also from an earlier or later
	// one about the same call. A run that is resumed and asks again asks the same
	// question.
	ID string
	// Binding is a hash of what the question shows: an answer with it was given to exactly
	// this question.
	Binding string
	// Open: the call still waits.
	Open bool
	// Answer is nil for a question that is open, or that was closed without one; Why is
	// the reason.
	Answer *view.Answer
	Why    string
	// Reply is the answer to the question of a running call; nil for an approval, and
	// for a question that is open or was closed without one.
	Reply *view.Reply
	// Used is true if the outcome of the call after its answer is known: it has begun, or
	// was refused all the same, for which Why is the reason.
	Used bool
}

// Questions reads the questions of a run from its journal, in order. A run without a
// journal has no questions.
func Questions(ctx context.Context, state, id string) ([]Asked, error) {
	b, err := readBook(ctx, state, id)
	if err != nil {
		return nil, err
	}
	return b.asked, nil
}

// TreeQuestions are the questions of a run and, behind them, of all runs below it. Each has
// an ID of its own, whatever two runs ask. A question of a run below is closed when the run
// at the top has ended.
func TreeQuestions(ctx context.Context, state, id string) ([]Asked, error) {
	top, err := readBook(ctx, state, id)
	if err != nil {
		return nil, err
	}
	var children []journal.Found
	if err := journal.Children(state, func(string) bool { return false }, func(f journal.Found) { children = append(children, f) }); err != nil {
		return nil, err
	}
	all := top.asked
	for _, f := range newTree(append(children, journal.Found{ID: id})).below(id) {
		b, err := readBook(ctx, state, f.ID)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			continue // nobody can answer a run whose journal cannot be read; its call reports it
		}
		if over := top.view.Finished != nil && top.view.Phase != view.Suspended; over {
			b.close("", "the run above ended before anybody decided")
		}
		for _, q := range b.asked {
			sum := sha256.Sum256([]byte(q.ID + "\n" + f.ID))
			q.ID = hex.EncodeToString(sum[:])
			all = append(all, q)
		}
	}
	return all, nil
}

// readBook reads the questions of one run.
func readBook(ctx context.Context, state, id string) (*book, error) {
	dir := journal.Dir(state, id)
	b := &book{}
	for e, err := range journal.Read(ctx, dir, 0) {
		if errors.Is(err, fs.ErrNotExist) {
			return b, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the questions of run %s: %w", id, err)
		}
		b.add(e)
	}
	state = Interrupted
	switch {
	case b.view.Phase == view.Suspended:
		state = Suspended
	case journal.Held(dir):
		state = Waits
	}
	for i := range b.asked {
		b.asked[i].State = state
	}
	return b, nil
}

// book collects the questions of a run from its events.
type book struct {
	view  view.Run
	asked []Asked
}

func (b *book) add(e event.Event) {
	if b.view.Apply(e) != nil {
		return // an invalid event changes nothing
	}
	switch d := e.Data.(type) {
	case event.ApprovalRequested, event.QuestionAsked:
		b.ask(e.Call)
	case event.QuestionAnswered:
		b.reply(e.Call)
	case event.RunResumed:
		b.lose("the process that asked has ended")
	case event.ApprovalDecided:
		if q := b.open(e.Call); q != nil {
			q.Open, q.Answer = false, b.view.Answer(e.Call)
		}
	case event.PolicyDecision:
		if d.Decision.Action == message.Deny {
			why := "the call was not run: rule " + d.Decision.Rule + refusal(d.Decision.Message)
			b.use(e.Call, why)
			b.close(e.Call, why)
		}
	case event.ToolCall, event.ToolResult, event.ToolError:
		b.use(e.Call, "")
		why := "the call needs no approval any more"
		if b.view.Inquiries(e.Call) > 0 {
			why = "the call ended before its question was answered"
		}
		b.close(e.Call, why)
	case event.RunFinished:
		b.lose("the process that asked has ended")
		if d.Phase != view.Suspended {
			b.use("", "")
			b.close("", "the run ended before anybody decided")
		}
	}
}

func (b *book) ask(call string) {
	w := questionOf(&b.view, call)
	if w == nil || w.binding == "" {
		return // nothing to bind an answer to
	}
	q := Asked{WaitingCall: *w, Binding: w.binding, Open: true}
	// A question that is asked again after an answer, for example because that was too
	// old, is another question: an answer counts once.
	before := ""
	if a := b.view.Answer(call); a != nil {
		before = a.Time.UTC().Format(time.RFC3339Nano)
	}
	sum := sha256.Sum256([]byte(q.Binding + "\n" + before))
	q.ID = hex.EncodeToString(sum[:])
	if same := b.open(call); same != nil && same.ID == q.ID {
		*same = q
		return
	}
	b.close(call, "the call, or what it would do, has changed: it is another question now")
	b.asked = append(b.asked, q)
}

// reply closes the question of a running call.
func (b *book) reply(call string) {
	q, r := b.open(call), b.view.Reply(call)
	if q == nil || r == nil {
		return
	}
	state := message.Unanswered
	switch r.State {
	case message.ReplyAnswered:
		state = message.Approved
	case message.ReplyRefused:
		state = message.Rejected
	case message.ReplyExpired:
		state = message.Expired
	case message.ReplyUnanswered:
	}
	q.Open, q.Used, q.Reply = false, true, r
	q.Answer = &view.Answer{Answer: message.Answer{State: state, By: r.By, Reason: r.Reason, Request: r.Request}, Time: r.Time}
}

// lose closes the open questions of running calls: the calls have ended.
func (b *book) lose(why string) {
	for i := range b.asked {
		if q := &b.asked[i]; q.Open && q.Question != nil {
			q.Open, q.Why = false, why
		}
	}
}

// open is the question about a call that waits for an answer; nil if there is none.
func (b *book) open(call string) *Asked {
	i := slices.IndexFunc(b.asked, func(q Asked) bool { return q.Open && q.Call == call })
	if i < 0 {
		return nil
	}
	return &b.asked[i]
}

// use records the outcome of an answered call, or of all if call is "".
func (b *book) use(call, why string) {
	for i := range b.asked {
		if q := &b.asked[i]; q.Answer != nil && !q.Used && (call == "" || q.Call == call) {
			q.Used, q.Why = true, why
		}
	}
}

func refusal(message string) string {
	if message == "" {
		return ""
	}
	return ", " + message
}

// close closes the open questions about a call, or all, without an answer.
func (b *book) close(call, why string) {
	for i := range b.asked {
		if q := &b.asked[i]; q.Open && (call == "" || q.Call == call) {
			q.Open, q.Why = false, why
		}
	}
}

// Left is an answer that was given elsewhere, for example to a control plane.
type Left struct {
	// Request is the id of the answer; each counts once.
	Request string
	State   message.ApprovalState
	Scope   message.Scope
	By      string
	Reason  string
	// Answer to the question of a running call; nil for an approval.
	Answer *string
	// EndRun ends the run with a rejection.
	EndRun bool
	// Time of the answer: it may be used for AnswerLife after it.
	Time time.Time
}

// AnswerLife is how long an answer may be used.
const AnswerLife = approval.Life

// Leave stores an answer for the run that asks. An earlier answer is kept: the first one
// counts. Storing it repeatedly has no further effect; left is false if there was one.
func Leave(state string, q *Asked, a Left, now func() time.Time) (left bool, err error) {
	inbox := approval.NewInbox(journal.Dir(state, q.Run), now)
	if inbox.Left(q.Call, q.Binding) != nil {
		return false, nil
	}
	err = inbox.Put(approval.Request{
		ID: a.Request, Run: q.Run, Call: q.Call, Binding: q.Binding, State: a.State, Scope: a.Scope, By: a.By, Reason: a.Reason, Answer: a.Answer, EndRun: a.EndRun, Time: a.Time.UnixMilli(),
	})
	return err == nil, err
}
