// Package reason is the closed list of words that say how a run ended or why an object is not ready.
//
// Conditions, exit codes, events, reports and docs use these words and no
// others; a new outcome is a new line in this file first.
package reason

import (
	"errors"
	"fmt"
)

// Reason is one word of the list.
type Reason string

// Reasons with which a run ends.
const (
	Completed        Reason = "Completed"
	ModelError       Reason = "ModelError"
	ToolError        Reason = "ToolError"
	NoFinalAnswer    Reason = "NoFinalAnswer"
	OutputTruncated  Reason = "OutputTruncated"
	ContentFiltered  Reason = "ContentFiltered"
	Cancelled        Reason = "Cancelled"
	Internal         Reason = "Internal"
	Denied           Reason = "Denied"
	ApprovalRequired Reason = "ApprovalRequired"

	CredentialMissing  Reason = "CredentialMissing"
	CredentialRejected Reason = "CredentialRejected"

	MaxSteps         Reason = "MaxSteps"
	LoopDetected     Reason = "LoopDetected"
	BudgetExceeded   Reason = "BudgetExceeded"
	DeadlineExceeded Reason = "DeadlineExceeded"
	ContextExhausted Reason = "ContextExhausted"

	OutputInvalid        Reason = "OutputInvalid"
	EvidenceMissing      Reason = "EvidenceMissing"
	ReplayDiverged       Reason = "ReplayDiverged"
	ProviderUnavailable  Reason = "ProviderUnavailable"
	IsolationUnavailable Reason = "IsolationUnavailable"
	WorkspaceUnavailable Reason = "WorkspaceUnavailable"
)

// Reasons of conditions on objects.
const (
	Accepted          Reason = "Accepted"
	ReferenceNotFound Reason = "ReferenceNotFound"
	PathNotAbsolute   Reason = "PathNotAbsolute"
	SpecInvalid       Reason = "SpecInvalid"
	PolicyInvalid     Reason = "PolicyInvalid"
	LockDrift         Reason = "LockDrift"
	ToolChanged       Reason = "ToolChanged"
	PluginFailed      Reason = "PluginFailed"
)

// Exit codes of run, resume and replay. They are frozen.
const (
	ExitOK         = 0
	ExitFailed     = 1
	ExitUsage      = 2
	ExitRefused    = 3
	ExitCredential = 4
	ExitLimit      = 5
	ExitOutput     = 6
	ExitDiverged   = 7
	ExitHost       = 8
	ExitWait       = 124
	ExitInterrupt  = 130
	ExitTerminate  = 143
)

// Info describes a reason.
type Info struct {
	Reason Reason
	// ExitCode of a run that ends with the reason, or, as an object, cannot begin
	// because of it; -1 for other reasons of objects.
	ExitCode int
	// Meaning in one sentence.
	Meaning string
}

var table = []Info{
	{Completed, ExitOK, "The model gave its final answer."},
	{ModelError, ExitFailed, "The model's endpoint gave no usable answer."},
	{ToolError, ExitFailed, "A tool's program could not be started or broke the protocol, or a step of a plan failed."},
	{NoFinalAnswer, ExitFailed, "The model stopped without a final answer."},
	{OutputTruncated, ExitFailed, "The final answer was cut at the model's output limit."},
	{ContentFiltered, ExitFailed, "The provider's content filter stopped the answer."},
	{Cancelled, ExitFailed, "The run was cancelled; 130 or 143 when a signal did it."},
	{Internal, ExitFailed, "agentctl itself failed; the message says where."},
	{Denied, ExitRefused, "A person refused a call and ended the run, no answer followed a denied call, or no call that was judged was allowed to run."},
	{ApprovalRequired, ExitRefused, "A call waits for an approval, or no answer followed an unanswered question."},
	{CredentialMissing, ExitCredential, "A reference to a key or token leads nowhere."},
	{CredentialRejected, ExitCredential, "The provider refused the key (401 or 403)."},
	{MaxSteps, ExitLimit, "limits.maxSteps model calls were made."},
	{LoopDetected, ExitLimit, "The model repeated the same calls."},
	{BudgetExceeded, ExitLimit, "limits.maxTokens or limits.maxCost was reached."},
	{DeadlineExceeded, ExitLimit, "limits.timeout passed."},
	{ContextExhausted, ExitLimit, "The conversation does not fit into the model's context window."},
	{OutputInvalid, ExitOutput, "The final answer does not satisfy output.schema."},
	{EvidenceMissing, ExitOutput, "The agent's evidence is not complete: an expression of spec.evidence is not true."},
	{ReplayDiverged, ExitDiverged, "A replayed run differs from its recording."},
	{ProviderUnavailable, ExitHost, "The model's endpoint cannot be reached, or this program cannot speak to it."},
	{IsolationUnavailable, ExitHost, "This host does not support the isolation that a tool requires."},
	{WorkspaceUnavailable, ExitHost, "The files of the run or of its skills cannot be fetched, copied or read, or what it changed cannot be listed."},
	{Accepted, -1, "The object is valid and usable."},
	{ReferenceNotFound, ExitUsage, "The object names another object that does not exist."},
	{PathNotAbsolute, ExitUsage, "The object holds a relative path, which an API object must not."},
	{SpecInvalid, ExitUsage, "The object's spec holds a mistake; the message says where."},
	{PolicyInvalid, ExitUsage, "A rule of the policy does not compile against the tools it matches."},
	{LockDrift, ExitUsage, "What the manifests name is not what their lock pins."},
	{ToolChanged, -1, "The tool's program, description or schema differs from what was approved."},
	{PluginFailed, -1, "The tool's program does not start or does not answer."},
}

// All returns every reason, those of runs first.
func All() []Info { return append([]Info(nil), table...) }

// Lookup returns the description of r.
func Lookup(r Reason) (Info, bool) {
	for _, i := range table {
		if i.Reason == r {
			return i, true
		}
	}
	return Info{}, false
}

// ExitCode returns the exit code of a run that ends with r. A word that is not
// in the list, or is a reason of objects only, counts as Internal.
func (r Reason) ExitCode() int {
	if i, ok := Lookup(r); ok && i.ExitCode >= 0 {
		return i.ExitCode
	}
	return ExitFailed
}

// Error is an error with a reason and a next step. Its text says what was being
// done to which object; Hint says how to continue.
type Error struct {
	Reason Reason
	Err    error
	Hint   string
}

// New returns an Error whose text is formatted like fmt.Errorf.
func New(r Reason, format string, args ...any) *Error {
	return &Error{Reason: r, Err: fmt.Errorf(format, args...)}
}

// WithHint sets the next step and returns e.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Of returns the reason an error carries, or Internal when it carries none.
func Of(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return Internal
}

// Hint returns the next step an error carries, or "".
func Hint(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Hint
	}
	return ""
}
