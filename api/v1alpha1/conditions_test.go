package v1alpha1

import "testing"

func TestOnlyAnEndIsFinished(t *testing.T) {
	for phase, want := range map[Phase]bool{
		"": false, PhasePending: false, PhaseRunning: false, PhaseSuspended: false,
		PhaseSucceeded: true, PhaseFailed: true, PhaseCancelled: true,
	} {
		if got := phase.Finished(); got != want {
			t.Errorf("phase %q: finished %v, want %v", phase, got, want)
		}
	}
}
