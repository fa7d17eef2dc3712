package admission

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/steps"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/tool/builtin"
)

// CarriedPlan is the plan of a skill that a run carries out. It is stored with the run: a
// resume does not look at the manifest again.
type CarriedPlan struct {
	// Skill is the name of the Skill object.
	Skill string             `json:"skill"`
	Plan  v1alpha1.SkillPlan `json:"plan"`
}

// carrier is what a run without a model records in place of one.
const carrier = "plan"

// planCarried puts the plan of a skill in place of the agent's model. The skill counts as
// one of the agent's, so that its script is a tool of the run.
func (c *Catalog) planCarried(p *Plan, name string) error {
	e, ok := c.Skills[name]
	if !ok {
		return missing(v1alpha1.KindSkill, name, names(c.Skills))
	}
	if e.Object.Spec.Plan == nil {
		return fmt.Errorf("skill %q has no plan: write spec.plan, or leave --skill out and let a model load it", name)
	}
	p.Carried = &CarriedPlan{Skill: name, Plan: *e.Object.Spec.Plan.DeepCopy()}
	p.declare(e.Doc)
	if !slices.ContainsFunc(p.Agent.Spec.Skills, func(r v1alpha1.Reference) bool { return r.Name == name }) {
		p.Agent.Spec.Skills = append(p.Agent.Spec.Skills, v1alpha1.Reference{Name: name})
	}
	p.Model = &v1alpha1.Model{
		ObjectMeta: metav1.ObjectMeta{Name: carrier},
		Spec:       v1alpha1.ModelSpec{Provider: carrier, Pricing: &v1alpha1.Pricing{Input: "0", Output: "0"}},
	}
	if i, ok := c.callable(p.Agent).lacks(&p.Carried.Plan); ok {
		return fmt.Errorf("skill %q: step %s of its plan calls the tool %q, which agent %q does not have: add it to spec.tools of the agent",
			name, steps.Label(p.Carried.Plan.Steps, i), p.Carried.Plan.Steps[i].Tool, p.Agent.Name)
	}
	return nil
}

// callables are the names by which tools are called.
type callables struct {
	names map[string]bool
	// several are the names before those of functions that only a program knows.
	several []string
	// open: a tool is not known here, nor is what it is called.
	open bool
}

// lacks returns the first step of a plan that calls none of the tools.
func (k *callables) lacks(plan *v1alpha1.SkillPlan) (step int, lacking bool) {
	if k.open {
		return 0, false
	}
	step = slices.IndexFunc(plan.Steps, func(s v1alpha1.SkillStep) bool {
		return s.Tool != "" && !k.names[s.Tool] &&
			!slices.ContainsFunc(k.several, func(of string) bool { return strings.HasPrefix(s.Tool, tool.FunctionName(of, "")) })
	})
	return step, step >= 0
}

func (c *Catalog) add(k *callables, t *v1alpha1.Tool) {
	call := CallName(t)
	if c.several(t) {
		k.several = append(k.several, call)
		return
	}
	k.names[call] = true
}

// callable are the tools of an agent.
func (c *Catalog) callable(ag *v1alpha1.Agent) *callables {
	k := &callables{names: map[string]bool{}}
	for _, entry := range ag.Spec.Tools {
		e, declared := c.Tools[entry.Name]
		_, shipped := builtin.Lookup(entry.Name)
		switch {
		case declared:
			c.add(k, e.Object)
		case shipped:
			k.names[entry.Name] = true
		default:
			k.open = true // an unknown name is reported where it is written
		}
	}
	for _, ref := range ag.Spec.Skills {
		if e, ok := c.Skills[ref.Name]; ok {
			if c.hasScript(e) {
				k.names[SkillName(e.Object)] = true
			}
		}
	}
	k.names[builtin.Skill] = k.names[builtin.Skill] || len(ag.Spec.Skills)+len(ag.Spec.SkillFolders) > 0
	k.names[builtin.Publish] = k.names[builtin.Publish] || len(ag.Spec.Publish) > 0
	if len(ag.Spec.Subagents) > 0 {
		k.names[taskTool] = true
		k.names[mergeTool] = slices.ContainsFunc(ag.Spec.Subagents, copied)
	}
	k.names[mergeTool] = k.names[mergeTool] || slices.ContainsFunc(ag.Spec.Tools, c.codes)
	return k
}

// everyCallable are the tools that any agent of the manifests could have.
func (c *Catalog) everyCallable() *callables {
	k := &callables{names: map[string]bool{}}
	for _, name := range builtin.Names() {
		k.names[name] = true
	}
	for _, name := range names(c.Tools) {
		c.add(k, c.Tools[name].Object)
	}
	for _, name := range names(c.Skills) {
		if e := c.Skills[name]; c.hasScript(e) {
			k.names[SkillName(e.Object)] = true
		}
	}
	return k
}

// hasScript reports whether a skill brings a tool along. One whose folder cannot be read
// here might.
func (c *Catalog) hasScript(e Entry[v1alpha1.Skill]) bool {
	if e.Object.Spec.Dir == "" && e.Object.Spec.Image == "" {
		return false
	}
	k, err := c.readSkill(e.Doc, e.Object)
	return err != nil || k.command != nil
}

// carriedBy is the skill whose plan a run carries out; nil: the run asks a model, or names
// what has no plan.
func (a *admitter) carriedBy(r *v1alpha1.Run) *Entry[v1alpha1.Skill] {
	if r.Spec.SkillRef == nil {
		return nil
	}
	e, ok := a.catalog.Skills[r.Spec.SkillRef.Name]
	if !ok || e.Object.Spec.Plan == nil {
		return nil
	}
	return &e
}

// runSkill checks the skill whose plan a run is to carry out, with the tools of its agent.
func (a *admitter) runSkill(d *manifest.Document, r *v1alpha1.Run) {
	const at = "spec.skillRef.name"
	ref := r.Spec.SkillRef
	if ref == nil || !a.reference(d, at, v1alpha1.KindSkill, ref.Name, names(a.catalog.Skills)) {
		return
	}
	if e, ok := a.catalog.Skills[ref.Name]; ok && e.Object.Spec.Plan == nil {
		a.add(d.Errorf(at, "skill %q has no plan to carry out", ref.Name).With("write spec.plan in the Skill, or take skillRef out and let the model load it"))
		return
	}
	e := a.carriedBy(r)
	agent, ok := a.catalog.Agents[r.Spec.AgentRef.Name]
	if e == nil || !ok {
		return
	}
	with := agent.Object.DeepCopy()
	with.Spec.Skills = append(with.Spec.Skills, *ref)
	a.carries(d, at, with, e)
}

// plans checks the plans of skills: their expressions, and what they read.
func (a *admitter) plans() {
	for _, name := range names(a.catalog.Skills) {
		e := a.catalog.Skills[name]
		if e.Object.Spec.Plan == nil {
			continue
		}
		for _, p := range steps.Check(e.Object.Spec.Plan) {
			if !e.Doc.Faulty(p.Path) {
				a.add(finding(e.Doc, p))
			}
		}
	}
}

// skillPlan checks the names in a plan: those of its steps, and of the tools that they call.
func (a *admitter) skillPlan(d *manifest.Document, p *v1alpha1.SkillPlan) {
	if p.Inputs != nil {
		a.schema(d, "spec.plan.inputs.schema", p.Inputs.Schema.Raw, true)
	}
	seen := map[string]int{}
	for i, step := range p.Steps {
		if step.Name != "" {
			a.unique(d, seen, "step", "spec.plan.steps", i, step.Name)
		}
		if steps.Reserved(step.Name) {
			a.add(d.Errorf(steps.Path(i)+".name", "%q is a word of CEL: no expression could read the step", step.Name).With("choose another name"))
		}
	}
	if !a.toolsKnown(d) {
		return
	}
	known := a.catalog.everyCallable()
	for i := range p.Steps {
		one := &v1alpha1.SkillPlan{Steps: p.Steps[i : i+1]}
		if _, lacking := known.lacks(one); lacking {
			all := make([]string, 0, len(known.names))
			for name := range known.names {
				all = append(all, name)
			}
			slices.Sort(all)
			a.add(d.Errorf(steps.Path(i)+".tool", "step %s calls the tool %q, which does not exist", steps.Label(p.Steps, i), p.Steps[i].Tool).
				With(manifest.Suggest(p.Steps[i].Tool, all)))
		}
	}
}

// toolsKnown reports whether every tool that a plan could call is in the set. A control
// plane judges a skill by itself, and its plan with each agent that is to have it.
func (a *admitter) toolsKnown(d *manifest.Document) bool { return !a.opts.Elsewhere && d.Dir != "" }

// carries reports a skill whose plan calls what an agent does not have.
func (a *admitter) carries(d *manifest.Document, at string, ag *v1alpha1.Agent, e *Entry[v1alpha1.Skill]) {
	s := e.Object
	if s.Spec.Plan == nil {
		return
	}
	i, lacking := a.catalog.callable(ag).lacks(s.Spec.Plan)
	if !lacking {
		return
	}
	if _, nowhere := a.catalog.everyCallable().lacks(&v1alpha1.SkillPlan{Steps: s.Spec.Plan.Steps[i : i+1]}); nowhere && a.toolsKnown(e.Doc) {
		return // reported at the step
	}
	a.add(d.Errorf(at, "step %s of the plan of skill %q calls the tool %q, which agent %q does not have", steps.Label(s.Spec.Plan.Steps, i), s.Name, s.Spec.Plan.Steps[i].Tool, ag.Name).
		With("add it to spec.tools of the agent, or take the skill out"))
}
