package installed

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"agentctl.dev/agentctl/runner/statedir"
)

// Memory are versions in a folder that no program of a run sees: one file for each program.
type Memory struct {
	Dir string
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// entry is what is kept of a program.
type entry struct {
	Program string `json:"program"`
	// Files is the digest of its files.
	Files   string `json:"files"`
	Version string `json:"version"`
}

// mostEntry bounds a file of the memory, in bytes.
const mostEntry = 16 << 10

// Version returns the version that the program has said while its files were these. "" is
// not known: nothing is kept, its files are others, or somebody else may have written it.
func (m Memory) Version(p Program) string {
	if p.digest == "" {
		return ""
	}
	f, err := statedir.OpenFile(m.file(p), os.O_RDONLY)
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // nothing was written
	info, err := f.Stat()
	if err != nil || info.Size() > mostEntry || !own(info) {
		return ""
	}
	text := make([]byte, info.Size())
	n, _ := f.Read(text)
	var e entry
	d := json.NewDecoder(bytes.NewReader(text[:n]))
	d.DisallowUnknownFields()
	if d.Decode(&e) != nil || e.Program != p.path || e.Files != p.digest {
		return ""
	}
	return e.Version
}

// own says whether a file is of this user, and writable to nobody else.
func own(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid() && info.Mode().Perm()&0o022 == 0
}

// settled is how long the files of a program have to have been left alone before its version
// is kept: a change within one tick of the disk's clock would not be seen.
const settled = 2 * time.Second

// Keep keeps the version that a program has said after before was looked up. It keeps
// nothing, and returns an error that says why, if its files have changed since, or only just.
func (m Memory) Keep(ctx context.Context, before Program, packages, version string) error {
	if before.digest == "" {
		return ErrUnknown
	}
	now := time.Now
	if m.Now != nil {
		now = m.Now
	}
	after, err := Look(ctx, before.path, packages)
	if err != nil {
		return err
	}
	if after != before {
		return fmt.Errorf("%s: %w: they have changed", before.path, ErrUnknown)
	}
	if now().Sub(before.changed) < settled {
		return fmt.Errorf("%s: %w: they were changed less than %s ago", before.path, ErrUnknown, settled)
	}
	text, err := json.Marshal(entry{before.path, before.digest, version})
	if err != nil || len(text) > mostEntry {
		return errors.Join(err, ErrUnknown)
	}
	if err := os.MkdirAll(m.Dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(m.Dir, ".new-") // for its owner alone
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), m.file(before))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// file is where a program is kept.
func (m Memory) file(p Program) string {
	sum := sha256.Sum256([]byte(p.path))
	return filepath.Join(m.Dir, hex.EncodeToString(sum[:16])+".json")
}
