package control

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// gone ends a run whose object was taken away behind our back, also where another
// one has its name by now.
func (r *runReconciler) gone(name types.NamespacedName, now types.UID) {
	r.mu.Lock()
	w, known := r.written[name]
	if known = known && w.uid != now; known {
		delete(r.written, name)
	}
	r.mu.Unlock()
	if known {
		r.executor.Cancel(w.id)
		r.executor.Release(w.id)
	}
}

// end ends a run whose object is being deleted. The journal stays: it is the
// record of what was done.
func (r *runReconciler) end(ctx context.Context, run *v1alpha1.Run) (ctrl.Result, error) {
	id := RunID(run)
	if p := r.executor.Observe(id).Progress; p == Queued || p == Living {
		r.executor.Cancel(id) // its end triggers another reconcile
		return ctrl.Result{}, nil
	}
	r.executor.Release(id)
	if !controllerutil.ContainsFinalizer(run, Finalizer) {
		return ctrl.Result{}, nil
	}
	before := run.DeepCopy()
	controllerutil.RemoveFinalizer(run, Finalizer)
	err := r.Patch(ctx, run, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), owner(v1alpha1.KindRun))
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("let go of run %s: %w", client.ObjectKeyFromObject(run), err)
	}
	return ctrl.Result{}, nil
}

// retire deletes a run that has ended when its time is over, or whose agent is
// gone; on a cluster the garbage collector does the latter.
func (r *runReconciler) retire(ctx context.Context, run *v1alpha1.Run) (ctrl.Result, error) {
	r.executor.Release(RunID(run))
	orphan, err := r.orphan(ctx, run)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !orphan {
		if err := r.observed(ctx, run); err != nil {
			return ctrl.Result{}, err
		}
		ttl, c := run.Spec.TTLAfterFinished, meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionSucceeded)
		if ttl == nil || c == nil {
			return ctrl.Result{}, nil
		}
		if left := c.LastTransitionTime.Add(ttl.Duration).Sub(r.now()); left > 0 {
			return ctrl.Result{RequeueAfter: left}, nil
		}
	}
	err = r.Delete(ctx, run, client.Preconditions{UID: &run.UID})
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

// orphan reports whether the agent that owns a run is gone.
func (r *runReconciler) orphan(ctx context.Context, run *v1alpha1.Run) (bool, error) {
	for _, o := range run.OwnerReferences {
		if o.Kind != v1alpha1.KindAgent || o.APIVersion != v1alpha1.GroupVersion.String() {
			continue
		}
		agent := &v1alpha1.Agent{}
		err := r.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: o.Name}, agent)
		if apierrors.IsNotFound(err) || err == nil && agent.UID != o.UID {
			return true, nil
		}
		if err != nil {
			return false, fmt.Errorf("look for the owner of run %s: %w", client.ObjectKeyFromObject(run), err)
		}
	}
	return false, nil
}
