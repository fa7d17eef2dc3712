package httpapi

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// errTooLong is the error for a line or an event that is longer than the reader allows.
var errTooLong = errors.New("event is too long")

// sseEvent is one event of a stream.
type sseEvent struct {
	// Name of the event; "" is an ordinary one.
	Name string
	// Data is valid until the next call.
	Data []byte
	// Cut is true if the stream ended before the event did.
	Cut bool
}

// sseReader reads a stream of server-sent events in one pass, with a bound on every line
// and every event.
type sseReader struct {
	r    *bufio.Reader
	max  int
	line []byte
	data []byte
	junk []byte
}

// newSSEReader reads events of at most limit bytes from r.
func newSSEReader(r *bufio.Reader, limit int) *sseReader { return &sseReader{r: r, max: limit} }

// Junk returns the first line that is not of the protocol, or nil. It identifies servers
// that send something other than events.
func (r *sseReader) Junk() []byte { return r.junk }

// Next returns the next event that has data. At the end it returns io.EOF; an
// event that the end cut short is returned first and marked as Cut.
func (r *sseReader) Next() (sseEvent, error) {
	var e sseEvent
	r.data = r.data[:0]
	some := false
	for {
		line, err := r.readLine()
		atEnd := errors.Is(err, io.EOF)
		// A last line without its end counts: servers forget the final blank line.
		if len(line) > 0 && !(atEnd && begun(line)) {
			if err := r.field(&e, line, &some); err != nil {
				return sseEvent{}, err
			}
		}
		switch {
		case atEnd && some:
			e.Data, e.Cut = r.data, true
			return e, nil
		case err != nil:
			return sseEvent{}, err
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

func (r *sseReader) field(e *sseEvent, line []byte, some *bool) error {
	if v, ok := bytes.CutPrefix(line, []byte("data:")); ok {
		if *some {
			r.data = append(r.data, '\n')
		}
		*some = true
		v = bytes.TrimPrefix(v, []byte(" "))
		if len(r.data)+len(v) > r.max {
			return errTooLong
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
func (r *sseReader) readLine() ([]byte, error) {
	line, err := r.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		r.line = r.line[:0]
		for errors.Is(err, bufio.ErrBufferFull) {
			r.line = append(r.line, line...)
			if len(r.line) > r.max {
				return nil, errTooLong
			}
			line, err = r.r.ReadSlice('\n')
		}
		r.line = append(r.line, line...)
		line = r.line
	}
	line = bytes.TrimSuffix(line, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), err
}
