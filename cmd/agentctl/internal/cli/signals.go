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

	// echo is how long another TERM counts as the first one.
	echo time.Duration

	signals chan os.Signal
	quit    chan struct{}
	done    chan struct{}
	once    sync.Once

	// notices are told by a goroutine of their own: a terminal that is stopped
	// must not keep the second signal from counting.
	notices chan int
	told    chan struct{}
}

// echoTime is the echo of a TERM: timeout(1), and others that end a whole group,
// send it to the process and then to its group.
const echoTime = 250 * time.Millisecond

// noticeTime is how long the end waits for a notice that is being written.
const noticeTime = time.Second

// watch starts to listen; notice is told of the first signal and of the second.
// The caller stops it.
func watch(parent context.Context, notice func(n int)) (context.Context, *interrupts) {
	ctx, cancel := context.WithCancelCause(parent)
	i := &interrupts{
		echo: echoTime, kill: make(chan struct{}), signals: make(chan os.Signal, 4),
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
	var first time.Time
	select {
	case s := <-i.signals:
		if s == syscall.SIGTERM {
			first = time.Now()
		}
		if s == syscall.SIGHUP {
			s = syscall.SIGTERM // a terminal that is closed ends a run as TERM does
		}
		cancel(runner.SignalError{Signal: s})
		i.notices <- 1 // there is room for both
	case <-i.quit:
		return
	}
	for echo := true; echo; {
		select {
		case s := <-i.signals:
			echo = s == syscall.SIGTERM && time.Since(first) < i.echo
		case <-i.quit:
			return
		}
	}
	close(i.kill)
	signal.Stop(i.signals)
	i.notices <- 2
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
