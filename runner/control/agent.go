package control

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// agentReconciler checks whether agents can be run: whether all objects that they name
// exist and are ready.
type agentReconciler struct{ base }

func (r *agentReconciler) setup(m ctrl.Manager) error {
	agents := func() client.ObjectList { return &v1alpha1.AgentList{} }
	return ctrl.NewControllerManagedBy(m).Named("agent").
		For(&v1alpha1.Agent{}, builder.WithPredicates(own())).
		Watches(&v1alpha1.Model{}, r.namers(agents), builder.WithPredicates(matters())).
		Watches(&v1alpha1.Tool{}, r.namers(agents), builder.WithPredicates(matters())).
		Watches(&v1alpha1.Skill{}, r.namers(agents), builder.WithPredicates(matters())).
		Watches(&v1alpha1.Agent{}, r.namers(agents), builder.WithPredicates(matters())).
		// By its selector a policy concerns agents that do not name it, and no longer
		// those that it selected before.
		Watches(&v1alpha1.Policy{}, r.neighbours(agents), builder.WithPredicates(matters())).
		Complete(untilStopped(r))
}

// Reconcile implements reconcile.Reconciler.
func (r *agentReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.judged(ctx, req, &v1alpha1.Agent{})
}
