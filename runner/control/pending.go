package control

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// startDeadline bounds how long a Run waits for what it names, where its object
// does not say. It is the default of the field, too.
const startDeadline = 10 * time.Minute

// waited is the time since a Run was created without having begun. The creation time has
// no fraction of a second, so the count begins with the next full second: a Run never gets
// less time than it was given.
func (r *runReconciler) waited(run *v1alpha1.Run) time.Duration {
	if run.Status.Phase == v1alpha1.PhaseSuspended || run.CreationTimestamp.IsZero() {
		return 0 // it is to begin from now on
	}
	since := run.CreationTimestamp.Add(time.Second)
	if died := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionRetrying); died != nil && died.LastTransitionTime.After(since) {
		since = died.LastTransitionTime.Time
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.written[client.ObjectKeyFromObject(run)]; w.uid == run.UID && w.resumed.After(since) {
		since = w.resumed
	}
	return max(0, r.now().Sub(since))
}

// ownTimeout is the limit of the time that the Run itself asks for. It counts from
// the request, so that what the Run waits for is part of it.
func ownTimeout(run *v1alpha1.Run) time.Duration {
	if l := run.Spec.Limits; l != nil && l.Timeout != nil {
		return l.Timeout.Duration
	}
	return 0
}

// untilOverdue is how long a Run may still wait before it begins. With a limit of
// its own, that is also how long it may still take.
func (r *runReconciler) untilOverdue(run *v1alpha1.Run, forOthers bool) (left time.Duration, bounded bool) {
	limit := ownTimeout(run)
	if forOthers {
		patience := startDeadline
		if d := run.Spec.StartDeadline; d != nil {
			patience = d.Duration
		}
		if limit == 0 || patience < limit {
			limit = patience
		}
	}
	return limit - r.waited(run), limit > 0
}

// await keeps a Run pending until what it names is ready, at most until its
// deadline: an agent that never becomes ready must not be waited for without end.
func (r *runReconciler) await(ctx context.Context, run *v1alpha1.Run, v readiness, again time.Duration) (ctrl.Result, error) {
	left, bounded := r.untilOverdue(run, true)
	if bounded && left <= 0 {
		if own := ownTimeout(run); own > 0 && r.waited(run) >= own {
			return ctrl.Result{}, r.never(ctx, run, reason.DeadlineExceeded, fmt.Sprintf("limits.timeout of %s passed before it began: %s", own, v.message))
		}
		why := v.why
		if info, ok := reason.Lookup(why); !ok || info.ExitCode <= 0 { // a reason that no run ends with
			why = reason.DeadlineExceeded
		}
		return ctrl.Result{}, r.never(ctx, run, why, fmt.Sprintf("not ready within startDeadline: %s", v.message))
	}
	if bounded && (again == 0 || left < again) {
		again = left
	}
	return ctrl.Result{RequeueAfter: again}, r.write(ctx, run, v1alpha1.RunStatus{Phase: v1alpha1.PhasePending}, v)
}

// overdue ends a Run that waits for a worker, once its own timeout has passed.
// Done reports that it has ended.
func (r *runReconciler) overdue(ctx context.Context, run *v1alpha1.Run) (done bool, left time.Duration, err error) {
	left, bounded := r.untilOverdue(run, false)
	if !bounded || run.Status.Journal != nil && run.Status.Journal.LastSeq > 0 {
		return false, 0, nil
	}
	if left > 0 {
		return false, left, nil
	}
	id := RunID(run)
	r.executor.Suspend(id) // forgets one that waits; one that has begun meanwhile is left, and taken up again
	if r.executor.Observe(id).Progress != Unknown {
		return false, 0, nil
	}
	return true, 0, r.never(ctx, run, reason.DeadlineExceeded, fmt.Sprintf("limits.timeout of %s passed while it waited for a free worker", ownTimeout(run)))
}
