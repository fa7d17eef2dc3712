package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"agentctl.dev/agentctl/runner"
)

// interrupts turns signals into the end of what is going on. The first cancels
// the context with the signal as cause, the second closes kill, and from then
// on a signal ends the program as if nobody had asked for it.
type interrupts struct {
	kill chan struct{}

	signals chan os.Signal
	quit    chan struct{}
	done    chan struct{}
	once    sync.Once

	// notices are told by a goroutine of their own: a terminal that is stopped
	// must not keep the second signal from counting.
	notices chan int
	told    chan struct{}
}

// noticeTime is how long the end waits for a notice that is being written.
const noticeTime = time.Second

// watch starts to listen; notice is told of the first signal and of the second.
// The caller stops it.
func watch(parent context.Context, notice func(n int)) (context.Context, *interrupts) {
	ctx, cancel := context.WithCancelCause(parent)
	i := &interrupts{
		kill: make(chan struct{}), signals: make(chan os.Signal, 4),
		quit: make(chan struct{}), done: make(chan struct{}),
		notices: make(chan int, 2), told: make(chan struct{}),
	}
	signal.Notify(i.signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		defer close(i.told)
		for n := range i.notices {
			notice(n)
		}
	}()
	go func() {
		defer close(i.done)
		defer close(i.notices)
		defer cancel(nil)
		i.listen(cancel)
	}()
	return ctx, i
}

func (i *interrupts) listen(cancel context.CancelCauseFunc) {
	select {
	case s := <-i.signals:
		if s == syscall.SIGHUP {
			s = syscall.SIGTERM // a terminal that is closed ends a run as TERM does
		}
		cancel(runner.SignalError{Signal: s})
		i.notices <- 1 // there is room for both
	case <-i.quit:
		return
	}
	select {
	case <-i.signals:
		close(i.kill)
		signal.Stop(i.signals)
		i.notices <- 2
	case <-i.quit:
		return
	}
	<-i.quit
}

// stop ends the listening and waits for it: from then on a signal ends the
// program at once. It may be called more than once.
func (i *interrupts) stop() {
	i.once.Do(func() {
		signal.Stop(i.signals)
		close(i.quit)
		<-i.done
		late := time.NewTimer(noticeTime)
		defer late.Stop()
		select {
		case <-i.told:
		case <-late.C: // nobody will read it
		}
	})
}

// stopping is the notice of a first signal.
const stopping = "stopping (again to kill)"
