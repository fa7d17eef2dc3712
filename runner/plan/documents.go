package plan

import (
	"context"
	"fmt"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/manifest"
)

// Document is an object that is in no file, as a control plane stores them.
type Document struct {
	// Name stands in positions, for example agent/reviewer. Unique.
	Name string
	// Text is the object as JSON or YAML.
	Text []byte
}

// AdmitDocuments is admission.Read for objects that are in no file: their paths must be
// absolute. The position of a finding names its document.
func AdmitDocuments(ctx context.Context, documents []Document, o admission.Options) (*manifest.Set, *admission.Catalog, manifest.Findings) {
	all := &manifest.Set{}
	var found manifest.Findings
	for _, d := range documents {
		set, errs := manifest.Parse(ctx, d.Name, d.Text)
		all.Documents, found = append(all.Documents, set.Documents...), append(found, errs...)
	}
	for _, d := range all.Documents {
		if at, path := admission.Relative(d.Object); at != "" {
			found = append(found, d.Errorf(at, "%s", relativeMessage(path)).With("write the path from the root of the host that runs it"))
		}
	}
	if found.HasErrors() {
		o.Ahead = nil // nothing is begun that will not be used
	}
	catalog, more := admission.Admit(all, o)
	found = append(found, more...)
	found.Sort()
	return all, catalog, found
}

func relativeMessage(path string) string {
	if path == "" {
		return RelativePath + ": there is no current folder here"
	}
	return fmt.Sprintf("%s: %q", RelativePath, path)
}

// RelativePath begins the message of a finding about a path that is not absolute.
const RelativePath = "the path is not absolute"

// withoutFolder gives a run whose object names no workspace an empty one: the current
// folder of a control plane is no project.
func (p *Plan) withoutFolder(o *Options) {
	if len(o.Documents) == 0 || p.Run == nil || p.Run.Spec.Workspace != nil || o.Workspace != "" {
		return
	}
	p.Run.Spec.Workspace = &v1alpha1.WorkspaceSpec{Strategy: v1alpha1.StrategyEmpty}
}
