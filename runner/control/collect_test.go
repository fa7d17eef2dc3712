package control

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// TestWhatBecomesOfDependentsIsAsked deletes an agent that owns runs: one that has ended,
// and one that is running.
func TestWhatBecomesOfDependentsIsAsked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason string
		policy metav1.DeletionPropagation
		keeps  bool
	}{
		"background": {"runs go with their agent", metav1.DeletePropagationBackground, false},
		"foreground": {"the agent goes when the last run is gone", metav1.DeletePropagationForeground, false},
		"orphan":     {"the runs are kept", metav1.DeletePropagationOrphan, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSpace(t)
			manifests, fifo := hanging(t)
			s.apply(manifests + sep + runYAML("hangs", ""))
			begun(t, fifo)
			run := s.awaitPhase("hangs", v1alpha1.PhaseRunning)
			if len(run.OwnerReferences) != 1 {
				t.Fatalf("the owners are %+v, want the agent", run.OwnerReferences)
			}
			agents, err := s.Watch(t.Context(), &v1alpha1.AgentList{}, client.InNamespace(s.name))
			if err != nil {
				t.Fatal(err)
			}
			defer agents.Stop()
			runs := s.watchRuns()
			defer runs.Stop()
			agent := &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "worker"}}
			if err := s.Delete(t.Context(), agent, client.PropagationPolicy(c.policy)); err != nil {
				t.Fatal(err)
			}
			s.awaitGone(agents, agent)
			if c.policy == metav1.DeletePropagationBackground {
				s.awaitGone(runs, run)
			}
			err = s.Get(t.Context(), client.ObjectKeyFromObject(run), run)
			if !c.keeps {
				if !apierrors.IsNotFound(err) {
					t.Errorf("%s: %v", c.reason, err)
				}
				return
			}
			if err != nil || len(run.OwnerReferences) != 0 || !run.DeletionTimestamp.IsZero() {
				t.Errorf("%s: %v, %+v", c.reason, err, run.ObjectMeta)
			}
			s.delete(run) // it hangs
		})
	}
}

// TestRunsThatNeverBeganGoWithTheirAgent deletes an agent whose runs wait for
// something, are refused, or were cancelled or suspended before they began.
func TestRunsThatNeverBeganGoWithTheirAgent(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply(workerYAML)
	s.awaitReady(v1alpha1.KindAgent, "worker", "True", "Accepted")
	all := map[string]struct {
		spec  string
		phase v1alpha1.Phase
	}{
		"waits":     {", workspaceRef: {name: later}", v1alpha1.PhasePending},
		"refused":   {", limits: {maxSteps: 100000}", v1alpha1.PhaseFailed},
		"cancelled": {", cancel: true", v1alpha1.PhaseCancelled},
		"suspended": {", suspend: true", v1alpha1.PhaseSuspended},
	}
	left := map[string]bool{}
	for name, c := range all {
		s.apply(runYAML(name, c.spec))
		if run := s.awaitPhase(name, c.phase); len(run.OwnerReferences) != 1 {
			t.Errorf("run %s is owned by %+v, want its agent", name, run.OwnerReferences)
		}
		left[name] = true
	}
	runs := s.watchRuns()
	defer runs.Stop()
	if err := s.Delete(t.Context(), &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "worker"}}); err != nil {
		t.Fatal(err)
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	for len(left) > 0 {
		select {
		case e := <-runs.ResultChan():
			if e.Type == watch.Deleted {
				delete(left, e.Object.(client.Object).GetName()) //nolint:forcetypeassert // it is a run
			}
		case <-late.C:
			t.Fatalf("these runs are there without their agent: %v", left)
		}
	}
}
