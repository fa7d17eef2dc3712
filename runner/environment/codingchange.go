package environment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/workspace"
)

// compare finds out what was changed in the copy, and keeps it with what was printed.
func (c *coding) compare(ctx context.Context, files *workspace.Workspace, end *tool.CodingEnd) (err error) {
	ctx = context.WithoutCancel(ctx) // what a cancelled call has done is evidence, too
	j, redactor := c.t.env.o.Journal, c.t.env.secrets.Redactor
	end.Stdout.Kept, end.Stderr.Kept = redactor.Bytes(redactor.JSON(end.Stdout.Kept)), redactor.Bytes(end.Stderr.Kept)
	end.Text, end.Why = redactor.String(end.Text), redactor.String(end.Why)
	if len(end.Stdout.Kept) > 0 {
		if end.Log, err = j.PutBlob(end.Stdout.Kept); err != nil {
			return err
		}
	}
	if len(end.Stderr.Kept) > 0 {
		if end.Errors, err = j.PutBlob(end.Stderr.Kept); err != nil {
			return err
		}
	}
	if end.Before, err = files.Base().Record(j); err != nil {
		return err
	}
	change, err := files.Changes(ctx)
	if err != nil {
		end.Outcome, end.Why = message.CodingFailed, "the files could not be compared: "+err.Error()
		return nil //nolint:nilerr // it is the end of the program
	}
	if change.Empty() {
		return nil
	}
	patch, err := change.Record(j)
	if err != nil {
		return err
	}
	end.Change, end.Diff, end.After = patch.Change, patch.Diff, patch.Change
	end.Added, end.Removed = change.Summary.LinesAdded, change.Summary.LinesRemoved
	end.Files, end.Changes = changedFiles(change, end.Outcome)
	if c.task.Mode == v1alpha1.CodingReport {
		end.Outcome, end.Why = message.CodingFailed, "it has changed files, and mode report changes none"
	}
	return nil
}

// Bounds of what one call takes over: each file is judged by name.
const (
	mostTaken     = 1000
	mostTakenText = 64 << 10
)

// changedFiles are the files of a change, for the result and for a call that takes them over.
func changedFiles(change *workspace.Change, outcome message.CodingOutcome) (files []tool.CodedFile, all *message.CopyChanges) {
	all = &message.CopyChanges{}
	text := 0
	for _, f := range change.Files {
		one := tool.CodedFile{Path: strings.ToValidUTF8(string(f.Path), "\uFFFD"), Status: f.Change}
		if f.Old != nil {
			one.Before = f.Old.Hash
		}
		if f.New != nil {
			one.After = f.New.Hash
		}
		files = append(files, one)
		switch {
		case one.Path != string(f.Path):
			all.Unmergeable = fmt.Sprintf("the name of %q is not UTF-8", one.Path)
		case f.NotApplicable != "":
			all.Unmergeable = fmt.Sprintf("the content of %s is not recorded: %s", one.Path, f.NotApplicable)
		case f.Change == workspace.Deleted:
			all.Deleted = append(all.Deleted, one.Path)
		default:
			all.Changed = append(all.Changed, one.Path)
		}
		text += len(f.Path)
	}
	switch {
	case outcome != message.CodingCompleted:
		all.Unmergeable = "the agent has not succeeded: " + string(outcome)
	case len(files) > mostTaken || text > mostTakenText:
		all.Unmergeable = fmt.Sprintf("there are %d files; at most %d, with names of %d bytes altogether, are taken over", len(files), mostTaken, mostTakenText)
	}
	if all.Unmergeable != "" {
		all.Changed, all.Deleted = nil, nil
	}
	return files, all
}

// take makes the change of a program in the files of the run, all or none. What no isolated
// program may change is not changed by it either.
func (c *coding) take(ctx context.Context, root string, end *tool.CodingEnd) error {
	if why := end.Changes.Unmergeable; why != "" {
		return fmt.Errorf("its changes could not be taken over: %s", why)
	}
	m := tool.Merge{Files: end.Changes.Changed, Deleted: end.Changes.Deleted}
	change, err := workspace.ReadChange(c.t.env.o.Journal, end.Change)
	if err == nil {
		change, err = change.Only(m.Files, m.Deleted)
	}
	if err == nil {
		err = errors.Join(c.t.unguarded(ctx, root, m), c.t.room(ctx, change))
	}
	if err == nil {
		err = c.t.unfixed(ctx, m)
	}
	if err == nil {
		err = workspace.Apply(ctx, workspace.Application{
			Source: root, Record: c.t.env.Files.mergeRecord(c.t.env.o.Run, c.call.ID), Change: change, Blobs: c.t.env.o.Journal, Once: true,
		})
	}
	if err != nil && !errors.Is(err, workspace.ErrApplied) {
		return fmt.Errorf("its changes were not taken over: %w", err)
	}
	return nil
}

// unfixed refuses files that a policy lets no program change.
func (t *Tools) unfixed(ctx context.Context, m tool.Merge) error {
	fixed, err := t.judge.Fixed(ctx, slices.Concat(m.Files, m.Deleted))
	if err == nil && len(fixed) > 0 {
		err = fmt.Errorf("path %q: no call may change it", fixed[0])
	}
	return err
}
