package control

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// suspend leaves a run that is executed as it is, and does not begin one that has not
// begun. A run that waits for an answer still waits for it, and is not begun when it has
// come.
func (r *runReconciler) suspend(ctx context.Context, run *v1alpha1.Run, seen Observation) error {
	id := RunID(run)
	switch seen.Progress {
	case Queued, Living:
		r.executor.Suspend(id)
		if seen = r.executor.Observe(id); seen.Progress == Queued || seen.Progress == Living {
			return nil // leaving the run triggers another reconcile
		}
	case Waiting:
		if run.Status.Phase == v1alpha1.PhaseSuspended {
			return r.observed(ctx, run)
		}
	case Unknown, Left, Ended:
	}
	status := seen.Status
	if status.Phase == "" { // its journal has not been read in this process
		status = *run.Status.DeepCopy()
	}
	status.Phase = v1alpha1.PhaseSuspended
	if run.Status.Phase == v1alpha1.PhaseSuspended { // it is known what it came to
		r.executor.Release(id)
	}
	return r.write(ctx, run, status, readiness{
		status: metav1.ConditionUnknown, why: reason.Accepted, message: "suspended by spec.suspend: false continues it",
	})
}
