package approval

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"agentctl.dev/agentctl/api/message"
)

const (
	// requestLimit bounds a request, reasonLimit the text in it.
	requestLimit = 64 << 10
	reasonLimit  = 4096
	byLimit      = 256
	// inboxLimit bounds how many requests are read at one look, entryLimit how
	// many names: the rest has to wait until those are gone.
	inboxLimit = 256
	entryLimit = 16 << 10
	// Life is how long an approval may be used: what was true of the world when
	// somebody looked at a call is true for so long.
	Life = 24 * time.Hour
	// skew is how far the clock of another process may be ahead.
	skew = time.Minute
)

// Request is an answer that somebody left for a run from outside its process. It
// is no fact: the run reads it, checks it, and writes down what it made of it.
type Request struct {
	// ID is unique; each request counts once.
	ID string `json:"id"`
	// Run and Call are what is answered, Binding the question as it was shown:
	// any difference makes another question.
	Run     string `json:"run"`
	Call    string `json:"call"`
	Binding string `json:"binding"`
	// State is approved or rejected.
	State message.ApprovalState `json:"state"`
	Scope message.Scope         `json:"scope,omitempty"`
	By    string                `json:"by"`
	// Reason the model is told of a rejection.
	Reason string `json:"reason,omitempty"`
	// Time in milliseconds since 1970.
	Time int64 `json:"time"`
}

// Check says what is wrong with a request, whoever it is for.
func (r *Request) Check() error {
	switch {
	case !requestID().MatchString(r.ID):
		return fmt.Errorf("its id %q is none", r.ID)
	case r.State != message.Approved && r.State != message.Rejected:
		return fmt.Errorf("it says neither approved nor rejected")
	case r.Scope != "" && r.Scope != message.Once && (r.Scope != message.Always || r.State != message.Approved):
		return fmt.Errorf("its scope %q is none", r.Scope)
	case r.By == "" || len(r.By) > byLimit || !utf8.ValidString(r.By):
		return fmt.Errorf("it does not say who answered")
	case len(r.Reason) > reasonLimit:
		return fmt.Errorf("its reason is longer than %d bytes", reasonLimit)
	case !utf8.ValidString(r.Reason):
		return fmt.Errorf("its reason is no UTF-8 text")
	}
	return nil
}

var requestID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-z][0-9a-z_-]{0,63}$`) })

// Inbox is the folder of a run in which answers are left. Only files of the
// run's own user count.
type Inbox struct {
	dir string
	uid int
	now func() time.Time
}

// InboxDir is the folder of the inbox of the run whose folder is given.
func InboxDir(run string) string { return filepath.Join(run, "inbox") }

// NewInbox returns the inbox of the run whose folder is given; now is the clock
// by which requests are too old.
func NewInbox(run string, now func() time.Time) *Inbox {
	return &Inbox{dir: InboxDir(run), uid: os.Geteuid(), now: now}
}

// path of a request: what is left for one call begins alike, and is read in the
// order of the ids, which is that of time.
func (b *Inbox) path(call, id string) string { return filepath.Join(b.dir, prefix(call)+id+".json") }

func prefix(call string) string {
	sum := sha256.Sum256([]byte(call))
	return hex.EncodeToString(sum[:8]) + "-"
}

// Put leaves a request: whole, or not at all.
func (b *Inbox) Put(r Request) error {
	if err := r.Check(); err != nil {
		return fmt.Errorf("leave an answer for call %s: %w", r.Call, err)
	}
	if err := os.Mkdir(b.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("leave an answer for call %s: %w", r.Call, err)
	}
	if err := b.trust(); err != nil {
		return fmt.Errorf("leave an answer for call %s: %w", r.Call, err)
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("leave an answer for call %s: %w", r.Call, err)
	}
	temporary := filepath.Join(b.dir, "."+r.ID)
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("leave an answer for call %s: %w", r.Call, err)
	}
	_, err = f.Write(raw)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(temporary, b.path(r.Call, r.ID))
	}
	if err != nil {
		_ = os.Remove(temporary)
		return fmt.Errorf("leave an answer for call %s: %w", r.Call, err)
	}
	return nil
}

// Replace leaves a request instead of those that were left for its call: while
// nobody has taken an answer, a person may think again. Should it end half-way,
// there is no answer, and the call is asked about.
func (b *Inbox) Replace(r Request) error {
	if b.trust() == nil { // else Put says what is wrong
		names, _ := b.names(prefix(r.Call))
		for _, name := range names {
			if err := os.Remove(filepath.Join(b.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("replace an answer for call %s: %w", r.Call, err)
			}
		}
	}
	return b.Put(r)
}

// Remove takes a request away: what it said is written down, or is said no more.
func (b *Inbox) Remove(call, id string) error {
	if !requestID().MatchString(id) {
		return nil
	}
	if err := os.Remove(b.path(call, id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove an answer for call %s: %w", call, err)
	}
	return nil
}

// Left is the request that was left for a question and that nobody has taken; it
// stays. Nil is none.
func (b *Inbox) Left(call, binding string) *Request {
	if binding == "" || b.trust() != nil {
		return nil
	}
	names, _ := b.names(prefix(call))
	for _, name := range names {
		r, err := b.read(filepath.Join(b.dir, name))
		if err == nil && r.Call == call && r.Binding == binding && r.Check() == nil && b.fresh(r) == nil {
			return r
		}
	}
	return nil
}

// Has says whether a request is still there.
func (b *Inbox) Has(call, id string) bool {
	_, err := os.Lstat(b.path(call, id))
	return err == nil
}

// trust says whether the folder is one that only its owner can have written to.
func (b *Inbox) trust() error {
	info, err := os.Lstat(b.dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is no folder", b.dir)
	}
	return b.owned(info)
}

func (b *Inbox) owned(info fs.FileInfo) error {
	if s, ok := info.Sys().(*syscall.Stat_t); !ok || int64(s.Uid) != int64(b.uid) {
		return errors.New("it belongs to another user")
	}
	if info.Mode().Perm()&0o022 != 0 {
		return errors.New("other users can write to it")
	}
	return nil
}

// take returns the first request about a call that is one. What is none is
// removed, and refused is told why.
func (b *Inbox) take(call string, check func(*Request) error, refused func(name string, why error)) (*Request, bool) {
	if _, err := os.Lstat(b.dir); errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	if err := b.trust(); err != nil {
		refused(filepath.Base(b.dir), err)
		return nil, false
	}
	names, all := b.names(prefix(call))
	if !all {
		refused(filepath.Base(b.dir), fmt.Errorf("it holds more than %d files, and not all are looked at", entryLimit))
	}
	for _, name := range names {
		path := filepath.Join(b.dir, name)
		r, err := b.read(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // withdrawn this very moment
		}
		if err == nil && (r.Call != call || path != b.path(call, r.ID)) {
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
		_ = os.Remove(path)
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

// names lists what was left for a call, files before what is none: that may be
// something that cannot be removed. All is false when the folder holds too much.
func (b *Inbox) names(prefix string) (names []string, all bool) {
	d, err := os.Open(b.dir)
	if err != nil {
		return nil, true
	}
	defer d.Close()
	var others []string
	for seen := 0; ; {
		entries, err := d.ReadDir(inboxLimit)
		for _, e := range entries {
			switch {
			case !strings.HasPrefix(e.Name(), prefix):
			case e.Type().IsRegular():
				names = append(names, e.Name())
			default:
				others = append(others, e.Name())
			}
		}
		if err != nil { // the end, or what cannot be read now and is read the next time
			all = true
			break
		}
		if seen += len(entries); seen >= entryLimit {
			break
		}
	}
	slices.Sort(names)
	slices.Sort(others)
	return slices.Concat(names[:min(len(names), inboxLimit)], others[:min(len(others), inboxLimit)]), all
}

// read reads a request, and nothing that is no plain file of our own. Nothing
// else is opened: to open a device can have an effect.
func (b *Inbox) read(path string) (*Request, error) {
	if info, err := os.Lstat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	}
	if err := b.owned(info); err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(f, requestLimit+1))
	if err != nil {
		return nil, err
	}
	return parseRequest(raw)
}

func parseRequest(raw []byte) (*Request, error) {
	if len(raw) > requestLimit {
		return nil, fmt.Errorf("it is larger than %d bytes", requestLimit)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	r := &Request{}
	if err := d.Decode(r); err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is text behind it")
	}
	return r, nil
}
