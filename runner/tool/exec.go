package tool

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/sandbox"
)

// maxExecOutput is what is kept of a program's output; the rest is counted.
const maxExecOutput = 10 << 20

// killGrace is the time a program has between SIGTERM and SIGKILL.
const killGrace = 2 * time.Second

// asIs is how long after a cancel a result still counts as what it says.
const asIs = 250 * time.Millisecond

// execServer starts a program for each call: arguments as JSON on its standard
// input, the result on its standard output, an exit code other than 0 is an
// error result. What it writes to standard error is shown only then.
type execServer struct {
	launcher *sandbox.Launcher
	spec     sandbox.Spec
}

// Call implements Server.
func (s *execServer) Call(ctx context.Context, req Request, _ func(string)) (Reply, error) {
	spec := s.spec
	var out, errs capped
	spec.Dir, spec.Stdin, spec.Stdout, spec.Stderr = dir(spec.Profile, req.Workspace), bytes.NewReader(req.Args), &out, &errs
	spec.Env = append(append([]string(nil), spec.Env...),
		"AGENTCTL_CALL="+req.Call, "AGENTCTL_RUN="+req.Run, "AGENTCTL_KEY="+req.Key, "AGENTCTL_WORKSPACE="+req.Workspace)
	p, err := s.launcher.Start(ctx, spec)
	if err != nil {
		return Reply{}, reason.New(reason.ToolError, "%w", err).WithHint("check spec.source.exec.command of the Tool")
	}
	timeout := time.NewTimer(req.Timeout)
	defer timeout.Stop()
	select {
	case <-p.Done():
	case <-timeout.C:
		p.Kill(killGrace)
		return Reply{Output: out.String(), Signal: p.Wait().Signal, Dropped: out.dropped, Failed: true, Code: message.CodeTimeout, Writes: true}, nil
	case <-ctx.Done():
		began := time.Now()
		p.Kill(killGrace)
		// A program that had done its work as it was told to end has a result.
		if info := p.Wait(); time.Since(began) > asIs || info.Signal != "" || info.Code != 0 {
			return Reply{Output: out.String(), Signal: info.Signal, Dropped: out.dropped, Failed: true, Code: message.CodeCancelled, Writes: true}, ctx.Err()
		}
	}
	info := p.Wait()
	reply := Reply{Output: out.String(), Signal: info.Signal, Dropped: out.dropped, Writes: true}
	if info.Signal == "" {
		reply.ExitCode = &info.Code
	}
	if info.Code != 0 || info.Signal != "" {
		reply.Failed, reply.Code = true, message.CodeTool
		if text := errs.String(); text != "" {
			reply.Output = strings.TrimLeft(reply.Output+"\n"+text, "\n")
		}
	}
	return reply, nil
}

// capped keeps the beginning of what is written to it.
type capped struct {
	mu      sync.Mutex
	buf     bytes.Buffer
	dropped int64
}

func (c *capped) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(len(p), maxExecOutput-c.buf.Len())
	c.buf.Write(p[:n])
	c.dropped += int64(len(p) - n)
	return len(p), nil
}

func (c *capped) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if bytes.IndexByte(c.buf.Bytes(), 0) >= 0 {
		return fmt.Sprintf("(binary output, %d bytes)", int64(c.buf.Len())+c.dropped)
	}
	return c.buf.String()
}
