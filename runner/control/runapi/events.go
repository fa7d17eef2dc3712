package runapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// eventWriter writes a stream to one reader, and gives up on a reader that is too slow.
//
//	event   writes an event of a journal, as it is there; it may be buffered
//	below   writes an event of a run below, whose number is not a position of the stream
//	record  writes a record about the stream itself
//	flush   sends what is buffered
//	ping    keeps an idle connection open
//	end     writes the last record, and ends the stream
type eventWriter interface {
	event(h head, line []byte) error
	below(kind event.Type, line []byte) error
	record(r record) error
	flush() error
	ping() error
	end(r record, w why)
}

// wanted is the part of the events that a reader asks for.
type wanted struct {
	from     int64
	attempt  int32 // 0: the newest
	follow   bool
	children bool // also what the runs below do
}

// wants reads the query of a request. Last-Event-ID, which a browser sends when it
// reconnects, overrides the address, which the browser repeats.
func wants(r *http.Request) (wanted, error) {
	w := wanted{from: 1, follow: true}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return w, refusal(http.StatusBadRequest, "the query cannot be read: %v", err)
	}
	for name, values := range q {
		value := values[0]
		if len(values) > 1 {
			return w, refusal(http.StatusBadRequest, "%s is given more than once", name)
		}
		switch name {
		case "from":
			w.from, err = strconv.ParseInt(value, 10, 64)
			if err != nil || w.from < 1 {
				return w, refusal(http.StatusBadRequest, "from=%q: the number of an event counts from 1", value)
			}
		case "attempt":
			n, err := strconv.ParseInt(value, 10, 32)
			if err != nil || n < 1 {
				return w, refusal(http.StatusBadRequest, "attempt=%q: attempts count from 1", value)
			}
			w.attempt = int32(n)
		case "follow":
			if w.follow, err = strconv.ParseBool(value); err != nil {
				return w, refusal(http.StatusBadRequest, "follow=%q: true or false", value)
			}
		case "children":
			if w.children, err = strconv.ParseBool(value); err != nil {
				return w, refusal(http.StatusBadRequest, "children=%q: true or false", value)
			}
		default:
			return w, refusal(http.StatusBadRequest, "%s means nothing here: from, attempt, follow and children do", name)
		}
	}
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		n, err := strconv.ParseInt(last, 10, 64)
		if err != nil || n < 0 || n+1 < 1 {
			return w, refusal(http.StatusBadRequest, "Last-Event-ID: %q is not the number of an event", last)
		}
		w.from = n + 1
	}
	return w, nil
}

// events serves the events of a run.
func (s *Server) events(w http.ResponseWriter, r *http.Request) error {
	want, err := wants(r)
	if err != nil {
		return err
	}
	socket := isSocket(r)
	if !socket && !takesStream(r.Header) {
		return refusal(http.StatusNotAcceptable, "events come as text/event-stream, or by a WebSocket")
	}
	run, err := s.run(r)
	if err != nil {
		return err
	}
	newest := max(1, run.Status.Attempt)
	if want.attempt > newest {
		return refusal(http.StatusNotFound, "run %q has no attempt %d: the newest is %d", run.Name, want.attempt, newest)
	}
	if want.attempt == 0 {
		want.attempt = newest
	}
	done, err := s.limiter.reserve(s.o.Caller(r.Context()).Name)
	if err != nil {
		return err
	}
	defer done()
	if socket {
		return s.socket(w, r, run, want)
	}
	t := newSSE(w, s.o.writePatience, s.o.Now)
	s.stream(r.Context(), run, want, t)
	return nil
}

// stream writes the wanted events to one reader.
func (s *Server) stream(ctx context.Context, run *v1alpha1.Run, want wanted, w eventWriter) {
	one := &stream{s: s, run: run, want: want, out: w, next: want.from, attempt: want.attempt}
	one.open()
	defer one.close()
	one.serve(ctx)
}

// takesStream reports whether a client accepts server-sent events.
func takesStream(h http.Header) bool {
	accept := strings.Join(h.Values("Accept"), ",")
	if accept == "" {
		return true
	}
	for kind := range strings.SplitSeq(accept, ",") {
		kind, _, _ = strings.Cut(kind, ";")
		switch strings.TrimSpace(kind) {
		case "text/event-stream", "text/*", "*/*":
			return true
		}
	}
	return false
}
