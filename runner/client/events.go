package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
)

const (
	// silence is how long a stream may send nothing before its connection counts
	// as dead: a server sends a sign of life at least every 15 seconds.
	silence = time.Minute
	// streamPatience is how long a server may be unreachable before a stream
	// gives up.
	streamPatience = 2 * time.Minute
)

// The types of the records by which a stream speaks of itself.
const (
	streamPrefix  = "stream."
	streamWaiting = streamPrefix + "waiting"
	streamAttempt = streamPrefix + "attempt"
	streamDropped = streamPrefix + "dropped"
	streamEnd     = streamPrefix + "end"
)

// EventsOptions select the events.
type EventsOptions struct {
	// Run names the run. Required; its kind may be empty.
	Run Ref
	// From is the number of the first event that is wanted; 0 is the first there is.
	From int64
	// Follow continues with new events, to the end of the run.
	Follow bool
	// Children also reports the events of the runs below, between those of the run.
	Children bool
	// Away is called with the error when the connection was lost and is opened
	// again. Optional.
	Away func(err error)
}

// Record is one of a stream: exactly one of its fields is set.
type Record struct {
	// Event is one of the run's journal.
	Event *event.Event
	// Below is one of a run below.
	Below *event.Event
	// Waiting is why the run has no journal yet.
	Waiting *RunWaiting
	// Attempt is set when the run is tried again: the next event is the first of
	// another journal. It counts from 1.
	Attempt int
}

// RunWaiting is the state of a run that has not begun.
type RunWaiting struct{ Phase, Reason, Message string }

// RunEnd is the state of a run at the end of a stream.
type RunEnd struct {
	// Next is the number of the first event that was not reported.
	Next int64
	// Phase, Reason and Message as in the status of the run.
	Phase, Reason, Message string
	// ExitCode is that of the command line for a run that has ended, also of one
	// that never began; -1 for one that has not ended.
	ExitCode int
}

// Ended reports whether the run has finished and will not be tried again.
func (e *RunEnd) Ended() bool { return v1alpha1.Phase(e.Phase).Finished() }

// Events reports every event of a run once and in order. A connection that is
// lost is opened again at the same position. The stream ends when a server does
// not answer for two minutes, leaves events out, repeats them, or sends events
// of another run under the same name. A run whose journal is damaged at its end
// is an error after the last event.
//
//	see returns    Events
//	nil            continues
//	an error       returns it
func (c *Client) Events(ctx context.Context, o EventsOptions, see func(Record) error) (*RunEnd, error) {
	o.Run.Kind, o.Run.Namespace = v1alpha1.KindRun, c.Namespace(o.Run.Namespace)
	kind, err := kindOf(o.Run.Kind)
	if err != nil {
		return nil, err
	}
	if err := o.Run.named(); err != nil {
		return nil, err
	}
	s := &stream{c: c, o: o, see: see, next: max(1, o.From), below: map[string]int64{}}
	s.path = resourcePath(kind, o.Run.Namespace, o.Run.Name) + "/events"
	end, err := s.follow(ctx)
	return end, c.unserved(ctx, o.Run, err)
}

// stream is one Events.
type stream struct {
	c    *Client
	o    EventsOptions
	path string
	see  func(Record) error

	// next is the number of the event that has to come next.
	next int64
	// attempt is the attempt of the run that is reported; 0: the server has not
	// said.
	attempt int
	// run is the id of the run as its journal has it; "" before the first event.
	run string
	// turned is set once another attempt than the first one asked for is reported.
	turned bool
	// begun is set when the server has answered once; told counts the reported
	// events.
	begun bool
	told  int
	// below is the number of the newest event of each run below.
	below map[string]int64
	// from is where this connection began, stood is when it was answered, and
	// fresh is set until it has reported an event.
	from  int64
	stood time.Time
	fresh bool
}

// follow opens one connection after the other.
func (s *stream) follow(ctx context.Context) (*RunEnd, error) {
	wait, heard := backoffFirst, time.Now()
	for try := 1; ; try++ {
		told := s.told
		end, err := s.connect(ctx)
		switch {
		case end != nil:
			return end, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case !s.again(err, try):
			return nil, err
		}
		// A run that waits for a person has no events for hours: it is enough
		// that the server was connected until now. A server that always drops the
		// connection at once does not count.
		if s.told > told || lasted(s.stood) {
			wait, heard = backoffFirst, time.Now()
		}
		if time.Since(heard) > streamPatience {
			return nil, err
		}
		if s.begun && s.o.Away != nil && !errors.Is(err, errElsewhere) {
			s.o.Away(err)
		}
		if status, ok := errors.AsType[*StatusError](err); ok {
			wait = max(wait, min(status.RetryAfter, longestWait))
		}
		if sleep(ctx, wait) != nil {
			return nil, context.Cause(ctx)
		}
		wait = min(2*wait, backoffMost)
	}
}

// again reports whether a stream that was lost is opened again. A stream that
// was never answered is opened again when the server asks for a retry.
func (s *stream) again(err error, try int) bool {
	if s.begun {
		return passing(err)
	}
	status, refused := errors.AsType[*StatusError](err)
	return refused && status.RetryAfter > 0 && try < attempts
}

// connect reads one connection to its end: an end of the stream, or an error.
func (s *stream) connect(ctx context.Context) (*RunEnd, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.from, s.stood, s.fresh = s.start(), time.Time{}, true
	r := request{method: http.MethodGet, path: s.path, sub: "events", accept: "text/event-stream", query: s.query(), about: s.o.Run}
	answer, err := s.c.open(ctx, r)
	if err != nil {
		return nil, &passingError{err}
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 300 {
		body, _ := io.ReadAll(io.LimitReader(answer.Body, maxObject)) // the code is enough
		return nil, s.c.status(r, answer, body)
	}
	if kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")); kind != "text/event-stream" {
		return nil, s.c.strange(r, "its stream is of the type %q", kind)
	}
	s.begun, s.stood = true, time.Now()
	quiet := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer quiet.Stop()
	in := newRecords(answer.Body, func() { quiet.Reset(silence) })
	for {
		data, err := in.next()
		switch {
		case errors.Is(err, errTooLong):
			return nil, s.c.strange(r, "%v", err)
		case errors.Is(context.Cause(ctx), errSilent):
			return nil, s.lost("%v", errSilent)
		case err != nil:
			return nil, s.lost("the stream was cut: %v", err)
		}
		if end, err := s.record(r, data); end != nil || err != nil {
			return end, err
		}
	}
}

var (
	errSilent = fmt.Errorf("nothing was heard for %s", silence)
	// errElsewhere means that the position at which a connection began belongs
	// to another attempt.
	errElsewhere = &passingError{errors.New("another attempt has begun")}
)

// lost is the end of a connection that may be opened again.
func (s *stream) lost(format string, args ...any) error {
	return &passingError{fail(nil, "%s%s: %s", s.o.Run.prefix(), s.c.name(), fmt.Sprintf(format, args...))}
}

// start is the position at which a connection begins. A position counts the events of the
// run alone: those of the runs below are sent again, and passed over.
func (s *stream) start() int64 {
	switch {
	case !s.o.Children:
		return s.next
	case s.turned:
		return 1
	}
	return max(1, s.o.From)
}

func (s *stream) query() url.Values {
	q := url.Values{}
	if s.from > 1 {
		q.Set("from", strconv.FormatInt(s.from, 10))
	}
	if s.o.Children {
		q.Set("children", "true")
	}
	if !s.o.Follow {
		q.Set("follow", "false")
	}
	if s.attempt > 0 {
		q.Set("attempt", strconv.Itoa(s.attempt))
	}
	return q
}

// control is a record by which the stream speaks of itself.
type control struct {
	Type, Phase, Reason, Message string
	Damage                       string
	Next                         int64
	Attempt                      int
	ExitCode                     *int
}

// record handles one record: the stream ends, fails, or continues. What the
// stream reports about itself has the form of an event of an unknown type.
func (s *stream) record(r request, data []byte) (*RunEnd, error) {
	e := &event.Event{}
	if err := e.UnmarshalJSON(data); err != nil {
		return nil, s.c.strange(r, "its stream holds something that is no event: %v", err)
	}
	if !strings.HasPrefix(string(e.Type()), streamPrefix) {
		return nil, s.event(r, e)
	}
	var w control
	if err := json.Unmarshal(data, &w); err != nil {
		return nil, s.c.strange(r, "its stream holds a record %s that cannot be read: %v", e.Type(), err)
	}
	w.Phase, w.Reason, w.Message = bounded(w.Phase), bounded(w.Reason), bounded(w.Message)
	switch w.Type {
	case streamWaiting:
		return nil, s.see(Record{Waiting: &RunWaiting{w.Phase, w.Reason, w.Message}})
	case streamAttempt:
		return nil, s.turn(r, w.Attempt)
	case streamDropped:
		return nil, s.lost("the server ends the stream: %s", w.Message)
	case streamEnd:
		return s.end(r, &w)
	}
	return nil, nil // one of a later version
}

func (s *stream) event(r request, e *event.Event) error {
	switch {
	case s.o.Children && s.run != "" && e.Run != s.run:
		return s.eventBelow(r, e)
	case s.o.Children && e.Run == s.run && s.from <= e.Seq && e.Seq < s.next:
		return nil // this connection began before it
	case s.run != "" && e.Run != s.run:
		return s.c.strange(r, "its stream goes over from run %s to run %s", s.run, e.Run)
	case e.Seq < s.next:
		return s.c.strange(r, "its stream goes back to event %d where %d is next", e.Seq, s.next)
	case e.Seq > s.next:
		return s.c.strange(r, "its stream leaves out the events from %d to %d", s.next, e.Seq-1)
	}
	s.run, s.fresh = e.Run, false
	s.next++
	s.told++
	return s.see(Record{Event: e})
}

// maxBelow bounds the runs below that a stream may report; a run has far fewer.
const maxBelow = 4096

func (s *stream) eventBelow(r request, e *event.Event) error {
	seen, known := s.below[e.Run]
	switch {
	case e.Seq <= seen:
		return nil
	case known && e.Seq > seen+1:
		return s.c.strange(r, "its stream leaves out the events from %d to %d of run %s", seen+1, e.Seq-1, e.Run)
	case !known && len(s.below) >= maxBelow:
		return s.c.strange(r, "its stream reports more than %d runs below", maxBelow)
	}
	s.below[e.Run] = e.Seq
	s.told++
	return s.see(Record{Below: e})
}

// turn switches to another attempt. If the connection began at a position of
// the attempt before, its server continues there: another connection is needed.
func (s *stream) turn(r request, attempt int) error {
	first := s.run == ""
	switch {
	case attempt == s.attempt:
		return nil
	case attempt < s.attempt || attempt < 1:
		return s.c.strange(r, "its stream goes back to attempt %d", attempt)
	}
	s.attempt = attempt
	if first && attempt == 1 {
		return nil
	}
	if !first {
		s.run, s.next, s.turned = "", 1, true
		clear(s.below)
	}
	if err := s.see(Record{Attempt: attempt}); err != nil {
		return err
	}
	if !first && s.fresh && s.from > 1 {
		return errElsewhere
	}
	return nil
}

func (s *stream) end(r request, w *control) (*RunEnd, error) {
	if w.Next > s.next {
		return nil, s.c.strange(r, "its stream leaves out the events from %d to %d", s.next, w.Next-1)
	}
	if w.Damage != "" {
		return nil, fmt.Errorf("the journal of %s is damaged at its end: %s", s.o.Run, bounded(w.Damage))
	}
	end := &RunEnd{Next: s.next, Phase: w.Phase, Reason: w.Reason, Message: w.Message, ExitCode: -1}
	switch {
	case !s.o.Follow && !end.Ended():
	case w.ExitCode == nil && !end.Ended():
		return nil, s.c.strange(r, "its stream ends while the run is %s", w.Phase)
	case w.ExitCode != nil && *w.ExitCode >= 0 && *w.ExitCode <= 255:
		end.ExitCode = *w.ExitCode
	case v1alpha1.Phase(w.Phase) == v1alpha1.PhaseSucceeded:
		end.ExitCode = reason.ExitOK
	default:
		end.ExitCode = reason.Reason(w.Reason).ExitCode()
	}
	return end, nil
}
