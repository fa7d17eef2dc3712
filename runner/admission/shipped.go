package admission

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/policies"
	"agentctl.dev/agentctl/runner/manifest"
)

// Shipped is the place of a policy that is in no manifest: it came with this
// program.
func (c *Catalog) Shipped(policy string) bool { return c.shipped[policy] }

// shippedPolicies adds the policies that are named and not declared. A declared
// policy replaces the shipped one of the same name, with a warning.
func (a *admitter) shippedPolicies(cases []*manifest.Document) {
	for _, name := range names(a.catalog.Agents) {
		for _, ref := range a.catalog.Agents[name].Object.Spec.PolicyRefs {
			a.shippedPolicy(ref.Name)
		}
	}
	for _, name := range names(a.catalog.Runs) {
		a.shippedOf(a.catalog.Runs[name].Object)
	}
	for _, e := range a.catalog.unnamed {
		a.shippedOf(e.Object)
	}
	if !a.opts.SkipTests {
		for _, name := range names(a.catalog.Tests) {
			for _, ref := range a.catalog.Tests[name].Object.Spec.PolicyRefs {
				a.shippedPolicy(ref.Name)
			}
		}
	}
	for _, name := range a.opts.RunPolicies {
		a.shippedPolicy(name)
	}
	for _, d := range cases {
		a.shippedPolicy(d.Name)
	}
}

func (a *admitter) shippedOf(r *v1alpha1.Run) {
	for _, ref := range r.Spec.PolicyRefs {
		a.shippedPolicy(ref.Name)
	}
}

func (a *admitter) shippedPolicy(name string) {
	declared, taken := a.catalog.Policies[name]
	if taken && (declared.Doc == nil || a.catalog.shipped[name] || a.replaced[name]) {
		return
	}
	file, text, ok := policies.Lookup(name)
	if !ok {
		return
	}
	set, found := manifest.Parse(context.Background(), file, text)
	for _, d := range set.Documents {
		p, ok := d.Object.(*v1alpha1.Policy)
		if !ok {
			continue
		}
		if taken {
			a.replace(declared, p)
			return
		}
		a.catalog.Policies[p.Name] = Entry[v1alpha1.Policy]{p, d}
		a.catalog.shipped[p.Name] = true
	}
	a.found = append(a.found, found...) // a test ensures that there are none
}

// replace warns of a declared policy that replaces a shipped one and differs
// from it: a reader of policyRefs may expect the shipped one.
func (a *admitter) replace(own Entry[v1alpha1.Policy], shipped *v1alpha1.Policy) {
	if a.replaced == nil {
		a.replaced = map[string]bool{}
	}
	a.replaced[shipped.Name] = true
	x, y := own.Object.Spec.DeepCopy(), shipped.Spec.DeepCopy()
	x.Tests, y.Tests = nil, nil
	if !equality.Semantic.DeepEqual(x, y) {
		a.add(own.Doc.Warnf("metadata.name", "this policy takes the place of the shipped policy %q", shipped.Name).
			With("give it another name and list both in policyRefs: policies add up"))
	}
}
