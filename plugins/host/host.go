// Package host is agentctl's end of a plugin program: it starts one, asks what it serves, calls it and ends it.
//
// go-plugin does the handshake and watches the process; the channel is ours: one
// gRPC connection without broker and stdio streams over a socket whose file is
// removed as soon as it is connected. Nothing here waits without a deadline and
// nothing a program does can make the host panic.
package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"

	"agentctl.dev/agentctl/plugins/sdk/toolpb"
)

// Options say how to start a program.
type Options struct {
	// Name is what errors call the program, for example its path. Required.
	Name string
	// Launch starts the program. Required.
	Launch func(hclog.Logger, *exec.Cmd, string) (runner.Runner, error)
	// StartTimeout bounds start, handshake, connection and Describe together;
	// default 20 s.
	StartTimeout time.Duration
	// TempDir is where a folder for the socket is made; default the system's.
	// It must be short: a socket's path ends at 107 bytes.
	TempDir string
	// MaxMessage bounds a message in either direction; default 64 MiB.
	MaxMessage int
	// Stderr receives the program's stderr; optional. Errors quote the last lines in any
	// case. It must not block; nothing is written to it after Close or a failed Start has
	// returned.
	Stderr io.Writer
}

// ToolInfo is a tool as its program describes it.
type ToolInfo struct {
	Name        string
	Description string
	// Parameters is the JSON Schema of the arguments.
	Parameters []byte
}

// grace is how long a cancelled call may continue before its program is killed, and how
// long Close waits for running calls.
const grace = 2 * time.Second

// Plugin is a program that runs.
type Plugin struct {
	name   string
	guard  *guard
	conn   *grpc.ClientConn
	client toolpb.ToolClient
	codec  codec
	tools  []ToolInfo
	stderr *stderrTail
	dir    *folder
	// starter is closed when go-plugin's own start has returned.
	starter chan struct{}
	waits   waits

	calls   callbook
	closing sync.Once
	closed  chan struct{}
}

// Start starts a program, shakes hands and asks what it serves. Every error is
// an *Error; the program and all its traces are gone then.
func Start(ctx context.Context, opts Options) (*Plugin, error) {
	if opts.Launch == nil || opts.Name == "" {
		return nil, errors.New("start a plugin: no name or no way to launch it")
	}
	if opts.StartTimeout <= 0 {
		opts.StartTimeout = 20 * time.Second
	}
	if opts.MaxMessage <= 0 {
		opts.MaxMessage = toolpb.MaxMessage
	}
	dir, err := newFolder(opts.TempDir)
	if err != nil {
		return nil, &Error{Kind: KindStart, Plugin: opts.Name, Err: err}
	}
	tail := &stderrTail{sink: opts.Stderr, ended: make(chan struct{})}
	p := &Plugin{
		name: opts.Name, dir: dir, guard: newGuard(tail), stderr: tail, codec: newCodec(),
		starter: make(chan struct{}), closed: make(chan struct{}), waits: waits{asIs, letGoWait},
	}
	p.calls.flights = map[uint64]*flight{}
	ctx, cancel := context.WithTimeoutCause(ctx, opts.StartTimeout, startTimeoutError{opts.StartTimeout})
	defer cancel()
	if err := p.start(ctx, opts); err != nil {
		bad := p.startError(ctx, err)
		p.shut("it did not start well")
		bad.Stderr = p.stderr.last()
		tail.detach()
		return nil, bad
	}
	return p, nil
}

// start does the three steps: handshake, connection, Describe.
func (p *Plugin) start(ctx context.Context, opts Options) error {
	addr, err := p.shakeHands(ctx, opts)
	if err != nil {
		return err
	}
	if err := p.connect(addr, opts.MaxMessage); err != nil {
		return err
	}
	go p.watch()
	p.tools, err = p.describe(ctx)
	// Connected or not: no other process is to find the socket.
	_ = os.Remove(addr)
	return err
}

// shakeHands lets go-plugin start the program and returns the socket's path.
func (p *Plugin) shakeHands(ctx context.Context, opts Options) (string, error) {
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  plugin.HandshakeConfig{ProtocolVersion: toolpb.Version, MagicCookieKey: toolpb.CookieKey, MagicCookieValue: toolpb.CookieValue},
		VersionedPlugins: map[int]plugin.PluginSet{toolpb.Version: {toolpb.PluginName: &plugin.NetRPCUnsupportedPlugin{}}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		SkipHostEnv:      true,
		RunnerFunc:       p.guard.launch(opts.Launch),
		StartTimeout:     opts.StartTimeout + shutTime, // ours comes first
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: p.dir.path},
		Logger:           hclog.New(&hclog.LoggerOptions{Level: hclog.Off, Output: io.Discard}),
	})
	type outcome struct {
		addr string
		err  error
	}
	out := make(chan outcome, 1)
	go func() {
		defer close(p.starter)
		a, err := client.Start()
		if err != nil {
			out <- outcome{err: &Error{Kind: KindHandshake, Err: errors.New(excerpt(err.Error()))}}
			return
		}
		out <- outcome{addr: a.String()}
	}()
	select {
	case o := <-out:
		return o.addr, o.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// watch ends the program's calls when it dies: the socket's file is gone, so it cannot be
// reached again. Close may never be called for a program that has died by itself, so its
// folder is removed here too.
func (p *Plugin) watch() {
	<-p.guard.exited
	_ = p.conn.Close()
	<-p.starter
	p.dir.remove()
}

// Tools returns what the program serves, as it said when it was started.
func (p *Plugin) Tools() []ToolInfo { return append([]ToolInfo(nil), p.tools...) }

// Describe asks the program again for its tools.
func (p *Plugin) Describe(ctx context.Context) ([]ToolInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	tools, err := p.describe(ctx)
	if err != nil {
		return nil, p.callError("", err)
	}
	return tools, nil
}

// describeTimeout bounds one Describe of a program that runs.
const describeTimeout = 10 * time.Second

// Exited is closed when the program has ended, for whatever reason.
func (p *Plugin) Exited() <-chan struct{} { return p.guard.exited }

// Running is the number of calls that run, those included that have been answered
// for but whose tool has not let go.
func (p *Plugin) Running() int {
	p.calls.mu.Lock()
	defer p.calls.mu.Unlock()
	return len(p.calls.flights)
}

// Ending returns how a program ended, for example "exit code 3" or "signal killed"; it is
// "" while the program runs.
func (p *Plugin) Ending() string {
	select {
	case <-p.guard.exited:
		return p.guard.ended(exitWait)
	default:
		return ""
	}
}

// Close cancels the running calls, waits at most 2 s for them, kills the program with all
// its descendants and removes its folder. It may be called more than once; the context
// only shortens the wait. It returns an error if something is left.
func (p *Plugin) Close(ctx context.Context) error {
	p.closing.Do(func() {
		p.calls.refuse()
		patience, cancel := context.WithTimeout(ctx, grace)
		p.calls.settleAll(patience, p)
		cancel()
		p.shut("it was closed")
		p.stderr.last() // waits a moment for the last lines
		p.stderr.detach()
		close(p.closed)
	})
	<-p.closed // bounded: shut is
	select {
	case <-p.guard.exited:
		return nil
	default:
		return fmt.Errorf("plugin %s: its process did not end when it was killed", p.name)
	}
}

// shut kills the tree, waits for the process and removes the folder. It takes
// at most shutTime.
func (p *Plugin) shut(why string) {
	p.guard.kill(why)
	if p.conn != nil {
		_ = p.conn.Close()
	}
	t := time.NewTimer(shutTime)
	defer t.Stop()
	select {
	case <-p.guard.exited:
	case <-t.C:
	}
	select {
	case <-p.starter:
	case <-t.C:
	}
	p.dir.remove()
}

// shutTime bounds the wait for a process that was killed.
const shutTime = 5 * time.Second
