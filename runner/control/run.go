package control

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
)

const (
	// Finalizer keeps a Run until nobody lives it any more.
	Finalizer = "agentctl.dev/run"
	// statusEvery is the time between two writes of a status that is the same but
	// for its counters.
	statusEvery = time.Second
	// answeredEvery is how often the inbox of a run is looked at that was suspended:
	// a file there tells nobody that it has come.
	answeredEvery = 2 * time.Second
	// runsAtOnce is how many Run objects are looked at at once: each waits for the
	// API server, and none for a run.
	runsAtOnce = 16
)

// runReconciler has runs lived. The journal and the executor are the facts, the
// status is what they look like; whatever is lost is found out anew.
type runReconciler struct {
	base
	executor Executor
	lanes    *lanes

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
}

func newRunReconciler(b base, e Executor) *runReconciler {
	return &runReconciler{base: b, executor: e, lanes: newLanes(), written: map[types.NamespacedName]written{}}
}

func (r *runReconciler) setup(m ctrl.Manager) error {
	follow := source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		r.executor.Follow(func(namespace, name string) {
			// With a thousand that wait to be begun, the end of one would be shown after
			// all of them.
			req := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
			r.lanes.ahead(req)
			q.Add(req)
		})
		return nil
	})
	return ctrl.NewControllerManagedBy(m).Named("run").
		For(&v1alpha1.Run{}, builder.WithPredicates(predicate.Or(own(), phases()))).
		Watches(&v1alpha1.Agent{}, r.namers(func() client.ObjectList { return &v1alpha1.RunList{} }), builder.WithPredicates(matters())).
		Watches(&v1alpha1.Workspace{}, r.namers(func() client.ObjectList { return &v1alpha1.RunList{} }), builder.WithPredicates(matters())).
		WatchesRawSource(follow).
		WithOptions(controller.Options{MaxConcurrentReconciles: runsAtOnce, NewQueue: r.lanes.queue}).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r *runReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	run := &v1alpha1.Run{}
	err := r.Get(ctx, req.NamespacedName, run)
	switch {
	case apierrors.IsNotFound(err):
		r.lanes.behind(req)
		r.gone(req.NamespacedName, "")
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("read run %s: %w", req.NamespacedName, err)
	}
	r.gone(req.NamespacedName, run.UID)
	switch {
	case !run.DeletionTimestamp.IsZero():
		return r.end(ctx, run)
	case finished(run):
		r.lanes.behind(req)
		return r.retire(ctx, run)
	}
	return r.advance(ctx, run)
}

// finished says whether a run's status is its last one.
func finished(run *v1alpha1.Run) bool {
	switch run.Status.Phase {
	case v1alpha1.PhaseSucceeded, v1alpha1.PhaseFailed, v1alpha1.PhaseCancelled:
		return true
	case v1alpha1.PhasePending, v1alpha1.PhaseRunning, v1alpha1.PhaseSuspended:
	}
	return false
}

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
		r.executor.Cancel(id) // its end is told, and brings us back
		return ctrl.Result{}, nil
	}
	r.executor.Release(id)
	if !controllerutil.ContainsFinalizer(run, Finalizer) {
		return ctrl.Result{}, nil
	}
	before := run.DeepCopy()
	controllerutil.RemoveFinalizer(run, Finalizer)
	err := r.Patch(ctx, run, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	switch {
	case apierrors.IsConflict(err): // the collector has taken its own finalizer away meanwhile
		return ctrl.Result{RequeueAfter: outdatedAgain}, nil
	case client.IgnoreNotFound(err) != nil:
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

// orphan says whether the agent that owns a run is gone.
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

// advance does what a run that has not ended needs next, and shows how far it is.
func (r *runReconciler) advance(ctx context.Context, run *v1alpha1.Run) (ctrl.Result, error) {
	if r.outdated(run) {
		return ctrl.Result{RequeueAfter: outdatedAgain}, nil
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
		if again, err := r.claim(ctx, run); again > 0 || err != nil {
			return ctrl.Result{RequeueAfter: again}, err
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
			return ctrl.Result{RequeueAfter: answeredEvery}, nil
		}
		return r.begin(ctx, run, seen.Progress) // it asks again, or is cancelled
	case Unknown:
		if j := run.Status.Journal; j != nil && j.LastSeq > 0 {
			return ctrl.Result{}, r.never(ctx, run, reason.Internal, "its journal "+j.Path+" is gone: it is not begun a second time")
		}
		if wait := r.untilRetry(run); wait > 0 {
			return ctrl.Result{RequeueAfter: wait}, nil
		}
		return r.begin(ctx, run, seen.Progress)
	case Left:
		r.executor.Release(id)
		return r.begin(ctx, run, seen.Progress)
	case Ended:
		return r.over(ctx, run, seen)
	case Queued, Living:
	}
	return r.show(ctx, run, seen)
}

// begin hands a run to the executor, when what it stands on is ready. One that
// has begun before needs nothing but its journal.
func (r *runReconciler) begin(ctx context.Context, run *v1alpha1.Run, p Progress) (ctrl.Result, error) {
	w := Work{ID: RunID(run), Namespace: run.Namespace, Agent: run.Spec.AgentRef.Name, Name: run.Name}
	if p == Unknown {
		v, made, again, err := r.prepared(ctx, run)
		if err != nil {
			return ctrl.Result{}, err
		}
		if v.status != metav1.ConditionTrue {
			if again, err := r.claim(ctx, run); again > 0 || err != nil {
				return ctrl.Result{RequeueAfter: again}, err
			}
		}
		switch {
		case v.status == metav1.ConditionTrue:
		case v.own:
			return ctrl.Result{}, r.never(ctx, run, v.why, v.message)
		default: // it begins when that has been mended
			return ctrl.Result{RequeueAfter: again}, r.write(ctx, run, v1alpha1.RunStatus{Phase: v1alpha1.PhasePending}, verdict{status: metav1.ConditionUnknown, why: v.why, message: v.message})
		}
		w.Documents, w.Pins = made.documents, made.pins
	}
	if again, err := r.claim(ctx, run, Finalizer); again > 0 || err != nil { // the object stays while its run is lived
		return ctrl.Result{RequeueAfter: again}, err
	}
	r.mu.Lock()
	name := client.ObjectKeyFromObject(run)
	before := r.written[name]
	r.written[name] = written{id: w.ID, uid: run.UID, attempt: run.Status.Attempt, last: before.last, phase: before.phase}
	r.mu.Unlock()
	r.executor.Start(w)
	if run.Spec.Cancel {
		r.executor.Cancel(w.ID)
	}
	return r.show(ctx, run, r.executor.Observe(w.ID))
}

// prepared judges a run and collects what it is made of. Each kind comes to the
// cache in its own time, so it may know a run and not yet a policy or a tool that
// was there before: what a run is made of is read as it is now. again is when to
// look once more, where no change of an object will tell.
func (r *runReconciler) prepared(ctx context.Context, run *v1alpha1.Run) (v verdict, made *closure, again time.Duration, err error) {
	known, err := r.closureKnown(ctx, run)
	if err != nil {
		return v, nil, 0, err
	}
	if v = r.fit(ctx, known, run); v.status != metav1.ConditionTrue {
		return v, known, 0, nil
	}
	if made, err = r.closureNow(ctx, run); err != nil {
		return v, nil, 0, err
	}
	if !made.equal(known) { // else it is judged already
		v = r.fit(ctx, made, run)
	}
	return v, made, outdatedAgain, nil // the cache may have more to learn
}

// fit says whether a run can begin with what it is made of.
func (r *runReconciler) fit(ctx context.Context, c *closure, run *v1alpha1.Run) verdict {
	v, done := c.verdict(ctx, run, r.shared)
	if !done {
		return verdict{status: metav1.ConditionUnknown, why: reason.Accepted, message: "waits until what it names has been looked at"}
	}
	return v
}

// claim makes a run its agent's, also one that never begins: it goes with its
// agent. The result is when to try again if somebody has changed it meanwhile.
func (r *runReconciler) claim(ctx context.Context, run *v1alpha1.Run, finalizers ...string) (again time.Duration, err error) {
	switch err := r.hold(ctx, run, finalizers...); {
	case apierrors.IsConflict(err):
		return outdatedAgain, nil
	case err != nil:
		return 0, err
	}
	return 0, nil
}

// hold writes the finalizers and the owner of a run that it does not have yet.
func (r *runReconciler) hold(ctx context.Context, run *v1alpha1.Run, finalizers ...string) error {
	before := run.DeepCopy()
	changed := false
	for _, f := range finalizers {
		changed = controllerutil.AddFinalizer(run, f) || changed
	}
	agent := &v1alpha1.Agent{}
	err := r.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: run.Spec.AgentRef.Name}, agent)
	switch {
	case apierrors.IsNotFound(err): // a run that goes on needs none
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
	if err := r.Patch(ctx, run, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("hold run %s: %w", client.ObjectKeyFromObject(run), err)
	}
	return nil
}
