package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agentctl.dev/agentctl/runner/fstree"
)

// deleted begins the name of a folder that is being removed. No run has such a name.
const deleted = ".deleted-"

// Delete removes the folder of a run with everything in it. It holds the lock of the
// journal meanwhile, so no process resumes the run; where one writes it, the error is
// a *HeldError. A removal that was interrupted is completed by the next one. Before, if it is
// not nil, is called with the folder under the lock; its error keeps the run.
func Delete(ctx context.Context, stateDir, run string, before func(dir string) error) error {
	if !validRun(run) {
		return &NotFoundError{Ref: run, Problem: "no run can have this name"}
	}
	dir := Dir(stateDir, run)
	l, err := acquireLock(ctx, dir, run, 0)
	if err != nil {
		return err
	}
	defer l.flock.Unlock() //nolint:errcheck // the file is gone
	if before != nil {
		if err := before(dir); err != nil {
			return fmt.Errorf("delete run %s: %w", run, err)
		}
	}
	// The name goes at once: a folder that is half removed is not a run.
	away := filepath.Join(filepath.Dir(dir), deleted+run)
	if err := fstree.Remove(away); err != nil {
		return fmt.Errorf("delete run %s: %w", run, err)
	}
	if err := os.Rename(dir, away); err != nil {
		return fmt.Errorf("delete run %s: %w", run, err)
	}
	if err := fstree.Remove(away); err != nil {
		return fmt.Errorf("delete run %s: %w", run, err)
	}
	return nil
}

// SweepDeleted removes what interrupted removals have left in a state folder.
func SweepDeleted(stateDir string) error {
	entries, err := os.ReadDir(filepath.Join(stateDir, "runs"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list runs: %w", err)
	}
	var failed []error
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), deleted) {
			failed = append(failed, fstree.Remove(filepath.Join(stateDir, "runs", e.Name())))
		}
	}
	return errors.Join(failed...)
}

// Size is how many bytes the folder of a run takes on the disk, as far as it can be
// read.
func Size(ctx context.Context, dir string) int64 {
	u, err := fstree.Measure(ctx, dir, 0)
	if err != nil {
		return u.Bytes // what cannot be read is not counted
	}
	return u.Bytes
}
