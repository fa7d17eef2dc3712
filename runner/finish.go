package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/loop"
)

// finishTime bounds what is done after the loop has ended: programs are stopped,
// and changes are listed, of which a run may leave hundreds of thousands.
const finishTime = 10 * time.Minute

// stopTime is the same for a run that a person or the system stops: with what
// goes before and after it, the program exits within five seconds.
const stopTime = 3 * time.Second

// close ends what runs, records what changed and how the run ended, and closes
// the journal. It works on also when ctx has ended.
func (s *session) close(ctx context.Context, end loop.End) (*Outcome, error) {
	limit := finishTime
	if ctx.Err() != nil {
		limit = stopTime
	}
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	cleared := s.endPrograms()
	s.restoreGit(!end.Suspended)
	end = s.withChanges(work, end)
	if !end.Suspended {
		_ = s.unheard()
	}
	err := s.finished(ctx, end)
	if err == nil && !end.Suspended {
		s.inbox.Discard()
	}
	_ = cleared()
	_ = s.closeFiles(err == nil && !end.Suspended)
	if closed := s.journal.Close(); err == nil {
		err = closed // a journal that has failed says the same again
	}
	unseen := s.recorder.end(ctx, s.opts.Kill)
	if errors.Is(err, errLeft) {
		return &Outcome{Run: &s.recorder.view, Journal: s.dir, Unseen: unseen}, nil
	}
	if err != nil {
		if err := s.untold(err); err != nil {
			return nil, fmt.Errorf("end run %s: %w", s.id, err)
		}
	}
	out := &Outcome{Run: &s.recorder.view, Journal: s.dir, Unseen: unseen}
	if s.recording != nil {
		out.Unrecorded = s.recording.save(ctx, out.Run, s.dir, s.tools, s.redactor.Load(), s.opts.Version)
	}
	return out, nil
}

// endPrograms returns when no program of the run is left. What then remains of
// their sandboxes is cleared away beside other work; the function waits for that.
func (s *session) endPrograms() (cleared func() error) {
	s.launcher.Retire()
	if err := s.pool.Close(); err != nil || s.pool.Opened(v1alpha1.IsolationContainer) || s.launcher.Busy() {
		err = s.stop()
		return func() error { return err }
	}
	done := make(chan error, 1)
	go func() { done <- s.stop() }()
	return func() error { return <-done }
}

func (s *session) stop() error {
	s.launcher.Retire()
	// The launcher kills what the pool could not end.
	_ = s.pool.Close()
	return errors.Join(s.launcher.Close(), s.pool.Release())
}

// closeFiles lets go of the files; a run that has not ended takes them up again.
func (s *session) closeFiles(ended bool) error {
	switch {
	case s.files == nil:
		return nil
	case ended:
		return s.files.Close()
	}
	return s.files.Leave()
}

// withChanges records what the run did to the files. A run that started no program
// changed nothing. A change that is not completely known is never taken for none:
// the run has not succeeded then.
func (s *session) withChanges(ctx context.Context, end loop.End) loop.End {
	if !s.touched.Load() {
		return end
	}
	patch := s.changes(ctx)
	_ = s.recorder.tell(patch) // the end of the run fails for the same reason
	if patch.Error == "" || end.Suspended {
		return end
	}
	text := "what the run changed is not completely known: " + patch.Error
	if end.Reason != reason.Completed {
		_ = s.recorder.tell(event.Warning{Message: text})
		return end
	}
	end.Reason, end.Message, end.Hint = reason.WorkspaceUnavailable, text, "its files are in "+s.files.Dir()
	return end
}

func (s *session) changes(ctx context.Context) event.WorkspacePatch {
	change, err := s.files.Changes(ctx)
	if err != nil {
		return event.WorkspacePatch{Files: []event.FileChange{}, Error: "the files could not be listed: " + err.Error()}
	}
	patch, err := change.Record(s.journal)
	if err != nil {
		patch.Change, patch.Diff, patch.Error = "", "", "the change could not be recorded: "+err.Error()
	}
	return patch
}

func (s *session) finished(ctx context.Context, end loop.End) error {
	v := &s.recorder.view
	f := event.RunFinished{
		Phase: phase(end), Reason: string(end.Reason), ExitCode: end.Reason.ExitCode(), Message: end.Message, Hint: end.Hint,
		Output: end.Output, Steps: v.Steps, Tokens: v.Tokens, DurationMs: v.Worked(time.Now()).Milliseconds(),
	}
	if cost := v.Cost; !v.Unpriced && !v.Uncounted && s.priced() {
		f.Cost = &cost
	}
	if sig, ok := errors.AsType[SignalError](context.Cause(ctx)); ok && end.Reason == reason.Cancelled {
		f.ExitCode = sig.ExitCode()
	}
	return s.recorder.tell(f)
}

// untold is the end of a run that could not be written down, on a full disk for
// example: whoever started the run learns it from the outcome alone. Whatever the
// agent came to, a run whose end is not in its journal is no success.
func (s *session) untold(cause error) error {
	v := &s.recorder.view
	f := event.RunFinished{
		Phase: view.Failed, Reason: string(reason.Internal), ExitCode: reason.Internal.ExitCode(), Message: cause.Error(),
		Hint:  "see that the state folder can be written and has room, then go on with: agentctl resume run/" + s.id,
		Steps: v.Steps, Tokens: v.Tokens, DurationMs: v.Worked(time.Now()).Milliseconds(),
	}
	return v.Apply(event.Event{Time: time.Now(), Run: s.id, Data: f})
}

func phase(end loop.End) string {
	switch {
	case end.Suspended:
		return view.Suspended
	case end.Reason == reason.Completed:
		return view.Succeeded
	case end.Reason == reason.Cancelled:
		return view.Cancelled
	}
	return view.Failed
}
