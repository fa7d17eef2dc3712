// Package plan resolves manifests into the plan of a run, and restores the plan of a recorded run.
package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/approval"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/policy"
	"agentctl.dev/agentctl/runner/prompt"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/workspace"
)

// defaultPrompt begins a run of an agent whose instructions are complete.
const defaultPrompt = "Carry out your instructions."

// Plan is what a run is made of: the manifests, with the options of the command
// line applied. It does not change after it was made.
type Plan struct {
	*admission.Plan
	// Definitions are the agent's tools as they are declared; see Called.
	Definitions []tool.Definition
	// Functions are those that the programs of a recorded run described, by the call name
	// of a Tool that provides several.
	Functions map[string][]tool.Function
	// Rules are the compiled policies.
	Rules []*policy.Compiled

	// Instructions and Prompt have their inputs filled in.
	Instructions, Prompt string
	// System is the system prompt of a recorded run; "" for a new one.
	System   string
	Inputs   map[string]json.RawMessage
	Origins  Origins
	Attached []Attachment
	// Expansions are what the author of the prompt asks for in its text.
	Expansions []message.Expansion
	// Workspace says which files the run works on; Shares says that they are those of
	// the run that has started it.
	Workspace workspace.Spec
	Shares    bool
	// Cloned is the repository of the run; nil without a git source.
	Cloned *Repository
	// Answers is how the command line answers questions.
	Answers  approval.Choice
	Warnings []string
	// Served means that clients make the calls, in place of a model.
	Served bool
	// Manifests are the files of this plan that lie in the workspace, as paths in it.
	Manifests []string

	// mentions are what is yet to be found out about the prompt.
	mentions   []prompt.Mention
	registries Registries
}

// Options say what to plan. Paths or Documents are required, and the Registries.
type Options struct {
	// Paths are files, folders or "-" (Stdin) with manifests.
	Paths []string
	Stdin io.Reader
	// Documents are objects that are in no file.
	Documents []Document
	// Admitted are manifests that were read, in place of Paths.
	Admitted *Admitted
	// Tests are judged, too: a run needs none.
	Tests bool
	// WithoutRun leaves out the Run objects of the manifests.
	WithoutRun bool
	// Agent and Model choose by name where the manifests hold several.
	Agent, Model string
	// Models are those of agents below, by the names of these, in place of their own.
	Models map[string]string
	// Above are the agents that have started the agent, that of the run first, for a call
	// that is only judged.
	Above []string
	// Prefer is the agent where none is named, if the manifests hold it. Optional.
	Prefer string
	// Prompt replaces that of the Run object; "" keeps it.
	Prompt string
	// Authored: the Prompt was written by the person that begins the run, and what it asks for
	// in its text is done. Data are parts of it that the person has not written.
	Authored bool
	Data     []Span
	// Command is a command of the Paths, whose text is the prompt, and Arguments are put into
	// it. "" is none.
	Command   string
	Arguments []string
	// Attach are images and PDF files that are sent with the prompt.
	Attach []string
	// Inputs replace single inputs of the Run object.
	Inputs map[string]string
	// Workspace replaces the workspace's source; "" keeps it.
	Workspace string
	InPlace   bool
	// Clone clones the repository of the workspace for a run of the plan. Without it the
	// plan has no files from there.
	Clone func(context.Context, *Plan, *v1alpha1.GitSource) (*Repository, error)
	// State is the folder that holds runs; it is never part of a workspace.
	State string
	// Approve is how questions are answered; see approval.Parse.
	Approve string
	// Person answers questions in place of what Approve says. Optional.
	Person approval.Person
	// Timeout narrows limits.timeout; 0 keeps it.
	Timeout time.Duration
	// Pins are what programs must report about tools, by call name.
	Pins map[string]string
	// Served plans a run whose calls clients make: its model is not used.
	Served bool
	// Skill is the skill whose plan runs in place of the agent's model; "" for that which
	// the Run object names, if any.
	Skill string
	// RunPolicies narrow the run, besides those that the Run object names.
	RunPolicies []string
	// WithoutRepository leaves out the policies that the repository brings.
	WithoutRepository bool
	// Policies are compiled policies to reuse. Optional.
	Policies *policy.Shared
	// Images returns the folder on this host with the files of an image. nil: a skill in
	// an image is an error of the agent that has it.
	Images func(ctx context.Context, ref string) (dir string, err error)
	Registries

	// Earlier is the turn before, for another turn of a run that has ended: its files are
	// kept, and its inputs where the agent is the same. Optional.
	Earlier *Earlier

	// RecordedInputs and RecordedFiles are those of a run that is recorded again.
	RecordedInputs map[string]json.RawMessage
	RecordedFiles  []Attachment
	// RecordedExpansions are those of a recorded prompt.
	RecordedExpansions []message.Expansion
	// RecordedOrigins are where a recorded prompt and recorded inputs came from; those
	// that are not among them are the user's.
	RecordedOrigins Origins

	// commandFile holds the command, and template is what was read of it.
	commandFile string
	template    *prompt.Command

	// Ahead is called as soon as the tools and the files are known, while rules are
	// still compiled: the plan has no prompt and no rules then. Optional.
	Ahead func(*Plan)
}

// New reads, validates and resolves manifests. Its errors are a
// *manifest.InvalidError or a *reason.UsageError.
func New(ctx context.Context, o Options) (*Plan, error) {
	if len(o.Paths) == 0 && len(o.Documents) == 0 && o.Admitted == nil {
		return nil, reason.Usagef("no manifests are named").WithHint("name a file, a folder or - with -f")
	}
	if err := o.command(); err != nil {
		return nil, err
	}
	choice := admission.ResolveOptions{
		Agent: o.Agent, Prefer: o.Prefer, Model: o.Model, Policies: o.RunPolicies, Skill: o.Skill, WithoutRun: o.WithoutRun, Models: o.Models,
	}
	set, catalog, found := o.admit(ctx, choice)
	if found.HasErrors() {
		return nil, &manifest.InvalidError{Findings: found}
	}
	resolved, err := catalog.Resolve(choice)
	if err != nil {
		return nil, unresolved(err)
	}
	if resolved.Carried != nil {
		if err := o.carries(resolved.Carried.Skill); err != nil {
			return nil, err
		}
	}
	o.Earlier.inputs(&o, resolved.Agent.Name)
	catalog.PlaceRules(resolved)
	resolved.Pins = o.Pins
	p := &Plan{Plan: resolved, Rules: resolved.Compiled(), Served: o.Served, registries: o.Registries}
	if p.Served {
		p.forClients()
	}
	p.withoutFolder(&o)
	if p.Definitions, err = o.define(resolved); err != nil {
		return nil, &reason.UsageError{Err: err}
	}
	for _, f := range found {
		p.Warnings = append(p.Warnings, fmt.Sprintf("%s: %s: %s", f.Position, f.Path, f.Message))
	}
	if o.Timeout > 0 && (p.Limits.Timeout.Duration == 0 || o.Timeout < p.Limits.Timeout.Duration) {
		p.Limits.Timeout.Duration = o.Timeout
	}
	if p.Answers, err = approval.Parse(o.Approve); err != nil {
		return nil, &reason.UsageError{Err: err}
	}
	p.Answers.Person = o.Person
	if err := p.fillPrompts(&o); err != nil {
		return nil, usage(err)
	}
	if err := p.place(ctx, &o); err != nil {
		return nil, err
	}
	if err := p.usable(); err != nil {
		if o.Earlier != nil {
			return nil, reason.Usagef("the folder that the conversation works for: %w", err).WithHint("agentctl run begins another one")
		}
		return nil, err
	}
	if err := p.expand(&o); err != nil {
		return nil, err
	}
	if err := p.bring(ctx, catalog, &o); err != nil {
		return nil, err
	}
	p.findSkills()
	if err := p.attach(o.Attach); err != nil {
		return nil, err
	}
	p.Attached = append(p.Attached, o.RecordedFiles...)
	if len(o.Documents) == 0 {
		p.Manifests = append(p.inWorkspace(set.Documents, commandFiles(o.Paths)), p.Manifests...)
	}
	return p, nil
}

// forAccess returns the plan of a call that is only judged, and the catalog of its
// manifests.
func forAccess(ctx context.Context, o Options) (*Plan, *admission.Catalog, error) {
	if len(o.Paths) == 0 {
		return nil, nil, reason.Usagef("no manifests are named").WithHint("name a file, a folder or - with -f")
	}
	_, catalog, found := admission.Read(ctx, o.Paths, o.Stdin, o.Admission(admission.Options{RunPolicies: o.RunPolicies, Images: o.images(ctx)}))
	if found.HasErrors() {
		return nil, nil, &manifest.InvalidError{Findings: found}
	}
	resolved, err := o.resolveBelow(catalog)
	if err != nil {
		return nil, nil, err
	}
	p := &Plan{Plan: resolved, Rules: resolved.Compiled(), registries: o.Registries}
	if p.Definitions, err = o.define(resolved); err != nil {
		return nil, nil, &reason.UsageError{Err: err}
	}
	if err := p.place(ctx, &Options{Workspace: o.Workspace}); err != nil {
		return nil, nil, err
	}
	return p, catalog, p.bring(ctx, catalog, &o)
}

// Present returns the plan with the agent, the tools and the limits of manifests as
// they are today, and with the models of the recorded plan.
func (p *Plan) Present(resolved *admission.Plan) (*Plan, error) {
	now := *p
	now.Plan = &admission.Plan{
		Agent: resolved.Agent, Tools: resolved.Tools, Policies: resolved.Policies, Limits: resolved.Limits,
		Model: p.Model, Fallbacks: p.Fallbacks, Summarizer: p.Summarizer, Coders: p.Coders,
		Subagents: resolved.Subagents, Ceilings: resolved.Ceilings, Skills: resolved.Skills, Carried: p.Carried,
	}
	var err error
	if now.Definitions, err = p.registries.define(resolved); err != nil {
		return nil, &reason.UsageError{Err: err}
	}
	if now.Instructions, err = prompt.Fill(now.Agent.Spec.Instructions, now.Inputs); err != nil {
		return nil, reason.Usagef("agent %q: spec.instructions: %w", now.Agent.Name, err)
	}
	return &now, nil
}

// Lean returns the plan without what only its record needs: a run may wait for hours.
// Its policies are compiled; refusals name the lines of their rules.
func (p *Plan) Lean() *Plan {
	lean, resolved := *p, *p.Plan
	if len(p.Subagents) == 0 { // else they bound the runs that this one starts
		resolved.Policies = nil
	}
	resolved.Sources = maps.Clone(p.Sources)
	maps.DeleteFunc(resolved.Sources, func(key, _ string) bool { return !admission.IsRuleKey(key) })
	lean.Plan, lean.Attached = &resolved, nil
	return &lean
}

// admit reads what a run is made of, from files or from objects without one.
func (o *Options) admit(ctx context.Context, choice admission.ResolveOptions) (*manifest.Set, *admission.Catalog, manifest.Findings) {
	if a := o.Admitted; a != nil {
		return a.Set, a.Catalog, nil
	}
	opts := admission.Options{Policies: o.Policies, RunPolicies: o.RunPolicies, Modelless: o.Skill != "", SkipTests: !o.Tests, Images: o.images(ctx)}
	if o.Ahead != nil {
		opts.Ahead = func(c *admission.Catalog) { o.ahead(ctx, c, choice) }
	}
	if len(o.Documents) > 0 {
		return AdmitDocuments(ctx, o.Documents, o.Admission(opts))
	}
	return admission.Read(ctx, o.Paths, o.Stdin, o.Admission(opts))
}

// ahead passes the plan on as far as it is known; New reports the errors.
func (o *Options) ahead(ctx context.Context, c *admission.Catalog, choice admission.ResolveOptions) {
	resolved, err := c.Resolve(choice)
	if err != nil {
		return
	}
	early := &Plan{Plan: resolved, registries: o.Registries}
	early.withoutFolder(o)
	if early.Definitions, err = o.define(resolved); err == nil && early.repository(o) == nil && early.place(ctx, o) == nil && early.usable() == nil {
		o.Ahead(early)
	}
}

func (r Registries) define(p *admission.Plan) ([]tool.Definition, error) {
	tools := make([]tool.Definition, len(p.Tools))
	for i, t := range p.Tools {
		var err error
		if tools[i], err = r.Sources.Define(t.Tool); err != nil {
			return nil, err
		}
		describe(&tools[i], p.Agent.Spec.Publish)
		if len(t.Include)+len(t.Exclude) > 0 {
			tools[i].Select = &tool.Selection{Include: t.Include, Exclude: t.Exclude}
		}
		for _, e := range p.Skills {
			if e.Image != "" && e.Tool == tools[i].Name && e.Tool != "" {
				tools[i].Kept = e.Dir
			}
		}
	}
	return tools, nil
}

// Called are the tools of a recorded run as they are called: a Tool that provides several
// functions is replaced by those that its program described. A Tool whose program was not
// asked, because the run ended before, is left as it is.
func (p *Plan) Called() ([]tool.Definition, error) {
	var all []tool.Definition
	for i := range p.Definitions {
		d := &p.Definitions[i]
		found, known := p.Functions[d.Name]
		if d.Select == nil || !known {
			all = append(all, *d)
			continue
		}
		functions, err := tool.Expand(d, found)
		if err != nil {
			return nil, err
		}
		all = append(all, functions...)
	}
	return all, nil
}

// CallNames are what the model calls the tools.
func (p *Plan) CallNames() []string {
	names := make([]string, len(p.Definitions))
	for i := range p.Definitions {
		names[i] = p.Definitions[i].Name
	}
	return names
}

// IsGit reports whether the files are a git repository.
func (p *Plan) IsGit() bool {
	_, err := os.Lstat(filepath.Join(p.Workspace.Source, ".git"))
	return p.Workspace.Source != "" && err == nil
}
