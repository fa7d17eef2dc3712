package control

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/tool/skill"
)

// lookAgain is the interval at which files that objects name are read again: no event
// reports that a file was created, deleted or changed.
const lookAgain = time.Minute

// skillReconciler checks whether skills can be read, and records the digest of their text.
type skillReconciler struct{ base }

func (r *skillReconciler) setup(m ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(m).Named("skill").
		For(&v1alpha1.Skill{}, builder.WithPredicates(own())).
		Complete(untilStopped(r))
}

// Reconcile implements reconcile.Reconciler.
func (r *skillReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s := &v1alpha1.Skill{}
	if err := r.Get(ctx, req.NamespacedName, s); err != nil || !s.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	v, done, err := r.judge(ctx, s)
	if err != nil || !done {
		return ctrl.Result{}, err
	}
	if v.why != reason.Accepted || s.Spec.Dir == "" || s.Spec.Image != "" { // an image is fetched by the runs that need it
		return ctrl.Result{}, r.ready(ctx, s, v, nil)
	}
	more := map[string]any{}
	read, err := skill.Read(s.Spec.Dir)
	if err != nil {
		v = refused(reason.SpecInvalid, "spec.dir: %s: %v", s.Spec.Dir, err)
	} else {
		more["digest"] = read.Digest
	}
	return ctrl.Result{RequeueAfter: lookAgain}, r.ready(ctx, s, v, more)
}
