package model

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Defaults of a Stall.
const (
	// DefaultFirstByte is long: a model may think before it says anything.
	DefaultFirstByte = 5 * time.Minute
	DefaultIdle      = 60 * time.Second
)

// Stall ends a request whose stream has gone quiet: it cancels the request's
// context with a retryable Error as cause.
type Stall struct {
	timer  *time.Timer
	cancel context.CancelCauseFunc
	idle   time.Duration
	// fixed is set when bytes no longer begin a new silence.
	fixed bool
}

// NewStall starts to wait for the first byte. Stop must be called.
func NewStall(cancel context.CancelCauseFunc, first, idle time.Duration) *Stall {
	s := &Stall{cancel: cancel, idle: idle}
	s.timer = time.AfterFunc(first, func() { s.end(first) })
	return s
}

func (s *Stall) end(limit time.Duration) {
	s.cancel(&Error{
		Kind: Retryable, Class: "stream", Err: fmt.Errorf("the server sent nothing for %s", limit),
		Hint: "the endpoint accepts requests and does not answer: is it overloaded?",
	})
}

// Expect changes how long the next silence may be.
func (s *Stall) Expect(idle time.Duration) {
	s.Stop()
	s.idle = idle
	s.timer = time.AfterFunc(idle, func() { s.end(idle) })
}

// Within bounds all that is still to come, however often bytes of it arrive: a
// server that has said what matters can otherwise be waited for without an end.
func (s *Stall) Within(d time.Duration) {
	s.fixed = true
	s.Expect(d)
}

// Stop ends the waiting.
func (s *Stall) Stop() { s.timer.Stop() }

// Reader returns r; every read that brings bytes begins a new silence.
func (s *Stall) Reader(r io.Reader) io.Reader { return &stallReader{s, r, false} }

type stallReader struct {
	s     *Stall
	r     io.Reader
	begun bool
}

func (r *stallReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if n == 0 || r.s.fixed {
		return n, err
	}
	if r.begun {
		r.s.timer.Reset(r.s.idle)
	} else {
		r.begun = true
		r.s.Expect(r.s.idle)
	}
	return n, err
}
