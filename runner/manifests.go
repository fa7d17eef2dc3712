package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/environment"
	"agentctl.dev/agentctl/runner/execution"
	"agentctl.dev/agentctl/runner/image/artifact"
	"agentctl.dev/agentctl/runner/keys"
	"agentctl.dev/agentctl/runner/lock"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/plan"
	"agentctl.dev/agentctl/runner/policy"
	"agentctl.dev/agentctl/runner/policy/policytest"
	"agentctl.dev/agentctl/runner/secret"
	"agentctl.dev/agentctl/runner/statedir"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/tool/source/mcp"
	"agentctl.dev/agentctl/runner/tool/source/mcp/oauth"
	"agentctl.dev/agentctl/runner/tool/source/sources"
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

// ProbeOptions name the tool to probe. Tool is required, with the defaults of
// its kind written out.
type ProbeOptions struct {
	Tool *v1alpha1.Tool
	// State, AllowUnsandboxed and Containerd are those of RunOptions.
	State            string
	AllowUnsandboxed bool
	Containerd       string
}

// ToolFacts are what a tool's program reports about itself.
type ToolFacts struct {
	// Name is the call name.
	Name, Description string
	Parameters        json.RawMessage
	// Functions of a Tool that provides several; its Digest is then over all of them.
	Functions []tool.Function
	// Digest of the name, the description and the parameters: sha256:...; "" for a server
	// that only runs ask.
	Digest string
}

// Probe checks whether a tool can be used on this host. A program that can
// describe its functions is started once, contained as its manifest demands and
// without the variables it declares, asked, and ended; of any other it only
// checks that the program exists. Its errors have a reason:
// IsolationUnavailable, or ToolError for the program.
func Probe(ctx context.Context, o ProbeOptions) (*ToolFacts, error) {
	state, err := statedir.Find(o.State)
	if err != nil {
		return nil, err
	}
	planned := admission.Materialised(o.Tool)
	d, err := sources.All().Define(planned)
	if err != nil {
		return nil, reason.New(reason.ToolError, "%w", err)
	}
	if d.Describes {
		d.Parameters, d.Description = nil, "" // what the program reports, not what the manifest has
	}
	on := environment.NewHost(environment.HostOptions{Kinds: sources.All(), State: state, AllowUnsandboxed: o.AllowUnsandboxed, Containerd: o.Containerd})
	dir, err := os.MkdirTemp("", "agentctl-probe-")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("probe tool %q: %w", d.Name, err), on.Close())
	}
	found, err := on.Probe(ctx, execution.NewIDs(time.Now)("probe"), d, dir)
	if err = errors.Join(err, on.Close(), os.RemoveAll(dir)); err != nil {
		return nil, err
	}
	facts := factsOf(&found.Definition)
	switch {
	case found.Functions == nil && d.Select != nil: // it was not asked: a run pins what it is served
		facts.Digest = ""
	case found.Functions != nil:
		facts.Functions, facts.Digest = found.Functions, tool.PinAll(&d, found.Functions)
	}
	return facts, nil
}

func factsOf(d *tool.Definition) *ToolFacts {
	f := &ToolFacts{Name: d.Name, Description: d.Description, Parameters: d.Parameters}
	f.Digest = tool.Pin(f.Name, f.Description, f.Parameters)
	return f
}

// ToolOptions name a Tool of manifests that is used without a run.
type ToolOptions struct {
	// Paths are files, folders or "-" (Stdin). Required.
	Paths []string
	Stdin io.Reader
	// Tool is the name of the Tool, or its call name.
	Tool string
	// Workspace is the folder whose files the tool sees; "" is the current one.
	Workspace string
	// State, AllowUnsandboxed and Containerd are those of RunOptions.
	State            string
	AllowUnsandboxed bool
	Containerd       string
	// LeftOut is called with the functions of the tool that no run can use. Ask answers
	// questions of the tool. Optional.
	LeftOut func(of string, all []tool.Omission)
	Ask     func(ctx context.Context, call string, q host.Question) (string, error)
}

// UseTool isolates a Tool of manifests and resolves its secrets as a run does, and hands
// it to a function with what removes the secrets from a text that is JSON. Its errors are
// an *InvalidError, a *reason.UsageError, or have a reason.
func UseTool(ctx context.Context, o ToolOptions, use func(ctx context.Context, p *tool.Pool, d *tool.Definition, hide func([]byte) []byte) error) error {
	d, err := plan.FindTool(ctx, plan.Options{Paths: o.Paths, Stdin: o.Stdin, Registries: registries()}, o.Tool)
	if err != nil {
		return err
	}
	state, err := statedir.Find(o.State)
	if err != nil {
		return err
	}
	if o.Workspace == "" {
		o.Workspace = "."
	}
	if o.Workspace, err = filepath.Abs(o.Workspace); err != nil {
		return reason.Usagef("the workspace: %w", err)
	}
	h := environment.NewHost(environment.HostOptions{Kinds: sources.All(), State: state, AllowUnsandboxed: o.AllowUnsandboxed, Containerd: o.Containerd})
	err = h.Use(ctx, environment.UseOptions{ID: execution.NewIDs(time.Now)("test"), Dir: o.Workspace, Tool: *d, LeftOut: o.LeftOut, Ask: o.Ask}, func(ctx context.Context, p *tool.Pool, hide *secret.Redactor) error {
		return use(ctx, p, d, hide.JSON)
	})
	return errors.Join(err, h.Close())
}

// Person is somebody who can log in.
type Person = oauth.Person

// Visit is a page to log in at.
type Visit = oauth.Visit

// LoggedIn is what came of a login.
type LoggedIn = mcp.LoggedIn

// Login is a login that is kept, without its tokens.
type Login = oauth.Login

// LoginValid is the state of a login that runs can use.
const LoginValid = oauth.Valid

// LogIn has a person log in at the server of a Tool, and keeps the login for runs with the
// same state folder. Its errors are those of UseTool; CredentialRejected where the login
// has failed.
func LogIn(ctx context.Context, o ToolOptions, person Person) (in *LoggedIn, err error) {
	err = UseTool(ctx, o, func(ctx context.Context, p *tool.Pool, d *tool.Definition, _ func([]byte) []byte) error {
		in, err = mcp.Login(ctx, p, d, person)
		return err
	})
	return in, err
}

// Logins are the logins that a state folder keeps, without their tokens.
func Logins(state string) ([]Login, error) {
	state, err := statedir.Find(state)
	if err != nil {
		return nil, err
	}
	return oauth.Logins(keys.LoginsOf(state), time.Now())
}

// LogOut forgets the logins of a tool by its call name, only those at a server if its URL
// is given, and gives the tokens back where the authorization server takes them. left is
// why a token could not be given back.
func LogOut(ctx context.Context, state, tool, server string) (gone []Login, left []error, err error) {
	if state, err = statedir.Find(state); err != nil {
		return nil, nil, err
	}
	return oauth.Logout(ctx, keys.LoginsOf(state), tool, server, time.Now())
}

// LockOptions name manifests to lock. Paths are required.
type LockOptions struct {
	// Paths and Stdin are those of RunOptions.
	Paths []string
	Stdin io.Reader
	// File is the lock; "" is the one beside the first of the paths.
	File string
	// Check compares with the lock instead of writing it.
	Check bool
	// State, AllowUnsandboxed and Containerd are those of RunOptions.
	State            string
	AllowUnsandboxed bool
	Containerd       string
}

// Locked is what came of a lock.
type Locked struct {
	File    string `json:"file"`
	Objects int    `json:"objects"`
	// Changes are those since the lock before; nil without one.
	Changes []lock.Change `json:"changes"`
	// Unpinned are tools whose functions only a run can ask for.
	Unpinned []string `json:"unpinned"`
}

// LockFile is the lock beside a path of manifests.
func LockFile(path string) string { return lock.Beside(path) }

// Lock pins what the agents of manifests use: models, programs, images, skills, and what
// programs and servers describe, for which it starts them. With Check, what has moved is an
// error with the reason LockDrift; its other errors are those of Probe, an *InvalidError or
// a *reason.UsageError.
func Lock(ctx context.Context, o LockOptions) (*Locked, error) {
	read, err := plan.Admit(ctx, plan.Options{Paths: o.Paths, Stdin: o.Stdin, Registries: registries(), Images: artifact.OfSkills(o.State, false)})
	if err != nil {
		return nil, err
	}
	if o.File == "" {
		o.File = lock.Beside(o.Paths[0])
	}
	out := &Locked{File: o.File, Changes: []lock.Change{}, Unpinned: []string{}}
	entries, err := o.entries(ctx, read.Catalog, out)
	if err != nil {
		return nil, err
	}
	out.Objects = len(entries)
	before, err := lock.Read(o.File)
	if err == nil {
		out.Changes = append(out.Changes, before.Moved(entries, true)...)
	}
	if o.Check {
		if err != nil {
			return nil, err
		}
		return out, lock.Error(o.File, out.Changes)
	}
	return out, lock.New(entries).Write(o.File)
}

// pinned returns what all agents and models of manifests use, without what programs
// describe, and the tools that can be asked for that.
func pinned(c *admission.Catalog) ([]lock.Entry, map[string]*v1alpha1.Tool, error) {
	r, all, tools := registries(), map[string]lock.Entry{}, map[string]*v1alpha1.Tool{}
	for _, e := range c.Models {
		entry := lock.Model(e.Object, r.Providers)
		all[entry.Object] = entry
	}
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		p, err := c.Resolve(admission.ResolveOptions{Agent: name, WithoutRun: true, Below: true})
		if err != nil {
			return nil, nil, &reason.UsageError{Err: err, Hint: reason.Hint(err)}
		}
		found, err := lock.Of(p, r.Providers, r.Sources)
		if err != nil {
			return nil, nil, err
		}
		for _, e := range found {
			all[e.Object] = e
		}
		for _, t := range p.Tools {
			if facts, _ := r.Sources.Facts(&t.Tool.Spec); facts.Describes && facts.Shipped == "" && facts.Image == "" { // an image is pinned by its digest, with all that it describes
				tools[t.Tool.Name] = t.Tool
			}
		}
	}
	entries := make([]lock.Entry, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		entries = append(entries, all[name])
	}
	return entries, tools, nil
}

// entries are those of all agents and models of manifests.
func (o *LockOptions) entries(ctx context.Context, c *admission.Catalog, out *Locked) ([]lock.Entry, error) {
	entries, tools, err := pinned(c)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		facts, err := Probe(ctx, ProbeOptions{Tool: tools[name], State: o.State, AllowUnsandboxed: o.AllowUnsandboxed, Containerd: o.Containerd})
		if err != nil {
			return nil, err
		}
		if facts.Digest == "" {
			out.Unpinned = append(out.Unpinned, name)
			continue
		}
		entries = lock.Describe(entries, name, facts.Name, facts.Digest)
	}
	return entries, nil
}
