package control

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner"
	"agentctl.dev/agentctl/runner/manifest"
)

// show writes how far a run is. What only counts on is written once a second;
// the time that is left of it is the result.
func (r *runReconciler) show(ctx context.Context, run *v1alpha1.Run, seen Observation) (ctrl.Result, error) {
	status, v := seen.Status, readiness{status: metav1.ConditionUnknown, why: reason.Accepted}
	switch {
	case status.Phase == "" && run.Status.Phase == v1alpha1.PhaseRunning: // it continues, and has not been read yet
		return ctrl.Result{}, nil
	case status.Phase == "" && seen.Progress == Queued:
		status = *run.Status.DeepCopy() // of a run that continues
		status.Phase, v.message = v1alpha1.PhasePending, "waits for a free worker"
	case status.Phase == "":
		status = *run.Status.DeepCopy()
		status.Phase = v1alpha1.PhasePending
	case status.Phase != v1alpha1.PhaseRunning: // its end is shown when it is over
		return ctrl.Result{}, nil
	}
	if !r.turns(run, &status, v) {
		r.mu.Lock()
		wait := statusEvery - r.now().Sub(r.written[client.ObjectKeyFromObject(run)].last)
		r.mu.Unlock()
		if wait > 0 {
			return ctrl.Result{RequeueAfter: wait}, nil
		}
	}
	return ctrl.Result{}, r.write(ctx, run, status, v)
}

// turns reports whether a status differs in more than its counters.
func (r *runReconciler) turns(run *v1alpha1.Run, s *v1alpha1.RunStatus, v readiness) bool {
	old := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionSucceeded)
	return s.Phase != run.Status.Phase || s.PendingApprovals != run.Status.PendingApprovals || !same(old, v.condition(v1alpha1.ConditionSucceeded, run))
}

// over writes the end of a run.
func (r *runReconciler) over(ctx context.Context, run *v1alpha1.Run, seen Observation) (ctrl.Result, error) {
	v := readiness{status: metav1.ConditionFalse, why: reason.Reason(seen.Reason), message: seen.Message}
	if seen.Err != nil {
		v.why, v.message = unborn(seen.Err)
	}
	if r.again(run, v.why) {
		return r.retry(ctx, run, v)
	}
	if n := run.Status.Attempt; n > 1 && v.message != "" {
		v.message = fmt.Sprintf("attempt %d: %s", n, v.message)
	}
	if seen.Err != nil {
		return ctrl.Result{}, r.never(ctx, run, v.why, v.message)
	}
	switch seen.Status.Phase {
	case v1alpha1.PhaseSucceeded:
		v.status = metav1.ConditionTrue
	case v1alpha1.PhaseSuspended:
		v.status = metav1.ConditionUnknown
	default:
	}
	return ctrl.Result{}, r.write(ctx, run, seen.Status, v)
}

// unborn returns why a run could not be started.
func unborn(err error) (reason.Reason, string) {
	if invalid, ok := errors.AsType[*runner.InvalidError](err); ok {
		return reason.SpecInvalid, say(invalid.Findings, manifest.Error)
	}
	if u, ok := errors.AsType[*reason.UsageError](err); ok {
		message := u.Error()
		if u.Hint != "" {
			message += " (" + u.Hint + ")"
		}
		return reason.SpecInvalid, message
	}
	return reason.Of(err), explained(err)
}

// never writes the end of a run that did not begin.
func (r *runReconciler) never(ctx context.Context, run *v1alpha1.Run, why reason.Reason, message string) error {
	status := v1alpha1.RunStatus{Phase: v1alpha1.PhaseFailed}
	if why == reason.Cancelled {
		status.Phase = v1alpha1.PhaseCancelled
	}
	return r.write(ctx, run, status, readiness{status: metav1.ConditionFalse, why: why, message: message})
}

// write writes the status of a run, if it is another one.
func (r *runReconciler) write(ctx context.Context, run *v1alpha1.Run, s v1alpha1.RunStatus, v readiness) error {
	c := v.condition(v1alpha1.ConditionSucceeded, run)
	conditions := r.withCondition(run.Status.Conditions, c)
	if died := meta.FindStatusCondition(conditions, v1alpha1.ConditionRetrying); died != nil && died.Status == metav1.ConditionTrue && s.Phase != v1alpha1.PhasePending {
		begun := *died
		begun.Status = metav1.ConditionFalse
		conditions = r.withCondition(conditions, begun)
	}
	if s.Attempt = max(s.Attempt, run.Status.Attempt); s.Attempt == 0 && s.Journal != nil {
		s.Attempt = 1
	}
	return r.writeConditions(ctx, run, s, v, conditions)
}

// observed records the generation of a run that was processed, if nothing else changes:
// clients that wait for a condition wait for one of the newest generation.
func (r *runReconciler) observed(ctx context.Context, run *v1alpha1.Run) error {
	c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionSucceeded)
	if c == nil || c.ObservedGeneration == run.Generation {
		return nil
	}
	now := *c
	now.ObservedGeneration = run.Generation
	return r.writeConditions(ctx, run, *run.Status.DeepCopy(), readiness{}, r.withCondition(run.Status.Conditions, now))
}

func (r *runReconciler) writeConditions(ctx context.Context, run *v1alpha1.Run, s v1alpha1.RunStatus, v readiness, conditions []metav1.Condition) error {
	s.ObservedGeneration, s.Conditions = run.Generation, conditions
	if reflect.DeepEqual(s, run.Status) {
		return nil
	}
	s.Conditions = nil
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&s)
	if err != nil {
		return err
	}
	version := ""
	if !controllerutil.ContainsFinalizer(run, Finalizer) {
		// Nothing keeps it: another run may have its name by now, and this is not the
		// end of that one.
		version = run.ResourceVersion
	}
	if err := r.applyStatus(ctx, run, fields, conditions, version); err != nil {
		return err
	}
	r.mu.Lock()
	name := client.ObjectKeyFromObject(run)
	w := r.written[name]
	told := w.uid == run.UID && w.attempt == s.Attempt && w.phase == s.Phase // the cache did not know yet
	if run.Status.Phase == v1alpha1.PhaseSuspended && s.Phase == v1alpha1.PhasePending {
		w.resumed = r.now()
	}
	w.last, w.uid, w.attempt, w.phase = r.now(), run.UID, s.Attempt, s.Phase
	r.written[name] = w
	r.mu.Unlock()
	if s.Phase != run.Status.Phase && !told {
		r.events.Record(ctx, run, v.why, string(s.Phase)+said(v.condition("", run).Message))
	}
	return nil
}

func said(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}
