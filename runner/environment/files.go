package environment

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/fstree"
	"agentctl.dev/agentctl/runner/workspace"
)

// Files are the files of a run, which are there or on their way.
type Files struct {
	o     *Options
	files *workspace.Workspace
	git   *git
	// snapshot records the state of the files before the first program runs, once.
	snapshot func() error
	// touched says that a program has run and files may have changed.
	touched atomic.Bool
	// since is the blob of the newest recorded state; begun is when the first program of the
	// step has begun, in nanoseconds since 1970, 0 before.
	since string
	begun atomic.Int64
	// unknown says that the state after the step before could not be recorded.
	unknown bool
	// lender has lent the files; nil where they are the run's own.
	lender *Files
	// change is what the run did to the files, once it is recorded.
	change *workspace.Change
	// unrecorded says that only the files themselves hold some of the change.
	unrecorded bool
}

// openFiles begins to prepare the files of the run, or opens those of an interrupted run
// as it has left them.
func openFiles(ctx context.Context, o *Options) (*Files, error) {
	if l := o.Lent; l != nil {
		return &Files{o: o, files: l.files, git: l.git, lender: l}, nil
	}
	f, spec := &Files{o: o, git: newGit(o)}, o.Workspace
	f.snapshot = sync.OnceValue(f.record)
	spec.Blobs, spec.Records, spec.Kept = o.Journal, o.Dir, o.Kept
	var err error
	if !o.Resumed {
		f.files, err = workspace.Prepare(ctx, spec)
		return f, err
	}
	undoMerges(o)
	var base *workspace.Snapshot
	if o.Snapshot != "" {
		if base, err = workspace.ReadSnapshot(o.Journal, o.Snapshot); err != nil {
			return nil, err
		}
		f.snapshot = func() error { return nil }
		f.since, f.unknown = cmp.Or(o.State, o.Snapshot), o.StateUnknown
	}
	f.files, err = workspace.Open(ctx, spec, base)
	f.touched.Store(base != nil)
	if err == nil && f.since != o.Snapshot {
		var newest *workspace.Snapshot
		if newest, err = workspace.ReadState(o.Journal, f.since); err == nil {
			f.files.Continue(newest)
		}
	}
	return f, err
}

// Root is the folder that the tools see.
func (f *Files) Root() string { return Root(f.o.Workspace) }

// Ready waits until all files of the run are there.
func (f *Files) Ready(ctx context.Context) error { return f.files.Ready(ctx) }

// Prepared waits for the files; its error has a reason.
func (f *Files) Prepared(ctx context.Context) error { return unprepared(f.files.Ready(ctx)) }

// touch waits for the files before a program uses them; the first call records their
// state.
func (f *Files) touch(ctx context.Context) (string, error) {
	if f.lender != nil {
		return f.lender.touch(ctx)
	}
	if err := f.files.Ready(ctx); err != nil {
		return "", unprepared(err)
	}
	if err := f.snapshot(); err != nil { // once
		return "", err
	}
	f.touched.Store(true)
	f.begun.CompareAndSwap(0, time.Now().UnixNano())
	return f.files.Dir(), nil
}

// record records the state of the files.
func (f *Files) record() error {
	inPlace := f.o.Workspace.Strategy == v1alpha1.StrategyInPlace
	if inPlace {
		if err := f.git.guard(); err != nil {
			return err
		}
	}
	j, base := f.o.Journal, f.files.Base()
	id, err := base.Record(j)
	if err != nil {
		return reason.New(reason.WorkspaceUnavailable, "record the state of the workspace: %w", err)
	}
	for _, note := range f.files.Notes() {
		if _, err := j.Append(event.Event{Data: event.Warning{Message: "workspace: " + note}}); err != nil {
			return err
		}
	}
	_, err = j.Append(event.Event{Part: f.o.NewID("part"), Data: event.WorkspaceSnapshot{Snapshot: id, Files: base.Files, Bytes: base.Bytes, Steps: true}})
	f.since = id
	if err == nil && inPlace {
		// Only this event knows what the files were before the run: a copy could be
		// made again after a crash of the machine.
		err = j.Sync()
	}
	return err
}

// FilesDir is the folder that holds the files.
func (f *Files) FilesDir() string { return f.files.Dir() }

// RestoreGit undoes what programs have done to what git runs, and reports it.
func (f *Files) RestoreGit(done bool) {
	if f.lender == nil {
		f.git.restore(done)
	}
}

// Changes lists what the run did to the files; ok is false when it started no program
// and so changed nothing, or on files that were lent.
func (f *Files) Changes(ctx context.Context) (patch event.WorkspacePatch, ok bool) {
	if !f.touched.Load() {
		return patch, false
	}
	change, err := f.files.Changes(ctx)
	f.unrecorded = true
	if err != nil {
		return event.WorkspacePatch{Files: []event.FileChange{}, Error: "the files could not be listed: " + err.Error()}, true
	}
	if patch, err = change.Record(f.o.Journal); err != nil {
		patch.Change, patch.Diff, patch.Error = "", "", "the change could not be recorded: "+err.Error()
		return patch, true
	}
	f.change = change
	f.unrecorded = patch.Error != "" || slices.ContainsFunc(change.Files, func(c workspace.FileChange) bool { return c.NotApplicable != "" })
	return patch, true
}

// CloseFiles releases the files; those of a run that has not ended are kept for a resume.
// A copy of one that has ended is removed where Retain says so.
func (f *Files) CloseFiles(ended, succeeded bool) error {
	switch {
	case f.lender != nil:
		return nil
	case !ended:
		return f.files.Leave()
	}
	if f.o.Workspace.Cloned && (f.unrecorded || !expires(f.o.Retain, succeeded)) {
		return f.files.Leave() // nothing else has the old texts, if the run goes on with another turn
	}
	err := f.files.Close()
	if f.o.Workspace.Strategy == v1alpha1.StrategyInPlace || f.unrecorded || !expires(f.o.Retain, succeeded) {
		return err
	}
	return errors.Join(err, fstree.Remove(f.o.Workspace.Dir))
}

// expires reports whether a copy is removed at the end of its run.
func expires(retain v1alpha1.RetainMode, succeeded bool) bool {
	return retain == v1alpha1.RetainNever || retain == v1alpha1.RetainOnFailure && succeeded
}

// unprepared gives the error of files that cannot be prepared its reason.
func unprepared(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, workspace.ErrUnsupported) {
		return reason.New(reason.IsolationUnavailable, "%w", err).WithHint("use spec.workspace.strategy Copy, InPlace or Empty")
	}
	if _, ok := errors.AsType[*reason.Error](err); ok || errors.Is(err, context.Canceled) {
		return err
	}
	out := reason.New(reason.WorkspaceUnavailable, "%w", err)
	switch {
	case errors.Is(err, workspace.ErrTooLarge):
		return out.WithHint("raise spec.workspace.sizeLimit, or leave folders out with spec.workspace.exclude")
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return out.WithHint("make room on the disk of the state folder, or choose another with --state")
	case errors.Is(err, fs.ErrPermission):
		return out.WithHint("make the folder readable, or leave it out with spec.workspace.exclude")
	}
	return out
}
