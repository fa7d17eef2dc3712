package journal

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

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
// line that is not complete does not count, nor does an event that records what
// was done with the change of the run later. An end that does not fit head.json is
// an error.
func Last(dir string) (event.Event, error) {
	var e event.Event
	line, err := last(dir)
	if err != nil {
		return e, err
	}
	if isLater(line) {
		if line, err = lastOfRun(dir); err != nil {
			return e, err
		}
	}
	if err := e.UnmarshalJSON(line); err != nil {
		return e, fmt.Errorf("read journal: the last event: %w", err)
	}
	return e, nil
}

// later are the types of the events that may follow the end of a run.
var later = []event.Type{event.TypeWorkspaceApplied, event.TypePublishItem}

// isLater reports whether a line is that of an event which may follow the end of a run.
func isLater(line []byte) bool {
	head := line[:min(len(line), laterRoom)]
	return slices.ContainsFunc(later, func(t event.Type) bool { return bytes.Contains(head, []byte(typePart+string(t)+`"`)) })
}

// laterRoom is more than the beginning of a line up to its type.
const laterRoom = 128

// lastOfRun returns the last line of the journal in dir that is of the run itself. It
// reads whole files: few runs have such events, and few of them.
func lastOfRun(dir string) ([]byte, error) {
	files, err := dayFiles(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Backward(files) {
		line, err := lastOfRunIn(filepath.Join(dir, name))
		if line != nil || err != nil {
			return line, err
		}
	}
	return nil, fmt.Errorf("read journal: %w in %s", errNoEvents, dir)
}

func lastOfRunIn(path string) (found []byte, err error) {
	f, err := statedir.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	defer f.Close() //nolint:errcheck // nothing was written
	in := bufio.NewReaderSize(f, checkRoom)
	var buf []byte
	for {
		line, err := readLine(in, &buf)
		switch {
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return nil, fmt.Errorf("read journal: %s: %w", filepath.Base(path), err)
		case !isLater(line):
			found = append(found[:0], line...)
		}
	}
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
