package v1alpha1

// Condition types. Their reasons are the closed list of
// package reason.
const (
	// ConditionReady reports whether a long-lived object can be used: its
	// references exist, its rules compile, its program answers.
	ConditionReady = "Ready"
	// ConditionSucceeded reports how a Run ended; it is Unknown until then.
	ConditionSucceeded = "Succeeded"
	// ConditionRetrying reports why the last attempt of a Run failed; it is True
	// until the next attempt has begun.
	ConditionRetrying = "Retrying"
)

// Phase is a one-word summary of a Run for printing; programs read the
// conditions instead.
// +kubebuilder:validation:Enum=Pending;Running;Suspended;Succeeded;Failed;Cancelled
type Phase string

// The phases of a Run.
const (
	PhasePending   Phase = "Pending"
	PhaseRunning   Phase = "Running"
	PhaseSuspended Phase = "Suspended"
	PhaseSucceeded Phase = "Succeeded"
	PhaseFailed    Phase = "Failed"
	PhaseCancelled Phase = "Cancelled"
)

// Finished reports whether a run in this phase has ended permanently.
func (p Phase) Finished() bool {
	switch p {
	case PhaseSucceeded, PhaseFailed, PhaseCancelled:
		return true
	case PhasePending, PhaseRunning, PhaseSuspended:
	}
	return false
}
