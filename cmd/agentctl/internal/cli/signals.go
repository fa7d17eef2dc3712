package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

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
}

// watch starts to listen; notice is told when the first signal has come. The
// caller stops it.
func watch(parent context.Context, notice func(string)) (context.Context, *interrupts) {
	ctx, cancel := context.WithCancelCause(parent)
	i := &interrupts{
		kill: make(chan struct{}), signals: make(chan os.Signal, 4),
		quit: make(chan struct{}), done: make(chan struct{}),
	}
	signal.Notify(i.signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		defer close(i.done)
		defer cancel(nil)
		i.listen(cancel, notice)
	}()
	return ctx, i
}

func (i *interrupts) listen(cancel context.CancelCauseFunc, notice func(string)) {
	select {
	case s := <-i.signals:
		if s == syscall.SIGHUP {
			s = syscall.SIGTERM // a terminal that is closed ends a run as TERM does
		}
		cancel(runner.SignalError{Signal: s})
		notice("stopping (again to kill)")
	case <-i.quit:
		return
	}
	select {
	case <-i.signals:
		close(i.kill)
		signal.Stop(i.signals)
	case <-i.quit:
		return
	}
	<-i.quit
}

// stop ends the listening and waits for it.
func (i *interrupts) stop() {
	signal.Stop(i.signals)
	close(i.quit)
	<-i.done
}
