// Package statedir finds the folder that holds everything agentctl keeps: runs, keys, caches.
package statedir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"agentctl.dev/agentctl/api/reason"
)

// Find returns the absolute path of the state folder: the flag, else
// AGENTCTL_STATE, else agentctl below the user's state folder (XDG_STATE_HOME,
// ~/.local/state). One that exists must belong to this user and be writable by
// nobody else.
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
				return "", reason.Usagef("find the state folder: %w", err).WithHint("set HOME, AGENTCTL_STATE or --state")
			}
			base = filepath.Join(home, ".local", "state")
		}
		dir = filepath.Join(base, "agentctl")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("state folder %s: %w", dir, err)
	}
	dir = Resolve(abs)
	for _, kept := range []string{dir, filepath.Join(dir, "runs")} {
		if err := private(kept); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// private refuses a folder that another user owns or can write to. They could put
// a run there whose changes somebody else applies, or move one away.
func private(dir string) error {
	info, err := os.Stat(dir)
	if errors.Is(err, syscall.ENOTDIR) || err == nil && !info.IsDir() {
		return reason.Usagef("state folder %s: it, or what it is in, is not a folder", dir).
			WithHint("name another by --state or AGENTCTL_STATE, or move that file away")
	}
	if err != nil {
		return nil //nolint:nilerr // it is made, or the error is that of its use
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	user, mode := os.Geteuid(), info.Mode().Perm()
	if int(st.Uid) != user {
		return reason.Usagef("state folder %s belongs to user %d, and this is user %d", dir, st.Uid, user).
			WithHint(fmt.Sprintf("name a folder of your own with --state or AGENTCTL_STATE; if all in it is yours: chown -R %d %s", user, quote(dir)))
	}
	// A group with one member, as most systems make for each user, is nobody else.
	own := int(st.Gid) == user && os.Getegid() == user
	if mode&0o002 != 0 || mode&0o020 != 0 && !own {
		return reason.Usagef("state folder %s can be written to by other users (mode %04o)", dir, mode).
			WithHint(fmt.Sprintf("chmod go-w %s, after a look at who owns what is in it (ls -l); or name another folder with --state", quote(dir)))
	}
	return nil
}

// quote writes a path for a shell.
func quote(path string) string {
	if strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+@:") == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
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
