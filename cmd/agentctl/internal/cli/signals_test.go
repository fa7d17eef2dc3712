package cli

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"agentctl.dev/agentctl/runner"
)

// patience ends what hangs. Nothing here is slow when it takes less: machines are
// busy.
const patience = time.Minute

// raise sends a signal to the test's own process, which watch has claimed.
func raise(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), s); err != nil {
		t.Fatal(err)
	}
}

func await(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("%s does not come", what)
	}
}

func TestFirstSignalStopsSecondKills(t *testing.T) {
	for name, c := range map[string]struct {
		reason       string
		signal, want syscall.Signal
	}{
		"interrupt": {"Ctrl-C is 130", syscall.SIGINT, syscall.SIGINT},
		"terminate": {"TERM is 143", syscall.SIGTERM, syscall.SIGTERM},
		"hang up":   {"a closed terminal counts as TERM", syscall.SIGHUP, syscall.SIGTERM},
	} {
		t.Run(name, func(t *testing.T) {
			notices := make(chan int, 2)
			ctx, i := watch(context.Background(), func(n int) { notices <- n })
			defer i.stop()
			raise(t, c.signal)
			await(t, ctx.Done(), "the end of the context")
			if got, ok := errors.AsType[runner.SignalError](context.Cause(ctx)); !ok || got.Signal != c.want {
				t.Errorf("%s: the cause is %v", c.reason, context.Cause(ctx))
			}
			if n := <-notices; n != 1 {
				t.Errorf("the first notice is of signal %d", n)
			}
			select {
			case <-i.kill:
				t.Error("the first signal kills")
			default:
			}
			raise(t, syscall.SIGINT)
			await(t, i.kill, "the kill")
			if n := <-notices; n != 2 {
				t.Errorf("the second notice is of signal %d", n)
			}
			i.stop()
			i.stop() // once more is harmless
		})
	}
}

// TestATermThatComesTwiceAtOnceIsOne: timeout(1) sends it so.
func TestATermThatComesTwiceAtOnceIsOne(t *testing.T) {
	i := &interrupts{
		echo: time.Hour, kill: make(chan struct{}), signals: make(chan os.Signal),
		quit: make(chan struct{}), notices: make(chan int, 2),
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); i.listen(cancel) }()
	for range 3 {
		i.signals <- syscall.SIGTERM
	}
	await(t, ctx.Done(), "the end of the context")
	i.signals <- syscall.SIGINT // the first to be taken after the others
	await(t, i.kill, "the kill")
	close(i.quit)
	await(t, done, "the end of the listening")
}

// A terminal that was stopped with Ctrl-S takes no notice.
func TestBlockedNoticeHidesNoSecondSignal(t *testing.T) {
	block := make(chan struct{})
	defer close(block)
	ctx, i := watch(context.Background(), func(int) { <-block })
	raise(t, syscall.SIGINT)
	await(t, ctx.Done(), "the end of the context")
	raise(t, syscall.SIGINT)
	await(t, i.kill, "the kill")
	stopped := make(chan struct{})
	go func() { defer close(stopped); i.stop() }()
	await(t, stopped, "the end of a watch whose notice nobody takes")
}

func TestWatchEndsWithoutASignal(t *testing.T) {
	ctx, i := watch(context.Background(), func(int) { t.Error("a notice without a signal") })
	i.stop()
	await(t, ctx.Done(), "the end of the context")
	if errors.As(context.Cause(ctx), new(runner.SignalError)) {
		t.Errorf("the cause is %v", context.Cause(ctx))
	}
}
