package events

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"agentctl.dev/agentctl/runner/statedir"
)

const (
	// maxLine bounds an event in the file; the largest has a message of 1 KB.
	maxLine = 16 << 10
	// maxFile bounds what is read of the file.
	maxFile = 64 << 20
)

// file has a line of JSON for each event, and another each time it happens
// again. It is not synced: a killed process loses nothing by that, and a power
// failure loses at most the latest events.
type file struct {
	path  string
	limit int                    // of events
	all   func() []*corev1.Event // what the store has
	log   *slog.Logger
	wake  chan struct{} // holds one
	done  chan struct{}

	mu      sync.Mutex
	pending []*corev1.Event
	behind  bool // there is more than can wait: the file is rewritten
	closed  bool

	// Of the goroutine that writes.
	out   *os.File
	lines int
	ill   bool // the last write failed, and that was logged
}

// read returns what a file has, at most the last so many events, and whether
// that is all of it. Invalid lines are left out: the last line is torn when its
// writer was killed.
func read(path string, most int) (kept []*corev1.Event, whole bool, err error) {
	f, err := statedir.OpenFile(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	whole = true
	lines := bufio.NewScanner(io.LimitReader(f, maxFile))
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		e := &corev1.Event{}
		if json.Unmarshal(lines.Bytes(), e) != nil || e.Name == "" || e.Namespace == "" {
			whole = false
			continue
		}
		if kept = append(kept, e); len(kept) >= 2*most {
			kept, whole = append([]*corev1.Event(nil), kept[most:]...), false
		}
	}
	return kept, whole && lines.Err() == nil && endsWithLine(f), lines.Err()
}

// endsWithLine reports whether another line can be appended to a file.
func endsWithLine(f *os.File) bool {
	end := make([]byte, 1)
	info, err := f.Stat()
	if err != nil || info.Size() > maxFile {
		return false
	}
	_, err = f.ReadAt(end, info.Size()-1)
	return err == nil && end[0] == '\n'
}

// add has an event written soon.
func (f *file) add(e *corev1.Event) {
	f.mu.Lock()
	if f.pending = append(f.pending, e); len(f.pending) > f.limit {
		f.pending, f.behind = nil, true
	}
	f.mu.Unlock()
	f.signal()
}

func (f *file) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// run writes until close.
func (f *file) run() {
	defer close(f.done)
	for range f.wake {
		f.mu.Lock()
		pending, behind, closed := f.pending, f.behind, f.closed
		f.pending, f.behind = nil, false
		f.mu.Unlock()
		if closed {
			return
		}
		f.tell(f.write(pending, behind))
	}
}

func (f *file) write(pending []*corev1.Event, behind bool) error {
	if behind || f.out == nil || f.lines+len(pending) > 2*f.limit {
		return f.rewrite()
	}
	f.lines += len(pending)
	_, err := f.out.Write(encode(pending))
	return err
}

// tell logs once that the file cannot be written, and once that it can be
// again.
func (f *file) tell(err error) {
	if err != nil && !f.ill {
		f.log.Warn("the events cannot be written: a restart will not know them", "path", f.path, "error", err)
	}
	f.ill = err != nil
}

// reopen continues the existing file.
func (f *file) reopen(lines int) error {
	out, err := statedir.OpenFile(f.path, os.O_WRONLY|os.O_APPEND)
	if err != nil {
		return err
	}
	f.out, f.lines = out, lines
	return nil
}

// rewrite puts a file with what the store has in the place of the file.
func (f *file) rewrite() error {
	all, next := f.all(), f.path+".new"
	out, err := statedir.OpenFile(next, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND)
	if err != nil {
		return err
	}
	if _, err = out.Write(encode(all)); err == nil {
		err = os.Rename(next, f.path)
	}
	if err != nil {
		return errors.Join(err, out.Close(), os.Remove(next))
	}
	if f.out != nil {
		_ = f.out.Close() // the file is gone
	}
	f.out, f.lines = out, len(all)
	return nil
}

// close writes the file for the last time: the shorter, the sooner it is read.
func (f *file) close() error {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.signal()
	<-f.done
	err := f.rewrite()
	if f.out != nil {
		err = errors.Join(err, f.out.Close())
	}
	return err
}

func encode(events []*corev1.Event) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, e := range events {
		_ = enc.Encode(e) // a buffer takes everything, and an event can be encoded
	}
	return b.Bytes()
}
