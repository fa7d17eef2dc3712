package model

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// Defaults of Patience.
const (
	// DefaultFirstByte is long: a model may think before its server sends anything.
	DefaultFirstByte = 5 * time.Minute
	DefaultIdle      = 60 * time.Second
)

// Patience bounds how long an answer may make no progress. Progress is a piece of the
// answer: a text, a thought, a call. Comments, pings and other bytes that only keep the
// connection open do not count.
type Patience struct {
	// FirstByte bounds the time to the first byte of the response. From then on the
	// header has to be complete within Idle.
	FirstByte time.Duration
	// Idle bounds the time without any byte of the body.
	Idle time.Duration
	// Quiet bounds the time without progress while bytes arrive.
	Quiet time.Duration
	// Busy replaces Quiet while the server has announced something that it does not
	// send in pieces: a hidden thought, a tool of its own, the arguments of a call.
	Busy time.Duration
}

// WithDefaults sets the defaults. A server that sends keep-alives gets twice the time of a
// silent one, as queues and long prompts take that long, and ten times as long while it
// reports that the model is at work: that is what the vendors' own clients wait in total.
func (p Patience) WithDefaults() Patience {
	if p.FirstByte <= 0 {
		p.FirstByte = DefaultFirstByte
	}
	if p.Idle <= 0 {
		p.Idle = DefaultIdle
	}
	if p.Quiet <= 0 {
		p.Quiet = 2 * p.Idle
	}
	if p.Busy <= 0 {
		p.Busy = 10 * p.Idle
	}
	return p
}

// Stall ends a request whose answer makes no progress: it cancels the request's
// context with a retryable Error as cause.
type Stall struct {
	cancel   context.CancelCauseFunc
	patience Patience

	// mu guards what the transport's goroutine and the reader's share.
	mu sync.Mutex
	// silence ends when a byte arrives, quiet when a piece of the answer does.
	silence, quiet *time.Timer
	begun          bool // the response
	fixed          bool // bytes no longer begin a new silence
}

// NewStall starts to wait for the first byte. Stop must be called.
func NewStall(cancel context.CancelCauseFunc, p Patience) *Stall {
	s := &Stall{cancel: cancel, patience: p}
	s.silence = s.after(p.FirstByte, "the server sent nothing for %s", "the endpoint accepts requests and does not answer: is it overloaded?")
	return s
}

func (s *Stall) after(limit time.Duration, says, hint string) *time.Timer {
	return time.AfterFunc(limit, func() {
		s.cancel(&Error{Kind: Retryable, Class: "stream", Err: fmt.Errorf(says, limit), Hint: hint})
	})
}

// hearNothing begins a new silence. The caller holds mu.
func (s *Stall) hearNothing(limit time.Duration) {
	s.silence.Stop()
	s.silence = s.after(limit, "the server sent nothing for %s", "the endpoint began an answer and fell silent: is it overloaded?")
}

// expectProgress begins to wait for the next piece. The caller holds mu.
func (s *Stall) expectProgress(limit time.Duration) {
	if s.quiet != nil {
		s.quiet.Stop()
	}
	s.quiet = s.after(limit, "the server kept the connection open for %s without a piece of the answer",
		"raise spec.retry.stallTimeout of the Model if its model is silent for that long, or name a fallback")
}

// Begin reports the first byte of the response. The rest of its header has to come
// without a pause: a header that drips is not an answer.
func (s *Stall) Begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin()
}

func (s *Stall) begin() {
	if s.begun {
		return
	}
	s.begun = true
	s.silence.Stop()
	s.silence = s.after(s.patience.Idle, "the server did not complete the header of its response within %s", "the endpoint accepts requests and does not answer: is it overloaded?")
	s.expectProgress(s.patience.Quiet)
}

// Progress records a piece of the answer. Busy: the server has announced more which it
// does not send in pieces.
func (s *Stall) Progress(busy bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	limit := s.patience.Quiet
	if busy {
		limit = s.patience.Busy
	}
	s.expectProgress(limit)
}

// Within bounds all that is still to come, however often bytes of it arrive: a
// server that has said what matters can otherwise be waited for without an end.
func (s *Stall) Within(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fixed = true
	s.hearNothing(d)
}

// Stop ends the waiting.
func (s *Stall) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silence.Stop()
	if s.quiet != nil {
		s.quiet.Stop()
	}
}

// Reader returns r, the body of the response; every read that brings bytes begins
// a new silence.
func (s *Stall) Reader(r io.Reader) io.Reader { return &stallReader{s: s, r: r} }

type stallReader struct {
	s     *Stall
	r     io.Reader
	begun bool
}

func (r *stallReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if n == 0 {
		return n, err
	}
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.fixed:
	case r.begun:
		s.silence.Reset(s.patience.Idle)
	default:
		r.begun = true
		s.begin()
		s.hearNothing(s.patience.Idle)
	}
	return n, err
}
