package admission

import (
	"context"
	"errors"
	"strings"
	"sync"

	"agentctl.dev/agentctl/runner/expr"
	"agentctl.dev/agentctl/runner/manifest"
)

// expressions checks everything that has to be compiled as CEL. The rules of
// the schemas are checked at the same time as the policies: both are slow at a
// start.
func (a *admitter) expressions(docs []*manifest.Document) {
	var rules manifest.Findings
	var work sync.WaitGroup
	work.Go(func() { rules = schemaRules(docs) })
	a.policies()
	a.scripts()
	a.plans()
	a.evidence()
	if !a.opts.SkipTests {
		a.tests()
	}
	work.Wait()
	a.found = append(a.found, rules...)
}

// warmUp builds what the first compilation builds, and forgets the result. The
// parser learns the grammar from what it reads, so it reads an expression like
// those of most rules.
func warmUp() {
	if env, err := selfEnv(); err == nil {
		_, _ = env.Bool("self.list.exists(x, x.name == 'a' && x.text.contains('b') || 'c' in x.names)")
	}
}

// selfEnv is what the CEL rules of the schemas read. They are part of this
// program, so they are not checked against a type, only against values.
func selfEnv() (*expr.Env, error) { return expr.NewEnv(expr.Var{Name: "self", Type: expr.Dyn}) }

// schemaRules holds every object against the CEL rules of its kind.
func schemaRules(docs []*manifest.Document) manifest.Findings {
	var found manifest.Findings
	rules := ruleSet{}
	for _, d := range docs {
		for _, v := range d.Validations {
			if d.Faulty(v.Field) || readsFaulty(d, v) {
				continue
			}
			holds, err := rules.hold(v)
			switch {
			case err != nil && d.Broken: // what the rule reads has been taken out
			case err != nil:
				found = append(found, d.KeyErrorf(v.Field, "the rule %q of the schema cannot be evaluated: %v", v.Rule, err))
			case !holds:
				found = append(found, d.KeyErrorf(v.Field, "%s", v.Message))
			}
		}
	}
	return found
}

// readsFaulty reports whether a rule reads a field that an error was found at: it has been
// taken out, and the rule would miss it.
func readsFaulty(d *manifest.Document, v manifest.Validation) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	for _, part := range strings.Split(v.Rule, "self.")[1:] {
		name := part[:len(part)-len(strings.TrimLeft(part, letters))]
		if d.Faulty(manifest.Join(v.Path, name)) {
			return true
		}
	}
	return false
}

// scripts checks the conditions and templates of scripted models.
func (a *admitter) scripts() {
	for _, name := range names(a.catalog.Models) {
		e := a.catalog.Models[name]
		p, ok := a.opts.Models.Of(e.Object.Spec.Provider)
		if !ok || p.CheckExpressions == nil || !p.Section.Set(&e.Object.Spec) {
			continue
		}
		for _, p := range p.CheckExpressions(&e.Object.Spec) {
			if !e.Doc.Faulty(p.Path) {
				a.add(finding(e.Doc, p))
			}
		}
	}
}

// ruleSet keeps the compiled rules of the schemas; objects of a kind share them.
type ruleSet map[string]*expr.Program

// hold evaluates a rule over self.
func (r ruleSet) hold(v manifest.Validation) (bool, error) {
	prog := r[v.Rule]
	if prog == nil {
		env, err := selfEnv()
		if err != nil {
			return false, err
		}
		if prog, err = env.Bool(v.Rule); err != nil {
			return false, err
		}
		r[v.Rule] = prog
	}
	// The evaluation has its own deadline and cost bound.
	truth, err := prog.EvalBool(context.Background(), expr.Input{Vars: map[string]any{"self": v.Self}})
	if err != nil {
		return false, err
	}
	if truth == expr.Unknown {
		return false, errors.New("its value is unknown")
	}
	return truth == expr.True, nil
}
