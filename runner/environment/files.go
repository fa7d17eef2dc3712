package environment

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/workspace"
)

// openFiles begins to prepare the files of the run, or opens those of an interrupted run
// as it has left them.
func (e *Environment) openFiles(ctx context.Context) (err error) {
	e.Workspace.Blobs = e.Journal
	if !e.Resumed {
		e.files, err = workspace.Prepare(ctx, e.Workspace)
		return err
	}
	var base *workspace.Snapshot
	if e.Snapshot != "" {
		if base, err = workspace.ReadSnapshot(e.Journal, e.Snapshot); err != nil {
			return err
		}
		e.snapshot = func() error { return nil }
	}
	if e.files, err = workspace.Open(ctx, e.Workspace, base); err != nil {
		return err
	}
	e.touched.Store(base != nil)
	return nil
}

// Ready waits until all files of the run are there.
func (e *Environment) Ready(ctx context.Context) error { return e.files.Ready(ctx) }

// Prepared waits for the files; its error has a reason.
func (e *Environment) Prepared(ctx context.Context) error { return unprepared(e.files.Ready(ctx)) }

// touch waits for the files before a program uses them; the first call records their
// state.
func (e *Environment) touch(ctx context.Context) (string, error) {
	if err := e.files.Ready(ctx); err != nil {
		return "", unprepared(err)
	}
	if err := e.snapshot(); err != nil { // once
		return "", err
	}
	e.touched.Store(true)
	return e.files.Dir(), nil
}

// recordFiles records the state of the files.
func (e *Environment) recordFiles() error {
	inPlace := e.Workspace.Strategy == v1alpha1.StrategyInPlace
	if inPlace {
		if err := e.guardGit(); err != nil {
			return err
		}
	}
	base := e.files.Base()
	id, err := base.Record(e.Journal)
	if err != nil {
		return reason.New(reason.WorkspaceUnavailable, "record the state of the workspace: %w", err)
	}
	for _, note := range e.files.Notes() {
		if _, err := e.Journal.Append(event.Event{Data: event.Warning{Message: "workspace: " + note}}); err != nil {
			return err
		}
	}
	_, err = e.Journal.Append(event.Event{Part: e.NewID("part"), Data: event.WorkspaceSnapshot{Snapshot: id, Files: base.Files, Bytes: base.Bytes}})
	if err == nil && inPlace {
		// Only this event knows what the files were before the run: a copy could be
		// made again after a crash of the machine.
		err = e.Journal.Sync()
	}
	return err
}

// FilesDir is the folder that holds the files.
func (e *Environment) FilesDir() string { return e.files.Dir() }

// Changes lists what the run did to the files; ok is false when it started no program
// and so changed nothing.
func (e *Environment) Changes(ctx context.Context) (patch event.WorkspacePatch, ok bool) {
	if !e.touched.Load() {
		return patch, false
	}
	change, err := e.files.Changes(ctx)
	if err != nil {
		return event.WorkspacePatch{Files: []event.FileChange{}, Error: "the files could not be listed: " + err.Error()}, true
	}
	if patch, err = change.Record(e.Journal); err != nil {
		patch.Change, patch.Diff, patch.Error = "", "", "the change could not be recorded: "+err.Error()
	}
	return patch, true
}

// CloseFiles releases the files; those of a run that has not ended are kept for a resume.
func (e *Environment) CloseFiles(ended bool) error {
	switch {
	case e.files == nil:
		return nil
	case ended:
		return e.files.Close()
	}
	return e.files.Leave()
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
