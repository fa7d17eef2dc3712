package control

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
)

const (
	// firstRetry is the time between the end of the first attempt of a run and the
	// second; each further one waits twice as long as the one before, up to
	// lastRetry.
	firstRetry, lastRetry = 10 * time.Second, 6 * time.Minute
	// outdatedFor bounds the belief that a cache is only late.
	outdatedFor = 10 * time.Second
)

// backOff is how long a run waits that has failed n times.
func backOff(n int32) time.Duration {
	wait := firstRetry
	for ; n > 1 && wait < lastRetry; n-- {
		wait *= 2
	}
	return min(wait, lastRetry)
}

// retryable reports whether another attempt may succeed: the failure was neither caused by
// the run itself, nor a refusal, nor a limit.
func retryable(why reason.Reason) bool {
	return why == reason.ModelError || why == reason.ProviderUnavailable || why == reason.Internal
}

// again reports whether a run that failed for a reason is to be tried again.
func (r *runReconciler) again(run *v1alpha1.Run, why reason.Reason) bool {
	return retryable(why) && !run.Spec.Cancel && max(run.Status.Attempt, 1) <= run.Spec.BackoffLimit
}

// retry records that a run will be tried again, and when. The journal of the ended attempt
// stays. The next attempt begins only when this is written, so that a later process knows
// which attempt is the newest.
func (r *runReconciler) retry(ctx context.Context, run *v1alpha1.Run, died readiness) (ctrl.Result, error) {
	before, n := RunID(run), max(run.Status.Attempt, 1)
	wait := backOff(n)
	v := died
	v.status = metav1.ConditionUnknown
	v.message = fmt.Sprintf("attempt %d of %d failed: %s; the next begins after %s", n, run.Spec.BackoffLimit+1, died.message, wait)
	retrying := died
	retrying.status, retrying.message = metav1.ConditionTrue, fmt.Sprintf("attempt %d: %s", n, died.message)
	conditions := r.withCondition(run.Status.Conditions, v.condition(v1alpha1.ConditionSucceeded, run))
	meta.RemoveStatusCondition(&conditions, v1alpha1.ConditionRetrying) // it failed now, also if the condition has been there already
	conditions = r.withCondition(conditions, retrying.condition(v1alpha1.ConditionRetrying, run))
	status := v1alpha1.RunStatus{Phase: v1alpha1.PhasePending, Attempt: n + 1}
	if err := r.writeConditions(ctx, run, status, v, conditions); err != nil {
		return ctrl.Result{}, err
	}
	r.executor.Release(before)
	return ctrl.Result{RequeueAfter: wait}, nil
}

// untilRetry is how long a run has to wait until its next attempt begins.
func (r *runReconciler) untilRetry(run *v1alpha1.Run) time.Duration {
	died := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionRetrying)
	if died == nil || died.Status != metav1.ConditionTrue {
		return 0
	}
	return died.LastTransitionTime.Add(backOff(run.Status.Attempt - 1)).Sub(r.now())
}

// outdated reports whether the cache does not know the newest attempt yet.
func (r *runReconciler) outdated(run *v1alpha1.Run) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.written[client.ObjectKeyFromObject(run)]
	return w.uid == run.UID && run.Status.Attempt < w.attempt && r.now().Sub(w.last) < outdatedFor
}
