package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentctl.dev/agentctl/plugins/host"
)

// deadlineAfter is the time given to a call that takes longer.
const deadlineAfter = 500 * time.Millisecond

func deadline(ctx context.Context, t *trial, s Sample, soFar string) error {
	return t.with(ctx, func(p *host.Plugin) error {
		begin := time.Now()
		res, err := p.Call(ctx, host.CallRequest{Tool: s.Tool, Args: s.Args, ID: "test", Run: "test", Workspace: t.Workspace, Timeout: deadlineAfter}, nil)
		if err != nil {
			return err
		}
		if err := wantCode(res, "timeout"); err != nil {
			return err
		}
		if d := time.Since(begin); d > deadlineAfter+3*time.Second { // the host gave up waiting
			return fmt.Errorf("a deadline of %s ended it after %s", deadlineAfter, d.Round(time.Millisecond))
		}
		if !strings.HasPrefix(res.Text, soFar) {
			return fmt.Errorf("the output so far is missing: %s", brief(res.Text))
		}
		return t.alive(ctx, p)
	})
}

// alive reports whether a program still answers. It waits at most 2 s until a cancelled
// call has ended, or the program has been killed for it.
func (t *trial) alive(ctx context.Context, p *host.Plugin) error {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for p.Running() > 0 && ctx.Err() == nil {
		select {
		case <-p.Exited():
		case <-ctx.Done():
		case <-look.C:
		}
	}
	select {
	case <-p.Exited():
		return errors.New("the program ended, or was killed because the call went on")
	default:
	}
	res, err := t.call(ctx, p, noSuchTool, `{}`)
	if err != nil {
		return fmt.Errorf("the next call: %w", err)
	}
	if !res.IsError {
		return errors.New("the next call, of a tool it does not serve, was no error")
	}
	return nil
}

func cancel(ctx context.Context, t *trial, s Sample) error {
	return t.with(ctx, func(p *host.Plugin) error {
		live, stop := context.WithCancel(ctx)
		defer stop()
		begun, over := make(chan struct{}), make(chan error, 1)
		var once sync.Once
		go func() {
			_, err := p.Call(live, host.CallRequest{Tool: s.Tool, Args: s.Args, ID: "test", Run: "test", Workspace: t.Workspace, Timeout: patience}, func(host.Event) {
				once.Do(func() { close(begun) })
			})
			over <- err
		}()
		wait := time.NewTimer(time.Second) // a tool need not show that it has begun
		defer wait.Stop()
		select {
		case <-begun:
		case <-wait.C:
		case err := <-over:
			if err == nil {
				return errors.New("it ended before it could be cancelled")
			}
			return err
		}
		stop()
		if err := <-over; !errors.Is(err, context.Canceled) {
			if err == nil {
				return errors.New("it answered as if it had not been cancelled")
			}
			return err
		}
		return t.alive(ctx, p)
	})
}

func orphans(ctx context.Context, t *trial) error {
	if t.Contained {
		return skipError{"it is contained: what it has started cannot be told from outside, and ends with it"}
	}
	var pid int
	err := t.with(ctx, func(p *host.Plugin) error {
		res, err := t.call(ctx, p, "probe_spawn", `{}`)
		if err != nil {
			return err
		}
		if pid, err = strconv.Atoi(strings.TrimSpace(res.Text)); err != nil || pid < 2 {
			return fmt.Errorf("the result is %s, not a process id", brief(res.Text))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !gone(ctx, pid) {
		return fmt.Errorf("process %d, which a tool had started, still runs", pid)
	}
	return nil
}

// dying is how long a busy machine may take to end a process that was killed.
const dying = 5 * time.Second

// gone reports whether a process has ended, or does so in a moment.
func gone(ctx context.Context, pid int) bool {
	late := time.NewTimer(dying)
	defer late.Stop()
	look := time.NewTicker(dying / 50)
	defer look.Stop()
	for runs(pid) {
		select {
		case <-look.C:
		case <-late.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// runs reports whether a process exists and is not a zombie.
func runs(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(b), ") Z ")
}

func shutdown(ctx context.Context, t *trial) error {
	return t.with(ctx, func(p *host.Plugin) error {
		var wg sync.WaitGroup
		defer wg.Wait() // its call ends with the program
		if t.probes["probe_wait"] {
			wg.Go(func() { _, _ = t.call(ctx, p, "probe_wait", `{"ms":60000}`) })
		}
		end, stop := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer stop()
		if err := p.Close(end); err != nil {
			return err
		}
		if p.Ending() == "signal killed" {
			return errors.New("it had to be killed")
		}
		return nil
	})
}
