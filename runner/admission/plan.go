package admission

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/policy"
	"agentctl.dev/agentctl/runner/tool/skill"
)

// ResolveOptions choose among several objects.
type ResolveOptions struct {
	// Agent and Run are names; at most one of them need be given, and none when
	// there is only one Run, or no Run and only one Agent to start.
	Agent, Run string
	// Prefer is the agent where none is named, if there is one of that name.
	Prefer string
	// Model replaces the agent's own.
	Model string
	// Policies narrow the run, besides those that the Run object names.
	Policies []string
	// Skill is the skill whose plan runs in place of the agent's model; "" for that which
	// the Run object names, if any.
	Skill string
	// WithoutRun leaves out the Run objects.
	WithoutRun bool
	// Below also accepts an Agent of mode Subagent, for what is not a run of its own.
	Below bool
	// Models replace those of agents below, by the names of these.
	Models map[string]string
}

// Plan is everything a run is made of. It can be written as JSON and read
// again, so a resumed run needs no manifests. It must not be changed.
type Plan struct {
	Agent *v1alpha1.Agent `json:"agent"`
	Model *v1alpha1.Model `json:"model"`
	// Fallbacks are the models to use when Model is unavailable, in order: each
	// is followed by its own fallbacks, and none is in the list twice.
	Fallbacks []*v1alpha1.Model `json:"fallbacks,omitempty"`
	// Summarizer writes the summaries of a long conversation; nil is the Model.
	Summarizer *v1alpha1.Model `json:"summarizer,omitempty"`
	// Coders are the models that coding agents of others ask, besides those above.
	Coders   []*v1alpha1.Model  `json:"coders,omitempty"`
	Tools    []PlannedTool      `json:"tools"`
	Policies []*v1alpha1.Policy `json:"policies"`
	// Skills are those that the agent may load.
	Skills []skill.Entry `json:"skills,omitempty"`
	// Carried is the plan of a skill that runs in place of the model; nil: the model is asked.
	Carried *CarriedPlan `json:"carried,omitempty"`
	// Run is nil when the run was started without a Run object.
	Run *v1alpha1.Run `json:"run,omitempty"`
	// Apply and Retain are those of the Workspace that the run names; "" without one.
	// The first event of the run records them.
	Apply  v1alpha1.ApplyMode  `json:"-"`
	Retain v1alpha1.RetainMode `json:"-"`
	// Limits are those of the agent, narrowed by the run.
	Limits v1alpha1.Limits `json:"limits"`
	// Sources has where each object was declared, as kind/name → file:line:col,
	// and where each part of a policy is, as policy/name/spec.rules[0]. Built-in
	// objects are not listed.
	Sources map[string]string `json:"sources,omitempty"`

	// Pins are the known descriptions of tools, by call name.
	Pins map[string]string `json:"pins,omitempty"`

	// Subagents are the plans of the agents that this one may start, itself or through
	// others, by name. Their own Subagents are empty: these serve the whole tree.
	Subagents map[string]*Plan `json:"subagents,omitempty"`
	// Parents are the agents that have started this one, that of the root first.
	Parents []string `json:"parents,omitempty"`
	// MaxDepth is limits.maxDepth of the first of them; 0 in the plan at the top.
	MaxDepth int `json:"maxDepth,omitempty"`
	// Ceilings narrow what the Policies allow.
	Ceilings []Ceiling `json:"ceilings,omitempty"`

	compiled []*policy.Compiled
	// known are the compiled policies of all manifests, by name; nil in a plan that was
	// read from JSON.
	known map[string]*policy.Compiled
}

// PlannedTool is one entry of the agent's tool list: the Tool with all defaults
// written out, and the entry's own choice of functions.
type PlannedTool struct {
	Tool    *v1alpha1.Tool `json:"tool"`
	Include []string       `json:"include,omitempty"`
	Exclude []string       `json:"exclude,omitempty"`
}

// CallName is what the model calls the tool.
func (t PlannedTool) CallName() string { return CallName(t.Tool) }

// Resolve picks one agent or run and follows its references. Relative paths
// become absolute, from the folder of their manifest. An error is the user's:
// what to run is ambiguous, or does not exist.
func (c *Catalog) Resolve(opts ResolveOptions) (*Plan, error) {
	if _, ok := c.Agents[opts.Prefer]; ok && opts.Agent == "" {
		opts.Agent = opts.Prefer
	}
	agent, run, err := c.choose(opts)
	if err != nil {
		return nil, err
	}
	if run != nil && run.Object.Spec.SkillRef != nil {
		opts.Skill = cmp.Or(opts.Skill, run.Object.Spec.SkillRef.Name)
	}
	p, err := c.planAgent(agent, opts.Model, opts.Skill)
	if err != nil {
		return nil, err
	}
	if run != nil {
		p.Run = run.Object.DeepCopy()
		p.declare(run.Doc)
		c.planWorkspace(p, run)
		narrow(&p.Limits, p.Run.Spec.Limits)
	}
	if err := c.planCeiling(p, opts.Policies); err != nil {
		return nil, err
	}
	return p, c.planSubagents(p, opts.Models)
}

// planAgent follows the references of one agent. The plan of a skill, where one is named,
// takes the place of its model, which is not resolved.
func (c *Catalog) planAgent(agent Entry[v1alpha1.Agent], modelName, skillName string) (*Plan, error) {
	p := &Plan{Agent: agent.Object.DeepCopy(), Limits: *agent.Object.Spec.Limits.DeepCopy(), Sources: map[string]string{}}
	p.declare(agent.Doc)
	absoluteAgent(p.Agent, agent.Doc.Dir)
	var err error
	if skillName != "" {
		err = c.planCarried(p, skillName)
	} else {
		err = c.planModels(p, modelName)
	}
	if err != nil {
		return nil, err
	}
	planPreset(p)
	if err := c.planTools(p); err != nil {
		return nil, err
	}
	if err := c.planSkills(p); err != nil {
		return nil, err
	}
	if err := planPublish(p); err != nil {
		return nil, err
	}
	c.planPolicies(p)
	return p, nil
}

// planModels adds the model of an agent, what answers in its place, and what writes its
// summaries.
func (c *Catalog) planModels(p *Plan, name string) error {
	model, err := c.chooseModel(name, p.Agent)
	if err != nil {
		return err
	}
	p.Model = c.planModel(p, model)
	c.planFallbacks(p, p.Model, map[string]bool{p.Model.Name: true})
	return c.planSummarizer(p)
}

// planWorkspace writes the files of the run out in place: a run that is resumed
// does not look for the Workspace it was begun with.
func (c *Catalog) planWorkspace(p *Plan, run *Entry[v1alpha1.Run]) {
	dir := run.Doc.Dir
	if ref := p.Run.Spec.WorkspaceRef; ref != nil {
		e, ok := c.Workspaces[ref.Name]
		if !ok {
			return // admission has refused it
		}
		p.Run.Spec.Workspace = e.Object.Spec.WorkspaceSpec.DeepCopy()
		p.Apply, p.Retain = e.Object.Spec.Apply, e.Object.Spec.Retain
		p.declare(e.Doc)
		dir = e.Doc.Dir
	}
	if w := p.Run.Spec.Workspace; w != nil && w.Source != nil && w.Source.Path != "" {
		w.Source.Path = absolute(dir, w.Source.Path)
	}
	if w := p.Run.Spec.Workspace; w != nil && w.Source != nil && w.Source.Git != nil && w.Source.Git.Auth != nil {
		absoluteValue(&w.Source.Git.Auth.Password.ValueFrom, dir)
	}
}

func (p *Plan) declare(d *manifest.Document) {
	p.Sources[d.String()] = manifest.Position{File: d.File, Line: d.Line, Col: 1}.String()
}

// PlaceRules records in the plan where the parts of its policies are, so that a
// decision can be explained when the manifests no longer exist.
func (c *Catalog) PlaceRules(p *Plan) {
	for _, pol := range p.everyPolicy() {
		e, ok := c.Policies[pol.Name]
		if !ok {
			continue
		}
		p.place(pol, e.Doc)
	}
}

func (p *Plan) place(pol *v1alpha1.Policy, d *manifest.Document) {
	add := func(path string) { p.Sources[RuleKey(pol.Name, path)] = d.Locate(path).String() }
	for i := range pol.Spec.Rules {
		add(manifest.Index("spec.rules", i))
	}
	for i := range pol.Spec.Permissions {
		add(manifest.Index("spec.permissions", i))
	}
	if pol.Spec.Default != "" {
		add("spec.default")
	}
}

// RuleKey is the key in Sources of a part of a policy.
func RuleKey(policy, path string) string { return ruleKeys + policy + "/" + path }

const ruleKeys = "policy/"

// IsRuleKey reports whether a key of Sources is that of a part of a policy.
func IsRuleKey(key string) bool { return strings.HasPrefix(key, ruleKeys) }

// planSummarizer adds the model that writes the agent's summaries, if it is not
// the agent's own.
func (c *Catalog) planSummarizer(p *Plan) error {
	ref := p.Agent.Spec.Context.ModelRef
	if ref == nil {
		ref = c.compactor()
	}
	if ref == nil || ref.Name == p.Model.Name {
		return nil
	}
	model, err := c.chooseModel(ref.Name, p.Agent)
	if err != nil {
		return fmt.Errorf("agent %q: spec.context.modelRef: %w", p.Agent.Name, err)
	}
	p.Summarizer = model.Object.DeepCopy()
	absoluteModel(p.Summarizer, model.Doc.Dir)
	p.declare(model.Doc)
	return nil
}

func (c *Catalog) planModel(p *Plan, e Entry[v1alpha1.Model]) *v1alpha1.Model {
	m := e.Object.DeepCopy()
	absoluteModel(m, e.Doc.Dir)
	p.declare(e.Doc)
	return m
}

// planFallbacks adds the fallbacks of a model that are not in the plan yet.
// Admission has refused names that lead nowhere, and circles.
func (c *Catalog) planFallbacks(p *Plan, m *v1alpha1.Model, taken map[string]bool) {
	for _, ref := range m.Spec.Fallbacks {
		e, ok := c.Models[ref.Name]
		if !ok || taken[ref.Name] {
			continue
		}
		taken[ref.Name] = true
		next := c.planModel(p, e)
		p.Fallbacks = append(p.Fallbacks, next)
		c.planFallbacks(p, next, taken)
	}
}

// planTools keeps the order of the agent: the model is shown the tools in it.
func (c *Catalog) planTools(p *Plan) error {
	for _, entry := range p.Agent.Spec.Tools {
		t := c.Tool(entry.Name)
		if t != nil {
			p.declare(c.Tools[entry.Name].Doc)
		} else {
			var err error
			if t, err = shipped(entry.Name); err != nil {
				return err
			}
			materialise(t)
		}
		t.Spec.WorkspaceAccess = narrower(t.Spec.WorkspaceAccess, entry.WorkspaceAccess)
		p.Tools = append(p.Tools, PlannedTool{Tool: t, Include: entry.Include, Exclude: entry.Exclude})
	}
	if err := c.planCoders(p); err != nil {
		return err
	}
	return c.planTask(p)
}

// planPolicies takes the policies that the agent names, and those that select it.
func (c *Catalog) planPolicies(p *Plan) {
	compiled := make([]*policy.Compiled, 0, len(c.Policies))
	for _, name := range names(c.Policies) {
		e := c.Policies[name]
		if !Concerns(e.Object, p.Agent) {
			continue
		}
		p.Policies = append(p.Policies, e.Object.DeepCopy())
		p.declare(e.Doc)
		if done := c.compiled[name]; done != nil {
			compiled = append(compiled, done)
		}
	}
	if !c.ambiguous {
		p.known = c.compiled
		if len(compiled) == len(p.Policies) {
			p.compiled = compiled
		}
	}
}

// Concerns reports whether a policy judges the calls of an agent: the agent
// names it, or its selector matches.
func Concerns(p *v1alpha1.Policy, agent *v1alpha1.Agent) bool {
	if slices.ContainsFunc(agent.Spec.PolicyRefs, func(r v1alpha1.Reference) bool { return r.Name == p.Name }) {
		return true
	}
	return selects(p, agent)
}

// selects reports whether the selector of a policy matches an agent.
func selects(p *v1alpha1.Policy, agent *v1alpha1.Agent) bool {
	if p.Spec.AppliesTo == nil || p.Spec.AppliesTo.AgentSelector == nil {
		return false
	}
	s, err := metav1.LabelSelectorAsSelector(p.Spec.AppliesTo.AgentSelector)
	// A selector that cannot be read was an error of admission; it must not
	// take a policy out of force.
	return err != nil || s.Matches(labels.Set(agent.Labels))
}

// narrow applies the limits of a run. Admission has refused wider ones; the
// smaller of the two applies in any case.
func narrow(l *v1alpha1.Limits, run *v1alpha1.RunLimits) {
	if run == nil {
		return
	}
	l.MaxSteps = smaller(l.MaxSteps, run.MaxSteps)
	l.MaxTokens = smaller(l.MaxTokens, run.MaxTokens)
	l.MaxParallelTools = smaller(l.MaxParallelTools, run.MaxParallelTools)
	if run.Timeout != nil {
		l.Timeout.Duration = smaller(l.Timeout.Duration, run.Timeout.Duration)
	}
	own, err := run.MaxCost.Micros()
	most, _ := l.MaxCost.Micros()
	if run.MaxCost != "" && err == nil && (l.MaxCost == "" || own < most) {
		l.MaxCost = run.MaxCost
	}
}

// smaller of two limits, where 0 is no limit.
func smaller[T ~int32 | ~int64](a, b T) T {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
