package host

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin/runner"
)

// guard is between go-plugin and the program. It passes one well-formed handshake line to
// go-plugin or nothing: go-plugin dereferences nil on some malformed lines, stops reading
// at a line over 64 KiB, and reports neither clearly. The guard also knows when the
// process has ended.
type guard struct {
	stderr *stderrTail

	mu     sync.Mutex
	inner  runner.Runner
	begun  bool   // Start was called and did not fail
	killed string // why we ended it, or ""
	fault  *Error
	exit   error
	once   sync.Once
	exited chan struct{}
	out    *io.PipeReader
	outW   *io.PipeWriter
}

func newGuard(stderr *stderrTail) *guard {
	g := &guard{stderr: stderr, exited: make(chan struct{})}
	g.out, g.outW = io.Pipe()
	return g
}

// launch wraps the function that makes the runner.
func (g *guard) launch(f func(hclog.Logger, *exec.Cmd, string) (runner.Runner, error)) func(hclog.Logger, *exec.Cmd, string) (runner.Runner, error) {
	return func(l hclog.Logger, cmd *exec.Cmd, dir string) (runner.Runner, error) {
		r, err := f(l, cmd, dir)
		if err != nil {
			g.end(nil)
			return nil, g.blame(KindStart, err)
		}
		g.mu.Lock()
		g.inner = r
		g.mu.Unlock()
		return g, nil
	}
}

// blame records the first fault; what go-plugin makes of it later does not matter.
func (g *guard) blame(kind Kind, err error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fault == nil {
		g.fault = &Error{Kind: kind, Err: err}
	}
	return err
}

// end marks the process as gone.
func (g *guard) end(exit error) {
	g.once.Do(func() {
		g.mu.Lock()
		g.exit = exit
		g.mu.Unlock()
		close(g.exited)
	})
}

// Start implements runner.Runner.
func (g *guard) Start(ctx context.Context) error {
	g.mu.Lock()
	killed := g.killed
	g.mu.Unlock()
	if killed != "" {
		g.end(nil)
		return g.blame(KindStart, errors.New("closed while it was being started"))
	}
	if err := g.inner.Start(ctx); err != nil {
		g.end(nil)
		return g.blame(KindStart, err)
	}
	g.mu.Lock()
	g.begun = true
	killed = g.killed
	g.mu.Unlock()
	go func() { g.end(g.inner.Wait(context.Background())) }()
	go g.greet()
	if killed != "" { // in the meantime
		_ = g.inner.Kill(context.Background())
	}
	return nil
}

// greet reads the handshake line, passes it on if it is one, and drains what
// follows: a program must never block because it prints.
func (g *guard) greet() {
	r := bufio.NewReaderSize(g.inner.Stdout(), maxLine)
	line, err := r.ReadSlice('\n')
	if h, bad := parseHandshake(line, err); bad != nil {
		_ = g.blame(bad.Kind, g.withExit(bad))
		_ = g.outW.Close() // go-plugin takes it for a program that said nothing, and kills it
	} else if _, err := io.WriteString(g.outW, h.line()); err != nil {
		_ = g.blame(KindHandshake, err)
	}
	_, _ = io.Copy(io.Discard, struct{ io.Reader }{r})
	_ = g.outW.Close()
}

// withExit adds the exit status of a program that is not a plugin: the code often explains
// the failure.
func (g *guard) withExit(bad *Error) error {
	if bad.Kind != KindNotPlugin {
		return bad.Err
	}
	if exit := g.ended(exitWait); exit != "" && g.killedWhy() == "" {
		return fmt.Errorf("%w; it ended with %s", bad.Err, exit)
	}
	return bad.Err
}

// exitWait is how long a program that is not a plugin may take to end by itself.
const exitWait = time.Second

// Wait implements runner.Runner.
func (g *guard) Wait(ctx context.Context) error {
	select {
	case <-g.exited:
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.exit
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Kill implements runner.Runner; go-plugin calls it when the handshake failed.
func (g *guard) Kill(context.Context) error {
	g.kill("its handshake failed")
	return nil
}

// kill ends the program as a tree, now or as soon as it has been started.
func (g *guard) kill(why string) {
	g.mu.Lock()
	if g.killed == "" {
		select {
		case <-g.exited: // it was faster
		default:
			g.killed = why
		}
	}
	inner, begun := g.inner, g.begun
	g.mu.Unlock()
	if begun {
		ctx, cancel := context.WithTimeout(context.Background(), shutTime)
		defer cancel()
		_ = inner.Kill(ctx)
	}
	_ = g.out.Close() // a writer to go-plugin must not wait for it
}

// killedWhy returns why we ended the process, or "" if it ended by itself.
func (g *guard) killedWhy() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.killed
}

// ended waits a moment for the process and returns how it ended, or "".
func (g *guard) ended(wait time.Duration) string {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-g.exited:
		g.mu.Lock()
		defer g.mu.Unlock()
		return exitText(g.exit)
	case <-t.C:
		return ""
	}
}

// Stdout implements runner.Runner.
func (g *guard) Stdout() io.ReadCloser { return g.out }

// Stderr implements runner.Runner.
func (g *guard) Stderr() io.ReadCloser { return &tee{g.inner.Stderr(), g.stderr} }

// Name implements runner.Runner.
func (g *guard) Name() string { return g.inner.Name() }

// ID implements runner.Runner.
func (g *guard) ID() string { return g.inner.ID() }

// Diagnose implements runner.Runner.
func (g *guard) Diagnose(ctx context.Context) string { return g.inner.Diagnose(ctx) }

// PluginToHost implements runner.Runner.
func (g *guard) PluginToHost(network, addr string) (string, string, error) {
	n, a, err := g.inner.PluginToHost(network, addr)
	if err != nil {
		return "", "", g.blame(KindHandshake, err)
	}
	return n, a, nil
}

// HostToPlugin implements runner.Runner.
func (g *guard) HostToPlugin(network, addr string) (string, string, error) {
	return g.inner.HostToPlugin(network, addr)
}
