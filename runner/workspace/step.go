package workspace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Limits of the contents that are kept for the states of a run. A file beyond them is
// known by its hash only: it can be compared, and not brought back.
const (
	// MaxKept bounds a file whose content is kept.
	MaxKept = 2 << 20
	// maxStepFiles and maxStepBytes bound those of one step, maxRunBytes those of a run.
	maxStepFiles = 2_000
	maxStepBytes = 64 << 20
	maxRunBytes  = 256 << 20
	// maxSteps bounds the states that follow one another.
	maxSteps = 100_000
)

// tickOf is the least step of the clock by which a file system counts changes, and more.
const tickOf = 50 * time.Millisecond

// step is the state of the files after a step: what differs from a state before.
type step struct {
	// Since is the blob of the state before: a Snapshot, or another step.
	Since string `json:"since"`
	// Entries are new or changed, Removed are gone.
	Entries []Entry `json:"entries,omitempty"`
	Removed []Path  `json:"removed,omitempty"`
	// Foreign are those of Entries that were changed while no call of the run was made.
	Foreign []Path `json:"foreign,omitempty"`
	// Hidden are the folders that could not be listed.
	Hidden []Path `json:"hidden,omitempty"`
}

// stepPrefix begins the JSON of a step, and of no snapshot.
const stepPrefix = `{"since":`

// Recorded is a state of the files that was recorded.
type Recorded struct {
	// ID is its blob, Files and Bytes are totals.
	ID    string
	Files int
	Bytes int64
	// Changed counts the paths that differ from the state before, Unkept those of them
	// whose contents are not kept.
	Changed, Unkept int
	// Kept are the bytes of contents that were stored for it.
	Kept int64
}

// Step records the state of the files after a step whose first call began at a time, as
// what differs from the newest recorded state, of which since is the blob. If nothing does,
// it is that state. Unchanged files cost a look; the contents of changed ones are kept,
// those from before as well.
func (w *Workspace) Step(ctx context.Context, since string, began time.Time) (*Recorded, error) {
	if err := w.Ready(ctx); err != nil {
		return nil, err
	}
	if w.spec.Blobs == nil {
		return nil, errors.New("no place for the contents")
	}
	now, err := w.look(ctx)
	if err != nil {
		return nil, fmt.Errorf("look at workspace %s: %w", w.dir, err)
	}
	before := w.recorded
	if before == nil {
		before = w.base
	}
	s := step{Since: since, Hidden: now.Hidden}
	k := keeper{w: w, files: maxStepFiles, bytes: min(maxStepBytes, maxRunBytes-w.kept)}
	defer k.close()
	border := unix.NsecToTimespec(began.Add(-tickOf).UnixNano())
	for old, neu := range differing(before.Entries, now.Entries) {
		switch {
		case neu == nil:
			if now.hides(old.Path) {
				continue // what is there is not known
			}
			s.Removed = append(s.Removed, old.Path)
		default:
			e := *neu
			if e.Type == TypeFile && older(e.sig.ctime, border) {
				s.Foreign = append(s.Foreign, e.Path)
			}
			if err := k.after(&e); err != nil {
				return nil, err
			}
			s.Entries = append(s.Entries, e)
		}
		if old != nil {
			if err := k.before(old); err != nil {
				return nil, err
			}
		}
	}
	w.kept += k.kept
	changed := len(s.Entries) + len(s.Removed)
	if changed == 0 {
		return &Recorded{ID: since, Files: now.Files, Bytes: now.Bytes}, nil
	}
	b, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("record the files after a step: %w", err)
	}
	id, err := putLarge(w.spec.Blobs, b)
	if err != nil {
		return nil, fmt.Errorf("record the files after a step: %w", err)
	}
	w.recorded = now
	return &Recorded{ID: id, Files: now.Files, Bytes: now.Bytes, Changed: changed, Unkept: k.unkept, Kept: k.kept}, nil
}

func older(a, b unix.Timespec) bool { return a.Sec < b.Sec || a.Sec == b.Sec && a.Nsec < b.Nsec }

// differing yields what differs between two lists in order of their paths: the entry before,
// and the entry now; nil where there is none.
func differing(before, now []Entry) func(func(old, neu *Entry) bool) {
	return func(yield func(old, neu *Entry) bool) {
		for len(before) > 0 || len(now) > 0 {
			var old, neu *Entry
			c := 0
			switch {
			case len(before) == 0:
				c = 1
			case len(now) == 0:
				c = -1
			default:
				c = strings.Compare(string(before[0].Path), string(now[0].Path))
			}
			if c <= 0 {
				old, before = &before[0], before[1:]
			}
			if c >= 0 {
				neu, now = &now[0], now[1:]
			}
			if c == 0 && old.equal(neu) {
				continue
			}
			if !yield(old, neu) {
				return
			}
		}
	}
}

// equal reports whether two entries of a path are the same in a snapshot.
func (e *Entry) equal(o *Entry) bool {
	return e.Type == o.Type && e.Mode == o.Mode && e.Size == o.Size && e.Hash == o.Hash && e.Target == o.Target
}

// keeper keeps the contents of changed files.
type keeper struct {
	w      *Workspace
	root   *root
	files  int
	bytes  int64
	kept   int64
	unkept int

	old     func(Path, *Version) ([]byte, bool)
	release func()
}

func (k *keeper) close() {
	if k.root != nil {
		k.root.close()
	}
	if k.release != nil {
		k.release()
	}
}

// takes reports whether there is room for a file.
func (k *keeper) takes(size int64) bool { return size <= MaxKept && k.files > 0 && size <= k.bytes }

func (k *keeper) put(b []byte) error {
	if _, err := k.w.spec.Blobs.PutBlob(b); err != nil {
		return fmt.Errorf("keep the files after a step: %w", err)
	}
	k.files, k.bytes, k.kept = k.files-1, k.bytes-int64(len(b)), k.kept+int64(len(b))
	return nil
}

// after keeps the content of a new or changed file. The entry is of what was kept.
func (k *keeper) after(e *Entry) error {
	if e.Type != TypeFile {
		return nil
	}
	if !k.takes(e.Size) {
		k.unkept++
		return nil
	}
	if k.root == nil {
		var err error
		if k.root, err = openRoot(k.w.dir); err != nil {
			return err
		}
	}
	b, err := k.root.read(e.Path, MaxKept)
	if err != nil || hashOf(b) != e.Hash { // somebody changes it at this moment
		k.unkept++
		return nil //nolint:nilerr // the entry says what it was: its content is not kept
	}
	return k.put(b)
}

// before keeps the content that a file had, where it is still to be had.
func (k *keeper) before(e *Entry) error {
	if e.Type != TypeFile || e.Hash == "" || !k.takes(e.Size) {
		return nil
	}
	if _, err := k.w.spec.Blobs.GetBlob(e.Hash); err == nil {
		return nil // that of an earlier step
	}
	if k.old == nil {
		k.old, k.release = k.w.oldContents(MaxKept)
	}
	b, ok := k.old(e.Path, e.version())
	if !ok {
		return nil
	}
	return k.put(b)
}

// Continue has the next Step compare the files with a state that an earlier process has
// recorded.
func (w *Workspace) Continue(newest *Snapshot) { w.recorded = newest }

// ReadState reads a recorded state: that before a run, or after one of its steps.
func ReadState(blobs Blobs, id string) (*Snapshot, error) {
	base, steps, err := readSteps(blobs, id, "")
	if err != nil {
		return nil, err
	}
	s, err := ReadSnapshot(blobs, base)
	if err != nil || len(steps) == 0 {
		return s, err
	}
	entries := s.index()
	for _, next := range slices.Backward(steps) {
		for i := range next.Entries {
			entries[next.Entries[i].Path] = &next.Entries[i]
		}
		for _, p := range next.Removed {
			delete(entries, p)
		}
	}
	list := make([]Entry, 0, len(entries))
	for _, e := range entries {
		list = append(list, *e)
	}
	now := newSnapshot(list, unix.Timespec{})
	now.Hidden = steps[0].Hidden
	return now, nil
}

// Foreign are the files that were changed while no call of the run was made, after one
// recorded state and until another.
func Foreign(blobs Blobs, from, to string) (map[Path]bool, error) {
	_, steps, err := readSteps(blobs, to, from)
	if err != nil {
		return nil, err
	}
	all := map[Path]bool{}
	for _, s := range steps {
		for _, p := range s.Foreign {
			all[p] = true
		}
	}
	return all, nil
}

// readSteps reads the steps that lead to a state, the last one first, until a state that
// ends them or the snapshot with which they begin.
func readSteps(blobs Blobs, id, until string) (base string, steps []step, err error) {
	for id != until {
		b, err := getLarge(blobs, id)
		if err != nil {
			return "", nil, fmt.Errorf("read the state of the files: %w", err)
		}
		if !bytes.HasPrefix(b, []byte(stepPrefix)) {
			break
		}
		var s step
		if err := json.Unmarshal(b, &s); err != nil {
			return "", nil, fmt.Errorf("read the state of the files %s: %w", id, err)
		}
		for _, e := range s.Entries {
			if !isLocal(e.Path) || e.Type != TypeFile && e.Type != TypeDir && e.Type != TypeLink {
				return "", nil, fmt.Errorf("read the state of the files %s: %q is no path of type %q in a workspace", id, string(e.Path), e.Type)
			}
		}
		if len(steps) == maxSteps {
			return "", nil, fmt.Errorf("read the state of the files: more than %d states follow one another", maxSteps)
		}
		steps, id = append(steps, s), s.Since
	}
	return id, steps, nil
}
