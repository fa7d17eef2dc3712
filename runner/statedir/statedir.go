// Package statedir finds the folder that holds everything agentctl keeps: runs, keys, caches.
package statedir

import (
	"fmt"
	"os"
	"path/filepath"

	"agentctl.dev/agentctl/runner/misuse"
)

// Find returns the absolute path of the state folder: the flag, else
// AGENTCTL_STATE, else agentctl below the user's state folder (XDG_STATE_HOME,
// ~/.local/state).
func Find(flag string) (string, error) {
	dir := flag
	if dir == "" {
		dir = os.Getenv("AGENTCTL_STATE")
	}
	if dir == "" {
		base := os.Getenv("XDG_STATE_HOME")
		if !filepath.IsAbs(base) {
			home, err := os.UserHomeDir()
			if err != nil {
				return "", misuse.Errorf("find the state folder: %w", err).WithHint("set HOME, AGENTCTL_STATE or --state")
			}
			base = filepath.Join(home, ".local", "state")
		}
		dir = filepath.Join(base, "agentctl")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("state folder %s: %w", dir, err)
	}
	return Resolve(abs), nil
}

// Resolve follows the links on a path as far as it exists: the state folder is
// kept out of copies and from tools by its path, which must be the one that the
// files of the run have.
func Resolve(path string) string {
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
