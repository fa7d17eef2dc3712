package admission

import (
	"path/filepath"
	"slices"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/policies"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/policy"
)

// caseFile checks a list of test cases that is next to its policy.
func (a *admitter) caseFile(d *manifest.Document) {
	p, ok := d.Object.(*v1alpha1.Policy)
	if !ok {
		return
	}
	known := names(a.catalog.Policies)
	if !a.reference(d, "metadata.name", v1alpha1.KindPolicy, d.Name, slices.Concat(known, policies.Names())) {
		return
	}
	e, ok := a.catalog.Policies[d.Name]
	if !ok {
		return
	}
	a.cases(d, p.Spec.Tests, e.Object)
	a.catalog.Cases[d.Name] = append(a.catalog.Cases[d.Name], Entry[v1alpha1.Policy]{p, d})
}

// cases checks the test cases of a policy, in it or next to it.
func (a *admitter) cases(d *manifest.Document, cases []v1alpha1.PolicyTest, p *v1alpha1.Policy) {
	seen := map[string]int{}
	rules := ruleNames(p)
	for i, t := range cases {
		at := manifest.Index("spec.tests", i)
		a.unique(d, seen, "test", "spec.tests", i, t.Name)
		if t.Rule != "" && !slices.Contains(rules, t.Rule) && t.Rule != "permissions" && t.Rule != "default" {
			a.add(d.Errorf(at+".rule", "the policy has no rule %q", clip(t.Rule)).With(manifest.Suggest(t.Rule, rules)))
		}
		for j, l := range t.Links {
			if !filepath.IsLocal(l.Path) {
				a.add(d.Errorf(manifest.Index(at+".links", j)+".path", "%q is not inside the workspace", clip(l.Path)))
			}
		}
	}
}

// PolicyTools are all tools that a policy can meet, one for each call name.
func (c *Catalog) PolicyTools() ([]policy.Tool, error) {
	tools, _, err := c.tools()
	return tools, err
}

// CompiledPolicy returns a policy as it was compiled against PolicyTools; nil
// when expressions were skipped.
func (c *Catalog) CompiledPolicy(name string) *policy.Compiled { return c.compiled[name] }
