package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner"
)

func testApp(out, errs io.Writer) *app {
	return &app{
		Streams: Streams{In: strings.NewReader(""), Out: out, Err: errs}, getenv: os.Getenv,
		color: newChoice(display.ColorNever), state: "/s",
	}
}

func ended(code int, unseen int64) *runner.Outcome {
	return &runner.Outcome{
		Run:     &view.Run{ID: "r-1", Finished: &event.RunFinished{Phase: view.Succeeded, Reason: "Completed", ExitCode: code, Output: "the answer"}},
		Journal: "/s/runs/r-1", Unseen: unseen,
	}
}

func TestOutputThatNobodyReadsIsNotWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		o      *runner.Outcome
		want   int
	}{
		"completed": {"a program that reads half the events must not take the run for a success", ended(0, 7), reason.ExitFailed},
		"failed":    {"how the run ended says more", ended(5, 7), 5},
	} {
		t.Run(name, func(t *testing.T) {
			block := make(chan struct{})
			defer close(block)
			var stderr bytes.Buffer
			a := testApp(writer(func(b []byte) (int, error) { <-block; return len(b), nil }), &stderr)
			err := a.show(t.Context(), showing{format: display.FormatText, execute: func(context.Context, watcher, <-chan struct{}) (*runner.Outcome, error) {
				return c.o, nil
			}})
			if code, ok := errors.AsType[exitError](err); !ok || int(code) != c.want {
				t.Errorf("%s: got %v, want %d", c.reason, err, c.want)
			}
			want := "error: the output is not read: 7 events were not shown\n" +
				"hint: they are in /s/runs/r-1; for the result: agentctl resume run/r-1 --state /s\n"
			if got := stderr.String(); got != want {
				t.Errorf("stderr is %q", got)
			}
		})
	}
}

func TestErrorThatNobodyReadsIsNotWaitedFor(t *testing.T) {
	block := make(chan struct{})
	defer close(block)
	a := testApp(io.Discard, writer(func(b []byte) (int, error) { <-block; return len(b), nil }))
	if err := a.showEnd(display.NewRun(display.FormatJSON, a.stdout(), a.stderr(), display.RunOptions{}), ended(0, 1)); err == nil {
		t.Error("it is no error")
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

func TestSecondSignalSaysHowToGoOn(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	a := testApp(io.Discard, write)
	err = a.show(t.Context(), showing{format: display.FormatJSON, execute: func(ctx context.Context, see watcher, kill <-chan struct{}) (*runner.Outcome, error) {
		see.run(event.Event{Seq: 1, Run: "r-1", Data: event.RunStarted{}})
		raise(t, syscall.SIGINT)
		await(t, ctx.Done(), "the end of the context")
		raise(t, syscall.SIGINT)
		await(t, kill, "the kill")
		return ended(130, 0), nil
	}})
	if code, ok := errors.AsType[exitError](err); !ok || code != 130 {
		t.Errorf("got %v", err)
	}
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(read)
	if err != nil {
		t.Fatal(err)
	}
	want := "stopping (again to kill)\nkilling (again to leave; then continue with: agentctl resume run/r-1 --state /s)\n"
	if !strings.HasPrefix(string(said), want) {
		t.Errorf("stderr is %q", said)
	}
}

// TestASignalWhileManifestsAreReadIsItsExitCode: no run has begun, and whatever
// the reading made of it, a person has stopped it.
func TestASignalWhileManifestsAreReadIsItsExitCode(t *testing.T) {
	for _, failed := range []error{context.Canceled, errors.New("read stdin: stopped by interrupt"), &runner.InvalidError{}} {
		for sig, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 143, syscall.SIGQUIT: 130} {
			var stderr strings.Builder
			a := testApp(io.Discard, &stderr)
			err := a.show(t.Context(), showing{format: display.FormatJSON, execute: func(ctx context.Context, _ watcher, _ <-chan struct{}) (*runner.Outcome, error) {
				raise(t, sig)
				// A manifest on stdin that does not come does not hold it up.
				never, held := io.Pipe()
				defer held.Close()
				if _, err := io.ReadAll(interruptible{ctx, never}); err == nil {
					t.Error("the read has ended as if there were nothing more")
				}
				return nil, failed
			}})
			if code, ok := errors.AsType[exitError](err); !ok || int(code) != want {
				t.Errorf("%v, %v: got %v, want %d", sig, failed, err, want)
			}
		}
	}
}

func TestAnInterruptibleReaderReads(t *testing.T) {
	if err := iotest.TestReader(interruptible{t.Context(), strings.NewReader("some manifest")}, []byte("some manifest")); err != nil {
		t.Error(err)
	}
}
