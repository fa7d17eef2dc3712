package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/runs"
)

// asksFor is the index by which the Approvals of a run are found.
const asksFor = "asksFor"

// Asker lists the questions of runs and stores answers for them.
//
//	Questions  the questions of a run and of those below it, in order; a run that has not
//	           begun has none
//	Answer     stores an answer; storing it again changes nothing
type Asker interface {
	Questions(ctx context.Context, id string) ([]runs.Asked, error)
	Answer(w Work, q *runs.Asked, a runs.Left) error
}

// approvalReconciler shows the calls that wait for a person as Approval objects,
// and hands to runs what was decided on those.
//
// A decision is durable in three places, one after the other, and each step can
// be repeated: the status of the object, which is written once and conditionally,
// so that one of several decisions wins; the inbox of the run; the journal of the
// run, which is the fact. The id of the answer follows from the object, and the
// run takes each id once: whatever is killed in between, nothing is lost, and
// nothing counts twice.
type approvalReconciler struct {
	base
	executor Executor
	asker    Asker
}

func (r *approvalReconciler) setup(m ctrl.Manager) error {
	follow := source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		r.executor.Follow(func(namespace, name string) {
			q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
		})
		return nil
	})
	ofRun := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		a, ok := obj.(*v1alpha1.Approval)
		if !ok {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: a.Namespace, Name: a.Spec.RunRef.Name}}}
	})
	return ctrl.NewControllerManagedBy(m).Named("approval").
		For(&v1alpha1.Run{}, builder.WithPredicates(asks())).
		Watches(&v1alpha1.Approval{}, ofRun).
		WatchesRawSource(follow).
		Complete(untilStopped(r))
}

// asks lets those changes of a run pass after which it may wait for other answers.
func asks() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(*v1alpha1.Run)
		after, ok2 := e.ObjectNew.(*v1alpha1.Run)
		return ok1 && ok2 && (before.Status.Phase != after.Status.Phase || before.Status.PendingApprovals != after.Status.PendingApprovals)
	}}
}

// Reconcile implements reconcile.Reconciler. The request names a run.
func (r *approvalReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var all v1alpha1.ApprovalList
	if err := r.List(ctx, &all, client.InNamespace(req.Namespace), client.MatchingFields{asksFor: req.Name}); err != nil {
		return ctrl.Result{}, fmt.Errorf("list the approvals of run %s: %w", req.NamespacedName, err)
	}
	run := &v1alpha1.Run{}
	err := r.Get(ctx, req.NamespacedName, run)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("read run %s: %w", req.NamespacedName, err)
	}
	mine := map[string]*v1alpha1.Approval{}
	var errs []error
	for i := range all.Items {
		a := &all.Items[i]
		if err == nil && owns(run, a) {
			mine[a.Spec.Binding] = a
			continue
		}
		// Its run is gone, also where there is another one of the same name.
		if err := r.remove(ctx, a); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 || err != nil || !r.waits(run, mine) {
		return ctrl.Result{}, errors.Join(errs...)
	}
	return r.show(ctx, run, mine)
}

func owns(run *v1alpha1.Run, a *v1alpha1.Approval) bool {
	for _, o := range a.OwnerReferences {
		if o.Kind == v1alpha1.KindRun && o.UID == run.UID {
			return true
		}
	}
	return false
}

// waits reports whether the run has a question to show. If not, its journal is not read.
func (r *approvalReconciler) waits(run *v1alpha1.Run, mine map[string]*v1alpha1.Approval) bool {
	for _, a := range mine {
		if !settled(a) {
			return true
		}
	}
	if run.Status.Phase.Finished() {
		return false
	}
	seen := r.executor.Observe(RunID(run))
	switch seen.Progress {
	case Living, Ended:
		return seen.Status.PendingApprovals > 0
	case Waiting, Left:
		return seen.Progress == Waiting || run.Status.PendingApprovals > 0
	case Unknown, Queued:
	}
	return false
}

// show updates the objects to the state of the journal.
func (r *approvalReconciler) show(ctx context.Context, run *v1alpha1.Run, mine map[string]*v1alpha1.Approval) (ctrl.Result, error) {
	asked, err := r.asker.Questions(ctx, RunID(run))
	if err != nil {
		return ctrl.Result{}, err
	}
	seen, again := r.executor.Observe(RunID(run)).Progress, time.Duration(0)
	var errs []error
	for i := range asked {
		q := &asked[i]
		a := mine[bound(q)]
		delete(mine, bound(q))
		switch {
		case a == nil && q.Open && run.DeletionTimestamp.IsZero():
			errs = append(errs, r.ask(ctx, run, q))
		case a == nil: // answered before anybody could look
		case q.Open:
			left, err := r.pending(ctx, run, a, q)
			if left > 0 && (again == 0 || left < again) {
				again = left
			}
			errs = append(errs, err)
		default:
			if q.Answer != nil && q.Answer.State == message.Approved && !q.Used && seen == Living {
				continue // the outcome of the call is recorded in a moment
			}
			errs = append(errs, r.settle(ctx, a, q.Answer, q.Why, reply(q)))
		}
	}
	for _, a := range mine {
		errs = append(errs, r.settle(ctx, a, nil, "the attempt that asked has ended", ""))
	}
	return ctrl.Result{RequeueAfter: again}, errors.Join(errs...)
}

// ask makes the object of a question.
func (r *approvalReconciler) ask(ctx context.Context, run *v1alpha1.Run, q *runs.Asked) error {
	a, err := newApproval(run, q, r.Scheme())
	if err != nil {
		return err
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(a)
	if err != nil {
		return err
	}
	delete(fields, "status")
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.KindApproval))
	// An apply changes nothing where the object is there and not in the cache yet; and
	// a server keeps a create waiting for two seconds while a kind is new to it.
	if err := r.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), owner(v1alpha1.KindApproval), client.ForceOwnership); err != nil {
		return fmt.Errorf("show what run %s asks: %w", client.ObjectKeyFromObject(run), err)
	}
	r.events.Record(ctx, run, reason.ApprovalRequired, fmt.Sprintf("a call of %s waits: approval %s", q.Tool, a.Name))
	return nil
}

// pending processes an open question: a decision is passed to the run, repeatedly until
// the run has it. left is the time until the next look.
func (r *approvalReconciler) pending(ctx context.Context, run *v1alpha1.Run, a *v1alpha1.Approval, q *runs.Asked) (left time.Duration, err error) {
	s := &a.Status
	if s.Decision == "" {
		if a.Spec.ExpiresAt.Equal(deadline(q)) {
			return 0, nil
		}
		// Another process of the run has asked again, with a later deadline. The spec of a
		// question is immutable, so it gets another object.
		return 0, r.remove(ctx, a)
	}
	if s.DecidedAt == nil || s.Decision != v1alpha1.DecisionApproved && s.Decision != v1alpha1.DecisionRejected {
		return 0, nil
	}
	if left = s.DecidedAt.Add(runs.AnswerLife).Sub(r.now()); left <= 0 {
		// The run did not take the answer in time, and asks again.
		return 0, r.remove(ctx, a)
	}
	w := Work{ID: RunID(run), Namespace: run.Namespace, Agent: run.Spec.AgentRef.Name, Name: run.Name}
	var text *string
	if q.Question != nil && s.Decision == v1alpha1.DecisionApproved {
		text = &s.Answer
	}
	err = r.asker.Answer(w, q, runs.Left{
		Answer:  text,
		Request: requestID(a), State: message.ApprovalState(s.Decision), Scope: message.Scope(s.Scope), By: s.By, Reason: s.Reason, EndRun: s.EndRun, Time: s.DecidedAt.Time,
	})
	if err != nil {
		return 0, fmt.Errorf("hand the decision on approval %s to its run: %w", client.ObjectKeyFromObject(a), err)
	}
	return left, nil
}

// reply is the answer to a question as an object holds it.
func reply(q *runs.Asked) string {
	if q.Reply == nil {
		return ""
	}
	return cut(q.Reply.Answer, 4096)
}

// settle writes what became of a question that is closed.
func (r *approvalReconciler) settle(ctx context.Context, a *v1alpha1.Approval, answer *answer, why, reply string) error {
	if settled(a) {
		return nil
	}
	a = a.DeepCopy()
	before := a.Status.Decision
	outcome(a, answer, why, r.now())
	if before == "" && a.Status.Decision == v1alpha1.DecisionApproved {
		a.Status.Answer = reply
	}
	// Conditional: if somebody decides at this moment, the object is processed again.
	if err := r.Status().Update(ctx, a, owner(v1alpha1.KindApproval)); stale(err) != nil {
		return fmt.Errorf("write what became of approval %s: %w", client.ObjectKeyFromObject(a), err)
	}
	return nil
}

// stale ignores the error for an object that has changed since it was read: the change
// triggers another reconcile.
func stale(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// remove deletes an object as it was seen: one that was decided meanwhile stays.
func (r *approvalReconciler) remove(ctx context.Context, a *v1alpha1.Approval) error {
	err := r.Delete(ctx, a, client.Preconditions{UID: &a.UID, ResourceVersion: &a.ResourceVersion})
	if stale(err) != nil {
		return fmt.Errorf("delete approval %s: %w", client.ObjectKeyFromObject(a), err)
	}
	return nil
}
