package control

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// TestWhatBecomesOfDependentsIsAsked deletes an agent that owns runs: one that
// has ended, and one that goes on.
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
