// Package lock pins what manifests name but do not hold, and finds what has moved since.
package lock

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/statedir"
)

// Name is the name of a lock in a folder of manifests.
const Name = "agentctl.lock"

// version of the format that this program writes and reads.
const version = "agentctl.dev/lock/v1"

// maxSize bounds a lock.
const maxSize = 8 << 20

// Lock is what was pinned.
type Lock struct {
	Version string  `json:"version"`
	Entries []Entry `json:"entries"`
	// Digest of the entries: a lock is written by a program, and not by hand.
	Digest string `json:"digest"`
}

// Entry is what is pinned of an object.
type Entry struct {
	// Object is kind/name.
	Object string `json:"object"`
	// Tool is the call name of a Tool; "" for other kinds.
	Tool string            `json:"tool,omitempty"`
	Pins map[string]string `json:"pins"`
}

// New returns a lock of entries, which it sorts.
func New(entries []Entry) *Lock {
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Object, b.Object) })
	return &Lock{Version: version, Entries: entries, Digest: digest(entries)}
}

func digest(entries []Entry) string {
	text, err := json.Marshal(entries)
	if err != nil {
		return "" // cannot happen: they are texts
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Beside returns the lock that belongs to a path of manifests: in the folder, or in that
// of the file.
func Beside(path string) string {
	if path == "-" {
		return Name
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return filepath.Join(path, Name)
	}
	return filepath.Join(filepath.Dir(path), Name)
}

// Read reads a lock. A lock that is not as it was written is refused with a
// *reason.UsageError.
func Read(file string) (*Lock, error) {
	text, err := statedir.ReadFile(file, maxSize)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, reason.Usagef("lock %s: there is none", file).WithHint(again)
	}
	if err != nil {
		return nil, reason.Usagef("lock: %w", err).WithHint(again)
	}
	l, err := parse(text)
	if err != nil {
		return nil, reason.Usagef("lock %s: %w", file, err).WithHint(again)
	}
	return l, nil
}

// again is what to do about a lock that cannot be used.
const again = "agentctl lock -f DIR pins what the manifests name today; compare it with the lock in your repository before you commit it"

func parse(text []byte) (*Lock, error) {
	var head struct {
		Version string `json:"version"`
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, errors.New("it is empty")
	}
	if err := yaml.Unmarshal(text, &head); err != nil || head.Version == "" {
		return nil, errors.New("it is not a lock, or was damaged")
	}
	if head.Version != version {
		return nil, fmt.Errorf("its version is %q, and this program reads %s", cut(head.Version), version)
	}
	l := &Lock{}
	if err := yaml.UnmarshalStrict(text, l); err != nil {
		return nil, errors.New("it was damaged: it is not as agentctl lock writes it")
	}
	if l.Digest != digest(l.Entries) {
		return nil, errors.New("it was changed or cut off: its digest is not that of its entries")
	}
	return l, nil
}

func cut(text string) string {
	const most = 60
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

// Write writes the lock; a file that is there is replaced as a whole.
func (l *Lock) Write(file string) error {
	text, err := yaml.Marshal(l)
	if err != nil {
		return fmt.Errorf("write the lock: %w", err)
	}
	const head = "# Written by agentctl lock. Do not edit: agentctl run --locked refuses a changed lock.\n"
	f, err := os.CreateTemp(filepath.Dir(file), ".agentctl-lock-*")
	if err != nil {
		return reason.Usagef("write the lock: %w", err)
	}
	_, err = f.Write(append([]byte(head), text...))
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write the lock: %w", err), os.Remove(f.Name()))
	}
	return nil
}

// Functions are the pinned descriptions of the functions of tools, by call name.
func (l *Lock) Functions() map[string]string {
	pins := map[string]string{}
	for _, e := range l.Entries {
		if p := e.Pins[functions]; p != "" && e.Tool != "" {
			pins[e.Tool] = p
		}
	}
	return pins
}
