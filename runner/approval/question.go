package approval

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/safetext"
)

// Bounds of a question and of its answer.
const (
	maxQuestion = 4 << 10
	maxOptions  = 32
	maxOption   = 200
	maxAnswer   = 4 << 10
)

// CheckInquiry returns what is wrong with a question, or nil.
func CheckInquiry(q message.Inquiry) error {
	switch {
	case strings.TrimSpace(q.Text) == "":
		return errors.New("the question is empty")
	case len(q.Text) > maxQuestion || !utf8.ValidString(q.Text):
		return fmt.Errorf("the question is longer than %d bytes or not UTF-8 text", maxQuestion)
	case len(q.Options) > maxOptions:
		return fmt.Errorf("the question has more than %d options", maxOptions)
	}
	for i, o := range q.Options {
		if strings.TrimSpace(o) == "" || len(o) > maxOption || !utf8.ValidString(o) || slices.Contains(q.Options[:i], o) {
			return fmt.Errorf("option %d is empty, longer than %d bytes, not UTF-8 text or a duplicate", i+1, maxOption)
		}
		if q.Multiple && strings.Contains(o, "\n") {
			return fmt.Errorf("option %d has several lines, and several options can be chosen", i+1)
		}
	}
	return nil
}

// Choose returns the answer that a text means: without options the text itself,
// else the option with this text or this number, counted from 1. Of a question that
// allows several, the options are on lines of their own or have commas between them; the
// answer has one on each line, in the order of the question.
func Choose(q message.Inquiry, text string) (answer string, err error) {
	if len(text) > maxAnswer || !utf8.ValidString(text) {
		return "", fmt.Errorf("an answer is UTF-8 text of at most %d bytes", maxAnswer)
	}
	if strings.TrimSpace(text) == "" {
		return "", errors.New("the answer is empty: a question without an answer is refused instead")
	}
	if len(q.Options) == 0 {
		return text, nil
	}
	if chosen, ok := choose(text, q.Options); ok {
		return chosen, nil
	}
	if !q.Multiple {
		return "", fmt.Errorf("the answer is one of the options, by its text or its number from 1 to %d", len(q.Options))
	}
	separator := ","
	if strings.Contains(text, "\n") {
		separator = "\n"
	}
	chosen := map[string]bool{}
	for part := range strings.SplitSeq(text, separator) {
		option, ok := choose(strings.TrimSpace(part), q.Options)
		if !ok {
			return "", fmt.Errorf("the answer is some of the options, by their texts or their numbers from 1 to %d, with commas between them", len(q.Options))
		}
		chosen[option] = true
	}
	var all []string
	for _, o := range q.Options {
		if chosen[o] {
			all = append(all, o)
		}
	}
	return strings.Join(all, "\n"), nil
}

// DescribeInquiry shows a question in full; nothing in it can be mistaken for
// output of agentctl.
func DescribeInquiry(who string, q message.Inquiry) []byte {
	var b bytes.Buffer
	describeInquiry(&b, who, q)
	return b.Bytes()
}

// Questioner puts the questions of running calls to a person: on the terminal,
// and through the inbox of the run, whichever answers first. A question is not an
// approval: the answer goes to the tool and allows nothing.
type Questioner struct {
	// Terminal to ask on; nil when there is none.
	Terminal *Terminal
	// Remote lets people answer from outside; nil when they cannot.
	Remote *Remote
	// Timeout of an answer; 0: no person can be asked.
	Timeout time.Duration
	// Nobody is the reason why no person can be asked.
	Nobody string
	// Person answers in place of all others the questions that Agent's calls ask. Optional.
	Person Person
	Agent  string
}

// Questioner returns what asks people for the running calls of a run.
func (c Choice) Questioner(o Options) *Questioner {
	q := &Questioner{Remote: o.Remote, Timeout: c.Waits(o), Person: c.Person, Agent: o.Agent}
	if c.Mode == ModeAuto || c.Mode == ModePrompt {
		q.Terminal = o.Terminal
	}
	switch {
	case c.Person != nil:
		q.Nobody = undeclared
	case c.Mode == ModeAll || c.Mode == ModeFile:
		q.Nobody = "--approve " + cmp.Or(c.File, string(c.Mode))
	case c.Mode == ModeNever:
		q.Nobody = "--approve never"
	default:
		q.Nobody = "no terminal"
	}
	if q.Timeout == 0 && o.OnAsk != "" {
		q.Nobody += ", onAsk: " + string(o.OnAsk)
	}
	return q
}

// Ask waits for the answer to a question of a call. An error is returned when ctx ends,
// with its cause, and when a Person cannot answer.
func (q *Questioner) Ask(ctx context.Context, of message.ToolCall, in message.Inquiry) (message.Reply, error) {
	none := message.Reply{ID: in.ID, State: message.ReplyUnanswered, By: q.Nobody, Reason: "nobody can answer: " + q.Nobody}
	if err := ctx.Err(); err != nil {
		return message.Reply{}, context.Cause(ctx)
	}
	call, who := of.ID, "tool "+of.Tool
	if q.Person != nil {
		if reply, ok, err := q.Person.Reply(ctx, q.Agent, of, in); err != nil || ok {
			reply.ID = in.ID
			return reply, err
		}
	}
	if q.Timeout <= 0 || q.Terminal == nil && q.Remote == nil {
		return none, nil
	}
	inner, cancel := context.WithTimeoutCause(ctx, q.Timeout, errLate)
	defer cancel()
	type result struct {
		reply message.Reply
		err   error
	}
	prompt, dismiss := context.WithCancelCause(inner)
	defer dismiss(nil)
	done := make(chan result, 1)
	if q.Terminal != nil {
		go func() {
			reply, err := q.Terminal.inquire(prompt, who, in)
			done <- result{reply, err}
		}()
	}
	prompted := func() *message.Reply { // it is never left behind
		if q.Terminal == nil {
			return nil
		}
		if r := <-done; r.err == nil && r.reply.State != message.ReplyUnanswered {
			return &r.reply
		}
		return nil
	}
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		if q.Remote != nil {
			if reply, ok := q.Remote.reply(call, in); ok {
				dismiss(elsewhereError{message.Answer{State: message.ApprovalState(reply.State), By: reply.By}})
				if own := prompted(); own != nil {
					return *own, nil // it was quicker; the request is not used
				}
				return reply, nil
			}
		}
		select {
		case <-tick.C:
		case r := <-done:
			switch {
			case r.err == nil:
				return r.reply, nil
			case ctx.Err() != nil:
				return message.Reply{}, context.Cause(ctx)
			case inner.Err() == nil:
				none.By, none.Reason = "terminal", r.err.Error()
				return none, nil
			}
			return expired(in), nil
		case <-inner.Done():
			if own := prompted(); own != nil {
				return *own, nil
			}
			if ctx.Err() != nil {
				return message.Reply{}, context.Cause(ctx)
			}
			return expired(in), nil
		}
	}
}

func expired(in message.Inquiry) message.Reply {
	return message.Reply{ID: in.ID, State: message.ReplyExpired, By: "timeout", Reason: errLate.Error()}
}

// Answered removes the request that brought an answer, once that is in the
// journal.
func (q *Questioner) Answered(call string, r message.Reply) {
	if r.Request != "" && q.Remote != nil {
		_ = q.Remote.Inbox.Remove(call, r.Request) // used; should it stay, it is refused
	}
}

// reply returns the answer that was left in the inbox for a question.
func (a *Remote) reply(call string, in message.Inquiry) (message.Reply, bool) {
	out := message.Reply{ID: in.ID, Via: "inbox"}
	r, ok := a.take(call, func(r *Request) (err error) {
		switch {
		case r.EndRun || r.Scope == message.Always:
			return errors.New("it answers a call that waits for an approval, and this is a question")
		case r.State == message.Approved && r.Answer == nil:
			return errors.New("it has no answer to the question")
		case r.State == message.Approved:
			out.Answer, err = Choose(in, *r.Answer)
		}
		return err
	})
	if !ok {
		return out, false
	}
	out.State, out.By, out.Reason, out.Request = message.ReplyAnswered, r.By, r.Reason, r.ID
	if r.State == message.Rejected {
		out.State = message.ReplyRefused
	}
	return out, true
}

// inquire shows a question and returns the line that is typed, or the option that
// is chosen by its number or its text. As with a call that waits for an approval,
// Enter alone refuses, and so does n where it cannot be an answer. The program that
// asks is named first, so that its text cannot be mistaken for one of agentctl.
func (t *Terminal) inquire(ctx context.Context, who string, in message.Inquiry) (message.Reply, error) {
	select {
	case <-ctx.Done():
		return message.Reply{}, context.Cause(ctx)
	case <-t.ask:
	}
	defer func() { t.ask <- struct{}{} }()
	t.drop()
	if _, err := t.out.Write(posed(who, in)); err != nil {
		return message.Reply{}, fmt.Errorf("ask for %s: %w", who, err)
	}
	for {
		line, err := t.next(ctx)
		elsewhere, other := errors.AsType[elsewhereError](err)
		switch {
		case errors.Is(err, io.EOF):
			return message.Reply{ID: in.ID, State: message.ReplyUnanswered, By: "terminal", Reason: "nobody can answer: the input of the terminal has ended"}, nil
		case other:
			fmt.Fprintf(t.out, "\n%s by %s\n", elsewhere.answer.State, safetext.Visible(elsewhere.answer.By, 0))
			return message.Reply{}, err
		case errors.Is(err, errLate):
			fmt.Fprintln(t.out, "\nno answer in time: the tool is told so")
			return message.Reply{}, err
		case err != nil:
			fmt.Fprintln(t.out)
			return message.Reply{}, err
		}
		if refuses(in, line) {
			return message.Reply{ID: in.ID, State: message.ReplyRefused, By: "terminal", Via: "terminal"}, nil
		}
		answer, err := Choose(in, line)
		if err == nil {
			return message.Reply{ID: in.ID, State: message.ReplyAnswered, Answer: answer, By: "terminal", Via: "terminal"}, nil
		}
		if len(in.Options) > 0 {
			fmt.Fprint(t.out, "answer "+numbers(in)+" or n: ")
		} else {
			fmt.Fprintf(t.out, "%v: ", err)
		}
	}
}

// refuses reports whether a line refuses to answer a question. Where any text is an
// answer, n is one as well.
func refuses(in message.Inquiry, line string) bool {
	if line == "" {
		return true
	}
	_, option := choose(line, in.Options)
	return len(in.Options) > 0 && !option && (strings.EqualFold(line, "n") || strings.EqualFold(line, "no"))
}

// numbers are those of the options.
func numbers(in message.Inquiry) string {
	if len(in.Options) == 1 {
		return "1"
	}
	return "1 to " + strconv.Itoa(len(in.Options))
}

func posed(who string, in message.Inquiry) []byte {
	var b bytes.Buffer
	b.WriteByte('\n')
	describeInquiry(&b, who, in)
	if len(in.Options) > 0 {
		several := ""
		if in.Multiple {
			several = ", several with commas between them"
		}
		b.WriteString("[" + numbers(in) + "] answer" + several + "   [n] refuse to answer, the default: ")
	} else {
		b.WriteString("answer (Enter alone refuses): ")
	}
	return b.Bytes()
}

func describeInquiry(b *bytes.Buffer, who string, in message.Inquiry) {
	fmt.Fprintf(b, "%s asks; the answer goes to it and allows nothing:\n", safetext.Visible(who, 0))
	writeIndented(b, "  ", "question", safetext.Visible(in.Text, safetext.Lines))
	for i, o := range in.Options {
		fmt.Fprintf(b, "  %d  %s\n", i+1, safetext.Visible(o, 0))
	}
	if in.Multiple && len(in.Options) > 0 {
		b.WriteString("  several can be chosen, with commas between them\n")
	}
}

func choose(line string, options []string) (string, bool) {
	for _, o := range options { // a text first: an option may be a number
		if line == o {
			return o, true
		}
	}
	for i, o := range options {
		if line == strconv.Itoa(i+1) {
			return o, true
		}
	}
	return "", false
}
