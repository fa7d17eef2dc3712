package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/audit/trail"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/workspace"
)

// Change is what a run did to the files.
type Change struct {
	// Run is the id of the run.
	Run   string             `json:"run"`
	Files []event.FileChange `json:"files"`
	// Diff is the change as a unified diff.
	Diff []byte `json:"-"`
}

// UnknownError reports that the changes of a run are not completely known.
type UnknownError struct {
	// Run is its id, Dir the folder with its files.
	Run, Dir string
	// Problem is what could not be listed or recorded.
	Problem string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("run %s: what it changed is not completely known: %s", e.Run, e.Problem)
}

// unknown is the error of a change that is not completely known, or nil.
func unknown(v *view.Run) error {
	if v.Changes.Error == "" {
		return nil
	}
	dir := v.Started.Workspace.Dir
	return (&reason.Error{Reason: reason.WorkspaceUnavailable, Err: &UnknownError{v.ID, dir, v.Changes.Error}}).WithHint("its files are in %s", dir)
}

// Applied is a change that is in the source folder now.
type Applied struct {
	Run    string             `json:"run"`
	Source string             `json:"source"`
	Files  []event.FileChange `json:"files"`
	// Already is true if it was there before.
	Already bool `json:"already"`
}

// Diff returns the recorded change of a run. If it is incomplete, it is returned with an
// error.
func Diff(ctx context.Context, state, ref string) (*Change, error) {
	found, v, err := read(ctx, state, ref)
	if err != nil {
		return nil, err
	}
	if v.Finished == nil {
		return nil, unfinished(v)
	}
	c := &Change{Run: v.ID, Files: append([]event.FileChange{}, v.Changes.Files...)}
	if v.Changes.Omitted > 0 {
		change, err := workspace.ReadChange(journal.Stored(found.Dir), v.Changes.Change)
		if err != nil {
			return nil, fmt.Errorf("change of run %s: %w", c.Run, err)
		}
		c.Files = change.Named()
	}
	if id := v.Changes.Diff; id != "" {
		if c.Diff, err = journal.ReadBlob(found.Dir, id); err != nil {
			return nil, fmt.Errorf("diff of run %s: %w", c.Run, err)
		}
	}
	return c, unknown(v)
}

// DiffCall returns what a coding agent of others has changed in a call, in its copy of the
// files: also of a run that has not finished.
func DiffCall(ctx context.Context, state, ref, call string) (*Change, error) {
	found, v, err := read(ctx, state, ref)
	if err != nil {
		return nil, err
	}
	coded := v.Coding(call)
	if coded == nil {
		return nil, reason.Usagef("run %s: call %q is none of a coding agent that has ended", v.ID, call).
			WithHint("agentctl diff run/" + v.ID + " shows what the run has changed")
	}
	c := &Change{Run: v.ID, Files: []event.FileChange{}}
	if coded.Change == "" {
		return c, nil
	}
	change, err := workspace.ReadChange(journal.Stored(found.Dir), coded.Change)
	if err == nil {
		c.Files = change.Named()
		c.Diff, err = journal.ReadBlob(found.Dir, coded.Diff)
	}
	if err != nil {
		return nil, fmt.Errorf("change of call %s/%s: %w", v.ID, call, err)
	}
	return c, nil
}

// unfinished is the error for a run that is executed or was killed: its changes are
// recorded at its end.
func unfinished(v *view.Run) error {
	return reason.Usagef("run %s has not finished: what it changed is recorded at its end", v.ID).
		WithHint("if it was killed, go on with: agentctl resume run/" + v.ID + " (its files are in " + v.Started.Workspace.Dir + ")")
}

// ApplyOptions name the run whose change is applied. Ref is required.
type ApplyOptions struct {
	// Ref is the run as View takes it, State the folder that holds runs.
	Ref, State string
	// By is who applies it, for the journal of the run: for example "jane@pts/3".
	By string
}

// Apply makes the recorded change of a run in its source folder: exactly it, all or
// nothing. It is refused when a file has changed since. If the folder has the change
// already, Apply does nothing and returns no error. The journal of the run records what was
// done; where it cannot, nothing is done.
func Apply(ctx context.Context, o ApplyOptions) (_ *Applied, err error) {
	found, v, err := read(ctx, o.State, o.Ref)
	if err != nil {
		return nil, err
	}
	switch {
	case v.Finished == nil:
		return nil, unfinished(v)
	case v.Started.Workspace.Apply == string(v1alpha1.ApplyNever):
		return nil, reason.Usagef("run %s: its Workspace has apply: Never, so its change is not applied", v.ID).
			WithHint("agentctl diff run/" + v.ID + " shows it")
	case v.Started.Workspace.Git != nil:
		return nil, reason.Usagef("run %s worked on a clone of %s; there is no folder to change", v.ID, v.Started.Workspace.Git.URL).
			WithHint("in a clone at " + v.Started.Workspace.Git.Commit + ": agentctl diff run/" + v.ID + " | git apply")
	case v.Started.Workspace.Source == "":
		return nil, reason.Usagef("run %s began with an empty workspace; there is no folder to change", v.ID)
	case v.Changes.Error != "":
		return nil, unknown(v)
	case v.Changes.Change == "":
		return nil, reason.Usagef("run %s changed no files", v.ID)
	}
	change, err := workspace.ReadChange(journal.Stored(found.Dir), v.Changes.Change)
	if err != nil {
		return nil, fmt.Errorf("change of run %s: %w", v.ID, err)
	}
	if change.Strategy == v1alpha1.StrategyInPlace {
		return nil, reason.Usagef("run %s: %w", v.ID, workspace.ErrInPlace)
	}
	w, _, err := trail.Open(ctx, journal.Options{Dir: found.Dir, Run: found.ID})
	if held, ok := errors.AsType[*journal.HeldError](err); ok {
		return nil, (&reason.UsageError{Err: held}).WithHint("wait until it has ended, then apply the change again")
	}
	if err != nil {
		return nil, fmt.Errorf("change of run %s: it is not applied, because that cannot be recorded: %w", v.ID, err)
	}
	defer func() {
		if closed := w.Close(); err == nil && closed != nil {
			err = unrecorded(v.ID, closed)
		}
	}()
	source := v.Started.Workspace.Source
	err = workspace.Apply(ctx, workspace.Application{
		Source: source, Record: filepath.Join(found.Dir, workspace.ApplyRecord), Change: change, Blobs: journal.Stored(found.Dir),
	})
	already := errors.Is(err, workspace.ErrApplied)
	if err != nil && !already {
		return nil, notApplied(v.ID, err)
	}
	a := &Applied{Run: v.ID, Source: source, Files: change.Named(), Already: already}
	if already && (v.Applied != nil || v.AppliedLater > 0) {
		return a, nil // which is recorded
	}
	_, err = w.Append(event.Event{Data: event.WorkspaceApplied{Source: source, Files: len(a.Files), Already: already, By: cmp.Or(o.By, "unknown"), Change: v.Changes.Change}})
	if err != nil {
		return nil, unrecorded(v.ID, err)
	}
	return a, nil
}

// unrecorded is the error of a change that was made and is not in the journal.
func unrecorded(id string, err error) error {
	return reason.New(reason.Internal, "the change of run %s is applied, and that is not recorded: %w", id, err).
		WithHint("remove the cause, then record it with: agentctl apply-changes run/%s", id)
}

// notApplied is the error of a failed apply, with a suggestion if there is one.
func notApplied(id string, err error) error {
	again := "agentctl apply-changes run/" + id
	_, interrupted := errors.AsType[*workspace.InterruptedError](err)
	_, drift := errors.AsType[*workspace.DriftError](err)
	if interrupted || drift {
		return reason.New(reason.Internal, "run %s: %w", id, err).WithHint("%s", workspace.Advice(err, again))
	}
	return fmt.Errorf("run %s: %w", id, err)
}
