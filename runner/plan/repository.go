package plan

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/manifest"
)

// bring adds the policies of the repository that the run works on, as they are in the
// source of its files now: what is written in the run changes nothing. A file that cannot
// be used refuses the run.
func (p *Plan) bring(ctx context.Context, c *admission.Catalog, o *Options) error {
	if p.Workspace.Source == "" {
		return nil
	}
	if e := o.Earlier; e != nil && p.Workspace.Cloned { // the clone is what its programs have made of it
		p.Ceilings = append(e.brought(), p.Ceilings...)
		return nil
	}
	if o.WithoutRepository {
		if _, err := os.Lstat(filepath.Join(p.Workspace.Source, manifest.RepositoryPolicies)); err == nil {
			p.Warnings = append(p.Warnings, "the policies of the repository in "+manifest.RepositoryPolicies+" are left out, as --no-repository-policies says")
		}
		return nil
	}
	p.Warnings = append(p.Warnings, manifest.OverlookedPolicies(p.Workspace.Source)...)
	files, found := c.Bring(ctx, p.Plan, p.Workspace.Source)
	if found.HasErrors() {
		for i := range found {
			if f := &found[i]; f.Severity == manifest.Error {
				f.Suggestion = strings.TrimPrefix(f.Suggestion+"; --no-repository-policies leaves out what the repository brings", "; ")
			}
		}
		return &manifest.InvalidError{Findings: found}
	}
	// Where the run works on the source itself, the next run would read what a tool wrote.
	for _, file := range files {
		if rel, err := filepath.Rel(p.Workspace.Source, file); err == nil && !slices.Contains(p.Manifests, rel) {
			p.Manifests = append(p.Manifests, rel)
		}
	}
	return nil
}
