package control

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// modelReconciler checks whether models can be used: their provider accepts their
// parameters, their script compiles, their fallbacks exist.
type modelReconciler struct{ base }

func (r *modelReconciler) setup(m ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(m).Named("model").
		For(&v1alpha1.Model{}, builder.WithPredicates(own())).
		Watches(&v1alpha1.Model{}, r.namers(func() client.ObjectList { return &v1alpha1.ModelList{} }), builder.WithPredicates(matters())).
		Complete(untilStopped(r))
}

// Reconcile implements reconcile.Reconciler.
func (r *modelReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.judged(ctx, req, &v1alpha1.Model{})
}
