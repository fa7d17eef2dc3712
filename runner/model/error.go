package model

import (
	"context"
	"errors"
	"time"

	"agentctl.dev/agentctl/api/reason"
)

// Kind is what can be done about a failed request.
type Kind int

// The kinds. The zero value is the strictest: an unknown error is not repeated.
const (
	// Never is not repeated: the same request would fail again. ModelError.
	Never Kind = iota
	// Retryable may pass. ProviderUnavailable when the attempts are spent.
	Retryable
	// Unavailable will not pass soon: an exhausted quota, an unknown host. It is
	// not repeated, but a fallback may help. ProviderUnavailable.
	Unavailable
	// Credential means that the key was refused. CredentialRejected.
	Credential
	// Overflow means that the conversation is too long. ContextExhausted.
	Overflow
	// Filtered means that the provider refused the content. ContentFiltered.
	Filtered
	// Malformed means that the model wrote what its server cannot read. Another
	// attempt, or another model, may do better. ModelError when the attempts are
	// spent.
	Malformed
)

var reasons = map[Kind]reason.Reason{
	Never:       reason.ModelError,
	Retryable:   reason.ProviderUnavailable,
	Unavailable: reason.ProviderUnavailable,
	Credential:  reason.CredentialRejected,
	Overflow:    reason.ContextExhausted,
	Filtered:    reason.ContentFiltered,
	Malformed:   reason.ModelError,
}

// Error is a failed request. Providers return it from an attempt; the Retry
// layer decides by its Kind and gives it the reason that the loop reads.
type Error struct {
	Kind Kind
	// Class is a short word for people and events: an HTTP status, "connection",
	// "stream", "protocol".
	Class string
	Err   error
	// Hint is the next step for a person; may be empty.
	Hint string
	// Wait is what the server asked for before the next request; nil when it
	// asked for nothing.
	Wait *time.Duration
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// repeatable reports whether the same request may succeed when it is sent again.
func (e *Error) repeatable() bool { return e.Kind == Retryable || e.Kind == Malformed }

// Reason is how a run ends that cannot get past the error.
func (e *Error) Reason() reason.Reason { return reasons[e.Kind] }

// Explain gives any error of an attempt the reason that the loop reads. An error that has
// a reason keeps it; the end of a context is distinguished from a failure of the provider;
// anything unknown is Internal.
func Explain(err error) error {
	if _, ok := errors.AsType[*reason.Error](err); ok || err == nil {
		return err
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return &reason.Error{Reason: e.Reason(), Err: err, Hint: e.Hint}
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &reason.Error{Reason: reason.DeadlineExceeded, Err: err}
	case errors.Is(err, context.Canceled):
		return &reason.Error{Reason: reason.Cancelled, Err: err}
	}
	return err
}
