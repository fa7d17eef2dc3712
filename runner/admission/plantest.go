package admission

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/expect"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/model"
)

// PlannedCase is a case of a Test with what it takes from the Test. Its paths are absolute.
type PlannedCase struct {
	Test, Agent string
	// Case is its name; "" for a Test without cases.
	Case string
	// Model answers in place of the agent's own; "" leaves that. Models are those of the
	// agents below it, by their names.
	Model     string
	Models    map[string]string
	Prompt    string
	Inputs    map[string]json.RawMessage
	Record    string
	Workspace v1alpha1.TestWorkspace
	Policies  []string
	Approvals []v1alpha1.TestApproval
	Expect    []v1alpha1.Expectation
	Timeout   time.Duration

	// Doc declares the Test; At is the field of the case in it, and ApprovalsAt and
	// ExpectAt are those of the lists.
	Doc                       *manifest.Document
	At, ApprovalsAt, ExpectAt string
}

// Place is where the case is declared.
func (c *PlannedCase) Place() manifest.Position {
	if c.Case == "" {
		return c.Doc.Locate("metadata.name")
	}
	return c.Doc.Locate(c.At + ".name")
}

// ExpectPlace is where an expectation is written.
func (c *PlannedCase) ExpectPlace(i int) manifest.Position {
	return c.Doc.Locate(expressionPath(c.Doc, manifest.Index(c.ExpectAt, i)))
}

// expressionPath is the field of an expectation that holds its expression: the expectation
// itself may be the text.
func expressionPath(d *manifest.Document, at string) string {
	if inner := at + ".expression"; d.Holds(inner) {
		return inner
	}
	return at
}

// TestCases are the cases of every Test of the documents, in their order.
func (c *Catalog) TestCases(set *manifest.Set) (all []PlannedCase) {
	for _, d := range set.Documents {
		if t, ok := d.Object.(*v1alpha1.Test); ok {
			all = append(all, planTest(d, t)...)
		}
	}
	return all
}

// planTest are the cases of a Test.
func planTest(d *manifest.Document, t *v1alpha1.Test) []PlannedCase {
	spec := &t.Spec
	whole := PlannedCase{
		Test: t.Name, Agent: spec.AgentRef.Name, Model: nameOf(spec.ModelRef), Prompt: spec.Prompt, Inputs: inputValues(spec.Inputs), Record: spec.Record,
		Approvals: spec.Approvals, Expect: spec.Expect, Doc: d, At: "spec", ApprovalsAt: "spec.approvals", ExpectAt: "spec.expect",
	}
	if spec.Workspace != nil {
		whole.Workspace = *spec.Workspace.DeepCopy()
	}
	if spec.Timeout != nil {
		whole.Timeout = spec.Timeout.Duration
	}
	for _, m := range spec.Models {
		if whole.Models == nil {
			whole.Models = map[string]string{}
		}
		whole.Models[m.Agent] = m.ModelRef.Name
	}
	for _, p := range spec.PolicyRefs {
		whole.Policies = append(whole.Policies, p.Name)
	}
	if len(spec.Cases) == 0 {
		return []PlannedCase{whole.absolute()}
	}
	all := make([]PlannedCase, len(spec.Cases))
	for i := range spec.Cases {
		one := whole
		one.take(&spec.Cases[i], manifest.Index("spec.cases", i))
		all[i] = one.absolute()
	}
	return all
}

// take replaces what a case gives.
func (c *PlannedCase) take(own *v1alpha1.TestCase, at string) {
	c.Case, c.At = own.Name, at
	c.Prompt, c.Model, c.Record = cmp.Or(own.Prompt, c.Prompt), cmp.Or(nameOf(own.ModelRef), c.Model), cmp.Or(own.Record, c.Record)
	if own.Inputs != nil {
		inputs := maps.Clone(c.Inputs)
		if inputs == nil {
			inputs = map[string]json.RawMessage{}
		}
		maps.Copy(inputs, inputValues(own.Inputs))
		c.Inputs = inputs
	}
	if own.Workspace != nil {
		c.Workspace = *own.Workspace
	}
	if own.Approvals != nil {
		c.Approvals, c.ApprovalsAt = own.Approvals, at+".approvals"
	}
	if own.Expect != nil {
		c.Expect, c.ExpectAt = own.Expect, at+".expect"
	}
}

// absolute makes the paths of a case absolute.
func (c PlannedCase) absolute() PlannedCase {
	if c.Record != "" {
		c.Record = absolute(c.Doc.Dir, c.Record)
	}
	if src := c.Workspace.Source; src != nil {
		c.Workspace.Source = &v1alpha1.TestFolder{Path: absolute(c.Doc.Dir, src.Path)}
	}
	return c
}

func nameOf(r *v1alpha1.Reference) string {
	if r == nil {
		return ""
	}
	return r.Name
}

// inputValues are the members of an object; nil for anything else, which is reported.
func inputValues(in *v1alpha1.JSON) (all map[string]json.RawMessage) {
	if in == nil || json.Unmarshal(in.Raw, &all) != nil {
		return nil
	}
	return all
}

// Expectations compiles what is expected of the runs of an agent.
func (c *Catalog) Expectations(agent string) *expect.Set {
	e, ok := c.Agents[agent]
	if !ok {
		return expect.NewSet(expect.Contract{})
	}
	return expect.NewSet(c.contract(e.Object))
}

// Asked are the models that a run of the plan may ask over a network, as its own, as a
// fallback, for summaries, or in an agent below it.
func (p *Plan) Asked(r model.Registry) (remote []*v1alpha1.Model) {
	all := append(append([]*v1alpha1.Model{p.Model, p.Summarizer}, p.Fallbacks...), p.Coders...)
	for _, name := range names(p.Subagents) {
		sub := p.Subagents[name]
		all = slices.Concat(append(all, sub.Model, sub.Summarizer), sub.Fallbacks, sub.Coders)
	}
	for _, m := range all {
		if m == nil {
			continue
		}
		if own, known := r.Of(m.Spec.Provider); known && own.Remote() {
			remote = append(remote, m)
		}
	}
	return remote
}

// CassetteOf returns the recording that a Model answers from; "" for any other Model.
func (c *Catalog) CassetteOf(name string, r model.Registry) string {
	e, ok := c.Models[name]
	if !ok || e.Object.Spec.Cassette == nil {
		return ""
	}
	if own, known := r.Of(e.Object.Spec.Provider); !known || own.Section.Set == nil || own.Section.Field != "cassette" {
		return ""
	}
	return absolute(e.Doc.Dir, e.Object.Spec.Cassette.Path)
}

// AgentTools are the call names of an agent's tools, sorted. Several are those whose
// functions only their programs know.
func (c *Catalog) AgentTools(agent string) (tools, several []string) {
	e, ok := c.Agents[agent]
	if !ok {
		return nil, nil
	}
	k := c.callable(e.Object)
	for _, name := range names(k.names) {
		if k.names[name] {
			tools = append(tools, name)
		}
	}
	return tools, k.several
}
