package trail

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"agentctl.dev/agentctl/api/audit"
	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/statedir"
)

// Trail writes the log of a run next to its journal: it is a journal.Projection. Its methods
// are called one at a time.
type Trail struct {
	dir   string
	write func(*os.File, []byte) (int, error)
	sync  func(*os.File) error

	projection *Projection
	file       *os.File
	buf        []byte
	// err is why the log is not complete.
	err error
}

// Begin returns what the first event says of the log of a new run.
func Begin() *event.AuditLog {
	var key [keySize]byte
	_, _ = rand.Read(key[:]) // never fails
	return &event.AuditLog{Version: audit.Version, Key: hex.EncodeToString(key[:])}
}

// Create starts the journal of a new run with its log, as journal.Create does.
func Create(ctx context.Context, o journal.Options) (*journal.Writer, error) {
	o.Projection = New(o.Dir, o.Write, o.Sync)
	return journal.Create(ctx, o)
}

// Open continues the journal of a run with its log, as journal.Open does. What is missing of
// the log is added first.
func Open(ctx context.Context, o journal.Options) (*journal.Writer, Repair, error) {
	t := New(o.Dir, o.Write, o.Sync)
	o.Projection = t
	w, err := journal.Open(ctx, o)
	if err != nil {
		return nil, Repair{}, err
	}
	r, err := t.CatchUp(ctx)
	if err != nil {
		t.err = fmt.Errorf("run %q: %w", o.Run, err)
		_ = w.Close() // which fails for the same reason
		return nil, r, t.err
	}
	return w, r, nil
}

// Complete adds to the log of a run what a crash has kept from it. The caller holds the lock
// of its journal.
func Complete(ctx context.Context, dir string) (Repair, error) {
	t := New(dir, nil, nil)
	r, err := t.CatchUp(ctx)
	return r, errors.Join(err, t.Settle())
}

// New returns the log of the run in dir. Write and sync are how bytes reach the file and the
// disk; nil is the system's own way. The log of a journal that is there already is taken up
// with CatchUp.
func New(dir string, write func(*os.File, []byte) (int, error), sync func(*os.File) error) *Trail {
	t := &Trail{dir: dir, write: write, sync: sync}
	if t.write == nil {
		t.write = (*os.File).Write
	}
	if t.sync == nil {
		t.sync = (*os.File).Sync
	}
	t.projection = NewProjection(t.take)
	return t
}

func (t *Trail) take(r audit.Record) (err error) {
	t.buf, err = audit.Append(t.buf, r)
	return err
}

// Line implements journal.Projection. What it writes survives a kill of the process.
func (t *Trail) Line(text []byte) error {
	if err := t.projection.Line(text); err != nil {
		return err
	}
	return t.flush()
}

// flush writes the records that were made.
func (t *Trail) flush() error {
	b := t.buf
	if t.buf = t.buf[:0]; len(b) == 0 || !t.projection.Kept() {
		return nil
	}
	if t.file == nil {
		// There was no event before: what is there is of a process that has died before the
		// first one was durable.
		if err := t.open(os.O_WRONLY | os.O_CREATE | os.O_TRUNC | os.O_APPEND); err != nil {
			return err
		}
	}
	n, err := t.write(t.file, b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		t.err = fmt.Errorf("write the audit log: %w", err)
	}
	return t.err
}

func (t *Trail) open(flag int) (err error) {
	if t.file, err = statedir.OpenFile(t.path(), flag); err != nil {
		return fmt.Errorf("write the audit log: %w", err)
	}
	return nil
}

func (t *Trail) path() string { return filepath.Join(t.dir, audit.FileName) }

// Settle implements journal.Projection. Nothing is taken after it.
func (t *Trail) Settle() error {
	if t.file == nil || t.err != nil {
		if t.file != nil {
			_ = t.file.Close()
			t.file = nil
		}
		return t.err
	}
	err := t.sync(t.file)
	if err = errors.Join(err, t.file.Close()); err != nil {
		return fmt.Errorf("write the audit log: %w", err)
	}
	t.file = nil
	return nil
}

// Repair is what CatchUp had to do.
type Repair struct {
	// Added records were missing.
	Added int64
	// Cut are bytes that the projection does not have: records of events that a crash of the
	// machine has taken from the journal, or what was appended.
	Cut int64
	// Kept is the name of the file that the log was moved to, because it was not the
	// projection of the journal; "" if it was.
	Kept string
}

// Warning is what a person should know of a repair; "" where only records were added.
func (r Repair) Warning() string {
	switch {
	case r.Kept != "":
		return "the audit log was not what the journal says; it was moved to " + r.Kept + " and made again"
	case r.Cut > 0:
		return fmt.Sprintf("%d bytes were cut off the audit log: the journal does not have what they say", r.Cut)
	}
	return ""
}

// CatchUp brings the log to where the journal is: what a crash has kept from it is added. A
// log that was changed is moved aside and made again. The caller holds the lock of the
// journal.
func (t *Trail) CatchUp(ctx context.Context) (r Repair, err error) {
	log, err := OpenLog(t.dir)
	if err != nil {
		return r, err
	}
	err = t.follow(ctx, log)
	size := log.Size
	if _, changed := errors.AsType[*DifferenceError](err); changed {
		_ = log.Close() // it is read again as a new one
		if r.Kept, err = t.aside(); err == nil {
			log, size = &Log{Absent: true}, 0
			err = t.follow(ctx, log)
		}
	}
	if err = errors.Join(err, log.Close()); err != nil || !t.projection.Kept() {
		return r, err
	}
	r.Added, r.Cut = log.Missing, log.Extra
	if err := t.open(os.O_RDWR | os.O_CREATE | os.O_APPEND); err != nil {
		return r, err
	}
	if r.Cut > 0 || log.Torn > 0 {
		if err := t.file.Truncate(size); err != nil {
			return r, fmt.Errorf("write the audit log: %w", err)
		}
	}
	return r, t.flush()
}

// follow reads the journal, compares the log with it, and leaves the missing records in the
// buffer.
func (t *Trail) follow(ctx context.Context, log *Log) error {
	t.buf = t.buf[:0]
	var one []byte
	t.projection = NewProjection(func(r audit.Record) (err error) {
		if one, err = audit.Append(one[:0], r); err != nil {
			return err
		}
		if err := log.Match(one); err != nil {
			return err
		}
		if log.Missing > 0 {
			t.buf = append(t.buf, one...)
		}
		return nil
	})
	in := journal.Follow(t.dir)
	defer in.Close() //nolint:errcheck // nothing was written
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		text, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := t.projection.Line(text); err != nil {
			return err
		}
	}
	t.projection.emit = t.take
	return log.End()
}

// Aside matches the names of logs that were changed, and made again.
const Aside = "audit.changed-*.jsonl"

// maxAside is how many changed logs are kept.
const maxAside = 100

// aside moves the log to where nothing else is.
func (t *Trail) aside() (string, error) {
	for n := 1; n <= maxAside; n++ {
		name := strings.Replace(Aside, "*", strconv.Itoa(n), 1)
		to := filepath.Join(t.dir, name)
		if _, err := os.Lstat(to); err == nil {
			continue
		}
		if err := os.Rename(t.path(), to); err != nil {
			return "", fmt.Errorf("move the changed audit log aside: %w", err)
		}
		return name, nil
	}
	return "", fmt.Errorf("the audit log was changed, and %d such logs are kept already: move them away", maxAside)
}
