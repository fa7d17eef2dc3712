package journal

import (
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

// Follower reads a journal of another process while it is written, line by line. It keeps
// its position, so that reading on costs nothing; the hash chain is not checked.
type Follower struct {
	dir  string
	name string
	file *os.File
	// buf holds what was read and not handed out; it lies in room.
	buf, room []byte
	// line is the number of the event that the next line holds.
	line int64
}

// Follow returns a reader at the beginning of the journal in dir. The caller must close
// it.
func Follow(dir string) *Follower { return &Follower{dir: dir, line: 1} }

// Next returns the next event as it was written, without the line break; it is
// valid until the next call. There is io.EOF where the journal ends for now.
func (f *Follower) Next() ([]byte, error) {
	for {
		if i := bytes.IndexByte(f.buf, '\n'); i >= 0 {
			line := f.buf[:i]
			f.buf = f.buf[i+1:]
			f.line++
			return line, nil
		}
		if len(f.buf) > MaxLine {
			return nil, fmt.Errorf("read event %d: %w", f.line, errLineTooLong)
		}
		if err := f.fill(); err != nil {
			return nil, err
		}
	}
}

// Event is Next, read. An event of another number than its line is an error.
func (f *Follower) Event() (event.Event, error) {
	e, _, err := f.EventLine()
	return e, err
}

// EventLine is Event together with its line, which is valid until the next event is read.
func (f *Follower) EventLine() (event.Event, []byte, error) {
	var e event.Event
	line, err := f.Next()
	if err != nil {
		return e, nil, err
	}
	if err := e.UnmarshalJSON(line); err != nil {
		return e, nil, fmt.Errorf("read event %d: %w", f.line-1, err)
	}
	if e.Seq != f.line-1 {
		return e, nil, fmt.Errorf("read event %d: its line holds event %d", f.line-1, e.Seq)
	}
	return e, line, nil
}

// fill reads more, or returns io.EOF.
func (f *Follower) fill() error {
	if f.file == nil {
		return f.turn()
	}
	if n, err := f.read(); n > 0 || err != nil {
		return err
	}
	// If there is a later file, this one is complete: the rest of it is read first.
	later, err := f.later()
	if err != nil {
		return err
	}
	if n, err := f.read(); n > 0 || err != nil {
		return err
	}
	if later == "" || len(f.buf) > 0 {
		if cap(f.room) > 2*small && len(f.buf) == 0 {
			f.room, f.buf = nil, nil // many may wait for long
		}
		return io.EOF
	}
	return f.turn()
}

const (
	// large is how much is read at once where there is much, small where little is.
	large = 64 << 10
	small = 4 << 10
)

// read adds what the file has behind what was read.
func (f *Follower) read() (int, error) {
	piece := small
	if len(f.room) == cap(f.room) {
		piece = large
	}
	rest := slices.Grow(append(f.room[:0], f.buf...), piece)
	n, err := f.file.Read(rest[len(rest):cap(rest)])
	f.room, f.buf = rest[:0], rest[:len(rest)+n]
	if err != nil && !errors.Is(err, io.EOF) {
		return n, fmt.Errorf("read journal: %w", err)
	}
	return n, nil
}

// later is the file that comes next, or "".
func (f *Follower) later() (string, error) {
	files, err := dayFiles(f.dir)
	if err != nil {
		return "", err
	}
	for _, name := range files {
		if name > f.name {
			return name, nil
		}
	}
	return "", nil
}

func (f *Follower) turn() error {
	name, err := f.later()
	if err != nil {
		return err
	}
	if name == "" {
		return io.EOF
	}
	if err := f.Close(); err != nil {
		return err
	}
	file, err := statedir.OpenFile(filepath.Join(f.dir, name), os.O_RDONLY)
	if err != nil {
		return fmt.Errorf("read journal: %w", err)
	}
	f.name, f.file = name, file
	return nil
}

// Ended compares the end of the journal with its head, as every reader does. It
// is asked when Next has returned io.EOF and the caller takes that for the end.
func (f *Follower) Ended() error { return CheckEnd(f.dir) }

// Close lets go of the file.
func (f *Follower) Close() error {
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file = nil
	return err
}

// Behind is how much of the journal, in bytes, has not been handed out.
func (f *Follower) Behind() (int64, error) {
	files, err := dayFiles(f.dir)
	if err != nil {
		return 0, err
	}
	var n int64
	for _, name := range files {
		if name < f.name {
			continue
		}
		info, err := os.Lstat(filepath.Join(f.dir, name))
		if err != nil {
			return 0, fmt.Errorf("read journal: %w", err)
		}
		n += info.Size()
	}
	if f.file == nil {
		return n, nil
	}
	at, err := f.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, fmt.Errorf("read journal: %w", err)
	}
	return n - at + int64(len(f.buf)), nil
}

// Grown reports cheaply whether the journal may have more. It does not notice a further
// file: Next does.
func (f *Follower) Grown() bool {
	if f.file == nil {
		_, err := os.Lstat(f.dir)
		return err == nil
	}
	info, err := f.file.Stat()
	if err != nil {
		return true // Next returns the error
	}
	at, err := f.file.Seek(0, io.SeekCurrent)
	return err != nil || info.Size() != at
}
