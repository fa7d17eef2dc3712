package cassette

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"agentctl.dev/agentctl/api/event"
)

// Open reads a cassette. Anything but the bytes that were recorded is a
// *DamageError.
func Open(path string) (*Cassette, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	return Read(path, f)
}

// open opens a file that can be read to its end. Its errors name the file once.
func open(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() { // opening a FIFO could wait for ever
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	var f *os.File
	if err == nil {
		f, err = os.Open(path) //nolint:gosec // the user names the file
	}
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, fmt.Errorf("%s: %w", path, pathErr.Err)
	}
	return f, err
}

// Begins checks the beginning of the file at path: nil if it is a cassette of this format.
// Damage further on is not found.
func Begins(path string) error {
	f, err := open(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	r := &reader{c: &Cassette{Name: filepath.Base(path)}, in: bufio.NewReaderSize(io.LimitReader(f, maxHeader), maxHeader)}
	line, err := r.readLine()
	if err != nil {
		return r.known(nil, false)
	}
	_, sum := r.verify(line)
	return r.known(line, sum != "")
}

// begins is how every cassette begins.
const begins = `{"cassette":`

// maxHeader bounds the first line where nothing else is read.
const maxHeader = 64 << 10

// Read reads the cassette that errors are to call name.
func Read(name string, r io.Reader) (*Cassette, error) {
	size := &io.LimitedReader{R: r, N: MaxSize + 1}
	rd := &reader{c: &Cassette{Name: name}, in: bufio.NewReaderSize(size, 64<<10)}
	for !rd.ended {
		if err := rd.next(); err != nil {
			return nil, err
		}
		if size.N == 0 || rd.lines > MaxLines {
			return nil, rd.damaged("the cassette is larger than %d bytes or %d lines", int64(MaxSize), MaxLines)
		}
	}
	if _, err := rd.in.ReadByte(); err == nil {
		rd.lines++
		return nil, rd.damaged("the cassette continues after its end")
	} else if !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read cassette %s: %w", name, err)
	}
	return rd.c, nil
}

// reader reads one line after the other.
type reader struct {
	chain
	c     *Cassette
	in    *bufio.Reader
	buf   []byte
	ended bool
	// facts: their line has been read.
	facts bool
	// resumes of the run so far, and calls of the answer that is being read.
	resumes, calls int
}

func (r *reader) damaged(format string, args ...any) error {
	return &DamageError{File: r.c.Name, Line: max(1, r.lines), Problem: fmt.Sprintf(format, args...), Hint: damageHint}
}

// next reads one line, checks it against the hash chain and decodes it.
func (r *reader) next() error {
	line, err := r.readLine()
	r.lines++
	switch {
	case errors.Is(err, errLong):
		return r.damaged("a line longer than %d bytes", MaxLine)
	case errors.Is(err, io.EOF) && r.lines == 1 && len(line) == 0:
		return r.damaged("the file is empty")
	case errors.Is(err, io.EOF) && r.lines == 1 && !bytes.HasPrefix(line, []byte(begins)):
		return r.known(nil, false)
	case errors.Is(err, io.EOF) && len(line) == 0:
		return r.damaged("the cassette ends before its end: the rest of it is missing")
	case errors.Is(err, io.EOF):
		return r.damaged("the line has no end: the rest of it is missing")
	case err != nil:
		return fmt.Errorf("read cassette %s: %w", r.c.Name, err)
	}
	object, sum := r.verify(line)
	intact := sum != ""
	if r.lines == 1 {
		if err := r.known(line, intact); err != nil {
			return err
		}
	}
	if plain, ok := bytes.CutSuffix(line, []byte("\r")); ok && !intact {
		if _, sum := r.verify(plain); sum != "" {
			return &DamageError{File: r.c.Name, Line: r.lines, Problem: "the line ends in CRLF: the file was converted", Hint: converted}
		}
	}
	if !intact {
		return r.damaged("the line is not the one that was recorded: its hash does not fit")
	}
	prev := r.head
	r.head = sum
	return r.take(object, prev)
}

// verify returns the line without its hash, and the hash if it is the right one.
func (r *reader) verify(line []byte) (object []byte, sum string) {
	if len(line) <= hashLen {
		return nil, ""
	}
	body, tail := line[:len(line)-hashLen], line[len(line)-hashLen:]
	sum = r.sum(body)
	if string(tail) != `,"hash":"`+sum+closing {
		return nil, ""
	}
	r.buf = append(append(r.buf[:0], body...), '}')
	return r.buf, sum
}

// known refuses a file that is not a cassette, or one of an unknown version.
func (r *reader) known(line []byte, intact bool) error {
	var h Header
	if err := json.Unmarshal(line, &h); err != nil || h.Cassette == "" {
		return &DamageError{File: r.c.Name, Line: 1, Problem: "this is not a cassette", Hint: "agentctl run --record FILE records one"}
	}
	if h.Cassette == Format {
		return nil
	}
	problem := fmt.Sprintf("the cassette has format %q, this agentctl reads %q", h.Cassette, Format)
	if !intact {
		problem += "; or its first line was changed"
	}
	return &DamageError{
		File: r.c.Name, Line: 1, Problem: problem,
		Hint: "replay it with the version of agentctl that recorded it, or record it again with agentctl run --record",
	}
}

// take takes a line that is intact, and prev, the hash of the line before it. The
// kinds follow each other in one order.
func (r *reader) take(object []byte, prev string) error {
	switch c := r.c; {
	case r.lines == 1:
		return r.decode(object, &c.Header)
	case bytes.HasPrefix(object, []byte(`{"plan":`)) && c.Plan == nil:
		var l struct{ Plan json.RawMessage }
		err := r.decode(object, &l)
		c.Plan = l.Plan
		return err
	case c.Plan == nil:
		return r.damaged("the plan is missing")
	case bytes.HasPrefix(object, []byte(`{"tool":`)) && !r.facts:
		var l struct{ Tool Tool }
		err := r.decode(object, &l)
		c.Tools = append(c.Tools, l.Tool)
		return err
	case bytes.HasPrefix(object, []byte(`{"blob":`)) && !r.facts:
		var l struct{ Blob Blob }
		err := r.decode(object, &l)
		c.Blobs = append(c.Blobs, l.Blob)
		return err
	case bytes.HasPrefix(object, []byte(`{"facts":`)) && !r.facts:
		var l struct{ Facts Facts }
		err := r.decode(object, &l)
		c.Facts, r.facts = l.Facts, true
		return err
	case !r.facts:
		return r.damaged("what was known of the models is missing")
	case bytes.HasPrefix(object, []byte(`{"seq":`)):
		return r.event(object)
	case bytes.HasPrefix(object, []byte(`{"end":`)):
		return r.end(object, prev)
	}
	return r.damaged("a line that no cassette has in this place")
}

func (r *reader) decode(object []byte, into any) error {
	if err := json.Unmarshal(object, into); err != nil {
		return r.damaged("the line cannot be read: %v", err)
	}
	return nil
}

func (r *reader) event(object []byte) error {
	var e event.Event
	if err := e.UnmarshalJSON(object); err != nil {
		return r.damaged("not an event: %v", err)
	}
	if len(r.c.Events) == 0 {
		r.c.first = r.lines
		if _, begins := e.Data.(event.RunStarted); !begins {
			return r.damaged("the events do not begin with the begin of a run")
		}
	}
	if want := int64(len(r.c.Events) + 1); e.Seq != want || e.Run != r.c.Run {
		return r.damaged("event %d of run %q stands where event %d of run %q is to be", e.Seq, e.Run, want, r.c.Run)
	}
	switch d := e.Data.(type) {
	case event.RunResumed:
		if r.resumes++; d.Turn != nil {
			r.resumes = 0
		}
	case event.ModelRequest:
		r.calls = 0
	case event.ToolInputStart:
		r.calls++
	}
	if r.resumes > maxResumes || r.calls > maxCalls {
		return r.damaged("more than %d interruptions, or more than %d calls in one answer: no run is like that", maxResumes, maxCalls)
	}
	r.c.Events = append(r.c.Events, e)
	return nil
}

func (r *reader) end(object []byte, prev string) error {
	var l struct{ End end }
	if err := r.decode(object, &l); err != nil {
		return err
	}
	switch {
	case len(r.c.Events) == 0:
		return r.damaged("the cassette holds no events")
	case l.End.Lines != r.lines || l.End.Head != prev:
		return r.damaged("the end is that of another cassette")
	}
	r.ended = true
	return nil
}

var errLong = errors.New("line too long")

// readLine returns a line without its newline, or what is left with io.EOF.
func (r *reader) readLine() ([]byte, error) {
	var line []byte
	for {
		piece, err := r.in.ReadSlice('\n')
		line = append(line, piece...)
		switch {
		case len(line) > MaxLine+1:
			return nil, errLong
		case err == nil:
			return line[:len(line)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		}
	}
}
