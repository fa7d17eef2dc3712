package shell

import (
	"context"
	"errors"
	"sync"
	"time"

	"agentctl.dev/agentctl/plugins/sdk"
)

// stop is why a command was stopped.
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
	*process
	call *sdk.Call
	out  *output
	// grace is the time between the request to end and the kill.
	grace time.Duration

	began time.Time
	took  time.Duration
	why   stop
	// ended processes outlived the command, left ones even the kill.
	ended, left int
}

// run follows the command to its end, or to that of its time.
func (j *job) run(ctx context.Context, limit time.Duration) {
	var work sync.WaitGroup
	work.Go(j.read)
	j.watch(ctx, limit)
	j.ended, j.left = j.tree.fell(j.exited, j.grace)
	j.took = time.Since(j.began)
	// The writers are gone, so the pipe ends by itself; only a process that cannot be
	// killed or has left the tree could still hold it.
	_ = j.pipe.SetReadDeadline(time.Now().Add(drain))
	work.Wait()
	<-j.exited
	_ = j.pipe.Close()
}

// read takes the output until no process is left that could write.
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
func (j *job) watch(ctx context.Context, limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	shown := &shower{call: j.call, out: j.out}
	defer shown.close()
	for n := 1; ; n++ {
		select {
		case <-j.exited:
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

// shower passes on the newest output without ever blocking the goroutine that watches the
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
