package reason

import (
	"context"
	"errors"
	"os"
	"syscall"
)

// SignalError is the cause of a context that a signal has ended.
type SignalError struct{ Signal os.Signal }

func (e SignalError) Error() string { return "stopped by " + e.Signal.String() }

// Unwrap gives the error its reason.
func (e SignalError) Unwrap() error { return New(Cancelled, "stopped by %s", e.Signal) }

// ExitCode is 128 plus the signal's number, as a shell reports it.
func (e SignalError) ExitCode() int {
	if e.Signal == syscall.SIGTERM {
		return ExitTerminate
	}
	return ExitInterrupt
}

// Signal returns the signal that has ended a context.
func Signal(ctx context.Context) (SignalError, bool) {
	return errors.AsType[SignalError](context.Cause(ctx))
}
