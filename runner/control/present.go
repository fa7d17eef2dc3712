package control

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/admission"
)

// presentPolicies reads the policies that hold for an agent at this moment: those
// that it names, those that select it, and those of the names that are there. A
// shipped policy does not change, and is part of the plan.
func presentPolicies(live client.Reader) func(ctx context.Context, namespace, agent string, names []string) ([]*v1alpha1.Policy, error) {
	return func(ctx context.Context, namespace, agent string, names []string) ([]*v1alpha1.Policy, error) {
		a := &v1alpha1.Agent{}
		if err := live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: agent}, a); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read %s: %w", docName(v1alpha1.KindAgent, agent), err)
		} else if apierrors.IsNotFound(err) {
			a = nil // its run ends, and until then what was planned holds
		}
		var all v1alpha1.PolicyList
		if err := live.List(ctx, &all, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("list the policies: %w", err)
		}
		var present []*v1alpha1.Policy
		for i := range all.Items {
			p := &all.Items[i]
			if slices.Contains(names, p.Name) || a != nil && admission.Concerns(p, a) {
				present = append(present, p)
			}
		}
		return present, nil
	}
}
