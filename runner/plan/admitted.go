package plan

import (
	"context"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/manifest"
)

// Admitted are manifests that were read and judged. The runs of one process can share them:
// what they have compiled is compiled once.
type Admitted struct {
	Set     *manifest.Set
	Catalog *admission.Catalog
	// Warnings of the manifests.
	Warnings manifest.Findings
}

// Admit reads manifests for several runs. Its errors are a *manifest.InvalidError or a
// *reason.UsageError.
func Admit(ctx context.Context, o Options) (*Admitted, error) {
	if len(o.Paths) == 0 {
		return nil, reason.Usagef("no manifests are named").WithHint("name a file, a folder or - with -f")
	}
	set, catalog, found := admission.Read(ctx, o.Paths, o.Stdin, o.Admission(admission.Options{RunPolicies: o.RunPolicies, SkipTests: !o.Tests, Images: o.images(ctx)}))
	if found.HasErrors() {
		return nil, &manifest.InvalidError{Findings: found}
	}
	return &Admitted{Set: set, Catalog: catalog, Warnings: found}, nil
}
