package runner

import (
	"context"
	"io"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/plan"
)

// maxDeclared bounds the objects of one Declare.
const maxDeclared = 20000

// DeclareOptions say which manifests are to be kept by a control plane.
type DeclareOptions struct {
	// Paths are files, folders or "-" (Stdin). A folder with a kustomization is
	// built. Required.
	Paths []string
	Stdin io.Reader
	// Recursive also takes the folders below a folder.
	Recursive bool
	// Absolute makes relative paths absolute: right for a control plane on this
	// machine.
	Absolute bool
	// Closed wants every reference to lead to an object of these manifests;
	// otherwise what is referred to may be in the control plane, or come later.
	Closed bool
}

// Kustomized reports whether a folder holds a kustomization, which is built where the
// folder is named as a path of manifests.
func Kustomized(dir string) bool { return manifest.Kustomized(dir) }

// Declared is an object as its author wrote it, without defaults: who declares
// a field owns it.
type Declared struct {
	Kind, Namespace, Name string
	// Place is where the object begins: file:line:col.
	Place  string
	Object map[string]any
}

// Declaration is what a Declare has read.
type Declaration struct {
	Objects []Declared
	// Warnings are told; they keep nothing out.
	Warnings manifest.Findings
}

// Declare reads manifests and judges them. The error is an *InvalidError when
// there are mistakes: nothing is to be sent then.
func Declare(ctx context.Context, o DeclareOptions) (*Declaration, error) {
	if len(o.Paths) == 0 {
		return nil, reason.Usagef("no manifests are named").WithHint("name a file, a folder or - with -f")
	}
	set, found, err := o.read(ctx)
	if err != nil {
		return nil, err
	}
	_, more := admission.Admit(set, registries().Admission(admission.Options{Elsewhere: !o.Closed}))
	found = append(found, more...)
	for _, d := range set.Documents {
		if _, generated := mapping(d.Value["metadata"])["generateName"]; generated && d.Name == "" {
			found = append(found, d.KeyErrorf("metadata.generateName", "an object without a name cannot be applied: the second time would make another one").With("write metadata.name"))
		}
		found = append(found, o.elsewhere(d)...)
	}
	found.Sort()
	if found.HasErrors() {
		return nil, &InvalidError{Findings: found}
	}
	out := &Declaration{Objects: make([]Declared, len(set.Documents)), Warnings: found}
	for i, d := range set.Documents {
		out.Objects[i] = o.declared(d)
	}
	return out, nil
}

// elsewhere warns about what means something else where objects stand in no folder.
func (o DeclareOptions) elsewhere(d *manifest.Document) manifest.Findings {
	if run, ok := d.Object.(*v1alpha1.Run); ok && run.Spec.Workspace == nil && run.Spec.WorkspaceRef == nil {
		return manifest.Findings{d.Warnf("spec", "no workspace is named: on a control plane the run works in an empty folder").With("spec.workspace.source.path names one")}
	}
	if o.Absolute {
		return nil
	}
	if at, path := admission.Relative(d.Object); at != "" {
		return manifest.Findings{d.Warnf(at, "%s: %q: on a control plane it leads nowhere", plan.RelativePath, path).With("write the path from the root of the host that runs it")}
	}
	return nil
}

func (o DeclareOptions) declared(d *manifest.Document) Declared {
	obj := d.Written()
	delete(obj, "status")
	// What a server hands out can be applied again.
	meta := mapping(obj["metadata"])
	for _, name := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"} {
		delete(meta, name)
	}
	if o.Absolute {
		admission.Absolute(d.Kind, obj, d.Dir)
	}
	return Declared{Kind: d.Kind, Namespace: d.Namespace, Name: d.Name, Place: manifest.Position{File: d.File, Line: d.Line, Col: 1}.String(), Object: obj}
}

func mapping(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// read loads what the paths name, in their order.
func (o DeclareOptions) read(ctx context.Context) (*manifest.Set, manifest.Findings, error) {
	whole := &manifest.Set{}
	var all manifest.Findings
	for _, path := range o.Paths {
		sources, err := manifest.Find(path, o.Recursive)
		if err != nil {
			return nil, nil, err
		}
		for _, s := range sources {
			set, found := manifest.Load(ctx, []string{s}, o.Stdin)
			whole.Documents, all = append(whole.Documents, set.Documents...), append(all, found...)
			if len(whole.Documents) > maxDeclared {
				return nil, nil, reason.Usagef("more than %d objects", maxDeclared).WithHint("apply them in parts")
			}
		}
	}
	return whole, all, nil
}
