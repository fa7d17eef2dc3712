package journal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/runner/statedir"
)

// Tail reads single events of a journal while it is written, continuing from its position:
// no line is read twice. Its callers know that an event has been appended; the hash chain
// is not checked.
type Tail struct {
	dir  string
	name string
	file *os.File
	in   *bufio.Reader
	buf  []byte
	// line is the number of the event that the next line holds.
	line int64
}

// NewTail returns a reader of the journal in dir. Close it.
func NewTail(dir string) *Tail { return &Tail{dir: dir, line: 1} }

// Event returns the event of that number, which must have been appended and not been
// passed already.
func (t *Tail) Event(seq int64) (event.Event, error) {
	if seq < t.line {
		return event.Event{}, fmt.Errorf("read event %d: the reader is at %d", seq, t.line)
	}
	for {
		raw, err := t.next()
		if err != nil {
			return event.Event{}, fmt.Errorf("read event %d: %w", seq, err)
		}
		if t.line++; t.line <= seq {
			continue // a line is an event: lines need only be counted
		}
		var e event.Event
		if err := e.UnmarshalJSON(raw); err != nil {
			return event.Event{}, fmt.Errorf("read event %d: %w", seq, err)
		}
		if e.Seq != seq {
			return event.Event{}, fmt.Errorf("read event %d: its line holds event %d", seq, e.Seq)
		}
		return e, nil
	}
}

// next returns the next line, in whichever file it is.
func (t *Tail) next() ([]byte, error) {
	for {
		if t.file != nil {
			raw, err := readLine(t.in, &t.buf)
			if !errors.Is(err, io.EOF) || len(raw) > 0 {
				return raw, err
			}
		}
		if err := t.turn(); err != nil {
			return nil, err
		}
	}
}

// turn moves to the file of the next day. The wanted event has been written, so if it is
// not in this file, it is in a later one.
func (t *Tail) turn() error {
	files, err := dayFiles(t.dir)
	if err != nil {
		return err
	}
	for _, name := range files {
		if name <= t.name {
			continue
		}
		if err := t.Close(); err != nil {
			return err
		}
		f, err := statedir.OpenFile(filepath.Join(t.dir, name), os.O_RDONLY)
		if err != nil {
			return fmt.Errorf("read journal: %w", err)
		}
		t.name, t.file, t.in = name, f, bufio.NewReaderSize(f, 64<<10)
		return nil
	}
	return io.ErrUnexpectedEOF
}

// Last returns the newest event of the run in dir without reading the others; a
// line that is not complete does not count. An end that does not fit head.json is
// an error.
func Last(dir string) (event.Event, error) {
	var e event.Event
	line, err := last(dir)
	if err != nil {
		return e, err
	}
	if err := e.UnmarshalJSON(line); err != nil {
		return e, fmt.Errorf("read journal: the last event: %w", err)
	}
	return e, nil
}

// Close lets go of the file.
func (t *Tail) Close() error {
	if t.file == nil {
		return nil
	}
	err := t.file.Close()
	t.file = nil
	return err
}
