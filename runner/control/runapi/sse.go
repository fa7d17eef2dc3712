package runapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"agentctl.dev/agentctl/api/event"
)

// flushAt is the most that is buffered before it is sent.
const flushAt = 32 << 10

// sse writes a stream as server-sent events.
type sse struct {
	w        http.ResponseWriter
	c        *http.ResponseController
	patience time.Duration
	now      func() time.Time
	buf      []byte
}

// newSSE begins an answer.
func newSSE(w http.ResponseWriter, patience time.Duration, now func() time.Time) *sse {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, private")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusOK)
	s := &sse{w: w, c: http.NewResponseController(w), patience: patience, now: now}
	_ = s.flush() // so that the client gets the header at once; if it is gone, a later write fails
	return s
}

func (s *sse) event(h head, line []byte) error {
	s.buf = append(s.buf, "id: "...)
	s.buf = strconv.AppendInt(s.buf, h.Seq, 10)
	return s.data(string(h.Type), line)
}

func (s *sse) below(kind event.Type, line []byte) error { return s.data(string(kind), line) }

func (s *sse) record(r record) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return s.data(string(r.Type), line)
}

// data adds the type and the data of a record; its id may be in the buffer already. A line
// of a journal has no line breaks.
func (s *sse) data(kind string, line []byte) error {
	if len(s.buf) > 0 && s.buf[len(s.buf)-1] != '\n' {
		s.buf = append(s.buf, '\n')
	}
	s.buf = append(append(s.buf, "event: "...), kind...)
	s.buf = append(append(s.buf, "\ndata: "...), line...)
	s.buf = append(s.buf, "\n\n"...)
	if len(s.buf) < flushAt {
		return nil
	}
	return s.write()
}

func (s *sse) ping() error {
	s.buf = append(s.buf, ": ping\n\n"...)
	return s.flush()
}

// write sends what is buffered.
func (s *sse) write() error {
	defer s.hurry()()
	_, err := s.w.Write(s.buf)
	if s.buf = s.buf[:0]; cap(s.buf) > 2*flushAt {
		s.buf = nil
	}
	return err
}

func (s *sse) flush() error {
	if err := s.write(); err != nil {
		return err
	}
	defer s.hurry()()
	return s.c.Flush()
}

// hurry bounds the time of one write. The deadline is removed after it: HTTP/2 cuts off a
// stream whose deadline has passed, even if nothing is being written.
func (s *sse) hurry() (done func()) {
	_ = s.c.SetWriteDeadline(s.now().Add(s.patience)) // the recorder of a test does not support it
	return func() { _ = s.c.SetWriteDeadline(time.Time{}) }
}

func (s *sse) end(r record, _ why) {
	if s.record(r) == nil {
		_ = s.flush() // a client that does not get it sees that the stream is cut off
	}
}
