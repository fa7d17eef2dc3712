package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// ExecReply is what a program that is started for each call answered.
type ExecReply struct {
	Output string
	// Failed is true if the program ended with an exit code other than 0, or was killed.
	Failed bool
	// Code is timeout when its time was up.
	Code string
}

// ExecOptions say what to try on a program that reads its arguments from stdin
// and writes the result to stdout.
type ExecOptions struct {
	Name string
	// Call starts the program once. Required. It returns an error if the program could not
	// be started, or the context ended.
	Call func(ctx context.Context, args json.RawMessage, timeout time.Duration) (ExecReply, error)
	// Good are arguments that must be answered with exit code 0, Slow such that
	// take long.
	Good, Slow []json.RawMessage
}

// RunExec tries such a program.
func RunExec(ctx context.Context, o ExecOptions) *Report {
	t := &trial{}
	r := &Report{Program: o.Name, Tools: []string{}}
	for i, c := range o.checks() {
		r.add(t.do(ctx, c))
		if i == 0 && r.Failed > 0 {
			break // it cannot even be started
		}
	}
	return r
}

func (o *ExecOptions) checks() []check {
	checks := []check{
		{
			name: "start", promise: "it can be started, and ends when it has read its arguments",
			fix: "make it executable, with a #! line that names an interpreter", try: o.start,
		},
		{
			name: "bad arguments", promise: "what is no JSON object ends it with an exit code other than 0",
			fix: "parse stdin before anything else; exit with 2 when it is not what you expect", try: o.badArguments,
		},
		{
			name: "large request", promise: "arguments of 6 MiB are read, and what it does not know is refused",
			fix: "read stdin to its end, and refuse fields you do not know", try: o.largeRequest,
		},
		{
			name: "parallel calls", promise: "8 calls at once are all answered",
			fix: "keep no file or port that another call may need at the same time", try: o.parallelCalls,
		},
	}
	for _, args := range o.Good {
		checks = append(checks, check{
			name: "call", promise: "the call " + brief(string(args)) + " ends with exit code 0",
			fix: "see what it says, or fix the arguments of the test", try: func(ctx context.Context, _ *trial) error {
				reply, err := o.Call(ctx, args, patience)
				if err == nil && reply.Failed {
					err = fmt.Errorf("it failed: %s", brief(reply.Output))
				}
				return err
			},
		})
	}
	for _, args := range o.Slow {
		checks = append(checks, check{
			name: "deadline", promise: "the call " + brief(string(args)) + " ends when its time is up",
			fix: "do not ignore SIGTERM", try: func(ctx context.Context, _ *trial) error { return o.deadline(ctx, args) },
		}, check{
			name: "cancel", promise: "the call " + brief(string(args)) + " ends when it is cancelled",
			fix: "do not ignore SIGTERM", try: func(ctx context.Context, _ *trial) error { return o.cancel(ctx, args) },
		})
	}
	return checks
}

func (o *ExecOptions) start(ctx context.Context, _ *trial) error {
	reply, err := o.Call(ctx, json.RawMessage(`{}`), patience)
	if err == nil && reply.Code == "timeout" {
		err = fmt.Errorf("it did not end within %s", patience)
	}
	return err
}

func (o *ExecOptions) badArguments(ctx context.Context, _ *trial) error {
	var wrong []string
	for _, args := range []string{``, `{`, `[]`, `"text"`, `null`, `{} {}`} {
		reply, err := o.Call(ctx, json.RawMessage(args), patience)
		switch {
		case err != nil:
			return err
		case reply.Code == "timeout":
			return fmt.Errorf("with the arguments %q it did not end", args)
		case !reply.Failed:
			wrong = append(wrong, fmt.Sprintf("it accepted the arguments %q", args))
		}
	}
	return together(wrong)
}

func (o *ExecOptions) largeRequest(ctx context.Context, _ *trial) error {
	reply, err := o.Call(ctx, json.RawMessage(`{"no such field":"`+strings.Repeat("x", 6<<20)+`"}`), patience)
	switch {
	case err != nil:
		return err
	case reply.Code == "timeout":
		return errors.New("it did not end")
	case !reply.Failed:
		return errors.New("it accepted a field that it cannot know")
	}
	return nil
}

func (o *ExecOptions) parallelCalls(ctx context.Context, _ *trial) error {
	args := json.RawMessage(`{}`)
	if len(o.Good) > 0 {
		args = o.Good[0]
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var first error
	for range 8 {
		wg.Go(func() {
			reply, err := o.Call(ctx, args, patience)
			switch {
			case err != nil:
			case reply.Code == "timeout":
				err = errors.New("one did not end")
			case reply.Failed && len(o.Good) > 0:
				err = fmt.Errorf("one failed: %s", brief(reply.Output))
			}
			mu.Lock()
			defer mu.Unlock()
			if first == nil {
				first = err
			}
		})
	}
	wg.Wait()
	return first
}

// killedAfter is how long after its deadline a program that ignores SIGTERM is
// killed.
const killedAfter = 2 * time.Second

func (o *ExecOptions) deadline(ctx context.Context, args json.RawMessage) error {
	begin := time.Now()
	reply, err := o.Call(ctx, args, deadlineAfter)
	switch took := time.Since(begin); {
	case err != nil:
		return err
	case reply.Code != "timeout":
		return fmt.Errorf("it ended before its time was up: %s", brief(reply.Output))
	case took >= deadlineAfter+killedAfter:
		return fmt.Errorf("a deadline of %s ended it after %s: it had to be killed", deadlineAfter, took.Round(time.Millisecond))
	}
	return nil
}

func (o *ExecOptions) cancel(ctx context.Context, args json.RawMessage) error {
	live, stop := context.WithTimeout(ctx, deadlineAfter)
	defer stop()
	begin := time.Now()
	_, err := o.Call(live, args, patience)
	switch took := time.Since(begin); {
	case err == nil:
		return errors.New("it ended before it could be cancelled")
	case live.Err() == nil:
		return err
	case took >= deadlineAfter+killedAfter:
		return fmt.Errorf("it ended %s after the cancel: it had to be killed", (took - deadlineAfter).Round(time.Millisecond))
	}
	return nil
}
