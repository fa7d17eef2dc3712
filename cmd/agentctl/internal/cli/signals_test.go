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
	case <-time.After(10 * time.Second):
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
			notices := make(chan string, 1)
			ctx, i := watch(context.Background(), func(text string) { notices <- text })
			defer i.stop()
			raise(t, c.signal)
			await(t, ctx.Done(), "the end of the context")
			if got, ok := errors.AsType[runner.SignalError](context.Cause(ctx)); !ok || got.Signal != c.want {
				t.Errorf("%s: the cause is %v", c.reason, context.Cause(ctx))
			}
			if text := <-notices; text != "stopping (again to kill)" {
				t.Errorf("the notice is %q", text)
			}
			select {
			case <-i.kill:
				t.Error("the first signal kills")
			default:
			}
			raise(t, syscall.SIGINT)
			await(t, i.kill, "the kill")
		})
	}
}

func TestWatchEndsWithoutASignal(t *testing.T) {
	ctx, i := watch(context.Background(), func(string) { t.Error("a notice without a signal") })
	i.stop()
	await(t, ctx.Done(), "the end of the context")
	if errors.As(context.Cause(ctx), new(runner.SignalError)) {
		t.Errorf("the cause is %v", context.Cause(ctx))
	}
}
