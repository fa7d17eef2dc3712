package environment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/workspace"
)

// merge implements tool.Merger: it makes what a subagent has changed in its copy in the
// files of the run. What no isolated program may change is not changed by it either.
func (t *Tools) merge(ctx context.Context, call message.ToolCall, m tool.Merge) (done bool, err error) {
	dir, err := t.workspace(ctx)
	if err != nil {
		return false, err
	}
	change, blobs, err := t.env.o.Changed(ctx, m.Run)
	if err != nil {
		return false, unmerged(m, err)
	}
	part, err := change.Only(m.Files, m.Deleted)
	if err == nil {
		err = errors.Join(t.unguarded(ctx, dir, m), t.room(ctx, part))
	}
	if err != nil {
		return false, unmerged(m, err)
	}
	err = workspace.Apply(ctx, workspace.Application{
		Source: dir, Record: t.env.Files.mergeRecord(t.env.o.Run, call.ID), Change: part, Blobs: blobs, Once: true,
	})
	switch {
	case errors.Is(err, workspace.ErrApplied):
		return true, nil
	case err != nil && ctx.Err() != nil:
		return false, context.Cause(ctx)
	case err != nil:
		return false, unmerged(m, err)
	}
	return false, nil
}

// mergeRecord is the record of the merge of a call. It is in the folder of the run that owns
// the files, which undoes a merge that was interrupted even if the call is not made again.
func (f *Files) mergeRecord(run, call string) string {
	for f.lender != nil {
		f = f.lender
	}
	key := sha256.Sum256([]byte(run + "\x00" + call))
	return filepath.Join(f.o.Dir, workspace.MergePrefix+hex.EncodeToString(key[:8])+".json")
}

// undoMerges undoes what merges that were interrupted have done to the files of a run that is
// resumed, before anything looks at them.
func undoMerges(o *Options) {
	entries, err := os.ReadDir(o.Dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), workspace.MergePrefix) {
			err = errors.Join(err, workspace.Undo(Root(o.Workspace), filepath.Join(o.Dir, e.Name())))
		}
	}
	if err == nil {
		return
	}
	text := "a merge of changes of a subagent was interrupted, and could not be undone: " + err.Error()
	if interrupted, ok := errors.AsType[*workspace.InterruptedError](err); ok {
		text += "; " + interrupted.Advice
	}
	warn(o.Journal, text)
}

// unmerged is what the model reads of changes that were not made.
func unmerged(m tool.Merge, err error) error {
	text := fmt.Sprintf("the changes of %s were not taken over: %v", m.Run, err)
	if _, ok := errors.AsType[*workspace.DriftError](err); ok {
		text += ". Take only the other files, or have the work done again on the files as they are now."
	}
	if interrupted, ok := errors.AsType[*workspace.InterruptedError](err); ok {
		text += ". " + interrupted.Advice
	}
	return &message.CallError{Code: message.CodeTool, Text: text}
}

// unguarded refuses files that are read-only for every isolated program, or hidden from it.
func (t *Tools) unguarded(ctx context.Context, dir string, m tool.Merge) error {
	if t.guard == nil {
		return nil
	}
	readOnly, masked, err := t.guard.wait(ctx)
	if err != nil {
		return err
	}
	roots := []string{dir}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		roots = append(roots, resolved)
	}
	for _, name := range slices.Concat(m.Files, m.Deleted) {
		for _, root := range roots {
			file := filepath.Join(root, name)
			held := func(path string) bool { return path == file || within(file, path) || within(path, file) }
			if slices.ContainsFunc(readOnly, held) || slices.ContainsFunc(masked, held) {
				return fmt.Errorf("path %q: no call may change it", name)
			}
		}
	}
	return nil
}

// room refuses a change that would pass the limit of what the run adds to its files.
func (t *Tools) room(ctx context.Context, c *workspace.Change) error {
	grown, err := t.env.files.Growth(ctx)
	if err != nil {
		return err
	}
	for _, f := range c.Files {
		if f.New != nil {
			grown += f.New.Size
		}
		if f.Old != nil {
			grown -= f.Old.Size
		}
	}
	if limit := t.env.files.GrowthLimit(); grown > limit {
		return fmt.Errorf("the files of the run would have grown by %d bytes, and spec.workspace.growthLimit is %d", grown, limit)
	}
	return nil
}
