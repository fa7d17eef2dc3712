package plan

import (
	"context"
	"maps"
	"slices"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/tool"
)

// FindTool reads the manifests of the options, and returns the Tool with a name or call
// name. Its errors are an *InvalidError or a *reason.UsageError.
func FindTool(ctx context.Context, o Options, name string) (*tool.Definition, error) {
	if len(o.Paths) == 0 {
		return nil, reason.Usagef("no manifests are named").WithHint("name a file, a folder or - with -f")
	}
	_, catalog, found := admission.Read(ctx, o.Paths, o.Stdin, o.Registries.Admission(admission.Options{}))
	if found.HasErrors() {
		return nil, &manifest.InvalidError{Findings: found}
	}
	names := slices.Sorted(maps.Keys(catalog.Tools))
	for _, n := range names {
		at := catalog.Tools[n].Object
		if n != name && at.Spec.CallName != name {
			continue
		}
		d, err := o.Registries.Sources.Define(catalog.Tool(n))
		if err != nil {
			return nil, &reason.UsageError{Err: err}
		}
		return &d, nil
	}
	missing := reason.Usagef("the manifests declare no Tool %q", name)
	if near := reason.Nearest(name, names); near != "" {
		return nil, missing.WithHint("did you mean " + near + "?")
	}
	return nil, missing.WithHint("agentctl get tools -f FILE lists them")
}
