package tool

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/sandbox"
)

// maxExecOutput is what is kept of a program's output; the rest is counted.
const maxExecOutput = 10 << 20

// killGrace is the time a program has between SIGTERM and SIGKILL.
const killGrace = 2 * time.Second

// asIs is how long after a cancel a result still counts as complete.
const asIs = 250 * time.Millisecond

// PerCall is a server that starts a program for each call: arguments as JSON on its
// standard input, the result on its standard output, an exit code other than 0 is an
// error result. What it writes to standard error is shown only then.
type PerCall struct{ Start Starter }

// Starter starts the program of a call, with these variables besides its own.
type Starter func(ctx context.Context, req host.CallRequest, env []string, out, errs io.Writer) (Running, error)

// Running is a program, wherever it runs.
type Running interface {
	Done() <-chan struct{}
	Kill(grace time.Duration)
	// End waits, and returns how the program ended.
	End() Ending
}

// Ending is how a program ended: with an exit code, or by a signal. Detail is the cause
// where it is known.
type Ending struct {
	Code           int
	Signal, Detail string
}

// String returns "exit code 3" or "signal killed: exceeded 512Mi (spec.limits.memory)".
func (e Ending) String() string {
	text := fmt.Sprintf("exit code %d", e.Code)
	if e.Signal != "" {
		text = "signal " + e.Signal
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// OnHost is a program of this host that runs.
type OnHost struct{ *sandbox.Process }

// End implements Running.
func (p OnHost) End() Ending {
	info := p.Wait()
	return Ending{Code: info.Code, Signal: info.Signal}
}

// Call implements Server.
func (s *PerCall) Call(ctx context.Context, req host.CallRequest, _ func(string)) (Reply, error) {
	var out, errs capped
	env := []string{"AGENTCTL_CALL=" + req.ID, "AGENTCTL_RUN=" + req.Run, "AGENTCTL_KEY=" + req.Key, "AGENTCTL_WORKSPACE=" + req.Workspace}
	for _, v := range req.Variables {
		env = append(env, v.Name+"="+v.Value)
	}
	p, err := s.Start(ctx, req, env, &out, &errs)
	if err != nil {
		return Reply{}, &startError{err}
	}
	timeout := time.NewTimer(req.Timeout)
	defer timeout.Stop()
	select {
	case <-p.Done():
	case <-timeout.C:
		p.Kill(killGrace)
		return Reply{Output: out.String(), Signal: p.End().Signal, Dropped: out.dropped, Failed: true, Code: message.CodeTimeout, Writes: true}, nil
	case <-ctx.Done():
		began := time.Now()
		p.Kill(killGrace)
		// A program that completed its work although it was asked to end has a
		// result.
		if end := p.End(); time.Since(began) > asIs || end.Signal != "" || end.Code != 0 {
			return Reply{Output: out.String(), Signal: end.Signal, Dropped: out.dropped, Failed: true, Code: message.CodeCancelled, Writes: true}, ctx.Err()
		}
	}
	end := p.End()
	reply := Reply{Output: out.String(), Signal: end.Signal, Dropped: out.dropped, Writes: true}
	if end.Signal == "" {
		reply.ExitCode = &end.Code
	}
	if end.Code != 0 || end.Signal != "" {
		reply.Failed, reply.Code = true, message.CodeTool
		for _, text := range []string{errs.String(), end.Detail} {
			if text != "" {
				reply.Output = strings.TrimLeft(reply.Output+"\n"+text, "\n")
			}
		}
	}
	return reply, nil
}

// suddenly is the length at which an output is given all the room it may need. To
// grow by halves and copy each time takes more memory than the output itself.
const suddenly = 256 << 10

// capped keeps the beginning of what is written to it.
type capped struct {
	mu      sync.Mutex
	text    strings.Builder
	binary  bool
	dropped int64
}

func (c *capped) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := p[:min(len(p), maxExecOutput-c.text.Len())]
	if need := c.text.Len() + len(kept); need > suddenly && need > c.text.Cap() {
		c.text.Grow(maxExecOutput - c.text.Len())
	}
	c.text.Write(kept)
	c.binary = c.binary || bytes.IndexByte(kept, 0) >= 0
	c.dropped += int64(len(p) - len(kept))
	return len(p), nil
}

func (c *capped) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.text.String()
	switch {
	case c.binary:
		return fmt.Sprintf("(binary output, %d bytes)", int64(len(s))+c.dropped)
	case c.text.Cap() > 2*len(s)+suddenly: // the room must not outlive the need for it
		return strings.Clone(s)
	}
	return s
}
