package runapi

import (
	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// The types of the records by which a stream speaks of itself. No event of a
// journal has one of these.
const (
	// recordWaiting: the run has no journal yet.
	recordWaiting event.Type = "stream.waiting"
	// recordAttempt: what follows is the journal of that attempt.
	recordAttempt event.Type = "stream.attempt"
	// recordEnd: there are no more events.
	recordEnd event.Type = "stream.end"
	// recordDropped: there may be more events, and another stream can continue from there.
	recordDropped event.Type = "stream.dropped"
)

// record is one by which a stream speaks of itself.
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
	// whyLater: this server goes away.
	whyLater
	// whyReader: the reader was too slow, or may not read any more.
	whyReader
)
