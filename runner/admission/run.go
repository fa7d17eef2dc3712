package admission

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/policies"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/schema"
)

func (a *admitter) run(d *manifest.Document, r *v1alpha1.Run) {
	if a.reference(d, "spec.agentRef.name", v1alpha1.KindAgent, r.Spec.AgentRef.Name, names(a.catalog.Agents)) {
		if e, ok := a.catalog.Agents[r.Spec.AgentRef.Name]; ok {
			a.runOf(d, r, e)
		}
	}
	a.runSkill(d, r)
	known := slices.Concat(names(a.catalog.Policies), policies.Names())
	for i, ref := range r.Spec.PolicyRefs {
		a.reference(d, manifest.Index("spec.policyRefs", i)+".name", v1alpha1.KindPolicy, ref.Name, known)
	}
	if ref := r.Spec.WorkspaceRef; ref != nil {
		a.reference(d, "spec.workspaceRef.name", v1alpha1.KindWorkspace, ref.Name, names(a.catalog.Workspaces))
	}
	if ttl := r.Spec.TTLAfterFinished; ttl != nil && ttl.Duration < 0 {
		a.add(d.Errorf("spec.ttlAfterFinished", "%s is less than 0", ttl.Duration))
	}
	if w := r.Spec.Workspace; w != nil {
		a.workspace(d, "spec.workspace", w)
	}
}

// workspace checks the files of a run, which are in a field of it or in an
// object of their own.
func (a *admitter) workspace(d *manifest.Document, at string, w *v1alpha1.WorkspaceSpec) {
	for i, p := range w.Exclude {
		if !doublestar.ValidatePattern(filepath.ToSlash(p)) {
			a.add(d.Errorf(manifest.Index(at+".exclude", i), "%q is not a glob", clip(p)))
		}
	}
	if w.Strategy == v1alpha1.StrategyEmpty && w.Source != nil {
		a.add(d.Errorf(at+".source", "has no effect: strategy Empty starts with nothing").With("remove it, or write strategy: Copy"))
	}
	if w.Source != nil && w.Source.Git != nil {
		a.gitSource(d, at, w)
	}
	a.quantity(d, at+".sizeLimit", w.SizeLimit)
	a.quantity(d, at+".growthLimit", w.GrowthLimit)
}

// apply refuses what to do with a change where there is no copy to apply it from.
func (a *admitter) apply(d *manifest.Document, w *v1alpha1.NamedWorkspaceSpec) {
	switch {
	case w.Apply != v1alpha1.ApplyAuto && w.Apply != v1alpha1.ApplyNever:
	case w.Apply == v1alpha1.ApplyAuto && w.Source != nil && w.Source.Git != nil:
		a.add(d.Errorf("spec.apply", "Auto has no effect: a git source has no folder to apply to, and nothing is pushed").With("remove it; agentctl diff run/ID prints the change as a patch"))
	case w.Strategy == v1alpha1.StrategyInPlace:
		a.add(d.Errorf("spec.apply", "%s has no effect: strategy InPlace changes the folder itself", w.Apply).With("remove it, or write strategy: Copy"))
	case w.Apply == v1alpha1.ApplyAuto && w.Strategy == v1alpha1.StrategyEmpty:
		a.add(d.Errorf("spec.apply", "Auto has no effect: strategy Empty has no source folder").With("remove it"))
	}
}

// runOf holds a run against its agent.
func (a *admitter) runOf(d *manifest.Document, r *v1alpha1.Run, agent Entry[v1alpha1.Agent]) {
	if agent.Object.Spec.Mode == v1alpha1.ModeSubagent {
		a.add(d.Errorf("spec.agentRef.name", "agent %q has mode Subagent: only other agents start it", agent.Object.Name))
	}
	if l := r.Spec.Limits; l != nil {
		a.narrower(d, l, &agent.Object.Spec.Limits)
	}
	a.runInputs(d, r, agent)
}

// runInputs holds the inputs of a run against its contract: that of the plan that it
// carries out, or that of its agent.
func (a *admitter) runInputs(d *manifest.Document, r *v1alpha1.Run, agent Entry[v1alpha1.Agent]) {
	var given []byte
	if r.Spec.Inputs != nil {
		given = r.Spec.Inputs.Raw
	}
	contract, of := agent.Object.Spec.Inputs, fmt.Sprintf("agent %q", agent.Object.Name)
	if s := a.carriedBy(r); s != nil && s.Object.Spec.Plan.Inputs != nil {
		contract, of = s.Object.Spec.Plan.Inputs, fmt.Sprintf("the plan of skill %q", s.Object.Name)
	}
	if contract == nil {
		if len(given) > 0 && string(given) != "{}" && !agent.Doc.Faulty("spec.inputs") {
			a.add(d.KeyErrorf("spec.inputs", "%s takes no inputs", of).With("write spec.inputs.schema in the Agent"))
		}
		return
	}
	if len(given) == 0 {
		given = []byte("{}")
	}
	a.inputs(d, of, contract.Schema.Raw, given)
}

// narrower reports limits that a run would widen: an agent's limits are a promise.
func (a *admitter) narrower(d *manifest.Document, run *v1alpha1.RunLimits, agent *v1alpha1.Limits) {
	wider := func(field string, run, agent any) {
		a.add(d.Errorf("spec.limits."+field, "%v is wider than the agent's %v: a run may only narrow", run, agent))
	}
	if run.MaxSteps > agent.MaxSteps {
		wider("maxSteps", run.MaxSteps, agent.MaxSteps)
	}
	if agent.MaxTokens > 0 && run.MaxTokens > agent.MaxTokens {
		wider("maxTokens", run.MaxTokens, agent.MaxTokens)
	}
	if run.MaxParallelTools > agent.MaxParallelTools {
		wider("maxParallelTools", run.MaxParallelTools, agent.MaxParallelTools)
	}
	if run.Timeout != nil {
		a.positive(d, "spec.limits.timeout", run.Timeout.Duration)
		if agent.Timeout.Duration > 0 && run.Timeout.Duration > agent.Timeout.Duration {
			wider("timeout", brief(run.Timeout.Duration), brief(agent.Timeout.Duration))
		}
	}
	own, err1 := run.MaxCost.Micros()
	most, err2 := agent.MaxCost.Micros()
	if err1 == nil && err2 == nil && agent.MaxCost != "" && own > most {
		wider("maxCost", run.MaxCost, agent.MaxCost)
	}
}

// brief writes 15m, not 15m0s.
func brief(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if len(s) > len(zero) && s[len(s)-len(zero):] == zero {
			s = s[:len(s)-2]
		}
	}
	return s
}

// inputs holds a run's inputs against the schema of what takes them.
func (a *admitter) inputs(d *manifest.Document, of string, wanted, given json.RawMessage) {
	compiled, err := schema.Compile(wanted)
	if err != nil {
		return // reported at the agent
	}
	var named map[string]json.RawMessage
	if json.Unmarshal(given, &named) == nil {
		for _, name := range compiled.Undeclared(slices.Collect(maps.Keys(named))) {
			a.add(d.Warnf("spec.inputs."+name, "%s declares no input %q", of, name).With(manifest.Suggest(name, compiled.Properties())))
		}
	}
	for _, p := range check(compiled, given) {
		path := "spec.inputs" + p.path
		f := d.Errorf(path, "%s", p.message)
		if d.Value != nil && lookup(d.Value, "spec.inputs") == nil {
			f = d.KeyErrorf("spec", "%s", p.message).At(path)
		}
		if p.missing != "" && p.path == "" {
			// The command line can still give it; a run without it is refused.
			f.Severity = manifest.Warning
			f.Suggestion = "write it here, or give it with --input " + p.missing + "=VALUE"
		}
		a.add(f)
	}
}
