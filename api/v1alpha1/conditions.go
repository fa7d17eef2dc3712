package v1alpha1

// Condition types. The reasons that stand beside them are the closed list of
// package reason.
const (
	// ConditionReady tells whether a long-lived object can be used: its
	// references exist, its rules compile, its program answers.
	ConditionReady = "Ready"
	// ConditionSucceeded tells how a Run ended; it is Unknown while the run goes on.
	ConditionSucceeded = "Succeeded"
	// ConditionRetrying tells what the last attempt of a Run died of; it is True
	// until the next one has begun.
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

// Finished says whether a run has ended for good in this phase.
func (p Phase) Finished() bool {
	switch p {
	case PhaseSucceeded, PhaseFailed, PhaseCancelled:
		return true
	case PhasePending, PhaseRunning, PhaseSuspended:
	}
	return false
}
