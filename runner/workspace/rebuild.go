package workspace

import (
	"context"
	"errors"
	"fmt"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/fstree"
)

// UnkeptError lists files whose contents are no longer to be had.
type UnkeptError struct{ Files []Path }

func (e *UnkeptError) Error() string {
	return fmt.Sprintf("the contents of %d files were not kept, %q among them", len(e.Files), brief(string(e.Files[0])))
}

// Rebuild makes the folder of a spec, with the files as they were in a recorded state: a copy
// of the files of From, changed by the contents that were kept. A nil state is the files of
// From as they are. It returns the state of the new folder. Record is a file for what undoes
// a change that is interrupted. The error is an *UnkeptError if contents are missing.
func Rebuild(ctx context.Context, spec Spec, state *Snapshot, record string) (_ *Snapshot, err error) {
	blobs := spec.Blobs
	spec.Strategy, spec.Cloned = v1alpha1.StrategyCopy, false
	w, err := Prepare(ctx, spec)
	if err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(err, w.Leave())
		if err != nil {
			err = errors.Join(err, fstree.Remove(spec.Dir), Forget(spec.Dir))
		}
	}()
	if err := w.Ready(ctx); err != nil {
		return nil, err
	}
	if state == nil {
		return w.Base(), nil
	}
	change := Between(blobs, w.Base(), state)
	if unkept := change.Unkept(); len(unkept) > 0 {
		return nil, &UnkeptError{unkept}
	}
	if change.Empty() {
		return state, nil
	}
	err = Apply(ctx, Application{Source: spec.Dir, Record: record, Change: change, Blobs: blobs})
	if err != nil && !errors.Is(err, ErrApplied) {
		return nil, err
	}
	return state, nil
}
