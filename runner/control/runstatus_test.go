package control

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// TestANewerSpecIsObserved changes only the spec of runs: clients that wait for a
// condition wait for one of the newest generation.
func TestANewerSpecIsObserved(t *testing.T) {
	for name, c := range map[string]struct {
		reason, spec string
		phase        v1alpha1.Phase
		retrying     bool
		seen         Progress
	}{
		"finished":             {reason: "its time may be another one", phase: v1alpha1.PhaseSucceeded, seen: Left},
		"waits for a person":   {reason: "it is not begun", phase: v1alpha1.PhaseSuspended, seen: Waiting},
		"waits, and suspended": {reason: "it was suspended already", spec: ", suspend: true", phase: v1alpha1.PhaseSuspended, seen: Waiting},
		"waits to be retried":  {reason: "its time has not come", spec: ", backoffLimit: 3", phase: v1alpha1.PhasePending, retrying: true, seen: Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, workerYAML+sep+runYAML("one", c.spec)).settled()
			run := b.run("one")
			then := metav1.NewTime(b.clock)
			run.Status = v1alpha1.RunStatus{Phase: c.phase, Attempt: 2, ObservedGeneration: 1, Conditions: []metav1.Condition{
				{Type: v1alpha1.ConditionSucceeded, Status: "Unknown", Reason: "Accepted", Message: "as it was", ObservedGeneration: 1, LastTransitionTime: then},
			}}
			if c.retrying {
				run.Status.Conditions = append(run.Status.Conditions, metav1.Condition{
					Type: v1alpha1.ConditionRetrying, Status: "True", Reason: "ModelError", ObservedGeneration: 1, LastTransitionTime: then,
				})
			}
			if err := b.Status().Update(t.Context(), run); err != nil {
				t.Fatal(err)
			}
			run.Generation = 2
			if err := b.Update(t.Context(), run); err != nil {
				t.Fatal(err)
			}
			b.executor.seen[RunID(run)] = Observation{Progress: c.seen}
			b.clock = b.clock.Add(firstRetry / 2)
			r := newRunReconciler(b.base, b.executor)
			b.step(r, "one")
			s := b.run("one").Status
			got := s.Conditions[0]
			if s.ObservedGeneration != 2 || got.ObservedGeneration != 2 {
				t.Errorf("%s: generations %d and %d are observed, want 2", c.reason, s.ObservedGeneration, got.ObservedGeneration)
			}
			if s.Phase != c.phase || s.Attempt != 2 || got.Message != "as it was" || !got.LastTransitionTime.Time.Equal(then.Time) || len(b.executor.started) > 0 || len(b.told) > 0 {
				t.Errorf("%s: more than that has changed: %+v, told %q", c.reason, s, b.told)
			}
			if b.step(r, "one"); b.writes != 1 {
				t.Errorf("%s: it is written %d times", c.reason, b.writes)
			}
		})
	}
}

// TestAnEndIsNotThatOfANamesake deletes a run that nothing keeps yet, and makes
// another one of its name, before what was found out about the first is written.
func TestAnEndIsNotThatOfANamesake(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply(runYAML("one", ""))
	first := s.awaitPhase("one", v1alpha1.PhasePending) // the agent does not exist
	s.delete(first)
	s.apply(runYAML("one", ""))
	r := newRunReconciler(base{Client: s, live: s, events: LogSink(shared.plane.workers.o.Log), now: shared.plane.workers.o.Now}, nil)
	if err := r.never(t.Context(), first, reason.SpecInvalid, "it is wrong"); !apierrors.IsConflict(err) {
		t.Errorf("the end was written: %v, want a conflict", err)
	}
	second := s.awaitPhase("one", v1alpha1.PhasePending, v1alpha1.PhaseFailed)
	if second.UID == first.UID || second.Status.Phase != v1alpha1.PhasePending {
		t.Errorf("the second run has ended: %+v", second.Status)
	}
}
