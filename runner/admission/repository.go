package admission

import (
	"context"
	"maps"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/expr"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/policy"
)

// repositoryName begins the names of policies that a repository brings. No object is called
// so: a name has no colon, and so none of them takes the place of another policy.
const repositoryName = "repository:"

// maxRepositoryRules bounds the rules and entries of all policies that a repository brings:
// each is judged for every call.
const maxRepositoryRules = 200

// Bring adds the policies that the repository in a folder brings to the plan, for its agent
// and every agent below it. They only tighten: a deny, an ask and a redact of theirs
// counts, what they allow and their default do not. A policy that cannot be used is an
// error of its file. Files are those that hold them.
func (c *Catalog) Bring(ctx context.Context, p *Plan, dir string) (files []string, found manifest.Findings) {
	set, found := manifest.LoadRepository(ctx, dir)
	if len(set.Documents) == 0 {
		return nil, found
	}
	a := &admitter{catalog: newCatalog(), opts: Options{Tools: c.kinds}}
	for _, d := range set.Documents {
		a.bring(d)
		if !slices.Contains(files, d.File) {
			files = append(files, d.File)
		}
	}
	a.found = append(a.found, schemaRules(set.Documents)...)
	tools, _, err := c.tools()
	if err != nil {
		a.add(manifest.Finding{Severity: manifest.Error, Message: err.Error()})
	}
	ceiling := Ceiling{Repository: true}
	known := maps.Clone(p.known)
	rules, patterns := 0, expr.NewPatterns()
	for _, name := range names(a.catalog.Policies) {
		e := a.catalog.Policies[name]
		pol := e.Object.DeepCopy()
		pol.Name, pol.Spec.Default, pol.Spec.Tests = repositoryName+name, "", nil
		rules += len(pol.Spec.Rules) + len(pol.Spec.Permissions)
		if rules > maxRepositoryRules {
			a.add(e.Doc.Errorf("spec", "the policies of the repository have more than %d rules and entries together", maxRepositoryRules))
			break
		}
		for _, pr := range policy.BoundPatterns(pol, patterns) {
			a.add(problem(e.Doc, pr))
		}
		if a.found.HasErrors() {
			continue // they are not compiled
		}
		compiled, problems := policy.Compile(pol, tools)
		for _, pr := range problems {
			if !pr.Warning {
				a.add(problem(e.Doc, pr))
			}
		}
		if known != nil {
			known[pol.Name] = compiled
		}
		ceiling.Policies = append(ceiling.Policies, pol)
		p.Sources["policy/"+pol.Name] = manifest.Position{File: e.Doc.File, Line: e.Doc.Line, Col: 1}.String()
		p.place(pol, e.Doc)
	}
	found = append(found, a.found...)
	if !found.HasErrors() {
		p.known = known
		p.Ceilings = append([]Ceiling{ceiling}, p.Ceilings...)
	}
	return files, found
}

// bring checks one document of a repository.
func (a *admitter) bring(d *manifest.Document) {
	pol, ok := d.Object.(*v1alpha1.Policy)
	if d.Kind != "" && d.Kind != v1alpha1.KindPolicy {
		a.add(d.Errorf("kind", "a repository brings policies only, not a %s", clip(d.Kind)).With("move the file out of " + manifest.RepositoryPolicies))
		return
	}
	a.envelope(d)
	if !ok {
		return // its mistakes are found already
	}
	a.enter(d)
	a.policy(d, pol)
	a.pending(d)
	if pol.Spec.AppliesTo != nil {
		a.add(d.Errorf("spec.appliesTo", "a policy of a repository applies to every agent that works in it").With("name the agents in match.agents of its rules"))
	}
}

// Repository returns the names of the policies that a repository has brought, as it calls
// them.
func (p *Plan) Repository() (brought []string) {
	for _, c := range p.Ceilings {
		if !c.Repository {
			continue
		}
		for _, pol := range c.Policies {
			brought = append(brought, strings.TrimPrefix(pol.Name, repositoryName))
		}
	}
	return brought
}
