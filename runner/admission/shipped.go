package admission

import (
	"context"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/policies"
	"agentctl.dev/agentctl/runner/manifest"
)

// Shipped says that a policy stands in no manifest: it came with this program.
func (c *Catalog) Shipped(policy string) bool { return c.shipped[policy] }

// shippedPolicies adds the policies that are named and not declared. One that is
// declared takes the place of the shipped one.
func (a *admitter) shippedPolicies(cases []*manifest.Document) {
	for _, name := range names(a.catalog.Agents) {
		for _, ref := range a.catalog.Agents[name].Object.Spec.PolicyRefs {
			a.shippedPolicy(ref.Name)
		}
	}
	for _, d := range cases {
		a.shippedPolicy(d.Name)
	}
}

func (a *admitter) shippedPolicy(name string) {
	if _, declared := a.catalog.Policies[name]; declared {
		return
	}
	file, text, ok := policies.Lookup(name)
	if !ok {
		return
	}
	set, found := manifest.Parse(context.Background(), file, text)
	a.found = append(a.found, found...) // a test of the tree sees to it that there are none
	for _, d := range set.Documents {
		if p, ok := d.Object.(*v1alpha1.Policy); ok {
			a.catalog.Policies[p.Name] = Entry[v1alpha1.Policy]{p, d}
			a.catalog.shipped[p.Name] = true
		}
	}
}
