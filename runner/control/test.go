package control

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// testReconciler checks whether tests could be carried out: whether all objects that they
// name exist and are ready, and what they expect can be read of a run. No test is carried
// out here.
type testReconciler struct{ base }

func (r *testReconciler) setup(m ctrl.Manager) error {
	tests := func() client.ObjectList { return &v1alpha1.TestList{} }
	return ctrl.NewControllerManagedBy(m).Named("test").
		For(&v1alpha1.Test{}, builder.WithPredicates(own())).
		Watches(&v1alpha1.Agent{}, r.namers(tests), builder.WithPredicates(matters())).
		Watches(&v1alpha1.Model{}, r.namers(tests), builder.WithPredicates(matters())).
		Watches(&v1alpha1.Policy{}, r.namers(tests), builder.WithPredicates(matters())).
		Complete(untilStopped(r))
}

// Reconcile implements reconcile.Reconciler.
func (r *testReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.judged(ctx, req, &v1alpha1.Test{})
}
