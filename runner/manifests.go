package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/image/artifact"
	"agentctl.dev/agentctl/runner/lock"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/plan"
	"agentctl.dev/agentctl/runner/policy"
	"agentctl.dev/agentctl/runner/policy/policytest"
	"agentctl.dev/agentctl/runner/tool"
)

// ValidateOptions select what to check.
type ValidateOptions struct {
	// Paths are files, folders or "-" (Stdin). Required.
	Paths []string
	Stdin io.Reader
	// Strict makes errors of warnings, and holds skills to their specification.
	Strict bool
	// State is the folder that keeps the images of skills; see statedir.Find.
	State string
}

// Report is what a validation found.
type Report struct {
	Findings manifest.Findings
	// Documents that were read.
	Documents int
}

// HasErrors reports whether the manifests may not be used.
func (r *Report) HasErrors() bool { return r.Findings.HasErrors() }

// IsError reports whether a finding keeps a manifest out.
func (r *Report) IsError(i int) bool { return r.Findings[i].Severity == manifest.Error }

// RuleMeanings say in a sentence what each rule of a finding looks for.
var RuleMeanings = manifest.RuleMeanings

// Write prints at most limit findings as a compiler does.
func (r *Report) Write(w io.Writer, limit int) error { return r.Findings.Write(w, limit) }

// Validate reads manifests and reports all mistakes at once. It starts no
// program, and fetches the images of skills that are not kept yet.
func Validate(ctx context.Context, o ValidateOptions) (*Report, error) {
	if len(o.Paths) == 0 {
		return nil, reason.Usagef("no manifests are named").WithHint("name a file, a folder or - with -f")
	}
	set, _, found := admission.Read(ctx, o.Paths, o.Stdin, registries().Admission(admission.Options{
		Cases: true, Programs: true, Strict: o.Strict, Images: func(ref string) (string, error) { return artifact.OfSkills(o.State, false)(ctx, ref) },
	}))
	found.Named()
	if o.Strict { // those of the reader, too
		for i := range found {
			found[i].Severity = manifest.Error
		}
	}
	return &Report{Findings: found, Documents: len(set.Documents) + len(set.Cases)}, nil
}

// Judge validates objects that are in no file, whose paths must be absolute.
// The position of a finding names its document. Documents that were judged before with
// what is shared are not read again.
func Judge(ctx context.Context, documents []Document, shared *Shared) manifest.Findings {
	return shared.findings().Judge(ctx, documents, registries().Admission(admission.Options{Policies: shared.rules()}))
}

// IsRelativePath reports whether a finding is about a path that is not absolute.
func IsRelativePath(f manifest.Finding) bool { return strings.HasPrefix(f.Message, plan.RelativePath) }

// PolicyTestOptions select the test cases.
type PolicyTestOptions struct {
	// Paths are files, folders or "-" (Stdin). Required.
	Paths []string
	Stdin io.Reader
	// Only picks cases by name. Optional.
	Only *regexp.Regexp
	// Mutate tests which mutations of a policy its cases notice.
	Mutate bool
	// State is that of ValidateOptions.
	State string
}

// TestPolicies runs the test cases of all policies in manifests, in spec.tests
// and next to them in files that end in tests.yaml. No tool is run. Its errors
// are an *InvalidError or a *reason.UsageError, or about the machine.
func TestPolicies(ctx context.Context, o PolicyTestOptions) (*policytest.Report, error) {
	if len(o.Paths) == 0 {
		return nil, reason.Usagef("no manifests are named").WithHint("name a file, a folder or - with -f")
	}
	_, catalog, found := admission.Read(ctx, o.Paths, o.Stdin, registries().Admission(admission.Options{
		Cases: true, Images: func(ref string) (string, error) { return artifact.OfSkills(o.State, false)(ctx, ref) },
	}))
	if found.HasErrors() {
		return nil, &InvalidError{Findings: found}
	}
	opts := policytest.Options{Only: o.Only, Mutate: o.Mutate, Clock: time.Now, Agents: map[string]policy.Agent{}}
	var err error
	if opts.Tools, err = catalog.PolicyTools(); err != nil {
		return nil, err
	}
	if opts.Check, err = argumentCheck(opts.Tools); err != nil {
		return nil, err
	}
	for name, a := range catalog.Agents {
		opts.Agents[name] = policy.Agent{Name: name, Namespace: a.Object.Namespace, Labels: a.Object.Labels, Mode: string(a.Object.Spec.Mode)}
	}
	subjects := policySubjects(catalog)
	if !slices.ContainsFunc(subjects, func(s policytest.Subject) bool { return len(s.Cases) > 0 }) {
		return nil, reason.Usagef("the manifests hold no case of a policy").WithHint("write cases in spec.tests of the Policy, or beside it in a file NAME-tests.yaml")
	}
	report, err := policytest.Run(ctx, subjects, opts)
	if err == nil && report.Cases == 0 {
		return nil, reason.Usagef("no case has a name that matches %s", o.Only)
	}
	return report, err
}

// policySubjects are the declared policies, and shipped ones that have test
// cases.
func policySubjects(c *admission.Catalog) []policytest.Subject {
	var all []policytest.Subject
	for _, name := range slices.Sorted(maps.Keys(c.Policies)) {
		e := c.Policies[name]
		s := policytest.Subject{Policy: e.Object, Compiled: c.CompiledPolicy(name), Where: e.Doc.Locate}
		for _, from := range append([]admission.Entry[v1alpha1.Policy]{e}, c.Cases[name]...) {
			for i, t := range from.Object.Spec.Tests {
				s.Cases = append(s.Cases, policytest.Case{PolicyTest: t, Position: from.Doc.Locate(manifest.Index("spec.tests", i))})
			}
		}
		if !c.Shipped(name) || len(c.Cases[name]) > 0 {
			all = append(all, s)
		}
	}
	return all
}

// argumentCheck validates arguments against the schemas of tools, as a run does
// before a call is judged.
func argumentCheck(tools []policy.Tool) (func(string, json.RawMessage) error, error) {
	schemas := map[string]*tool.Schema{}
	for i := range tools {
		if len(tools[i].Schema) == 0 {
			continue
		}
		s, err := tool.NewSchema(tools[i].Schema)
		if err != nil {
			return nil, fmt.Errorf("tool %q: %w", tools[i].Name, err)
		}
		schemas[tools[i].Name] = s
	}
	return func(name string, args json.RawMessage) error {
		s, ok := schemas[name]
		if !ok {
			return nil
		}
		_, err := s.Check(string(args))
		return err
	}, nil
}

// AgentInfo is an agent as others see it.
type AgentInfo struct {
	Name, Description string
	// Inputs and Output are JSON Schemas of the data that it takes and of its answer; nil
	// where it declares none.
	Inputs, Output json.RawMessage
}

// Agents reads manifests and returns the agents that a run can start, by name. Its errors
// are an *InvalidError or a *reason.UsageError.
func Agents(ctx context.Context, o ValidateOptions) ([]AgentInfo, error) {
	if len(o.Paths) == 0 {
		return nil, reason.Usagef("no manifests are named").WithHint("name a file, a folder or - with -f")
	}
	_, catalog, found := admission.Read(ctx, o.Paths, o.Stdin, registries().Admission(admission.Options{}))
	if found.HasErrors() {
		return nil, &InvalidError{Findings: found}
	}
	var all []AgentInfo
	for _, name := range slices.Sorted(maps.Keys(catalog.Agents)) {
		spec := &catalog.Agents[name].Object.Spec
		if spec.Mode == v1alpha1.ModeSubagent {
			continue
		}
		a := AgentInfo{Name: name, Description: spec.Description}
		if spec.Inputs != nil {
			a.Inputs = spec.Inputs.Schema.Raw
		}
		if spec.Output != nil {
			a.Output = spec.Output.Schema.Raw
		}
		all = append(all, a)
	}
	if len(all) == 0 {
		return nil, reason.Usagef("the manifests hold no Agent that a run can start")
	}
	return all, nil
}

// maxDeclared bounds the objects of one Declare.
const maxDeclared = 20000

// DeclareOptions name the manifests for a control plane.
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
	// Closed requires every reference to lead to an object of these manifests;
	// otherwise its target may be in the control plane, or be created later.
	Closed bool
}

// Kustomized reports whether a folder holds a kustomization, which is built where the
// folder is named as a path of manifests.
func Kustomized(dir string) bool { return manifest.Kustomized(dir) }

// Declared is an object as its author wrote it, without defaults: a manager
// owns the fields that it declares.
type Declared struct {
	Kind, Namespace, Name string
	// Place is where the object begins: file:line:col.
	Place  string
	Object map[string]any
}

// Declaration is what a Declare has read.
type Declaration struct {
	Objects []Declared
	// Warnings are reported; they do not reject anything.
	Warnings manifest.Findings
}

// Declare reads and validates manifests. The error is an *InvalidError when
// there are mistakes: then the caller must send nothing.
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

// elsewhere warns about fields with another meaning where objects are in no
// folder.
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

// LockFile is the lock beside a path of manifests.
func LockFile(path string) string { return lock.Beside(path) }
