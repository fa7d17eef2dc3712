package runapi

import (
	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// The types of the records about the stream itself. No event of a journal has one of these
// types.
const (
	// recordWaiting: the run has no journal yet.
	recordWaiting event.Type = "stream.waiting"
	// recordAttempt: the events of that attempt follow.
	recordAttempt event.Type = "stream.attempt"
	// recordEnd: there are no more events.
	recordEnd event.Type = "stream.end"
	// recordDropped: there may be more events, and another stream can continue from there.
	recordDropped event.Type = "stream.dropped"
)

// record is a record about the stream itself.
type record struct {
	Type event.Type `json:"type"`
	// Next is the number of the first event that was not sent.
	Next int64 `json:"next,omitempty"`
	// Attempt counts the journals of a run from 1.
	Attempt int32 `json:"attempt,omitempty"`
	// Phase, Reason and Message as in the status of the run.
	Phase   v1alpha1.Phase `json:"phase,omitempty"`
	Reason  string         `json:"reason,omitempty"`
	Message string         `json:"message,omitempty"`
	// ExitCode of a run that has ended, also of one that never began.
	ExitCode *int `json:"exitCode,omitempty"`
	// Damage describes how the journal was cut or changed at its end: recorded events are
	// missing from this stream.
	Damage string `json:"damage,omitempty"`
}

// why is how a stream ends.
type why int

const (
	// whyEnd: everything was sent.
	whyEnd why = iota
	// whyLater: this server is stopping.
	whyLater
	// whyReader: the reader was too slow, or may not read any more.
	whyReader
)
