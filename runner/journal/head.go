package journal

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

	"agentctl.dev/agentctl/runner/statedir"
)

// anchor is what a line of head.json holds: the number and the hash of an event
// that was durable when the line was written. It vouches for the last line of the
// events, which no later line chains.
type anchor struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
	// Open is set while a process writes the journal; a journal that was closed in
	// order has a head without it.
	Open bool `json:"open,omitempty"`
	// Had is the number of events of a journal whose end was found damaged and
	// accepted (Options.AcceptEnd), until the next Sync: by then the caller has
	// recorded the damage as an event.
	Had int64 `json:"had,omitempty"`
	// Sum is a digest of the rest: a line that a crash has half replaced is not
	// taken for a head.
	Sum string `json:"sum,omitempty"`
}

func (a anchor) sum() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %t %d", a.Seq, a.Hash, a.Open, a.Had))
	return hex.EncodeToString(sum[:8])
}

// line is the anchor as it is written.
func (a anchor) line() ([]byte, error) {
	a.Sum = a.sum()
	b, err := json.Marshal(a)
	if err != nil {
		return nil, fmt.Errorf("encode head: %w", err)
	}
	return append(b, '\n'), nil
}

const (
	anchorFile = "head.json"
	// anchorTemp becomes head.json. Only the holder of the lock writes it.
	anchorTemp = ".head.json"
	// slot is the length of a line of the head of an open journal, which has two.
	slot = 192
)

// runningHead is head.json while its journal is written. Its two lines are
// replaced in turn, in place, because that costs next to nothing: whatever
// happens in the middle of a write, the other line holds. Readers take the line
// that names the later event.
type runningHead struct {
	file *os.File
	next int64 // where the next line is written
}

// follow replaces the head of an open journal. It is not made durable: a crash of
// the machine may take it back to an older one, or an empty file, and both are
// normal. It is never newer than what is durable of the events.
func (w *Writer) follow(a anchor) (err error) {
	line, err := a.line()
	if err != nil {
		return err
	}
	line = append(line[:len(line)-1], bytes.Repeat([]byte{' '}, slot-len(line))...)
	line = append(line, '\n')
	h := &w.running
	if h.file == nil {
		blank := append(bytes.Repeat([]byte{' '}, slot-1), '\n')
		if h.file, err = w.replaceHead(append(line, blank...), false); err == nil {
			h.next = slot
		}
		return err
	}
	if _, err = h.file.Seek(h.next, io.SeekStart); err == nil {
		err = w.write(h.file, line)
	}
	if err != nil {
		_ = h.file.Close()
		h.file = nil // the next one is a new file
		return fmt.Errorf("write head: %w", err)
	}
	h.next = slot - h.next
	return nil
}

// writeAnchor replaces head.json durably: the head of a journal that is closed.
func (w *Writer) writeAnchor(a anchor) error {
	line, err := a.line()
	if err != nil {
		return err
	}
	f, err := w.replaceHead(line, true)
	if err != nil {
		return err
	}
	return f.Close()
}

// replaceHead makes a new head.json and returns it open.
func (w *Writer) replaceHead(b []byte, durable bool) (f *os.File, err error) {
	if w.running.file != nil {
		_ = w.running.file.Close() // its content is replaced
		w.running.file = nil
	}
	temp := filepath.Join(w.opts.Dir, anchorTemp)
	f, err = os.OpenFile(temp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("write head: %w", err)
	}
	err = w.write(f, b)
	if durable && err == nil {
		err = w.opts.Sync(f)
	}
	if err == nil {
		err = os.Rename(temp, filepath.Join(w.opts.Dir, anchorFile))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write head: %w", err), f.Close(), os.Remove(temp))
	}
	return f, nil
}

// readAnchor returns the head of a journal. One that is not there, or that a
// crash of the machine has left empty, is the zero anchor.
func readAnchor(dir string) (anchor, error) {
	b, err := readCapped(filepath.Join(dir, anchorFile), 4096)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(b) == 0 {
		return anchor{}, nil
	}
	if err != nil {
		return anchor{}, fmt.Errorf("read head: %w", err)
	}
	return parseAnchor(b)
}

// parseAnchor returns the newest head that the content of head.json names.
func parseAnchor(b []byte) (newest anchor, err error) {
	lines := bytes.Split(bytes.TrimSuffix(b, []byte("\n")), []byte("\n"))
	for _, line := range lines {
		var a anchor
		if json.Unmarshal(line, &a) == nil && a.Seq > newest.Seq && (a.Sum == a.sum() || len(lines) == 1 && unsummed(line)) {
			newest = a
		}
	}
	if newest.Seq == 0 {
		return anchor{}, errNoHead
	}
	return newest, nil
}

// Head returns the number and the hash of the last event of a journal that was closed in
// order; 0 and "" for any other. It reads head.json only.
func Head(dir string) (seq int64, hash string, err error) {
	a, err := readAnchor(dir)
	if err != nil || a.Open {
		return 0, "", err
	}
	return a.Seq, a.Hash, nil
}

// unsummed reports whether a line is the head of a closed journal as older
// versions have written it: without a sum.
func unsummed(line []byte) bool {
	var fields map[string]json.RawMessage
	return json.Unmarshal(line, &fields) == nil && len(fields) == 2 && fields["seq"] != nil && fields["hash"] != nil
}

var errNoHead = errors.New("it does not name a head")

// judge compares where a journal ends with its head. kept is the number of its
// last complete event, and hash that of the event that the head names, or "" if
// that is not known.
func (a anchor) judge(kept int64, hash string) error {
	switch {
	case a.Seq == 0:
		return nil
	case a.Had > 0:
		return atEnd(kept, a.Had-a.Seq, "the journal was cut or its last line was changed: it had %d events, %d of them are left", a.Had, a.Seq)
	case kept < a.Seq:
		return atEnd(kept, a.Seq-kept, "the journal was cut: it had %d events and now ends with event %d", a.Seq, kept)
	case hash != "" && hash != a.Hash:
		return atEnd(kept, 0, "event %d was changed after it was written", a.Seq)
	}
	return nil
}

func atEnd(kept, missing int64, format string, args ...any) error {
	return &CorruptError{File: anchorFile, Problem: fmt.Sprintf(format, args...), AtEnd: true, Kept: kept, Missing: missing}
}

// DamagedAtEnd returns the error by which a reader reports that the end of a
// journal does not fit head.json. Everything before the end is whole, and has
// been read.
func DamagedAtEnd(err error) (*CorruptError, bool) {
	c, ok := errors.AsType[*CorruptError](err)
	return c, ok && c.AtEnd
}

// CheckEnd compares the end of the journal in dir with its head, reading no more
// than the end. It is for readers that do not check the chain; a journal may be
// written meanwhile. A journal without events and without a head is not an error.
func CheckEnd(dir string) error {
	_, err := last(dir)
	if errors.Is(err, errNoEvents) {
		return nil
	}
	return err
}

// lastRoom is how much of the end of a journal is read first.
const lastRoom = 256 << 10

var errNoEvents = errors.New("no events")

// last returns the last complete line of the journal in dir, after comparing it
// with the head.
func last(dir string) (line []byte, err error) {
	// The head first: a journal that is written meanwhile only gets longer.
	head, err := readAnchor(dir)
	noHead := errors.Is(err, errNoHead)
	if err != nil && !noHead {
		return nil, err
	}
	files, err := dayFiles(dir)
	if err != nil {
		return nil, err
	}
	var e struct {
		Seq int64 `json:"seq"`
	}
	for i := len(files) - 1; i >= 0 && line == nil; i-- { // a new file may have no line yet
		lines, err := lastLines(filepath.Join(dir, files[i]))
		if err != nil {
			return nil, err
		}
		// The very last one may be torn: then the one before it counts.
		for _, l := range lines {
			if err = json.Unmarshal(l, &e); err == nil {
				line = l
				break
			}
		}
		if line == nil && len(lines) > 1 {
			return nil, fmt.Errorf("read journal: the last event: %w", err)
		}
	}
	if line == nil {
		if err := head.judge(0, ""); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("read journal: %w in %s", errNoEvents, dir)
	}
	if noHead {
		return nil, atEnd(e.Seq, 0, "%v", errNoHead)
	}
	hash := ""
	if e.Seq == head.Seq {
		hash = hashLine(line)
	}
	return line, head.judge(e.Seq, hash)
}

// lastLines returns the last two complete lines of a file, the last one first;
// fewer if it has fewer. It reads no more of the end than it has to.
func lastLines(path string) ([][]byte, error) {
	f, err := statedir.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	defer f.Close() //nolint:errcheck // nothing was written
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	for room := int64(lastRoom); ; room *= 4 {
		b := make([]byte, min(end, room))
		if _, err := f.ReadAt(b, end-int64(len(b))); err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read journal: %w", err)
		}
		if lines, ok := cutLines(b, int64(len(b)) == end); ok {
			return lines, nil
		}
		if room > 4*MaxLine {
			return nil, fmt.Errorf("read journal: %s: %w", filepath.Base(path), errLineTooLong)
		}
	}
}

// cutLines returns the last two complete lines of b, which is the end of a file
// or, if whole, all of it. ok is false where the file has more than b shows.
func cutLines(b []byte, whole bool) (lines [][]byte, ok bool) {
	b = b[:bytes.LastIndexByte(b, '\n')+1]
	for len(b) > 0 && len(lines) < 2 {
		b = b[:len(b)-1]
		start := bytes.LastIndexByte(b, '\n') + 1
		if start == 0 && !whole {
			break
		}
		lines = append(lines, b[start:])
		b = b[:start]
	}
	return lines, whole || len(lines) == 2
}
