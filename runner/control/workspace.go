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

// workspaceReconciler checks whether a run can use a workspace: the folder exists, and
// this version supports the spec.
type workspaceReconciler struct {
	base
	// state is the state folder, whose files no run may have.
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

// usable reports whether a run could use the files of a workspace now, none of which may
// be in the state folder. Looked is true if the result depends on the host, and may differ
// next time.
func usable(w *v1alpha1.WorkspaceSpec, state string) (v readiness, looked bool) {
	if w.Strategy == v1alpha1.StrategyEmpty {
		return accepted, false
	}
	if w.Source != nil && w.Source.Git != nil {
		return accepted, false // only its runs ask the server
	}
	// Admission ensures that there is a path.
	if err := workspace.Usable(workspace.Spec{Strategy: w.Strategy, Source: w.Source.Path, Skip: []string{state}}); err != nil {
		return refused(reason.SpecInvalid, "spec.source.path: %v", err), true
	}
	return accepted, true
}
