package execution

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/approval"
)

// errNotAsked is the error of a question that no call waits for any more.
var errNotAsked = errors.New("the call that asks has ended")

// inquirer asks people for running calls, and records each question and its answer. A
// call asks one question at a time.
type inquirer struct {
	recorder *Recorder
	people   *approval.Questioner
	now      func() time.Time

	mu    sync.Mutex
	turns map[string]chan struct{}
}

// ask returns the answer: a text, or one of the options as the tool wrote it.
func (i *inquirer) ask(ctx context.Context, call, text string, options []string) (string, error) {
	reply, err := i.inquire(ctx, call, message.Inquiry{Text: text, Options: options})
	if err != nil {
		return "", err
	}
	if reply.State != message.ReplyAnswered {
		return "", fmt.Errorf("the question is %s%s", reply.State, because(reply.Reason))
	}
	return reply.Answer, nil
}

// inquire asks, and returns how the question ended. What people are shown, and a text
// that the tool is given, are as in the journal: without the secrets of the run. Options
// are answered as the tool wrote them.
func (i *inquirer) inquire(ctx context.Context, call string, in message.Inquiry) (none message.Reply, err error) {
	done, err := i.turn(ctx, call)
	if err != nil {
		return none, err
	}
	defer done()
	if err := approval.CheckInquiry(in); err != nil {
		return none, err
	}
	options := in.Options
	if wait := i.people.Timeout; wait > 0 {
		until := i.now().Add(wait)
		if end, ok := ctx.Deadline(); ok && end.Before(until) {
			until = end // the call's time goes on while it waits
		}
		in.ExpiresAt = until.UnixMilli()
	}
	var of string
	asking := message.ToolCall{ID: call}
	i.recorder.See(func(v *view.Run) {
		in.ID, of = fmt.Sprintf("q%d", v.Inquiries(call)+1), v.MessageOf(call)
		if c := v.Call(call); c != nil {
			asking.Tool, asking.Args = c.Tool, c.Input
		}
	})
	asked, err := i.recorder.appendIf(event.Event{Message: of, Call: call, Data: event.QuestionAsked{Inquiry: in}}, func(v *view.Run) bool {
		c := v.Call(call)
		return c != nil && c.State == message.StateRunning && v.Inquiry(call) == nil
	})
	if err != nil {
		return none, err
	}
	if d, ok := asked.Data.(event.QuestionAsked); ok {
		in = d.Inquiry
	}
	i.recorder.shown(ctx)
	reply, err := i.people.Ask(ctx, asking, in)
	if err != nil {
		return none, err // the end of the call closes the question
	}
	answered, err := i.recorder.appendIf(event.Event{Message: of, Call: call, Data: event.QuestionAnswered{Reply: reply}}, func(v *view.Run) bool {
		open := v.Inquiry(call)
		return open != nil && open.ID == in.ID
	})
	if err == nil {
		err = i.recorder.Sync() // durable before the tool acts on it
	}
	if err != nil {
		return none, err
	}
	i.people.Answered(call, reply)
	if chosen, ok := written(reply.Answer, in.Options, options); ok {
		reply.Answer = chosen
	} else if d, ok := answered.Data.(event.QuestionAnswered); ok {
		reply.Answer = d.Answer
	}
	return reply, nil
}

// written returns the options that were chosen as the tool wrote them, from those that
// people were shown.
func written(answer string, shown, options []string) (string, bool) {
	var chosen []string
	if at := slices.Index(shown, answer); at >= 0 {
		return options[at], true
	}
	for line := range strings.SplitSeq(answer, "\n") {
		at := slices.Index(shown, line)
		if at < 0 {
			return "", false
		}
		chosen = append(chosen, options[at])
	}
	return strings.Join(chosen, "\n"), true
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// turn waits until no other question of the call is open.
func (i *inquirer) turn(ctx context.Context, call string) (done func(), err error) {
	for {
		i.mu.Lock()
		before := i.turns[call]
		if before == nil {
			mine := make(chan struct{})
			i.turns[call] = mine
			i.mu.Unlock()
			return func() {
				i.mu.Lock()
				defer i.mu.Unlock()
				delete(i.turns, call)
				close(mine)
			}, nil
		}
		i.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-before:
		}
	}
}
