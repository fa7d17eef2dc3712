package runs

import (
	"context"
	"errors"
	"slices"
	"time"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/workspace"
)

// PruneOptions select the runs of a state folder that are deleted: a run is deleted if any
// of the limits selects it. A run that is in progress or waits for an approval never is.
type PruneOptions struct {
	State string
	// OlderThan selects runs that ended longer ago; 0 is no limit.
	OlderThan time.Duration
	// Keep selects all but the newest so many runs; negative is no limit. A run of a
	// subagent is deleted with the run above it, and not counted.
	Keep int
	// MaxSize selects the oldest runs, until the others take at most so many bytes;
	// negative is no limit.
	MaxSize int64
	// Spare keeps a run that other data refers to. Optional.
	Spare func(id string) bool
	// DryRun deletes nothing.
	DryRun bool
	Now    time.Time
}

// Pruned is a run that was deleted.
type Pruned struct {
	ID string
	// Size of its folder in bytes.
	Size int64
}

// Prune deletes runs, the oldest first, and passes each to deleted. A run that cannot be
// deleted is an error at the end, and does not stop the others.
func Prune(ctx context.Context, o PruneOptions, deleted func(Pruned)) error {
	if !o.DryRun {
		if err := journal.SweepDeleted(o.State); err != nil {
			return err
		}
	}
	found, err := journal.List(o.State)
	if err != nil {
		return err
	}
	t := newTree(found)
	var total int64
	sizes := make([]int64, len(t.roots))
	for i, f := range t.roots {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		sizes[i] = journal.Size(ctx, f.Dir)
		for _, c := range t.below(f.ID) {
			sizes[i] += journal.Size(ctx, c.Dir)
		}
		total += sizes[i]
	}
	var failed []error
	for i, f := range slices.Backward(t.roots) {
		s := summary(ctx, f)
		if err := ctx.Err(); err != nil {
			return errors.Join(append(failed, context.Cause(ctx))...)
		}
		out := o.OlderThan > 0 && o.Now.Sub(s.lastSeen()) > o.OlderThan ||
			o.Keep >= 0 && i >= o.Keep ||
			o.MaxSize >= 0 && total > o.MaxSize
		if !out || s.needed(f.Dir) != "" || o.Spare != nil && o.Spare(s.Name) {
			continue
		}
		if !o.DryRun {
			if err := t.delete(ctx, o.State, s.Name); err != nil {
				failed = append(failed, err)
				continue
			}
		}
		total -= sizes[i]
		deleted(Pruned{ID: s.Name, Size: sizes[i]})
	}
	return errors.Join(failed...)
}

// Delete deletes one run and the runs below it; the reference is as for Get. A run that is in progress or waits
// for an approval is refused.
func Delete(ctx context.Context, state, ref string, dryRun bool) error {
	found, err := journal.FindRun(state, ref)
	if err != nil {
		return &reason.UsageError{Err: err}
	}
	s := summary(ctx, found)
	if why := s.needed(found.Dir); why != "" {
		return reason.Usagef("run %s is not deleted: %s", found.ID, why).
			WithHint("agentctl cancel ends a run in progress; one that waits is answered (agentctl approve, agentctl deny) and resumed first")
	}
	if dryRun {
		return nil
	}
	all, err := journal.List(state)
	if err != nil {
		return err
	}
	return newTree(all).delete(ctx, state, found.ID)
}

// delete deletes a run, and before it the runs below it. What a process of the run was doing
// to files of a person when it was killed is undone first: only the run knows how.
func (t *tree) delete(ctx context.Context, state, id string) error {
	for _, c := range slices.Backward(t.below(id)) {
		if err := journal.Delete(ctx, state, c.ID, nil); err != nil {
			return err
		}
	}
	err := journal.Delete(ctx, state, id, workspace.Settle)
	if interrupted, ok := errors.AsType[*workspace.InterruptedError](err); ok {
		return (&reason.UsageError{Err: err}).WithHint(interrupted.Advice + " && agentctl delete run " + id)
	}
	return err
}

// needed is why a run must not be deleted; "" if it may be.
func (s *Summary) needed(dir string) string {
	switch {
	case s.Phase == view.Running || journal.Held(dir):
		return "it is in progress"
	case s.Phase == view.Suspended, len(s.Waiting) > 0:
		return "it waits to be resumed"
	}
	return ""
}

// lastSeen is when a run ended, or began if the end is not known.
func (s *Summary) lastSeen() time.Time {
	if s.EndTime != nil {
		return *s.EndTime
	}
	return s.StartTime
}
