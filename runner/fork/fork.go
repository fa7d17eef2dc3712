// Package fork begins a run with what another one had said and done, and with its files as they were then.
package fork

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/audit/trail"
	"agentctl.dev/agentctl/runner/fstree"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/moment"
	"agentctl.dev/agentctl/runner/workspace"
)

// Options name the run and the place. All but Folder and Without are required.
type Options struct {
	// From is the run that is forked, At the place in it.
	From journal.Found
	At   *moment.Moment
	// ID and Dir are the name and the folder of the new run.
	ID, Dir string
	// Files is where the files of the new run are made, with what is left out of them.
	Files workspace.Spec
	// Folder is where the files of the run are, where they are not at their place; with Without
	// the files for which it is true are not there, and left out. Both are of an export.
	Folder  string
	Without func(path string) bool
	// Begin is the first event, with the workspace of the new run.
	Begin event.RunStarted
}

// Make makes the folder of the new run: its journal up to the place, the blobs, and the
// files. Nothing is executed. The journal can be resumed, or given another turn.
func Make(ctx context.Context, o Options) (err error) {
	if _, err := os.Lstat(o.Dir); err == nil {
		return fmt.Errorf("fork run %s: %s is there already", o.From.ID, o.Dir)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("fork run %s: %w", o.From.ID, errors.Join(err, fstree.Remove(o.Dir)))
		}
	}()
	if err := journal.ShareBlobs(o.From.Dir, o.Dir); err != nil {
		return err
	}
	j, err := trail.Create(ctx, journal.Options{Dir: o.Dir, Run: o.ID})
	if err != nil {
		return err
	}
	f := &forking{Options: o, journal: j}
	return errors.Join(f.make(ctx), j.Close())
}

type forking struct {
	Options
	journal *journal.Writer
	// fresh says that changes count from the fork on.
	fresh bool
}

func (f *forking) make(ctx context.Context) error {
	inPlace := f.At.Run.Started.Workspace.Strategy == string(v1alpha1.StrategyInPlace)
	f.fresh = inPlace || f.At.Before.Snapshot == "" || f.At.Before.InSource
	files, err := f.files(ctx)
	if err != nil {
		return err
	}
	if inPlace {
		if f.Begin.Plan, err = f.copying(f.Begin.Plan); err != nil {
			return err
		}
	}
	first := event.Event{Data: f.Begin}
	if said := f.At.Run.Messages; len(said) > 0 {
		first.Message, first.Part = said[0].ID, said[0].Parts[0].ID
	}
	if _, err := f.journal.Append(first); err != nil {
		return err
	}
	for _, e := range f.At.Events {
		if e, keep, err := f.copy(e, inPlace); err != nil {
			return err
		} else if keep {
			if _, err := f.journal.Append(e); err != nil {
				return err
			}
		}
	}
	if !f.fresh {
		return f.journal.Sync()
	}
	id, err := files.Record(f.journal)
	if err != nil {
		return err
	}
	_, err = f.journal.Append(event.Event{Data: event.WorkspaceSnapshot{Snapshot: id, Files: files.Files, Bytes: files.Bytes, Steps: true}})
	return errors.Join(err, f.journal.Sync())
}

// copy is an event of the run that is forked as one of the new run. What was allowed for
// always stays behind; that a change is in the source folder is no longer of the new run.
func (f *forking) copy(e event.Event, inPlace bool) (_ event.Event, keep bool, err error) {
	switch d := e.Data.(type) {
	case event.RunStarted:
		return e, false, nil
	case event.WorkspaceApplied:
		return e, false, nil
	case event.ApprovalDecided:
		d.Remember = nil
		e.Data = d
	case event.RunResumed:
		if inPlace && d.Turn != nil {
			turn := *d.Turn
			if turn.Plan, err = f.copying(turn.Plan); err != nil {
				return e, false, err
			}
			d.Turn = &turn
			e.Data = d
		}
	}
	return e, true, nil
}

// copying is a stored plan that works on a copy, in place of the folder itself.
func (f *forking) copying(id string) (string, error) {
	b, err := f.journal.GetBlob(id)
	if err != nil {
		return "", err
	}
	var plan map[string]json.RawMessage
	if err := json.Unmarshal(b, &plan); err != nil {
		return "", fmt.Errorf("read its plan: %w", err)
	}
	if plan["strategy"], err = json.Marshal(v1alpha1.StrategyCopy); err != nil {
		return "", err
	}
	if b, err = json.Marshal(plan); err != nil {
		return "", err
	}
	return f.journal.PutBlob(b)
}

// files makes the files as they were.
func (f *forking) files(ctx context.Context) (*workspace.Snapshot, error) {
	var state *workspace.Snapshot
	var err error
	if f.At.Files.State != "" {
		if state, err = workspace.ReadState(f.journal, f.At.Files.State); err != nil {
			return nil, err
		}
		if f.Without != nil {
			less := state.Without(f.Without)
			f.fresh = f.fresh || less.Files < state.Files
			state = less
		}
	}
	spec := f.Files
	spec.Blobs, spec.From = f.journal, cmp.Or(f.Folder, f.At.Folder())
	if spec.From == "" { // an empty workspace that was removed
		if err := os.MkdirAll(filepath.Join(f.Dir, "empty"), 0o700); err != nil {
			return nil, err
		}
		spec.From = filepath.Join(f.Dir, "empty")
	}
	spec.Source = spec.From
	return workspace.Rebuild(ctx, spec, state, filepath.Join(f.Dir, "fork.json"))
}
