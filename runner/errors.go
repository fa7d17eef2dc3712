package runner

import (
	"fmt"
	"io"
	"os"
	"syscall"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/manifest"
)

// InvalidError says that the manifests hold mistakes. No run came about; the
// command line exits with 2.
type InvalidError struct{ Findings manifest.Findings }

func (e *InvalidError) Error() string {
	errors, _ := e.Findings.Count()
	if errors == 1 {
		return "the manifests hold a mistake"
	}
	return fmt.Sprintf("the manifests hold %d mistakes", errors)
}

// Write prints at most limit mistakes as a compiler does.
func (e *InvalidError) Write(w io.Writer, limit int) error { return e.Findings.Write(w, limit) }

// SignalError is the cause of a context that a signal has ended.
type SignalError struct{ Signal os.Signal }

func (e SignalError) Error() string { return "stopped by " + e.Signal.String() }

// Unwrap gives the error its reason.
func (e SignalError) Unwrap() error { return reason.New(reason.Cancelled, "stopped by %s", e.Signal) }

// ExitCode is 128 plus the signal's number, as a shell reports it.
func (e SignalError) ExitCode() int {
	if e.Signal == syscall.SIGTERM {
		return reason.ExitTerminate
	}
	return reason.ExitInterrupt
}
