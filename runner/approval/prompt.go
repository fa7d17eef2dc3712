package approval

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/safetext"
)

// Prompt asks a person on a terminal.
type Prompt struct {
	terminal *Terminal
	timeout  time.Duration
	// of names the subagent whose call it is; "" is the run's own agent.
	of string
	// memory of what was approved for always; nil remembers nothing.
	memory *Memory
}

var errLate = errors.New("nobody answered in time")

// Ask shows the whole call and waits for an answer until the deadline.
func (p *Prompt) Ask(ctx context.Context, q message.Question) (message.Answer, error) {
	t := p.terminal
	// Waiting for another question to be answered does not count.
	select {
	case <-ctx.Done():
		return message.Answer{}, context.Cause(ctx)
	case <-t.ask:
	}
	defer func() { t.ask <- struct{}{} }()
	if p.memory.Covers(q) { // by the answer to the question before
		return recalled(q), nil
	}
	inner, cancel := context.WithTimeoutCause(ctx, p.timeout, errLate)
	defer cancel()
	t.drop()
	if _, err := t.out.Write(p.question(q)); err != nil {
		return message.Answer{}, fmt.Errorf("ask about call %s: %w", q.Call.ID, err)
	}
	a, err := p.answer(inner, p.memory != nil && rememberable(q))
	elsewhere, ok := errors.AsType[elsewhereError](err)
	switch {
	case err == nil && a.Scope == message.Always:
		p.memory.add(q.Decision.Always)
		fmt.Fprint(t.out, "remembered for this run; to keep it, add this policy:\n"+safetext.Visible(Policy(q.Decision.Always), safetext.Lines))
		return a, nil
	case err == nil:
		return a, nil
	case ok:
		fmt.Fprintf(t.out, "\n%s by %s\n", elsewhere.answer.State, safetext.Visible(elsewhere.answer.By, 0))
	case errors.Is(err, errLate):
		fmt.Fprintln(t.out, "\nno answer in time: the call is not run")
		return message.Answer{State: message.Expired, By: "terminal", Reason: "nobody answered in time"}, nil
	case errors.Is(err, io.EOF):
		return message.Answer{State: message.Unanswered, By: "terminal", Reason: "nobody is there to approve the call"}, nil
	}
	return message.Answer{}, fmt.Errorf("ask about call %s: %w", q.Call.ID, err)
}

func (p *Prompt) answer(ctx context.Context, always bool) (message.Answer, error) {
	for {
		text, err := p.terminal.next(ctx)
		if err != nil {
			return message.Answer{}, err
		}
		word, rest, _ := strings.Cut(text, " ")
		switch strings.ToLower(word) {
		case "y", "yes":
			if rest == "" {
				return message.Answer{State: message.Approved, By: "terminal"}, nil
			}
		case "a", "always":
			if rest == "" && always {
				return message.Answer{State: message.Approved, By: "terminal", Scope: message.Always}, nil
			}
		case "", "n", "no":
			if rest == "" {
				return message.Answer{State: message.Rejected, By: "terminal"}, nil
			}
		case "q", "quit":
			if rest == "" {
				return message.Answer{State: message.Rejected, By: "terminal", EndRun: true}, nil
			}
		case "r":
			reason := strings.TrimSpace(rest)
			if reason == "" {
				fmt.Fprint(p.terminal.out, "reason, for the model to read: ")
				if reason, err = p.terminal.next(ctx); err != nil {
					return message.Answer{}, err
				}
			}
			return message.Answer{State: message.Rejected, By: "terminal", Reason: reason}, nil
		}
		if always {
			fmt.Fprint(p.terminal.out, "answer y, a, n, r or q: ")
		} else {
			fmt.Fprint(p.terminal.out, "answer y, n, r or q: ")
		}
	}
}

// question shows everything about a call, and what can be answered.
func (p *Prompt) question(q message.Question) []byte {
	var b bytes.Buffer
	b.WriteByte('\n')
	if p.of != "" {
		b.WriteString("for " + safetext.Visible(p.of, 0) + ":\n")
	}
	describe(&b, "Allow this call of", "?", q)
	always := ""
	if p.memory != nil && rememberable(q) {
		always = "   [a] always, in this run"
	}
	fmt.Fprintf(&b, "[y] once%s   [n] no, the default   [r] no, with a reason   [q] no, and end the run   (within %s): ", always, p.timeout)
	return b.Bytes()
}
