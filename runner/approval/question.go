package approval

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"agentctl.dev/agentctl/api/safetext"
)

// Questioner puts the questions of tools to the person on a terminal. They are
// no approvals: what a tool is told is an answer like any other input of it.
type Questioner struct {
	Terminal *Terminal
	// Timeout of an answer.
	Timeout time.Duration
}

// errNobody is what a tool is told that is not answered.
var errNobody = errors.New("nobody answered in time")

// Ask shows a question and returns the line that is typed, or the option that
// is chosen by its number or its text. Who asks is shown first, so that a program
// cannot speak as agentctl.
func (q *Questioner) Ask(ctx context.Context, who, text string, options []string) (string, error) {
	t := q.Terminal
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case <-t.ask:
	}
	defer func() { t.ask <- struct{}{} }()
	ctx, cancel := context.WithTimeoutCause(ctx, q.Timeout, errNobody)
	defer cancel()
	t.drop()
	if _, err := t.out.Write(posed(who, text, options)); err != nil {
		return "", fmt.Errorf("ask for %s: %w", who, err)
	}
	for {
		line, err := t.next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return "", errors.New("nobody is there to answer")
		case err != nil:
			fmt.Fprintln(t.out)
			return "", err
		case len(options) == 0:
			return line, nil
		}
		if chosen, ok := choose(line, options); ok {
			return chosen, nil
		}
		fmt.Fprintf(t.out, "answer 1 to %d: ", len(options))
	}
}

func posed(who, text string, options []string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "\n%s asks; the answer goes to it and allows nothing:\n", safetext.Visible(who, 0))
	writeIndented(&b, "  ", "question", safetext.Visible(text, safetext.Lines))
	for i, o := range options {
		fmt.Fprintf(&b, "  %d  %s\n", i+1, safetext.Visible(o, 0))
	}
	b.WriteString("answer: ")
	return b.Bytes()
}

func choose(line string, options []string) (string, bool) {
	for i, o := range options {
		if line == o || line == strconv.Itoa(i+1) {
			return o, true
		}
	}
	return "", false
}
