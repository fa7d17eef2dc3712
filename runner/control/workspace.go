package control

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/workspace"
)

// workspaceReconciler says of workspaces whether a run can work on them: the
// folder is there, and this version can make of it what is asked.
type workspaceReconciler struct {
	base
	// state is the folder whose files are no run's.
	state string
}

func (r *workspaceReconciler) setup(m ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(m).Named("workspace").
		For(&v1alpha1.Workspace{}, builder.WithPredicates(own())).
		Complete(untilStopped(r))
}

// Reconcile implements reconcile.Reconciler.
func (r *workspaceReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	w := &v1alpha1.Workspace{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil || !w.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	v, done, err := r.judge(ctx, w)
	if err != nil || !done {
		return ctrl.Result{}, err
	}
	var again ctrl.Result
	if v.why == reason.Accepted {
		found, looked := usable(&w.Spec.WorkspaceSpec, r.state)
		if looked {
			again.RequeueAfter = lookAgain
		}
		if found.why != reason.Accepted {
			v = found
		}
	}
	return again, r.ready(ctx, w, v, nil)
}

// usable says of files whether a run could have them now, of which none lie in the
// state folder. Looked says that it may be found otherwise the next time.
func usable(w *v1alpha1.WorkspaceSpec, state string) (v verdict, looked bool) {
	if w.Strategy == v1alpha1.StrategyEmpty {
		return accepted, false
	}
	// Admission ensures that there is a path.
	if err := workspace.Usable(workspace.Spec{Strategy: w.Strategy, Source: w.Source.Path, Skip: []string{state}}); err != nil {
		return refused(reason.SpecInvalid, "spec.source.path: %v", err), true
	}
	return accepted, true
}
