package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentctl.dev/agentctl/runner/model/provider"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/approval"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/policy"
	"agentctl.dev/agentctl/runner/prompt"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/tool/source/sources"
	"agentctl.dev/agentctl/runner/workspace"
)

// defaultPrompt begins a run of an agent whose instructions say it all.
const defaultPrompt = "Carry out your instructions."

// plan is what a run is made of, with the wishes of the command line laid over
// the manifests. Nothing has happened yet.
type plan struct {
	*admission.Plan
	tools    []tool.Definition
	compiled []*policy.Compiled

	instructions, prompt string
	system               string // the system prompt, as the model is sent it
	inputs               map[string]json.RawMessage
	attached             []attachment
	files                workspace.Spec
	answers              approval.Choice
	warnings             []string
	// manifests of this plan that lie in the files, as paths in them.
	manifests []string
}

// newPlan reads and judges the manifests and resolves them. Its errors are an
// *InvalidError or a *reason.UsageError.
//
// Ahead is told the tools and the files as soon as they are known, while rules
// are compiled: a plan without words and without judges.
func newPlan(ctx context.Context, o *RunOptions, ahead func(*plan)) (*plan, error) {
	if len(o.Paths) == 0 && len(o.Documents) == 0 {
		return nil, reason.Usagef("no manifests are named").WithHint("name a file, a folder or - with -f")
	}
	choice := admission.ResolveOptions{Agent: o.Agent, Model: o.Model}
	set, catalog, found := o.read(ctx, admission.Options{Policies: o.Shared.rules(), Ahead: func(c *admission.Catalog) {
		resolved, err := c.Resolve(choice)
		if err != nil {
			return // it is told below
		}
		early := &plan{Plan: resolved}
		early.withoutFolder(o)
		if early.tools, err = define(resolved); err == nil && early.place(o) == nil && early.usable() == nil {
			ahead(early)
		}
	}})
	if found.HasErrors() {
		return nil, &InvalidError{found}
	}
	resolved, err := catalog.Resolve(choice)
	if err != nil {
		return nil, &reason.UsageError{Err: err}
	}
	catalog.PlaceRules(resolved)
	resolved.Pins = o.Pins
	p := &plan{Plan: resolved, compiled: resolved.Compiled()}
	p.withoutFolder(o)
	if p.tools, err = define(resolved); err != nil {
		return nil, &reason.UsageError{Err: err}
	}
	for _, f := range found {
		p.warnings = append(p.warnings, fmt.Sprintf("%s: %s: %s", f.Position, f.Path, f.Message))
	}
	if o.Timeout > 0 && (p.Limits.Timeout.Duration == 0 || o.Timeout < p.Limits.Timeout.Duration) {
		p.Limits.Timeout.Duration = o.Timeout
	}
	if p.answers, err = approval.Parse(o.Approve); err != nil {
		return nil, &reason.UsageError{Err: err}
	}
	if err := p.words(o); err != nil {
		return nil, &reason.UsageError{Err: err}
	}
	if err := p.place(o); err != nil {
		return nil, err
	}
	if err := p.usable(); err != nil {
		return nil, err
	}
	if err := p.attach(o.Attach); err != nil {
		return nil, err
	}
	p.attached = append(p.attached, o.attached...)
	if len(o.Paths) > 0 {
		p.manifests = p.own(set.Documents)
	}
	return p, nil
}

// read reads what a run is made of, from files or from objects without one.
func (o *RunOptions) read(ctx context.Context, opts admission.Options) (*manifest.Set, *admission.Catalog, manifest.Findings) {
	if len(o.Documents) > 0 {
		return admitDocuments(ctx, o.Documents, opts)
	}
	return admission.Read(ctx, o.Paths, o.Stdin, admitted(opts))
}

func define(p *admission.Plan) ([]tool.Definition, error) {
	tools := make([]tool.Definition, len(p.Tools))
	for i, t := range p.Tools {
		var err error
		if tools[i], err = sources.All().Define(t.Tool); err != nil {
			return nil, err
		}
	}
	return tools, nil
}

// words fills the inputs into the instructions and the prompt.
func (p *plan) words(o *RunOptions) error {
	var err error
	if p.inputs, err = p.data(o); err != nil {
		return err
	}
	p.prompt = o.Prompt
	if p.prompt == "" && p.Run != nil {
		p.prompt = p.Run.Spec.Prompt
	}
	if p.prompt == "" {
		p.prompt = defaultPrompt
	}
	if p.prompt, err = prompt.Fill(p.prompt, p.inputs); err != nil {
		return fmt.Errorf("prompt: %w", err)
	}
	if p.instructions, err = prompt.Fill(p.Agent.Spec.Instructions, p.inputs); err != nil {
		return fmt.Errorf("agent %q: spec.instructions: %w", p.Agent.Name, err)
	}
	return nil
}

// data lays the inputs of the command line over those of the Run object, or of a
// recorded run, and holds them against the agent's schema.
func (p *plan) data(o *RunOptions) (map[string]json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	if p.Run != nil && p.Run.Spec.Inputs != nil && len(p.Run.Spec.Inputs.Raw) > 0 {
		if err := json.Unmarshal(p.Run.Spec.Inputs.Raw, &all); err != nil {
			return nil, fmt.Errorf("spec.inputs of the run: %w", err)
		}
	}
	maps.Copy(all, o.inputs)
	for name, text := range o.Inputs {
		raw, err := json.Marshal(text)
		if err != nil {
			return nil, fmt.Errorf("input %q: %w", name, err)
		}
		all[name] = raw
	}
	if p.Agent.Spec.Inputs == nil {
		if len(o.Inputs) > 0 {
			return nil, fmt.Errorf("agent %q takes no inputs, and %s is given: leave --input out, or declare spec.inputs.schema in the Agent",
				p.Agent.Name, strings.Join(slices.Sorted(maps.Keys(o.Inputs)), ", "))
		}
		return all, nil
	}
	schema, err := tool.NewSchema(p.Agent.Spec.Inputs.Schema.Raw)
	if err != nil {
		return nil, fmt.Errorf("agent %q: spec.inputs.schema: %w", p.Agent.Name, err)
	}
	unknown, declared := schema.Undeclared(slices.Collect(maps.Keys(all)))
	for _, name := range unknown {
		p.warnings = append(p.warnings, fmt.Sprintf("input %q is not declared by agent %q: %s", name, p.Agent.Name,
			cmp.Or(manifest.Suggest(name, declared), "it has "+strings.Join(declared, ", "))))
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	if raw, err = schema.CheckInputs(raw); err != nil {
		return nil, fmt.Errorf("inputs of agent %q: %w", p.Agent.Name, err)
	}
	clear(all)
	return all, json.Unmarshal(raw, &all)
}

// place says which files the run works on.
func (p *plan) place(o *RunOptions) error {
	spec := v1alpha1.WorkspaceSpec{Strategy: v1alpha1.StrategyCopy}
	if p.Run != nil && p.Run.Spec.Workspace != nil {
		spec = *p.Run.Spec.Workspace
	}
	if o.InPlace {
		spec.Strategy = v1alpha1.StrategyInPlace
	}
	p.files = workspace.Spec{Strategy: spec.Strategy, Exclude: spec.Exclude, Skip: []string{o.State}}
	if spec.SizeLimit != nil {
		p.files.SizeLimit = spec.SizeLimit.Value()
	}
	if spec.GrowthLimit != nil {
		p.files.GrowthLimit = spec.GrowthLimit.Value()
	}
	source := "."
	if spec.Source != nil && spec.Source.Path != "" {
		source = spec.Source.Path
	}
	if o.Workspace != "" {
		source = o.Workspace
	}
	if spec.Strategy == v1alpha1.StrategyEmpty {
		return nil
	}
	abs, err := filepath.Abs(source)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return reason.Usagef("workspace %s: %w", source, err).WithHint("name an existing folder with --workspace")
	}
	if info, err := os.Stat(abs); err != nil || !info.IsDir() {
		return reason.Usagef("workspace %s is not a folder", source).WithHint("name an existing folder with --workspace")
	}
	p.files.Source = abs
	return nil
}

// usable refuses files that nobody means: a run begun at home would copy it.
func (p *plan) usable() error {
	if p.files.Source == "" {
		return nil
	}
	if err := workspace.Usable(p.files); err != nil {
		return reason.Usagef("%w", err).WithHint("name a project folder with --workspace")
	}
	return nil
}

// callNames are what the model calls the tools.
func (p *plan) callNames() []string {
	names := make([]string, len(p.tools))
	for i := range p.tools {
		names[i] = p.tools[i].Name
	}
	return names
}

// git says whether the files are a git repository.
func (p *plan) git() bool {
	_, err := os.Lstat(filepath.Join(p.files.Source, ".git"))
	return p.files.Source != "" && err == nil
}

// deadline is the wall time of the run.
func (p *plan) deadline() time.Duration { return p.Limits.Timeout.Duration }

// reserve is the most an answer may hold of any model that may answer.
func (p *plan) reserve() int64 {
	var most int64
	for _, m := range p.models() {
		most = max(most, provider.All().OutputLimit(&m.Spec))
	}
	return most
}
