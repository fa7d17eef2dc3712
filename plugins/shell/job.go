package shell

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"agentctl.dev/agentctl/plugins/sdk"
	"agentctl.dev/agentctl/plugins/shell/internal/record"
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
	// record is what it did, nil where that was not recorded.
	record *sdk.Record
	// excess is the newest of what its rules have refused.
	excess atomic.Pointer[sdk.Excess]
}

// scope is what is recorded of the command.
func (j *job) scope() record.Scope {
	switch {
	case j.call.Binding != nil && landlockABI() >= leastABI:
		return record.Everything
	case j.call.RecordPrograms:
		return record.Programs
	}
	return 0
}

// terms are those of the command, with its rules.
func (j *job) terms(bound *rules) terms {
	return terms{rules: bound, scope: j.scope(), excess: j.exceeded}
}

// exceeded keeps what was refused until watchers are shown it. The process that was refused
// waits meanwhile, so nothing is sent from here.
func (j *job) exceeded(e sdk.Excess) { j.excess.Store(&e) }

// run follows the command to its end, or to that of its time.
func (j *job) run(ctx context.Context, limit time.Duration) {
	var work sync.WaitGroup
	work.Go(j.read)
	j.watch(ctx, limit)
	if closed(j.exited) && j.recorder.Gone() {
		j.tree.forest.forget(j.tree)
	} else {
		j.ended, j.left = j.tree.fell(j.exited, j.grace)
	}
	j.took = time.Since(j.began)
	// The writers are gone, so the pipe ends by itself; only a process that cannot be
	// killed or has left the tree could still hold it.
	_ = j.pipe.SetReadDeadline(time.Now().Add(drain))
	work.Wait()
	<-j.exited
	_ = j.pipe.Close()
	j.record = j.recorder.End(drain)
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
			if e := j.excess.Swap(nil); e != nil {
				shown.exceeded(e)
			}
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
	// excess is what is to be shown beside the output.
	excess atomic.Pointer[sdk.Excess]
}

// exceeded shows what the binding of the call has refused.
func (s *shower) exceeded(e *sdk.Excess) {
	s.excess.Store(e)
	s.pass()
}

// show has new output shown; its goroutine starts with the first.
func (s *shower) show() {
	total := s.out.written()
	if total == s.seen {
		return
	}
	s.seen = total
	s.pass()
}

// pass has the goroutine show what is new.
func (s *shower) pass() {
	if s.turn == nil {
		s.turn = make(chan struct{}, 1)
		s.work.Go(func() {
			var shown int64
			for range s.turn {
				if n := s.out.written(); n != shown {
					shown = n
					s.call.Progress(s.out.recent())
				}
				if e := s.excess.Swap(nil); e != nil {
					s.call.Metadata(exceeds(e, s.call.Workspace), nil)
				}
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

// maxExcess bounds the line about something that was refused.
const maxExcess = 160

// exceeds is a line for people about something that the binding of a call has refused.
func exceeds(e *sdk.Excess, workspace string) string {
	what := e.Path + e.Program + e.Address // one of them
	if in, ok := strings.CutPrefix(what, strings.TrimSuffix(workspace, "/")+"/"); ok && e.Address == "" {
		what = in
	}
	line := "exceeded its facts: " + e.Op + " " + what
	return string(whole([]byte(line[:min(len(line), maxExcess)])))
}
