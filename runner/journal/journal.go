// Package journal is the memory of a run: an append-only, hash-chained file of events and a store of blobs.
//
// Each line of events-DAY.jsonl holds the hash of the line before. head.json holds the number and the hash of the
// last event that was durable when it was written, and whether the journal was closed. The order of writes is:
//
//  1. Append writes a line. A kill of the process loses nothing of it, a crash of the machine may.
//  2. Sync makes blobs, folders and lines durable, and then replaces head.json, which is not made durable itself.
//  3. Close does the same, and makes head.json durable, too.
//
// head.json is replaced by another file when a journal is closed, and by one line in place, of two in turn, while it is
// written; a crash in the middle leaves the other line.
//
// So head.json is never newer than what is durable of the events. Every reader compares the two (T is the number of
// the last complete event, H that of the head):
//
//	end of the events       head.json             what it means              readers           Open
//	complete or torn at T   not there, or empty   no Sync yet, or the        all events        a Writer
//	                                              machine crashed after one
//	complete or torn, T>H   any                   a process writes, or was   all events        a Writer; a torn
//	                                              killed after a Sync                          line is cut off
//	complete or torn, T=H   open                  the same, just after one   all events        as above
//	complete, T=H           closed                closed in order            all events        a Writer
//	torn, T=H               closed                killed while it was taken  all events        as above
//	                                              up again
//	T<H                     any                   cut at its end             the events, then  an error, unless
//	                                                                         DamagedAtEnd      Options.AcceptEnd
//	T=H, another hash       any                   the last line was changed  the same          the same
//	any                     not a head            nothing vouches for it     the same          the same
//	a line in the middle    any                   damaged                    an error there    an error
//	breaks the chain, or
//	event H has not its hash
//
// A torn line is one without its end or one that is not an event, at the end of the last file.
package journal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/event"
)

// MaxLine bounds one event as it is in the file. Larger values are stored as blobs.
const MaxLine = 16 << 20

// ErrClosed is what a closed Writer answers.
var ErrClosed = errors.New("journal is closed")

// Options say where a journal lies and whose it is.
type Options struct {
	// Dir is the run's folder, <state>/runs/<run>. Required.
	Dir string
	// Run is the id written into every event. Required.
	Run string
	// Clock is the time of events that have none. Default time.Now.
	Clock func() time.Time
	// Redact takes secrets out of an encoded payload before it is hashed and
	// written. It may return its argument. What it returns must still be JSON:
	// an event whose payload it breaks is refused, never written. Optional.
	// Blobs are not redacted: a file's content must come back as it was.
	Redact func(payload []byte) []byte

	// Projection is kept next to the journal. Optional.
	Projection Projection

	// AcceptEnd has Open continue a journal whose end does not fit its head: it was
	// cut, or its last line was changed. Writer.Damage reports it.
	AcceptEnd bool

	// Write and Sync are how bytes reach a file and the disk: events, blobs and
	// the head; Sync also makes folders durable. Tests let a process die, a line
	// tear or a disk fill up here. Defaults (*os.File).Write and (*os.File).Sync.
	Write func(f *os.File, b []byte) (int, error)
	Sync  func(f *os.File) error
}

// Projection is another form of the journal, which is written with it: the audit log.
type Projection interface {
	// Line takes each line after it was written, without its newline; it is valid until Line
	// returns. An error poisons the Writer: a run does not continue without its projection.
	Line(text []byte) error
	// Settle makes what was taken durable, before the journal is closed: next to a journal
	// that is closed the projection is complete.
	Settle() error
}

// ErrEmpty is a run of which no event was kept: it was stopped before it began,
// and nothing of it can have happened.
var ErrEmpty = errors.New("its journal holds no events: it was stopped before it began")

// Writer appends events to a journal. There is one per run at a time, the
// holder of the lock. It is safe for concurrent use.
//
// Every event is written to the system as soon as it is appended: a follower
// sees it, and a kill of this process loses nothing. Only Sync makes events
// survive a crash of the machine. The first failed write or sync poisons the
// writer, so that a half-written line is never followed by another.
type Writer struct {
	opts Options
	lock *lock

	mu   sync.Mutex
	file *os.File
	day  string
	line []byte
	text bytes.Buffer
	seq  int64
	head string
	err  error

	commit  commit
	blobs   map[string]bool
	closing sync.Once
	closed  error

	// vouched is the last event that head.json names by this writer.
	vouched int64
	running runningHead
	damage  *CorruptError
	// wasClosed: nothing was appended since the journal was opened, which was closed before.
	wasClosed bool
}

// Create starts the journal of a new run. The folder may exist, but not hold events.
func Create(ctx context.Context, opts Options) (*Writer, error) {
	w, state, err := acquire(ctx, opts, 0)
	if err != nil {
		return nil, err
	}
	if len(state.Files) > 0 {
		return nil, errors.Join(fmt.Errorf("run %q: a journal exists already in %s", opts.Run, opts.Dir), w.lock.release())
	}
	return w, nil
}

// Open continues the journal of a run, after a crash or for a resume.
//
//	the journal                       Open returns
//	complete, closed or not           a Writer
//	its last line is torn             a Writer; the line is cut off
//	without a complete event          ErrEmpty
//	cut at its end, or the last       *CorruptError; a Writer with AcceptEnd
//	line changed (see head.json)
//	damaged anywhere else             *CorruptError
//	written by another process        *HeldError
//
// The journal should be read after Open: then no other process writes it.
func Open(ctx context.Context, opts Options) (*Writer, error) {
	if _, err := os.Stat(opts.Dir); err != nil {
		return nil, fmt.Errorf("run %q: open journal: %w", opts.Run, err)
	}
	w, state, err := acquire(ctx, opts, patience)
	if err != nil {
		return nil, err
	}
	if err := w.resume(state); err != nil {
		return nil, errors.Join(fmt.Errorf("run %q: %w", opts.Run, err), w.lock.release())
	}
	return w, nil
}

// acquire takes the lock first and looks afterwards: what it finds cannot change.
func acquire(ctx context.Context, opts Options, wait time.Duration) (*Writer, Report, error) {
	if !validRun(opts.Run) {
		return nil, Report{}, fmt.Errorf("run id %q: want lower-case letters, digits, '.' and '-'", opts.Run)
	}
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return nil, Report{}, fmt.Errorf("run %q: make folder: %w", opts.Run, err)
	}
	if opts.Write == nil {
		opts.Write = (*os.File).Write
	}
	if opts.Sync == nil {
		opts.Sync = (*os.File).Sync
	}
	l, err := acquireLock(ctx, opts.Dir, opts.Run, wait)
	if err != nil {
		return nil, Report{}, err
	}
	report, err := inspect(ctx, opts.Dir, func(event.Event) error { return nil })
	damage, end := DamagedAtEnd(err)
	if end && opts.AcceptEnd && damage.Kept > 0 {
		err = nil
	}
	if err != nil {
		return nil, Report{}, errors.Join(fmt.Errorf("run %q: %w", opts.Run, err), l.release())
	}
	w := &Writer{opts: opts, lock: l, blobs: map[string]bool{}, damage: damage}
	if damage != nil {
		// What is appended from here on would make the old head look like damage in
		// the middle. The new one keeps the damage known until it is recorded.
		err := w.writeAnchor(anchor{Seq: report.Events, Hash: report.Head, Open: true, Had: max(damage.Kept+damage.Missing, 1)})
		if err != nil {
			return nil, Report{}, errors.Join(fmt.Errorf("run %q: %w", opts.Run, err), l.release())
		}
	}
	w.commit.init(&w.mu)
	w.commit.touchFolder(opts.Dir)
	w.commit.touchFolder(filepath.Dir(opts.Dir))
	return w, report, nil
}

func (w *Writer) resume(state Report) error {
	if state.Run != "" && state.Run != w.opts.Run {
		return fmt.Errorf("the journal in %s belongs to run %q", w.opts.Dir, state.Run)
	}
	if state.Events == 0 {
		return ErrEmpty
	}
	w.seq, w.head = state.Events, state.Head
	last := state.Files[len(state.Files)-1]
	f, err := os.OpenFile(filepath.Join(w.opts.Dir, last), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("open journal: %w", err)
	}
	if state.Torn != nil {
		if err := errors.Join(f.Truncate(state.Torn.Offset), w.opts.Sync(f)); err != nil {
			return errors.Join(fmt.Errorf("cut the torn last line of %s: %w", last, err), f.Close())
		}
	}
	w.file, w.day = f, dayOf(last)
	w.wasClosed = state.Anchored
	// What an earlier process wrote may still be in the system's memory only.
	w.commit.touch()
	return w.takeOverBlobs()
}

// Append writes one event and returns it as readers will see it: numbered,
// timed, chained and redacted. The caller fills in the ids and the payload.
func (w *Writer) Append(e event.Event) (event.Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return event.Event{}, w.err
	}
	if e.Time.IsZero() {
		e.Time = w.opts.Clock()
	}
	e.Time = e.Time.UTC().Truncate(time.Millisecond)
	if y := e.Time.Year(); y < 1 || y > 9999 {
		return event.Event{}, fmt.Errorf("append event: year %d", y)
	}
	// First of all, for both may wait and let another caller append.
	w.reopen()
	if err := w.rotate(e.Time); err != nil {
		return event.Event{}, w.poison(err)
	}
	e.Seq, e.Run, e.Prev = w.seq+1, w.opts.Run, w.head
	e, err := w.encode(e)
	if err != nil {
		return event.Event{}, err
	}
	w.head = hashLine(w.line)
	w.line = append(w.line, '\n')
	if err := w.write(w.file, w.line); err != nil {
		return event.Event{}, w.poison(fmt.Errorf("run %q: write event %d: %w", w.opts.Run, e.Seq, err))
	}
	w.seq = e.Seq
	if p := w.opts.Projection; p != nil {
		if err := p.Line(w.line[:len(w.line)-1]); err != nil {
			return event.Event{}, w.poison(fmt.Errorf("run %q: %w", w.opts.Run, err))
		}
	}
	w.commit.touch()
	return e, nil
}

// reopen marks the head of a journal that was closed before as that of an open one, before
// anything is appended: what follows the end of a closed journal was not written by a Writer.
// If that fails, the head is older than it could be, which is normal.
func (w *Writer) reopen() {
	for w.wasClosed && w.commit.running {
		w.commit.idle.Wait()
	}
	if w.wasClosed && w.vouched == 0 && w.err == nil {
		_ = w.follow(anchor{Seq: w.seq, Hash: w.head, Open: true})
	}
	w.wasClosed = false
}

// write is Options.Write, which must not get away with half of b.
func (w *Writer) write(f *os.File, b []byte) error {
	n, err := w.opts.Write(f, b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}

// encode leaves the line in w.line. An event that cannot be written is an error
// of this event alone: nothing has reached the file.
func (w *Writer) encode(e event.Event) (event.Event, error) {
	if e.Data == nil || e.Type() == "" {
		return e, errors.New("append event: it has no payload")
	}
	written, changed, err := w.redact(e)
	if err != nil {
		return e, err
	}
	if w.line, err = written.AppendJSON(w.line[:0]); err != nil {
		return e, fmt.Errorf("append event: %w", err)
	}
	if len(w.line) > MaxLine {
		return e, fmt.Errorf("append %s: %d bytes, at most %d: large values belong into a blob", e.Type(), len(w.line), MaxLine)
	}
	_, foreign := e.Data.(event.Unknown)
	if foreign && (!json.Valid(w.line) || bytes.IndexByte(w.line, '\n') >= 0) {
		return e, fmt.Errorf("append %q: the payload is not one line of JSON", e.Type())
	}
	if changed {
		if err := e.UnmarshalJSON(w.line); err != nil {
			return e, fmt.Errorf("append %s: redaction broke the payload", e.Type())
		}
	}
	return e, nil
}

// redact encodes the payload alone, so that a secret like "1" cannot hurt the
// envelope, and hands it on already encoded.
func (w *Writer) redact(e event.Event) (out event.Event, changed bool, err error) {
	if w.opts.Redact == nil {
		return e, false, nil
	}
	raw, err := w.payload(e.Data)
	if err != nil {
		return e, false, fmt.Errorf("append %s: %w", e.Type(), err)
	}
	clean := w.opts.Redact(bytes.Clone(raw))
	if changed = !bytes.Equal(clean, raw); changed {
		if !json.Valid(clean) || bytes.IndexByte(clean, '\n') >= 0 {
			return e, true, fmt.Errorf("append %s: redaction broke the payload", e.Type())
		}
	}
	e.Data = event.Unknown{Of: e.Type(), Raw: clean}
	return e, changed, nil
}

func (w *Writer) payload(p event.Payload) ([]byte, error) {
	if u, ok := p.(event.Unknown); ok {
		return u.Raw, nil
	}
	w.text.Reset()
	enc := json.NewEncoder(&w.text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(p); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(w.text.Bytes(), []byte{'\n'}), nil
}

// rotate opens the file of the event's day. Days never go back, whatever the
// clock does: the order of the files is the order of the chain.
func (w *Writer) rotate(t time.Time) error {
	day := t.Format(dayLayout)
	for w.file != nil && day > w.day && w.commit.running {
		w.commit.idle.Wait()
	}
	if w.err != nil || (w.file != nil && day <= w.day) {
		return w.err
	}
	if w.file != nil {
		// The old day must be on the disk before the new one can be: a crash
		// could otherwise leave a hole in the middle of the chain.
		if err := errors.Join(w.opts.Sync(w.file), w.file.Close()); err != nil {
			return fmt.Errorf("run %q: close journal of %s: %w", w.opts.Run, w.day, err)
		}
	}
	f, err := os.OpenFile(filepath.Join(w.opts.Dir, fileOf(day)), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("run %q: open journal: %w", w.opts.Run, err)
	}
	w.file, w.day = f, day
	w.commit.touchFolder(w.opts.Dir)
	return nil
}

// poison makes err the answer to every later call.
func (w *Writer) poison(err error) error {
	if w.err == nil {
		w.err = err
	}
	return w.err
}

// Head returns the number and the hash of the last event; 0 and "" before the first.
func (w *Writer) Head() (seq int64, hash string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seq, w.head
}

// Damage returns how the end of the journal did not fit its head when it was
// opened (see Options.AcceptEnd), nil if it did.
func (w *Writer) Damage() *CorruptError { return w.damage }

// Close syncs, anchors the head and gives the lock back. It may be called more
// than once.
func (w *Writer) Close() error {
	w.closing.Do(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for w.commit.running {
			w.commit.idle.Wait()
		}
		err := w.err
		if c := &w.commit; err == nil && c.durable < c.written {
			err = w.syncAll(w.file, c.files, c.folders)
		}
		if p := w.opts.Projection; p != nil {
			if settled := p.Settle(); err == nil {
				err = settled
			}
		}
		if err == nil && w.seq > 0 {
			err = w.writeAnchor(anchor{Seq: w.seq, Hash: w.head})
		}
		for _, f := range []*os.File{w.file, w.running.file} {
			if f != nil {
				err = errors.Join(err, f.Close())
			}
		}
		w.err = ErrClosed
		w.closed = errors.Join(err, w.lock.release())
	})
	return w.closed
}

func hashLine(line []byte) string {
	sum := sha256.Sum256(line)
	var text [len(hashPrefix) + 2*sha256.Size]byte
	copy(text[:], hashPrefix)
	hex.Encode(text[len(hashPrefix):], sum[:])
	return string(text[:])
}
