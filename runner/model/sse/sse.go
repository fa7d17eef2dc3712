// Package sse reads a stream of server-sent events in one pass, with a bound on every line and every event.
package sse

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// ErrTooLong is the error for a line or an event that is longer than the reader allows.
var ErrTooLong = errors.New("event is too long")

// Event is one event of a stream.
type Event struct {
	// Name of the event; "" is an ordinary one.
	Name string
	// Data is valid until the next call.
	Data []byte
	// Cut is true if the stream ended before the event did.
	Cut bool
}

// Reader reads events.
type Reader struct {
	r    *bufio.Reader
	max  int
	line []byte
	data []byte
	junk []byte
}

// NewReader reads events of at most limit bytes from r.
func NewReader(r *bufio.Reader, limit int) *Reader { return &Reader{r: r, max: limit} }

// Junk returns the first line that is not of the protocol, or nil. It identifies servers
// that send something other than events.
func (r *Reader) Junk() []byte { return r.junk }

// Next returns the next event that has data. At the end it returns io.EOF; an
// event that the end cut short is returned first and marked as Cut.
func (r *Reader) Next() (Event, error) {
	var e Event
	r.data = r.data[:0]
	some := false
	for {
		line, err := r.readLine()
		atEnd := errors.Is(err, io.EOF)
		// A last line without its end counts: servers forget the final blank line.
		if len(line) > 0 && !(atEnd && begun(line)) {
			if err := r.field(&e, line, &some); err != nil {
				return Event{}, err
			}
		}
		switch {
		case atEnd && some:
			e.Data, e.Cut = r.data, true
			return e, nil
		case err != nil:
			return Event{}, err
		case len(line) == 0 && some:
			e.Data = r.data
			return e, nil
		case len(line) == 0:
			e.Name = ""
		}
	}
}

// begun reports whether a line may be the beginning of a field that was cut.
func begun(line []byte) bool {
	for _, name := range []string{"data:", "event:", "id:", "retry:"} {
		if len(line) < len(name) && name[:len(line)] == string(line) {
			return true
		}
	}
	return false
}

func (r *Reader) field(e *Event, line []byte, some *bool) error {
	if v, ok := bytes.CutPrefix(line, []byte("data:")); ok {
		if *some {
			r.data = append(r.data, '\n')
		}
		*some = true
		v = bytes.TrimPrefix(v, []byte(" "))
		if len(r.data)+len(v) > r.max {
			return ErrTooLong
		}
		r.data = append(r.data, v...)
		return nil
	}
	if v, ok := bytes.CutPrefix(line, []byte("event:")); ok {
		e.Name = string(bytes.TrimPrefix(v, []byte(" ")))
		return nil
	}
	known := line[0] == ':' || bytes.HasPrefix(line, []byte("id:")) || bytes.HasPrefix(line, []byte("retry:")) ||
		string(line) == "data" || string(line) == "event" || string(line) == "id" || string(line) == "retry"
	if !known && r.junk == nil {
		r.junk = bytes.Clone(line[:min(len(line), 256)])
	}
	return nil
}

// readLine returns a line without its end. The slice is valid until the next
// call. Together with an error it is what came before it.
func (r *Reader) readLine() ([]byte, error) {
	line, err := r.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		r.line = r.line[:0]
		for errors.Is(err, bufio.ErrBufferFull) {
			r.line = append(r.line, line...)
			if len(r.line) > r.max {
				return nil, ErrTooLong
			}
			line, err = r.r.ReadSlice('\n')
		}
		r.line = append(r.line, line...)
		line = r.line
	}
	line = bytes.TrimSuffix(line, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), err
}
