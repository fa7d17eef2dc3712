package control

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
)

const (
	// Finalizer keeps a Run object until no process executes the run.
	Finalizer = "agentctl.dev/run"
	// statusEvery is the time between two writes of a status that is the same but
	// for its counters.
	statusEvery = time.Second
	// answeredEvery is the interval at which the inbox of a suspended run is polled: a new
	// file triggers no event.
	answeredEvery = 2 * time.Second
	// runsAtOnce is how many Run objects are looked at at once: each waits for the
	// API server, and none for a run.
	runsAtOnce = 16
)

// runReconciler has runs executed. The journal and the executor are authoritative; the
// status is derived from them, and can be computed again if it is lost.
type runReconciler struct {
	base
	executor Executor
	order    *priorityQueue

	mu      sync.Mutex
	written map[types.NamespacedName]written
}

// written is what this process has to do with a Run object.
type written struct {
	id  string
	uid types.UID
	// attempt is the newest that was begun or is to be. The cache may know of an
	// older one only.
	attempt int32
	// last is when its status was written, and phase what it said.
	last  time.Time
	phase v1alpha1.Phase
	// resumed is when one that had been suspended before it began was to begin.
	resumed time.Time
}

func newRunReconciler(b base, e Executor) *runReconciler {
	return &runReconciler{base: b, executor: e, order: newPriorityQueue(), written: map[types.NamespacedName]written{}}
}

func (r *runReconciler) setup(m ctrl.Manager) error {
	follow := source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		r.executor.Follow(func(namespace, name string) {
			// With a thousand that wait to be begun, the end of one would be shown after
			// all of them.
			req := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
			r.order.ahead(req)
			q.Add(req)
		})
		return nil
	})
	return ctrl.NewControllerManagedBy(m).Named("run").
		For(&v1alpha1.Run{}, builder.WithPredicates(predicate.Or(own(), phases()))).
		Watches(&v1alpha1.Agent{}, r.namers(func() client.ObjectList { return &v1alpha1.RunList{} }), builder.WithPredicates(matters())).
		Watches(&v1alpha1.Skill{}, r.namers(func() client.ObjectList { return &v1alpha1.RunList{} }), builder.WithPredicates(matters())).
		Watches(&v1alpha1.Workspace{}, r.namers(func() client.ObjectList { return &v1alpha1.RunList{} }), builder.WithPredicates(matters())).
		WatchesRawSource(follow).
		WithOptions(controller.Options{MaxConcurrentReconciles: runsAtOnce, NewQueue: r.order.queue}).
		Complete(untilStopped(r))
}

// Reconcile implements reconcile.Reconciler.
func (r *runReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return unlessChanged(r.reconcile(ctx, req))
}

func (r *runReconciler) reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	run := &v1alpha1.Run{}
	err := r.Get(ctx, req.NamespacedName, run)
	switch {
	case apierrors.IsNotFound(err):
		r.order.behind(req)
		r.gone(req.NamespacedName, "")
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("read run %s: %w", req.NamespacedName, err)
	}
	r.gone(req.NamespacedName, run.UID)
	switch {
	case !run.DeletionTimestamp.IsZero():
		return r.end(ctx, run)
	case run.Status.Phase.Finished():
		r.order.behind(req)
		return r.retire(ctx, run)
	}
	return r.advance(ctx, run)
}

// advance does what a run that has not ended needs next, and shows how far it is.
func (r *runReconciler) advance(ctx context.Context, run *v1alpha1.Run) (ctrl.Result, error) {
	if r.outdated(run) {
		return ctrl.Result{RequeueAfter: changedAgain}, nil
	}
	id := RunID(run)
	orphan, err := r.orphan(ctx, run)
	if err != nil {
		return ctrl.Result{}, err
	}
	if orphan {
		err = r.Delete(ctx, run, client.Preconditions{UID: &run.UID})
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	seen := r.executor.Observe(id)
	if seen.Progress == Ended && seen.Status.Phase == v1alpha1.PhaseSuspended && run.Status.Phase == v1alpha1.PhaseSuspended {
		r.executor.Release(id)
		seen = r.executor.Observe(id)
	}
	if seen.Progress == Unknown && (run.Spec.Cancel || run.Spec.Suspend) {
		if err := r.claim(ctx, run); err != nil {
			return ctrl.Result{}, err
		}
	}
	if run.Spec.Cancel {
		if seen.Progress == Unknown {
			return ctrl.Result{}, r.never(ctx, run, reason.Cancelled, "cancelled before it began")
		}
		r.executor.Cancel(id)
	} else if run.Spec.Suspend && seen.Progress != Ended {
		return ctrl.Result{}, r.suspend(ctx, run, seen)
	}
	switch seen.Progress {
	case Waiting:
		if run.Status.Phase == v1alpha1.PhaseSuspended && !run.Spec.Cancel {
			return ctrl.Result{RequeueAfter: answeredEvery}, r.observed(ctx, run)
		}
		return r.begin(ctx, run, seen.Progress) // it asks again, or is cancelled
	case Unknown:
		if j := run.Status.Journal; j != nil && j.LastSeq > 0 {
			return ctrl.Result{}, r.never(ctx, run, reason.Internal, "its journal "+j.Path+" is gone: it is not begun a second time")
		}
		if wait := r.untilRetry(run); wait > 0 {
			return ctrl.Result{RequeueAfter: wait}, r.observed(ctx, run)
		}
		return r.begin(ctx, run, seen.Progress)
	case Left:
		r.executor.Release(id)
		return r.begin(ctx, run, seen.Progress)
	case Ended:
		return r.over(ctx, run, seen)
	case Queued:
		done, left, err := r.overdue(ctx, run)
		if done || err != nil {
			return ctrl.Result{}, err
		}
		result, err := r.show(ctx, run, seen)
		if left > 0 && (result.RequeueAfter == 0 || left < result.RequeueAfter) {
			result.RequeueAfter = left
		}
		return result, err
	case Living:
	}
	return r.show(ctx, run, seen)
}
