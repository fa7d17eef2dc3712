package runner

import (
	"fmt"
	"os"
	"path/filepath"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/journal"
)

// StateDir returns the absolute path of the folder that holds runs: the flag,
// else AGENTCTL_STATE, else agentctl below the user's state folder
// (XDG_STATE_HOME, ~/.local/state).
func StateDir(flag string) (string, error) {
	dir := flag
	if dir == "" {
		dir = os.Getenv("AGENTCTL_STATE")
	}
	if dir == "" {
		base := os.Getenv("XDG_STATE_HOME")
		if !filepath.IsAbs(base) {
			home, err := os.UserHomeDir()
			if err != nil {
				return "", usage("find the state folder: %w", err).hint("set HOME, AGENTCTL_STATE or --state")
			}
			base = filepath.Join(home, ".local", "state")
		}
		dir = filepath.Join(base, "agentctl")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("state folder %s: %w", dir, err)
	}
	return resolved(abs), nil
}

// resolved follows the links on a path as far as it exists: the state folder is
// kept out of copies and from tools by its path, which must be the one that the
// files of the run have.
func resolved(path string) string {
	for dir, rest := path, ""; ; {
		if to, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(to, rest)
		}
		up := filepath.Dir(dir)
		if up == dir {
			return path
		}
		dir, rest = up, filepath.Join(filepath.Base(dir), rest)
	}
}

// Runs returns the ids of the runs of a state folder, the newest first.
func Runs(state string) ([]string, error) {
	found, err := journal.List(state)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(found))
	for i, f := range found {
		ids[i] = f.ID
	}
	return ids, nil
}

// Ended says whether a run has come to its end, so that a resume would only tell
// its result again. Only the end of its journal is read.
func Ended(state, id string) bool {
	e, err := journal.Last(journal.Dir(state, id))
	if err != nil {
		return false
	}
	f, ok := e.Data.(event.RunFinished)
	return ok && f.Phase != view.Suspended
}
