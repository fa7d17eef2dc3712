package control

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// policyReconciler checks whether policies compile against every tool that they could
// apply to.
type policyReconciler struct{ base }

func (r *policyReconciler) setup(m ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(m).Named("policy").
		For(&v1alpha1.Policy{}, builder.WithPredicates(own())).
		Watches(&v1alpha1.Tool{}, r.neighbours(func() client.ObjectList { return &v1alpha1.PolicyList{} }), builder.WithPredicates(own())).
		Complete(untilStopped(r))
}

// Reconcile implements reconcile.Reconciler.
func (r *policyReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.judged(ctx, req, &v1alpha1.Policy{})
}
