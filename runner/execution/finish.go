package execution

import (
	"context"
	"fmt"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/loop"
)

// finishTime bounds what is done after the loop has ended: programs are stopped,
// and changes are listed, of which a run may leave hundreds of thousands.
const finishTime = 10 * time.Minute

// stopTime is the same for a run that a person or the system stops: with what
// comes before and after it, the program exits within five seconds.
const stopTime = 3 * time.Second

// Environment is what the calls of the run have worked in.
type Environment interface {
	// EndPrograms returns when no program is left; removed waits for what remains of
	// their sandboxes.
	EndPrograms() (removed func() error)
	// RestoreGit undoes what programs did to what git runs.
	RestoreGit(ended bool)
	// Changes lists what programs did to the files; false where none has run.
	Changes(ctx context.Context) (event.WorkspacePatch, bool)
	// Apply applies the changes to the source folder, where that is declared; nil where
	// there is nothing to apply.
	Apply(ctx context.Context) (*event.WorkspaceApplied, error)
	FilesDir() string
	// CloseFiles releases the files, for good when the run has ended.
	CloseFiles(ended, succeeded bool) error
}

// FinishOptions say how a run ends.
type FinishOptions struct {
	// Evidence judges what the agent declares of its runs; nil where it declares nothing.
	Evidence JudgeEvidence
	// Priced says that the cost of the run is known.
	Priced bool
	// Kill, when closed, ends the wait for the watcher.
	Kill <-chan struct{}
}

// JudgeEvidence evaluates the evidence of a run whose end is set.
type JudgeEvidence func(ctx context.Context, v *view.Run) ([]event.Evidence, error)

// Finish ends what runs, records what changed and how the run ended, and closes the
// journal, also when ctx has ended. Unseen is the number of events that the watcher did
// not receive.
func (x *Execution) Finish(ctx context.Context, end loop.End, env Environment, o FinishOptions) (unseen int64, err error) {
	limit := finishTime
	if ctx.Err() != nil {
		limit = stopTime
	}
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	removed := env.EndPrograms()
	env.RestoreGit(!end.Suspended)
	end = x.withChanges(work, end, env)
	end, found := x.withEvidence(work, end, o.Evidence)
	end = x.applied(work, end, env)
	if !end.Suspended {
		_ = x.warnUnread()
	}
	err = x.recordEnd(ctx, end, found, o.Priced)
	if err == nil && !end.Suspended {
		x.inbox.Discard()
	}
	if err == nil { // durable while the sandboxes are removed
		err = x.Recorder.Sync()
	}
	_ = removed()
	_ = env.CloseFiles(err == nil && !end.Suspended, end.Reason == reason.Completed)
	if closed := x.journal.Close(); err == nil {
		err = closed // a journal that has failed returns the same error again
	}
	unseen = x.Recorder.End(ctx, o.Kill)
	if err != nil && !left(err) {
		if err := x.unrecordedEnd(err); err != nil {
			return unseen, fmt.Errorf("end run %s: %w", x.Run, err)
		}
	}
	return unseen, nil
}

// withChanges records what the run did to the files. A change that is not completely
// known never counts as none: the run has not succeeded then.
func (x *Execution) withChanges(ctx context.Context, end loop.End, env Environment) loop.End {
	patch, ok := env.Changes(ctx)
	if !ok {
		return end
	}
	_ = x.Recorder.Record(patch) // the end of the run fails for the same reason
	if patch.Error == "" || end.Suspended {
		return end
	}
	text := "what the run changed is not completely known: " + patch.Error
	if end.Reason != reason.Completed {
		_ = x.Recorder.Record(event.Warning{Message: text})
		return end
	}
	end.Reason, end.Message, end.Hint = reason.WorkspaceUnavailable, text, "its files are in "+env.FilesDir()
	return end
}

// withEvidence judges the evidence of a run. One that lacks some has not succeeded.
func (x *Execution) withEvidence(ctx context.Context, end loop.End, judge JudgeEvidence) (loop.End, []event.Evidence) {
	if judge == nil || end.Suspended {
		return end, nil
	}
	return Evidenced(ctx, end, x.Recorder.Run(), time.Now(), judge)
}

// Evidenced is the end of a run with the evidence of its newest turn.
func Evidenced(ctx context.Context, end loop.End, v *view.Run, at time.Time, judge JudgeEvidence) (loop.End, []event.Evidence) {
	ended, f := *v, Finished(end, v, at)
	ended.Finished, ended.Phase, ended.Messages = &f, f.Phase, v.Said() // what an earlier turn has done proves nothing
	found, err := judge(ctx, &ended)
	if err != nil {
		found = []event.Evidence{{Name: "evidence", Message: "it could not be judged: " + err.Error()}}
	}
	if end.Reason != reason.Completed {
		return end, found
	}
	var missing []string
	for _, e := range found {
		if !e.Met {
			missing = append(missing, e.Name+": "+e.Message)
		}
	}
	if len(missing) > 0 {
		end.Reason, end.Message = reason.EvidenceMissing, "missing evidence: "+strings.Join(missing, "; ")
		end.Hint = "see what the run did: agentctl describe run/" + v.ID
	}
	return end, found
}

// applied applies what a run that has completed did to the files, where its Workspace
// demands it. A person who asked for that finds the change in the folder, or a run that has
// not succeeded.
func (x *Execution) applied(ctx context.Context, end loop.End, env Environment) loop.End {
	if end.Suspended || end.Reason != reason.Completed {
		return end
	}
	if err := x.Recorder.Sync(); err != nil { // the change is recorded before it is made
		return end // the end of the run fails for the same reason
	}
	done, err := env.Apply(ctx)
	switch {
	case err != nil:
		end.Reason, end.Message, end.Hint = reason.Of(err), err.Error(), reason.Hint(err)
	case done != nil:
		_ = x.Recorder.Record(*done)
	}
	return end
}

func (x *Execution) recordEnd(ctx context.Context, end loop.End, found []event.Evidence, priced bool) error {
	v := x.Recorder.Run()
	f := Finished(end, v, time.Now())
	f.Evidence = found
	if cost := v.Cost; !v.Unpriced && !v.Uncounted && priced {
		f.Cost = &cost
	}
	if sig, ok := reason.Signal(ctx); ok && end.Reason == reason.Cancelled {
		f.ExitCode = sig.ExitCode()
	}
	return x.Recorder.Record(f)
}

// unrecordedEnd is the end of a run that could not be recorded, on a full disk for
// example: the caller learns it from the outcome alone. A run whose end is not in its
// journal has not succeeded, whatever the agent's answer was.
func (x *Execution) unrecordedEnd(cause error) error {
	v := x.Recorder.Run()
	end := loop.End{Reason: reason.Internal, Message: cause.Error()}
	end.Hint = "see that the state folder can be written and has room, then go on with: agentctl resume run/" + x.Run
	f := Finished(end, v, time.Now())
	return v.Apply(event.Event{Time: time.Now(), Run: x.Run, Data: f})
}

// Finished is the event that ends a run at a time, without its cost.
func Finished(end loop.End, v *view.Run, at time.Time) event.RunFinished {
	f := event.RunFinished{
		Phase: phase(end), Reason: string(end.Reason), ExitCode: end.Reason.ExitCode(), Message: end.Message, Hint: end.Hint,
		Output: end.Output, Structured: end.Structured, Steps: v.Steps, Tokens: v.Tokens, DurationMs: v.Worked(at).Milliseconds(),
	}
	if len(v.Turns) > 1 || v.Started.ForkedFrom != nil {
		f.Agent, f.Model = v.Started.Agent, v.Started.Model.Name
	}
	return f
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
