package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner"
)

// interrupts ends the current work on signals. The first cancels
// the context with the signal as cause, the second closes kill, and from then
// on a signal ends the program as if this watch did not exist.
type interrupts struct {
	kill chan struct{}

	// echo is how long another TERM counts as the first one.
	echo time.Duration

	signals chan os.Signal
	quit    chan struct{}
	done    chan struct{}
	once    sync.Once
	unwatch func()

	// notices are shown by a separate goroutine: a terminal that is stopped
	// must not keep the second signal from counting.
	notices chan int
	shown   chan struct{}
}

// echoTime is the echo of a TERM: timeout(1), and others that end a whole group,
// send it to the process and then to its group.
const echoTime = 250 * time.Millisecond

// noticeTime is how long the end waits for a notice that is being written.
const noticeTime = time.Second

// watching counts the listeners to signals.
var watching atomic.Int32

// Watching reports whether a signal is handled: it ends the current work, and the
// program then ends by itself.
func Watching() bool { return watching.Load() > 0 }

// watch starts to listen; notice is called for the first signal and the second.
// The caller stops it.
func watch(parent context.Context, notice func(n int)) (context.Context, *interrupts) {
	ctx, cancel := context.WithCancelCause(parent)
	i := &interrupts{
		echo: echoTime, kill: make(chan struct{}), signals: make(chan os.Signal, 4),
		quit: make(chan struct{}), done: make(chan struct{}),
		notices: make(chan int, 2), shown: make(chan struct{}),
	}
	watching.Add(1)
	i.unwatch = sync.OnceFunc(func() { watching.Add(-1) })
	signal.Notify(i.signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	go func() {
		defer close(i.shown)
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
		switch s {
		case syscall.SIGHUP:
			s = syscall.SIGTERM // a terminal that is closed ends a run as TERM does
		case syscall.SIGQUIT:
			s = os.Interrupt // the other key of a terminal
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
	if i.unwatch != nil {
		i.unwatch()
	}
	i.notices <- 2
	<-i.quit
}

// stop ends the listening and waits for it: from then on a signal ends the
// program at once. It may be called more than once.
func (i *interrupts) stop() {
	i.once.Do(func() {
		signal.Stop(i.signals)
		i.unwatch()
		close(i.quit)
		<-i.done
		late := time.NewTimer(noticeTime)
		defer late.Stop()
		select {
		case <-i.shown:
		case <-late.C: // it will not be read
		}
	})
}

// interruptible is a reader whose reads end with a context. What reads it may wait
// for a person or a pipe.
type interruptible struct {
	ctx context.Context //nolint:containedctx // it bounds the reads of one run
	r   io.Reader
}

// Read implements io.Reader. A read that is given up ends with the program, and
// its bytes are lost.
func (i interruptible) Read(b []byte) (int, error) {
	type result struct {
		n   int
		err error
	}
	own := make([]byte, len(b)) // b belongs to the caller again when this returns
	read := make(chan result, 1)
	go func() {
		n, err := i.r.Read(own)
		read <- result{n, err}
	}()
	select {
	case r := <-read:
		return copy(b, own[:r.n]), r.err
	case <-i.ctx.Done():
		return 0, context.Cause(i.ctx)
	}
}

// stopping is the notice of a first signal.
const stopping = "stopping (again to kill)"

// stopNotice shows the notice of a first signal, and none of a second one.
func stopNotice(s *display.Screen) func(n int) {
	return func(n int) {
		if n == 1 {
			display.Notice(s, stopping)
		}
	}
}
