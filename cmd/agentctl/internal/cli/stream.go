package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner"
	"agentctl.dev/agentctl/runner/client"
)

const (
	// cancelTime is how long a request to cancel may take.
	cancelTime = 15 * time.Second
	// waitingTime is how long a run waits before the wait is shown.
	waitingTime = 300 * time.Millisecond
)

// following is a run of another process that is shown while it runs.
type following struct {
	format string
	// from is the number of the first event that is shown.
	from int64
	// owns is true when this process began the run: the first signal cancels the run,
	// and the second detaches. From the run of another process the first detaches.
	owns bool
	// find finds the run, or begins it.
	find func(ctx context.Context) (*source, error)
}

// follow shows a run of a control plane, or of another process, until it ends,
// and returns its exit code as an error.
func (a *app) follow(parent context.Context, f following) error {
	broken, stop := context.WithCancelCause(parent)
	defer stop(nil)
	s := &streamed{app: a, format: f.format, from: f.from, owns: f.owns, stop: stop, view: &view.Run{}}
	ctx, signals := watch(broken, s.signalled)
	defer signals.stop()
	// Requests about an owned run continue after the first signal; the second signal
	// ends them.
	asking, leave := context.WithCancelCause(parent)
	defer leave(nil)
	// A closed output is not a reason to cancel a run: it continues.
	s.stop = func(err error) { stop(err); leave(err) }
	if !f.owns {
		asking = ctx
	}
	defer onKill(signals.kill, func() { leave(errLeft) })()
	src, err := f.find(asking)
	if err != nil {
		return letGo(ctx, err)
	}
	defer src.close()
	s.found(src)
	if !f.owns {
		s.suspended(asking, src)
	}
	settle := s.cancelOn(ctx, asking)
	end, err := src.events(asking, wish{from: s.first(), follow: true, below: s.format == display.FormatText, away: s.away}, s.record)
	settle()
	s.begins()
	cause := context.Cause(ctx)
	signals.stop()
	if err != nil {
		return s.left(cause, err)
	}
	return s.finish(cause, end)
}

// onKill calls leave when a second signal comes, until it is stopped.
func onKill(kill <-chan struct{}, leave func()) (stop func()) {
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-kill:
			leave()
		case <-over:
		}
	}()
	return func() { close(over); <-done }
}

// errLeft is the cause of a stream that a second signal ended.
var errLeft = errors.New("left")

// letGo returns the exit code of a signal that detached.
func letGo(ctx context.Context, err error) error {
	if sig, ok := errors.AsType[runner.SignalError](context.Cause(ctx)); ok {
		return exit(sig.ExitCode())
	}
	return err
}

// streamed shows the events of a source.
type streamed struct {
	app    *app
	format string
	from   int64
	owns   bool
	stop   context.CancelCauseFunc

	// mu guards what notices of signals need.
	mu     sync.Mutex
	source *source
	shown  display.Renderer

	// view is the fold of all events; past is the fold of those before from, for a
	// renderer that shows only what follows.
	view, past *view.Run
	began      bool
	// last is the last notice: it is not repeated.
	last string
	// due shows what the run waits for; nil when it does not wait.
	due *time.Timer
}

// renew makes a renderer for the next events.
func (s *streamed) renew() {
	shown := display.NewRun(s.format, s.app.stdout(), s.app.stderr(), display.RunOptions{
		Place: s.source.place, Past: s.past,
		Broken: func(err error) { s.stop(fmt.Errorf("write events: %w", err)) },
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown = shown
}

// say shows a line that is not an event.
func (s *streamed) say(text string) {
	s.mu.Lock()
	shown := s.shown
	s.mu.Unlock()
	shown.Notice(text)
}

func (s *streamed) found(src *source) {
	s.mu.Lock()
	s.source = src
	s.mu.Unlock()
	if s.late() {
		s.past = &view.Run{}
	}
	s.renew()
}

// suspended reports a run that was suspended by its spec: no event does.
func (s *streamed) suspended(ctx context.Context, src *source) {
	if src.client == nil {
		return
	}
	run, err := src.client.Get(ctx, src.run)
	if err != nil || run.Text("status", "phase") != string(v1alpha1.PhaseSuspended) {
		return // where it is not there, its events say so
	}
	for _, c := range run.Conditions() {
		if c.Type == v1alpha1.ConditionSucceeded && c.Reason == string(reason.Accepted) {
			s.notice(waiting(src, &client.RunWaiting{Phase: string(v1alpha1.PhaseSuspended), Message: c.Message}))
		}
	}
}

// late reports whether the events before the first shown event are needed to show
// it.
func (s *streamed) late() bool { return s.from > 1 && s.format != display.FormatJSONL }

// first is the number of the first requested event.
func (s *streamed) first() int64 {
	if s.format == display.FormatJSONL {
		return s.from
	}
	return 1
}

// notice shows a line, and never the same line twice in a row.
func (s *streamed) notice(text string) {
	if text != s.last {
		s.last = text
		s.say(text)
	}
}

// away shows that the connection was lost.
func (s *streamed) away(err error) { s.notice(err.Error() + "; trying again") }

// signalled shows what the first signal does to an owned run.
func (s *streamed) signalled(n int) {
	s.mu.Lock()
	known := s.shown != nil
	s.mu.Unlock()
	if s.owns && known && n == 1 {
		s.say("cancelling " + s.called() + " (again to leave; then look at it with: " + s.source.place.Attach() + ")")
	}
}

// called is how people call the run.
func (s *streamed) called() string { return "run/" + s.source.name() }

func (s *streamed) record(r client.Record) error {
	if r.Waiting == nil {
		s.begins()
	}
	switch {
	case r.Waiting != nil:
		s.waits(waiting(s.source, r.Waiting))
	case r.Attempt > 0:
		s.say(attempt(s.source, r.Attempt))
		if s.began { // else --from is a place of this one
			s.view, s.past, s.from = &view.Run{}, nil, 1
			s.renew()
		}
	case r.Event != nil:
		s.event(*r.Event)
	case r.Below != nil && s.past == nil:
		s.shown.Child(*r.Below)
	}
	return nil
}

// waits shows what a run waits for, if it still waits after waitingTime.
func (s *streamed) waits(text string) {
	if text == s.last {
		return
	}
	s.begins()
	if s.last = text; text != "" {
		s.due = time.AfterFunc(waitingTime, func() { s.say(text) })
	}
}

// begins drops a wait that was too short to show.
func (s *streamed) begins() {
	if s.due != nil {
		s.due.Stop()
		s.due = nil
	}
}

// waiting returns why a run has not begun; "" without a reason.
func waiting(src *source, w *client.RunWaiting) string {
	why := because(w.Reason, w.Message)
	if why == "" {
		return ""
	}
	return "run/" + src.name() + " is " + cmp.Or(w.Phase, "Pending") + why
}

// attempt shows which attempt of a run follows.
func attempt(src *source, n int) string { return fmt.Sprintf("run/%s, attempt %d", src.name(), n) }

// because returns the reason of a run's state; a reason without information is left
// out.
func because(why, message string) string {
	if why == string(reason.Accepted) {
		why = ""
	}
	switch {
	case why == "" && message == "":
		return ""
	case why == "":
		return ": " + message
	case message == "":
		return " (" + why + ")"
	}
	return " (" + why + "): " + message
}

func (s *streamed) event(e event.Event) {
	s.began, s.last = true, ""
	// The renderer reports an event that the fold refuses.
	if err := s.view.Apply(e); err != nil && s.view.ID == "" {
		s.view.ID = e.Run
	}
	if f, ok := e.Data.(event.RunFinished); ok {
		s.view.Finished = &f
	}
	if s.past != nil && e.Seq < s.from {
		_ = s.past.Apply(e) // as above
		return
	}
	if s.past != nil {
		s.renew()
		s.past = nil
	}
	s.shown.Event(e)
	s.questions(e)
}

// questions shows the questions of a run that are not asked here.
func (s *streamed) questions(e event.Event) {
	if s.source.client == nil {
		return
	}
	place := s.source.place
	switch d := e.Data.(type) {
	case event.ApprovalRequested:
		if s.format != display.FormatText && d.ExpiresAt > 0 {
			s.say("waits for an approval: " + place.Approve(e.Run, e.Call))
		}
	case event.QuestionAsked:
		if s.format != display.FormatText && d.ExpiresAt > 0 {
			s.say("waits for an answer: " + display.AnswerQuestion(place.Approve(e.Run, e.Call)))
		}
	case event.RunFinished:
		if d.Phase != view.Suspended {
			return
		}
		s.say(s.called() + " is Suspended" + because(d.Reason, d.Message))
		for _, call := range s.view.PendingApprovals {
			s.say("it continues when this is answered: " + place.Approve(e.Run, call))
		}
	}
}

// cancelOn cancels an owned run when the context ends. The caller stops it before it
// ends the context itself.
func (s *streamed) cancelOn(ctx, asking context.Context) (settle func()) {
	if !s.owns {
		return func() {}
	}
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-ctx.Done():
		case <-over:
			return
		}
		if _, unread := errors.AsType[*display.WriteError](context.Cause(ctx)); unread {
			return
		}
		asking, cancel := context.WithTimeout(asking, cancelTime)
		defer cancel()
		if _, err := s.source.client.Cancel(asking, s.source.run); err != nil && context.Cause(asking) == nil && !client.Conflict(err) {
			s.say("it is not cancelled: " + err.Error())
		}
	}()
	return func() { close(over); <-done }
}

// left is the end of a stream before the end of its run.
func (s *streamed) left(cause, err error) error {
	sig, signalled := errors.AsType[runner.SignalError](cause)
	again := ""
	if s.source.client != nil {
		again = "; look at it again with: " + s.source.place.Attach()
	}
	switch {
	case signalled && s.owns:
		s.say("left " + s.called() + " before its end" + again)
		return exit(sig.ExitCode())
	case signalled:
		s.say(s.called() + " continues" + again)
		return exit(sig.ExitCode())
	case display.BrokenPipe(cause) && s.owns:
		s.say(s.called() + " continues" + again)
		return cause
	case cause != nil:
		return cause
	case s.began && again != "":
		s.say(s.called() + " may continue" + again)
	}
	return err
}

// finish shows the end of a run and returns its exit code.
func (s *streamed) finish(cause error, end *client.RunEnd) error {
	sig, signalled := errors.AsType[runner.SignalError](cause)
	switch {
	case !s.began && signalled && end.Phase == view.Cancelled:
		return exit(sig.ExitCode())
	case !s.began:
		return unborn(s.source.name(), end)
	}
	if s.view.Finished == nil && end.Message != "" {
		s.say(s.called() + " is " + end.Phase + because(end.Reason, end.Message))
	}
	code := end.ExitCode
	switch {
	case signalled && end.Phase == view.Cancelled:
		code = sig.ExitCode()
	case code < 0: // no process executes it
		code = reason.ExitFailed
	}
	if err := s.shown.Finish(s.view, s.source.journal(s.view.ID)); display.BrokenPipe(err) {
		if code == reason.ExitOK {
			code = exitPipe
		}
	} else if err != nil {
		display.Error(s.app.stderr(), fmt.Errorf("write the output: %w", err), display.Advice{})
		if code == reason.ExitOK {
			code = reason.ExitFailed
		}
	}
	return exit(code)
}
