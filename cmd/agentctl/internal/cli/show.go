package cli

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/cmd/agentctl/internal/ci"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner"
	"agentctl.dev/agentctl/runner/telemetry"
)

// showing is a run that is about to be executed and shown.
type showing struct {
	format string
	// asks is true when the same terminal has prompts.
	asks bool
	// past is the state of a resumed run before the resume; nil for a new run.
	past *view.Run
	// mute keeps the answer from stdout.
	mute bool
	// record is the cassette to write, or "".
	record string
	// receipt signs a receipt of the run when it has ended; nil: none is wanted.
	receipt func(ctx context.Context, o *runner.Outcome) error
	// telemetry is what the run is given; it is closed at the end. nil: nothing is sent.
	telemetry *telemetry.Client
	// job is the job of a CI system that the run is part of; nil: none.
	job *ci.Job
	// leave is closed when stdout takes no more events: the run is interrupted, and
	// can be resumed. nil cancels the run instead.
	leave chan struct{}
	// execute executes it. It reports events, and ends the run when kill is closed.
	execute func(ctx context.Context, see watcher, kill <-chan struct{}) (*runner.Outcome, error)
}

// watcher is called with the events of a run, and with those of the runs below it.
type watcher struct {
	run, below func(event.Event)
	// notice shows a line to the person who waits.
	notice func(text string)
	// setPast is given the run as it was before.
	setPast func(past *view.Run)
}

// show executes a run: it shows what happens, does what signals ask for, reports how
// it ended and returns its exit code as an error.
func (a *app) show(ctx context.Context, s showing) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	shown := display.NewRun(s.format, a.stdout(), a.stderr(), display.RunOptions{
		Asks: s.asks, Place: display.Place{State: a.state}, Past: s.past, Mute: s.mute,
		// The events are not read any more: to continue would cost money for nothing.
		Broken: func(err error) {
			if s.leave != nil {
				close(s.leave)
				return
			}
			cancel(fmt.Errorf("write events: %w", err))
		},
	})
	var run atomic.Pointer[string]
	ctx, signals := watch(ctx, func(n int) {
		if n == 1 {
			shown.Notice(stopping)
		} else if id := run.Load(); id != nil {
			shown.Notice("killing (again to leave; then continue with: " + display.Resume(*id, a.state) + ")")
		}
	})
	defer signals.stop()
	see := watcher{below: shown.Child, notice: shown.Notice, setPast: shown.SetPast, run: func(e event.Event) {
		if run.Load() == nil {
			run.Store(&e.Run)
		}
		shown.Event(e)
	}}
	if err := s.job.Begin(); err != nil {
		return err
	}
	outcome, err := s.execute(ctx, see, signals.kill)
	// Only output remains. A signal now ends the program at once, so that no user has
	// to wait for a reader.
	signals.stop()
	defer a.closeTelemetry(ctx, s.telemetry)
	if err != nil {
		err = letGo(ctx, err)
		return errors.Join(err, s.job.Close(), s.job.NotBegun(unbegun(err)))
	}
	code := outcome.ExitCode()
	if err := a.showEnd(shown, outcome); err != nil {
		code = unwritten(code, outcome, err)
	}
	if err := s.job.End(outcome.Result()); err != nil {
		display.Error(a.stderr(), err, display.Advice{})
		if code == reason.ExitOK {
			code = reason.ExitFailed
		}
	}
	if outcome.Unrecorded != nil {
		display.Error(a.stderr(), fmt.Errorf("not recorded: %w", outcome.Unrecorded), display.Advice{})
		if code == reason.ExitOK {
			code = reason.ExitFailed
		}
	} else if s.record != "" && s.format == display.FormatText {
		display.Recorded(a.stderr(), s.record)
	}
	if s.receipt != nil {
		if err := s.receipt(context.WithoutCancel(ctx), outcome); err != nil {
			display.Error(a.stderr(), fmt.Errorf("no receipt: %w", err), display.Advice{Hint: reason.Hint(err)})
			if code == reason.ExitOK {
				code = reason.ExitFailed
			}
		}
	}
	return exit(code)
}

// unwritten is the exit code of a run whose output could not be written: a
// failure of the run itself counts more.
func unwritten(code int, o *runner.Outcome, err error) int {
	left := o.Run.Finished == nil
	switch {
	case display.BrokenPipe(err) && (left || code == reason.ExitOK):
		return exitPipe
	case code == reason.ExitOK:
		return reason.ExitFailed
	}
	return code
}

// showEnd shows how a run ended. It does not wait for an output that takes
// nothing any more, but reports how many events are missing.
func (a *app) showEnd(shown display.Renderer, o *runner.Outcome) error {
	if o.Unseen == 0 {
		err := shown.Finish(o.Run, o.Journal)
		advice := display.Advice{}
		if o.Run.Finished == nil {
			advice.Hint = "the run was left as it stands; continue with: " + display.Resume(o.Run.ID, a.state)
		}
		switch {
		case err == nil:
		case !display.BrokenPipe(err):
			display.Error(a.stderr(), fmt.Errorf("write the output: %w", err), advice)
		case advice.Hint != "":
			shown.Notice(advice.Hint)
		}
		return err
	}
	err := fmt.Errorf("the output is not read: %d events were not shown", o.Unseen)
	advice := display.Advice{Hint: "they are in " + o.Journal + "; for the result: " + display.Resume(o.Run.ID, a.state)}
	briefly(func() { display.Error(a.stderr(), err, advice) })
	return err
}

// briefly waits a moment for an output that may take nothing any more.
func briefly(say func()) {
	said := make(chan struct{})
	go func() {
		defer close(said)
		say()
	}()
	late := time.NewTimer(noticeTime)
	defer late.Stop()
	select {
	case <-said:
	case <-late.C:
	}
}
