package runner

import (
	"context"
	"fmt"
	"strings"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/manifest"
)

// Document is an object that stands in no file, as a control plane keeps them.
type Document struct {
	// Name stands in positions, for example agent/reviewer. Unique.
	Name string
	// Text is the object as JSON or YAML.
	Text []byte
}

// Judge holds objects against everything that admission knows, and against what
// is asked only of objects without a file: their paths are absolute. The
// position of a finding names its document.
func Judge(ctx context.Context, documents []Document, shared *Shared) manifest.Findings {
	_, _, found := admitDocuments(ctx, documents, admission.Options{Policies: shared.rules()})
	return found
}

// admitDocuments is admission.Read for objects that stand in no file.
func admitDocuments(ctx context.Context, documents []Document, o admission.Options) (*manifest.Set, *admission.Catalog, manifest.Findings) {
	all := &manifest.Set{}
	var found manifest.Findings
	for _, d := range documents {
		set, errs := manifest.Parse(ctx, d.Name, d.Text)
		all.Documents, found = append(all.Documents, set.Documents...), append(found, errs...)
	}
	for _, d := range all.Documents {
		if at, path := admission.Relative(d.Object); at != "" {
			found = append(found, d.Errorf(at, "%s", relativePath(path)).With("write the path from the root of the host that runs it"))
		}
	}
	if found.HasErrors() {
		o.Ahead = nil // nothing is begun that will not be used
	}
	catalog, more := admission.Admit(all, admitted(o))
	found = append(found, more...)
	found.Sort()
	return all, catalog, found
}

func relativePath(path string) string {
	if path == "" {
		return relativeWord + ": there is no current folder here"
	}
	return fmt.Sprintf("%s: %q", relativeWord, path)
}

// relativeWord begins what is said about a path that is not absolute.
const relativeWord = "the path is not absolute"

// IsRelativePath says whether a finding is about a path that is not absolute.
func IsRelativePath(f manifest.Finding) bool { return strings.HasPrefix(f.Message, relativeWord) }

// withoutFolder gives a run that says nothing about files none: what is the current
// folder of a control plane is nobody's project.
func (p *plan) withoutFolder(o *RunOptions) {
	if len(o.Documents) == 0 || p.Run == nil || p.Run.Spec.Workspace != nil || o.Workspace != "" {
		return
	}
	p.Run.Spec.Workspace = &v1alpha1.WorkspaceSpec{Strategy: v1alpha1.StrategyEmpty}
}
