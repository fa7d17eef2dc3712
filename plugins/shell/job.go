package shell

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
	"time"

	"agentctl.dev/agentctl/plugins/sdk"
)

// stop says why a command was stopped.
type stop int

const (
	stopNone stop = iota
	stopTimeout
	stopCancelled
)

const (
	// tick is how often a command that runs for a while is looked at: most end
	// before the first time.
	tick = 100 * time.Millisecond
	// sweep is after how many ticks orphans that have ended are collected.
	sweep = 10
)

// job is one command, from its start to the end of its last process.
type job struct {
	bash *bash
	call *sdk.Call
	cmd  *exec.Cmd
	out  *output
	tree *tree
	pipe *os.File

	began time.Time
	took  time.Duration
	why   stop
	// ended processes outlived the command, left ones even the kill.
	ended, left int
}

// run runs the command to its end, or to that of its time.
func (j *job) run(ctx context.Context, limit time.Duration) error {
	var work sync.WaitGroup
	exited := make(chan struct{})
	if err := j.start(); err != nil {
		return err
	}
	work.Go(func() {
		defer close(exited)
		_ = j.cmd.Wait() // its state says all that the error does
	})
	work.Go(j.read)
	j.watch(ctx, limit, exited)
	j.ended, j.left = j.tree.fell(exited, j.bash.grace)
	j.took = time.Since(j.began)
	// Whoever wrote is gone, so the pipe ends by itself; only a process that
	// cannot be killed or has left the tree could still hold it.
	_ = j.pipe.SetReadDeadline(time.Now().Add(drain))
	work.Wait()
	return j.pipe.Close()
}

// start starts the command with one pipe for both of its outputs, so that they
// come as they were written.
func (j *job) start() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	// Files, not writers: os/exec then copies nothing itself, and its Wait ends
	// with the process, whoever else still holds the pipe.
	j.cmd.Stdout, j.cmd.Stderr = w, w
	j.began = time.Now()
	j.tree, err = j.bash.forest.plant(j.cmd)
	if e := w.Close(); err == nil {
		err = e
	}
	if err != nil {
		return errors.Join(err, r.Close())
	}
	j.pipe = r
	return nil
}

// read takes the output until nobody is left who could write.
func (j *job) read() {
	buf := make([]byte, 32<<10)
	for {
		n, err := j.pipe.Read(buf)
		j.out.write(buf[:n])
		if err != nil {
			return
		}
	}
}

// watch returns when the command has ended or must be ended.
func (j *job) watch(ctx context.Context, limit time.Duration, exited <-chan struct{}) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	shown := &shower{call: j.call, out: j.out}
	defer shown.close()
	for n := 1; ; n++ {
		select {
		case <-exited:
			return
		case <-ticker.C:
			shown.show()
			if n%sweep == 0 {
				j.tree.living(false)
			}
		case <-timer.C:
			j.why = stopTimeout
			return
		case <-ctx.Done():
			j.why = stopCancelled
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				j.why = stopTimeout
			}
			return
		}
	}
}

// shower passes on the newest output without ever holding up who watches the
// command: a caller that does not read would otherwise also stop the clock.
type shower struct {
	call *sdk.Call
	out  *output
	seen int64
	turn chan struct{}
	work sync.WaitGroup
}

// show has new output shown; its goroutine starts with the first.
func (s *shower) show() {
	total := s.out.written()
	if total == s.seen {
		return
	}
	s.seen = total
	if s.turn == nil {
		s.turn = make(chan struct{}, 1)
		s.work.Go(func() {
			for range s.turn {
				s.call.Progress(s.out.recent())
			}
		})
	}
	select {
	case s.turn <- struct{}{}:
	default: // the last one is still on its way
	}
}

func (s *shower) close() {
	if s.turn != nil {
		close(s.turn)
		s.work.Wait()
	}
}
