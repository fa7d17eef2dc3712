package environment

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/workspace"
)

// busyTime bounds how long a run waits for another that applies its change to the same
// folder, applyAgain is the time between two attempts.
const (
	busyTime   = time.Minute
	applyAgain = 100 * time.Millisecond
)

// Apply applies the recorded change to the source folder, where the Workspace has apply:
// Auto; nil where there is nothing to apply. All of it is applied or nothing, with the
// checks of agentctl apply-changes.
func (f *Files) Apply(ctx context.Context) (*event.WorkspaceApplied, error) {
	if f.lender != nil || f.o.Apply != v1alpha1.ApplyAuto || f.change == nil || f.change.Empty() {
		return nil, nil //nolint:nilnil // nothing is to be applied
	}
	source := f.o.Workspace.Source
	err := f.applied(ctx, workspace.Application{Source: source, Record: filepath.Join(f.o.Dir, workspace.ApplyRecord), Change: f.change, Blobs: f.o.Journal})
	already := errors.Is(err, workspace.ErrApplied)
	switch {
	case errors.Is(err, workspace.ErrInPlace):
		return nil, nil //nolint:nilnil // the command line chose --in-place
	case err != nil && !already:
		again := "agentctl apply-changes run/" + f.o.Run
		return nil, reason.New(reason.WorkspaceUnavailable, "the agent has finished, and its change was not applied: %w", err).
			WithHint("%s", workspace.Advice(err, again))
	}
	return &event.WorkspaceApplied{Source: source, Files: len(f.change.Files), Already: already}, nil
}

// applied waits while another process changes the folder.
func (f *Files) applied(ctx context.Context, a workspace.Application) error {
	ctx, cancel := context.WithTimeout(ctx, busyTime)
	defer cancel()
	for {
		err := workspace.Apply(ctx, a)
		if !errors.Is(err, workspace.ErrBusy) {
			return err
		}
		select {
		case <-time.After(applyAgain):
		case <-ctx.Done():
			return err
		}
	}
}
