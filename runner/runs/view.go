package runs

import (
	"context"
	"fmt"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/journal"
)

// View folds the journal of a run. The reference is an id, with or without run/, a unique
// beginning of one, or @latest.
func View(ctx context.Context, state, ref string) (*view.Run, error) {
	_, v, err := read(ctx, state, ref)
	return v, err
}

// read is View that also returns the location of the journal.
func read(ctx context.Context, state, ref string) (journal.Found, *view.Run, error) {
	found, err := journal.FindRun(state, ref)
	if err != nil {
		return found, nil, &reason.UsageError{Err: err}
	}
	v := &view.Run{}
	if err := Fold(ctx, found, v); err != nil {
		return found, nil, err
	}
	return found, v, nil
}

// Fold reads a journal into views of the run: one for each caller that continues it.
func Fold(ctx context.Context, found journal.Found, views ...*view.Run) error {
	for e, err := range journal.Read(ctx, found.Dir, 0) {
		if err != nil {
			return unread(found.ID, views[0], err)
		}
		for _, v := range views {
			// An event that the rules forbid is why the run failed; it changes nothing,
			// and the other events still count.
			if err := v.Apply(e); err != nil {
				v.Warnings = append(v.Warnings, err.Error())
			}
		}
	}
	if views[0].ID == "" {
		return reason.Usagef("run %s was interrupted before it began", found.ID)
	}
	return nil
}

// Damaged is the reason that a list shows for a run whose journal was cut at its end or
// whose last line was changed.
const Damaged = "JournalDamaged"

// unread is the error of a journal that could not be read to its end.
func unread(id string, v *view.Run, err error) error {
	damage, end := journal.DamagedAtEnd(err)
	if !end || damage.Kept == 0 || v.Finished != nil && v.Phase != view.Suspended {
		return fmt.Errorf("read the journal of run %s: %w", id, err)
	}
	return reason.New(reason.Internal, "read the journal of run %s: %w", id, err).
		WithHint("continue with what is left of it, after a look at its files: agentctl resume run/%s", id)
}
