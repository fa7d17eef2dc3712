package mcp

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentctl.dev/agentctl/runner/sandbox"
	"agentctl.dev/agentctl/runner/sandbox/spec"
	"agentctl.dev/agentctl/runner/tool"
)

// killGrace is the time a server has between SIGTERM and SIGKILL, after its input was
// closed.
const killGrace = time.Second

// blind is a sandbox that shows no files of the run and has no network.
func blind(held *spec.Profile) *spec.Profile {
	seen := *held
	seen.Workspace, seen.Access, seen.Network = "", spec.AccessNone, spec.NetworkNone
	return &seen
}

// stdio starts the server of a Tool in a sandbox, or, without a profile, in none.
func (s *source) stdio(d *tool.Definition, profile *spec.Profile, fresh bool) dialer {
	name, command := d.Program(), d.Command
	return s.speaking(name, func(ctx context.Context, streams tool.Streams) (tool.Running, error) {
		if guard := s.pool.Options().Guard; guard != nil && profile != nil && profile.Workspace != "" {
			if _, _, err := guard(ctx); err != nil { // its sandbox shows the files of the run
				return nil, err
			}
		}
		p, err := s.pool.Launcher().Start(ctx, sandbox.Spec{
			Argv: command, Env: tool.HeldEnvironment(profile, s.pool.Options().Env[name]), Dir: tool.StartDir(profile, s.pool.Options().Dir), Profile: profile, Fresh: fresh,
			Stdin: streams.In, Stdout: streams.Out, Stderr: streams.Errs,
		})
		if err != nil {
			return nil, tool.WithHint(fmt.Errorf("tool %q: start its MCP server: %w", name, err),
				"check spec.source.mcp.stdio.command of the Tool; in a sandbox it sees "+tool.InSight)
		}
		return tool.OnHost{Process: p}, nil
	})
}

// speaking starts a server, wherever it runs, and speaks with it on its standard input and
// output.
func (s *source) speaking(name string, start func(context.Context, tool.Streams) (tool.Running, error)) dialer {
	return func(ctx context.Context) (*link, error) {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		errs := &tail{}
		p, err := start(ctx, tool.Streams{In: inR, Out: outW, Errs: errs})
		if err != nil {
			return nil, err
		}
		go func() { // ends with the process, for which stop waits
			<-p.Done()
			_ = outW.Close()
			_ = inR.Close()
		}()
		in := &frames{ReadCloser: outR}
		fate := func() error {
			if in.tooBig.Load() {
				return errTooBig
			}
			late := time.NewTimer(fateTime)
			defer late.Stop()
			select {
			case <-p.Done():
				return fmt.Errorf("it ended with %s%s", p.End(), errs.explain())
			case <-late.C:
				return nil
			}
		}
		stop := func() {
			_ = inW.Close()
			late := time.NewTimer(closeTime)
			defer late.Stop()
			select {
			case <-p.Done():
			case <-late.C:
				_ = outR.Close()
				p.Kill(killGrace)
				<-p.Done()
			}
			_ = outR.Close()
		}
		return s.connect(ctx, name, &mcp.IOTransport{Reader: in, Writer: inW, MaxLineLength: 2 * maxFrame}, fate, stop)
	}
}

// maxTail is what is kept of a server's standard error.
const maxTail = 2 << 10

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[max(0, len(p)-maxTail):]...)
	if over := len(t.text) - maxTail; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

// explain is the end of the standard error as part of an error; "" if there is none.
func (t *tail) explain() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.TrimSpace(cleanLines(string(t.text)))
	if text == "" {
		return ""
	}
	return ", and wrote: " + text
}
