package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"agentctl.dev/agentctl/runner/inbox"
)

const (
	// requestLimit bounds a request, reasonLimit the text in it.
	requestLimit = 64 << 10
	reasonLimit  = 4096
	byLimit      = 256
	// Life is how long an approval may be used: the circumstances in which a person looked
	// at a call may have changed after that.
	Life = 24 * time.Hour
	// skew is how far the clock of another process may be ahead.
	skew = time.Minute
)

// Inbox is the folder of a run in which answers are left. Only files of the
// run's own user count.
type Inbox struct {
	folder inbox.Folder
	now    func() time.Time
}

// InboxDir is the folder of the inbox of the run whose folder is given.
func InboxDir(run string) string { return filepath.Join(run, "inbox") }

// NewInbox returns the inbox of the run whose folder is given; now is the clock
// by which requests are too old.
func NewInbox(run string, now func() time.Time) *Inbox {
	return &Inbox{folder: inbox.NewFolder(InboxDir(run)), now: now}
}

// file of a request: what is left for one call begins alike, and is read in the
// order of the ids, which is that of time.
func file(call, id string) string { return prefix(call) + id + ".json" }

func prefix(call string) string {
	sum := sha256.Sum256([]byte(call))
	return hex.EncodeToString(sum[:8]) + "-"
}

// Put leaves a request: whole, or not at all.
func (b *Inbox) Put(r Request) error {
	if err := r.Check(); err != nil {
		return fmt.Errorf("leave an answer for call %s: %w", r.Call, err)
	}
	if err := b.put(r); err != nil {
		return fmt.Errorf("leave an answer for call %s: %w", r.Call, err)
	}
	return nil
}

func (b *Inbox) put(r Request) error {
	if err := os.Mkdir(b.folder.Dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return b.folder.Put(file(r.Call, r.ID), raw)
}

// Replace stores a request instead of those stored for its call: until a run has taken an
// answer, a person may change it. If it is interrupted half-way, there is no answer, and
// the call is asked about.
func (b *Inbox) Replace(r Request) error {
	names, _, _ := b.folder.Names(prefix(r.Call)) // Put reports problems of the folder
	for _, name := range names {
		if err := b.folder.Remove(name); err != nil {
			return fmt.Errorf("replace an answer for call %s: %w", r.Call, err)
		}
	}
	return b.Put(r)
}

// Remove takes a request away: what it said is written down, or is said no more.
func (b *Inbox) Remove(call, id string) error {
	if !inbox.ValidID(id) {
		return nil
	}
	if err := b.folder.Remove(file(call, id)); err != nil {
		return fmt.Errorf("remove an answer for call %s: %w", call, err)
	}
	return nil
}

// Left is the stored request for a question that no run has taken; it stays. Nil if there
// is none.
func (b *Inbox) Left(call, binding string) *Request {
	if binding == "" {
		return nil
	}
	names, _, _ := b.folder.Names(prefix(call)) // what cannot be trusted holds none
	for _, name := range names {
		r, err := b.read(name)
		if err == nil && r.Call == call && r.Binding == binding && r.Check() == nil && b.fresh(r) == nil {
			return r
		}
	}
	return nil
}

// Has reports whether a request is still there.
func (b *Inbox) Has(call, id string) bool {
	_, err := os.Lstat(filepath.Join(b.folder.Dir, file(call, id)))
	return err == nil
}

// take returns the first valid request about a call. Invalid ones are removed, and refused
// is called with the reason.
func (b *Inbox) take(call string, check func(*Request) error, refused func(name string, why error)) (*Request, bool) {
	names, all, err := b.folder.Names(prefix(call))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	if err != nil {
		refused(filepath.Base(b.folder.Dir), err)
		return nil, false
	}
	if !all {
		refused(filepath.Base(b.folder.Dir), fmt.Errorf("it holds more than %d files, and not all are looked at", inbox.Looked))
	}
	for _, name := range names {
		r, err := b.read(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // withdrawn this very moment
		}
		if err == nil && (r.Call != call || name != file(call, r.ID)) {
			err = errors.New("its name is not that of the call and the request in it")
		}
		if err == nil {
			err = r.Check()
		}
		if err == nil {
			err = b.fresh(r)
		}
		if err == nil {
			err = check(r)
		}
		if err == nil {
			return r, true
		}
		_ = b.folder.Remove(name)
		refused(name, err)
	}
	return nil, false
}

func (b *Inbox) fresh(r *Request) error {
	switch age := b.now().Sub(time.UnixMilli(r.Time)); {
	case age > Life:
		return fmt.Errorf("it is older than %s", Life)
	case age < -skew:
		return errors.New("it was made in the future")
	}
	return nil
}

// read reads a request.
func (b *Inbox) read(name string) (*Request, error) {
	raw, err := b.folder.Read(name, requestLimit)
	if err != nil {
		return nil, err
	}
	return parseRequest(raw)
}
