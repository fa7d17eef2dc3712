package admission

import (
	"encoding/json"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/policies"
	"agentctl.dev/agentctl/runner/expect"
	"agentctl.dev/agentctl/runner/expr"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/schema"
)

// test checks a Test, but for its expressions.
func (a *admitter) test(d *manifest.Document, t *v1alpha1.Test) {
	known := names(a.catalog.Models)
	if ref := t.Spec.ModelRef; ref != nil {
		a.reference(d, "spec.modelRef.name", v1alpha1.KindModel, ref.Name, known)
	}
	for i, m := range t.Spec.Models {
		at := manifest.Index("spec.models", i)
		a.reference(d, at+".modelRef.name", v1alpha1.KindModel, m.ModelRef.Name, known)
		if a.reference(d, at+".agent", v1alpha1.KindAgent, m.Agent, names(a.catalog.Agents)) && m.Agent == t.Spec.AgentRef.Name && m.Agent != "" {
			a.add(d.Errorf(at+".agent", "%q is the agent that is tested", m.Agent).With("name its Model in spec.modelRef"))
		}
	}
	for i := range t.Spec.Cases {
		if ref := t.Spec.Cases[i].ModelRef; ref != nil {
			a.reference(d, manifest.Index("spec.cases", i)+".modelRef.name", v1alpha1.KindModel, ref.Name, known)
		}
	}
	policyNames := slices.Concat(names(a.catalog.Policies), policies.Names())
	for i, ref := range t.Spec.PolicyRefs {
		a.reference(d, manifest.Index("spec.policyRefs", i)+".name", v1alpha1.KindPolicy, ref.Name, policyNames)
	}
	if t.Spec.Timeout != nil {
		a.positive(d, "spec.timeout", t.Spec.Timeout.Duration)
	}
	a.testLists(d, t)
	a.testWorkspace(d, "spec.workspace", t.Spec.Workspace)
	for i := range t.Spec.Cases {
		a.testWorkspace(d, manifest.Index("spec.cases", i)+".workspace", t.Spec.Cases[i].Workspace)
	}
	a.testRecords(d, t)
	if !a.reference(d, "spec.agentRef.name", v1alpha1.KindAgent, t.Spec.AgentRef.Name, names(a.catalog.Agents)) {
		return
	}
	if e, ok := a.catalog.Agents[t.Spec.AgentRef.Name]; ok {
		if e.Object.Spec.Mode == v1alpha1.ModeSubagent {
			a.add(d.Errorf("spec.agentRef.name", "agent %q has mode Subagent: only other agents start it", e.Object.Name))
		}
		a.testInputs(d, t, e)
		a.testModels(d, t, e)
	}
}

// testLists checks that every case expects something, and that the entries of the lists
// have an effect.
func (a *admitter) testLists(d *manifest.Document, t *v1alpha1.Test) {
	a.testList(d, "spec", t.Spec.Approvals, t.Spec.Expect)
	for i := range t.Spec.Cases {
		a.testList(d, manifest.Index("spec.cases", i), t.Spec.Cases[i].Approvals, t.Spec.Cases[i].Expect)
	}
	overridden := len(t.Spec.Cases) > 0
	for _, c := range planTest(d, t) {
		overridden = overridden && c.ExpectAt != "spec.expect"
		if len(c.Expect) == 0 && !d.Faulty(c.ExpectAt) {
			a.add(d.KeyErrorf(c.At, "nothing is expected of the run").At(c.At + ".expect").With(`write expect: ["result.phase == 'Succeeded'"]`))
		}
	}
	if overridden && len(t.Spec.Expect) > 0 {
		a.add(d.KeyErrorf("spec.expect", "has no effect: every case has an expect of its own").With("remove it"))
	}
}

func (a *admitter) testList(d *manifest.Document, at string, approvals []v1alpha1.TestApproval, expect []v1alpha1.Expectation) {
	for i, one := range approvals {
		entry := manifest.Index(at+".approvals", i)
		switch {
		case one.Answer == v1alpha1.TestReject && one.Text != "":
			a.add(d.Errorf(entry+".text", "has no effect: the answer is Reject").With("remove it, or write answer: Approve"))
		case one.Answer == v1alpha1.TestApprove && one.Reason != "":
			a.add(d.Errorf(entry+".reason", "has no effect: the answer is Approve, and only a rejection has a reason").With("remove it, or write answer: Reject"))
		}
	}
	seen := map[string]int{}
	for i := range expect {
		a.unique(d, seen, "expectation", at+".expect", i, expect[i].Name)
	}
}

// testWorkspace checks the files that a test begins with.
func (a *admitter) testWorkspace(d *manifest.Document, at string, w *v1alpha1.TestWorkspace) {
	if w == nil {
		return
	}
	for _, name := range names(w.Files) {
		field := manifest.Join(at+".files", name)
		switch {
		case !filepath.IsLocal(name) || path.Clean(name) != name || name == ".":
			a.add(d.KeyErrorf(field, "%q is not the path of a file in the folder", clip(name)).With("write it relative to the folder, without . and .."))
		case name == ".git" || strings.HasPrefix(name, ".git/"):
			a.add(d.KeyErrorf(field, "the files of a repository cannot be given").With("commit: MESSAGE makes a repository of the folder"))
		}
		for above := path.Dir(name); above != "."; above = path.Dir(above) {
			if _, file := w.Files[above]; file {
				a.add(d.KeyErrorf(field, "%q is a file, not a folder", clip(above)))
			}
			if above == path.Dir(above) {
				break
			}
		}
	}
	if src := w.Source; src != nil && src.Path != "" && d.Dir != "" && !(a.opts.Elsewhere && filepath.IsAbs(src.Path)) {
		if info, err := os.Stat(absolute(d.Dir, src.Path)); err != nil || !info.IsDir() {
			a.add(d.Errorf(at+".source.path", "%s is not a folder", clip(src.Path)))
		}
	}
}

// testRecords refuses a cassette of two cases: it holds one run.
func (a *admitter) testRecords(d *manifest.Document, t *v1alpha1.Test) {
	if a.records == nil {
		a.records = map[string]string{}
	}
	for _, c := range planTest(d, t) {
		if c.Record == "" {
			continue
		}
		field, name := "spec.record", t.Name
		if c.Case != "" {
			name += "/" + c.Case
			if own := c.At + ".record"; d.Holds(own) {
				field = own
			}
		}
		if other, taken := a.records[c.Record]; taken {
			a.once(d.Errorf(field, "the cassette is that of %s, too: it holds one run", other).With("give each case a record of its own"))
			continue
		}
		a.records[c.Record] = name
		if _, err := os.Stat(c.Record); err != nil && a.opts.Programs && d.Dir != "" {
			a.add(d.Warnf(field, "%s is not recorded yet", clip(filepath.Base(c.Record))).With("agentctl test --update records it"))
		}
	}
}

// testInputs checks the inputs of each case against the schema of the agent.
func (a *admitter) testInputs(d *manifest.Document, t *v1alpha1.Test, agent Entry[v1alpha1.Agent]) {
	contract := agent.Object.Spec.Inputs
	for i, c := range planTest(d, t) {
		own := "spec.inputs"
		if len(t.Spec.Cases) > 0 && t.Spec.Cases[i].Inputs != nil {
			own = c.At + ".inputs"
		}
		if contract == nil {
			if len(c.Inputs) > 0 && !agent.Doc.Faulty("spec.inputs") {
				a.once(d.KeyErrorf(own, "agent %q takes no inputs", agent.Object.Name).With("write spec.inputs.schema in the Agent"))
			}
			continue
		}
		compiled, err := schema.Compile(contract.Schema.Raw)
		if err != nil {
			return // reported at the agent
		}
		given, err := json.Marshal(c.Inputs)
		if err != nil || c.Inputs == nil {
			given = []byte("{}")
		}
		at := func(name string) string { // where an input is written
			if field := manifest.Join(own, name); d.Holds(field) {
				return own
			}
			return "spec.inputs"
		}
		for _, name := range compiled.Undeclared(names(c.Inputs)) {
			a.once(d.Warnf(manifest.Join(at(name), name), "agent %q declares no input %q", agent.Object.Name, name).With(manifest.Suggest(name, compiled.Properties())))
		}
		for _, p := range check(compiled, given) {
			first, _, _ := strings.Cut(strings.TrimPrefix(p.path, "."), ".")
			first, _, _ = strings.Cut(first, "[")
			field := at(first) + p.path
			if !d.Holds(field) { // it is missing
				a.once(d.KeyErrorf(c.At, "inputs: %s", p.message).At(field))
				continue
			}
			a.once(d.Errorf(field, "%s", p.message))
		}
	}
}

// once adds a finding unless it was added: cases have much in common.
func (a *admitter) once(f manifest.Finding) {
	if !slices.ContainsFunc(a.found, func(other manifest.Finding) bool {
		return other.Path == f.Path && other.Message == f.Message && other.Position == f.Position
	}) {
		a.add(f)
	}
}

// testModels warns of a case that asks a model over the network: agentctl test refuses it
// unless it is told which models to ask.
func (a *admitter) testModels(d *manifest.Document, t *v1alpha1.Test, agent Entry[v1alpha1.Agent]) {
	for i, c := range planTest(d, t) {
		if c.Record != "" {
			continue
		}
		field, name := "spec.agentRef", agent.Object.Spec.ModelRef.Name
		switch {
		case len(t.Spec.Cases) > 0 && t.Spec.Cases[i].ModelRef != nil:
			field, name = c.At+".modelRef", c.Model
		case t.Spec.ModelRef != nil:
			field, name = "spec.modelRef", c.Model
		}
		m, ok := a.catalog.Models[name]
		if !ok {
			continue
		}
		if own, known := a.opts.Models.Of(m.Object.Spec.Provider); known && own.Remote() {
			a.once(d.Warnf(field, "model %q asks %s: agentctl test asks no model over the network unless --models or --update says so", name, own.Name).
				With("name a scripted Model in modelRef, or a cassette in record"))
		}
	}
}

// tests compiles the expressions of tests.
func (a *admitter) tests() {
	for _, name := range names(a.catalog.Tests) {
		e := a.catalog.Tests[name]
		set := a.catalog.Expectations(e.Object.Spec.AgentRef.Name)
		a.testExpressions(e.Doc, set, "spec", e.Object.Spec.Approvals, e.Object.Spec.Expect)
		for i := range e.Object.Spec.Cases {
			c := &e.Object.Spec.Cases[i]
			a.testExpressions(e.Doc, set, manifest.Index("spec.cases", i), c.Approvals, c.Expect)
		}
	}
}

// inside is a finding about an expression, at the place in it that is wrong.
func inside(d *manifest.Document, path string, err error) manifest.Finding {
	wrong, ok := errors.AsType[*expr.Error](err)
	if !ok {
		return d.Errorf(path, "%v", err)
	}
	return d.ErrorInside(path, wrong.Line, wrong.Col, "%s", wrong.Message).With(wrong.Suggestion)
}

func (a *admitter) testExpressions(d *manifest.Document, set *expect.Set, at string, approvals []v1alpha1.TestApproval, expectations []v1alpha1.Expectation) {
	for i := range approvals {
		if when := approvals[i].When; when != "" {
			if _, err := expect.CompileQuestion(when); err != nil {
				a.add(inside(d, manifest.Index(at+".approvals", i)+".when", err))
			}
		}
	}
	for i := range expectations {
		field := expressionPath(d, manifest.Index(at+".expect", i))
		if d.Faulty(field) || expectations[i].Expression == "" {
			continue
		}
		e, err := set.Compile(expectations[i].Expression)
		if err != nil {
			a.add(inside(d, field, err))
			continue
		}
		if value, constant := e.Constant(); constant {
			what := map[bool]string{true: "true whatever the run does: it tests nothing", false: "false whatever the run does: the test can only fail"}[value]
			a.add(d.Warnf(field, "the expectation is %s", what).With("read one of the variables: result, calls, decisions, files, events, children"))
		}
	}
}
