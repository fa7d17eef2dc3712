package control

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// begin passes a run to the executor when its dependencies are ready. A run that has begun
// before needs its journal only.
func (r *runReconciler) begin(ctx context.Context, run *v1alpha1.Run, p Progress) (ctrl.Result, error) {
	w := Work{ID: RunID(run), Namespace: run.Namespace, Agent: run.Spec.AgentRef.Name, Name: run.Name}
	if r.startedBy != nil {
		w.User = r.startedBy(run)
	}
	if p == Unknown {
		v, made, again, err := r.prepared(ctx, run)
		if err != nil {
			return ctrl.Result{}, err
		}
		if v.status != metav1.ConditionTrue {
			if err := r.claim(ctx, run); err != nil {
				return ctrl.Result{}, err
			}
		}
		switch {
		case v.status == metav1.ConditionTrue:
		case v.own:
			return ctrl.Result{}, r.never(ctx, run, v.why, v.message)
		default: // it begins when the object has been fixed
			return r.await(ctx, run, readiness{status: metav1.ConditionUnknown, why: v.why, message: v.message}, again)
		}
		w.Documents, w.Pins = made.documents, made.pins
		if left, bounded := r.untilOverdue(run, false); bounded {
			w.Deadline = r.now().Add(left)
		}
	}
	if err := r.claim(ctx, run, Finalizer); err != nil { // the object is kept while its run is executed
		return ctrl.Result{}, err
	}
	r.mu.Lock()
	name := client.ObjectKeyFromObject(run)
	before := r.written[name]
	r.written[name] = written{id: w.ID, uid: run.UID, attempt: run.Status.Attempt, last: before.last, phase: before.phase, resumed: before.resumed}
	r.mu.Unlock()
	r.executor.Start(w)
	if run.Spec.Cancel {
		r.executor.Cancel(w.ID)
	}
	return r.show(ctx, run, r.executor.Observe(w.ID))
}

// prepared checks a run and collects its dependencies. The cache learns of each kind at a
// time of its own: it may know a run but not a policy or a tool that was created before
// it. So dependencies are read from the API server. again is the time of the next attempt,
// for cases where no change of an object triggers one.
func (r *runReconciler) prepared(ctx context.Context, run *v1alpha1.Run) (v readiness, made *dependencies, again time.Duration, err error) {
	known, err := r.cachedDependencies(ctx, run)
	if err != nil {
		return v, nil, 0, err
	}
	if v = r.fit(ctx, known, run); v.status != metav1.ConditionTrue {
		return v, known, 0, nil
	}
	if made, err = r.currentDependencies(ctx, run); err != nil {
		return v, nil, 0, err
	}
	if !made.equal(known) { // else it is judged already
		v = r.fit(ctx, made, run)
	}
	return v, made, changedAgain, nil // the cache may have more to learn
}

// fit reports whether a run can begin with its dependencies.
func (r *runReconciler) fit(ctx context.Context, c *dependencies, run *v1alpha1.Run) readiness {
	v, done := c.check(ctx, run, r.shared)
	if !done {
		return readiness{status: metav1.ConditionUnknown, why: reason.Accepted, message: "waits until what it names has been looked at"}
	}
	return v
}

// claim makes a run its agent's, also one that never begins: it goes with its
// agent. It gets the finalizers, too, that it does not have yet.
func (r *runReconciler) claim(ctx context.Context, run *v1alpha1.Run, finalizers ...string) error {
	before := run.DeepCopy()
	changed := false
	for _, f := range finalizers {
		changed = controllerutil.AddFinalizer(run, f) || changed
	}
	agent := &v1alpha1.Agent{}
	err := r.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: run.Spec.AgentRef.Name}, agent)
	switch {
	case apierrors.IsNotFound(err): // a run that continues needs none
	case err == nil && !agent.DeletionTimestamp.IsZero(): // nor one that is to be left behind
	case err != nil:
		return fmt.Errorf("look for the agent of run %s: %w", client.ObjectKeyFromObject(run), err)
	case len(run.OwnerReferences) == 0:
		if err := controllerutil.SetOwnerReference(agent, run, r.Scheme(), controllerutil.WithBlockOwnerDeletion(true)); err != nil {
			return fmt.Errorf("make run %s its agent's: %w", client.ObjectKeyFromObject(run), err)
		}
		changed = true
	}
	if !changed {
		return nil
	}
	if err := r.Patch(ctx, run, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), owner(v1alpha1.KindRun)); err != nil {
		return fmt.Errorf("claim run %s: %w", client.ObjectKeyFromObject(run), err)
	}
	return nil
}
