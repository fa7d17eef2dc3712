package control

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// TestARunThatCannotBeginEnds: the agent that it names never comes.
func TestARunThatCannotBeginEnds(t *testing.T) {
	for name, c := range map[string]struct {
		reason, spec string
		at           time.Duration
		phase        v1alpha1.Phase
		why, message string
		again        time.Duration
	}{
		"at first":         {"it may come yet", "", time.Second, v1alpha1.PhasePending, "ReferenceNotFound", "not found", 10 * time.Minute},
		"in time":          {"it may come yet", "", 10 * time.Minute, v1alpha1.PhasePending, "ReferenceNotFound", "not found", time.Second},
		"too late":         {"the default deadline", "", 10*time.Minute + time.Second, v1alpha1.PhaseFailed, "ReferenceNotFound", "not ready within startDeadline", 0},
		"own deadline":     {"the declared deadline", ", startDeadline: 5s", 6 * time.Second, v1alpha1.PhaseFailed, "ReferenceNotFound", "not ready within startDeadline", 0},
		"longer deadline":  {"the declared deadline", ", startDeadline: 1h", 30 * time.Minute, v1alpha1.PhasePending, "ReferenceNotFound", "not found", 30*time.Minute + time.Second},
		"timeout":          {"it counts from the request", ", limits: {timeout: 1s}", 2 * time.Second, v1alpha1.PhaseFailed, "DeadlineExceeded", "limits.timeout of 1s passed before it began", 0},
		"timeout to come":  {"it counts from the request", ", limits: {timeout: 3s}", 2 * time.Second, v1alpha1.PhasePending, "ReferenceNotFound", "not found", 2 * time.Second},
		"timeout is later": {"what ends first counts", ", startDeadline: 2s, limits: {timeout: 1h}", 3 * time.Second, v1alpha1.PhaseFailed, "ReferenceNotFound", "not ready within startDeadline", 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, head+"kind: Run\nmetadata: {name: one}\nspec: {agentRef: {name: nowhere}, prompt: x"+c.spec+"}\n")
			run := &v1alpha1.Run{}
			if err := b.Get(t.Context(), request("one").NamespacedName, run); err != nil {
				t.Fatal(err)
			}
			run.CreationTimestamp = metav1.NewTime(b.clock)
			if err := b.Update(t.Context(), run); err != nil {
				t.Fatal(err)
			}
			b.clock = b.clock.Add(c.at)
			result, err := newRunReconciler(b.base, b.executor).Reconcile(t.Context(), request("one"))
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Get(t.Context(), request("one").NamespacedName, run); err != nil {
				t.Fatal(err)
			}
			got := run.Status.Conditions[0]
			if run.Status.Phase != c.phase || got.Reason != c.why || !strings.Contains(got.Message, c.message) || result.RequeueAfter != c.again {
				t.Errorf("%s: %s %s %q, again after %s", c.reason, run.Status.Phase, got.Reason, got.Message, result.RequeueAfter)
			}
		})
	}
}

// TestARunThatWaitsForAWorkerEndsAtItsTimeout: its time counts from the request.
func TestARunThatWaitsForAWorkerEndsAtItsTimeout(t *testing.T) {
	for name, c := range map[string]struct {
		spec  string
		phase v1alpha1.Phase
		began bool // a worker has taken it meanwhile
	}{
		"timeout":    {", limits: {timeout: 2s}", v1alpha1.PhaseFailed, false},
		"no timeout": {"", v1alpha1.PhasePending, false},
		"not yet":    {", limits: {timeout: 1m}", v1alpha1.PhasePending, false},
		"began":      {", limits: {timeout: 2s}", v1alpha1.PhasePending, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, head+"kind: Run\nmetadata: {name: one}\nspec: {agentRef: {name: worker}, prompt: x"+c.spec+"}\n")
			run := &v1alpha1.Run{}
			if err := b.Get(t.Context(), request("one").NamespacedName, run); err != nil {
				t.Fatal(err)
			}
			run.CreationTimestamp = metav1.NewTime(b.clock)
			if err := b.Update(t.Context(), run); err != nil {
				t.Fatal(err)
			}
			b.clock = b.clock.Add(4 * time.Second)
			b.executor.seen[RunID(run)] = Observation{Progress: Queued}
			b.executor.keeps = c.began
			if _, err := newRunReconciler(b.base, b.executor).Reconcile(t.Context(), request("one")); err != nil {
				t.Fatal(err)
			}
			if err := b.Get(t.Context(), request("one").NamespacedName, run); err != nil {
				t.Fatal(err)
			}
			if run.Status.Phase != c.phase {
				t.Errorf("%s, want %s: %+v", run.Status.Phase, c.phase, run.Status.Conditions)
			}
			if c.phase == v1alpha1.PhaseFailed && run.Status.Conditions[0].Reason != "DeadlineExceeded" {
				t.Errorf("the reason is %s", run.Status.Conditions[0].Reason)
			}
		})
	}
}
