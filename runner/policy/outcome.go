package policy

import (
	"context"
	"fmt"
	"slices"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/expr"
)

// outcome is the result of a group of rules for a call.
type outcome struct {
	action   v1alpha1.Action
	rule     string
	message  string
	warnings []string
	// unsure asks only because a deny rule may hold.
	unsure bool
	// redactions that hold, whatever the action is.
	redactions []*rule
	// certain are those of them that let the call run, if they take something away.
	certain []*rule
}

// truth evaluates a rule's condition. An error is returned as such: it denies.
func (r *rule) truth(ctx context.Context, in *input) (expr.Truth, error) {
	if r.broken {
		return expr.False, fmt.Errorf("the condition does not compile")
	}
	if r.when == nil {
		return expr.True, nil
	}
	t, err := r.when.EvalBool(ctx, in.leaveOpen(in.of(ctx, r.policy), r.when))
	if err == nil && r.negated && t != expr.Unknown {
		t = expr.True - t // False is 0
	}
	return t, err
}

// holdsFor is the truth of a rule that refuses: it also holds where an opaque command may
// have started a program that the rule speaks of.
func (r *rule) holdsFor(ctx context.Context, in *input) (expr.Truth, error) {
	t, err := r.truth(ctx, in)
	if err != nil || t == expr.True || len(in.facts.script.perhaps) == 0 {
		return t, err
	}
	if more := in.perhaps(r); more != nil {
		if held, err := r.truth(ctx, more); err == nil && held == expr.True {
			return expr.True, nil
		}
	}
	return t, nil
}

// outcome judges a call: deny, then ask, redact, allow, default. The first
// deny ends it; a failure is a deny that names its rule, unless a rule denies
// by itself, so that the answer does not depend on the order.
func (g *group) outcome(ctx context.Context, j *judged, in *input, redacted bool) outcome {
	o, failed := g.strict(ctx, j, in)
	if o.action == v1alpha1.ActionDeny {
		return o
	}
	if !redacted {
		for _, r := range g.calls[v1alpha1.ActionRedact] {
			t, err := r.truth(ctx, in)
			if err != nil {
				failed = first(failed, g.failure(r, err))
			} else if t != expr.False {
				o.redactions = append(o.redactions, r)
				if t == expr.True && lifts(r, j.tool) && !r.blind(in.facts) {
					// A redact rule that may apply removes values, but allows nothing.
					o.certain = append(o.certain, r)
				}
			}
		}
	}
	// Allow rules are asked even when something stricter has decided: one that
	// fails denies, whatever the others say.
	allowed, failure := g.allow(ctx, j, in)
	if failed = first(failed, failure); failed != nil {
		return *failed
	}
	if o.action == v1alpha1.ActionAsk {
		// A deny rule that may apply must not weaken the result: without an allow and
		// without an ask rule, a default of deny stays.
		if def := g.byDefault(j, in); o.unsure && allowed == nil && def.action == v1alpha1.ActionDeny {
			return def
		}
		return o
	}
	if len(o.certain) > 0 {
		r := o.certain[0]
		o.action, o.rule, o.message = v1alpha1.ActionRedact, r.id, r.explain(ctx, in, j, "removes values from")
		return o
	}
	if allowed != nil {
		allowed.redactions = o.redactions
		return *allowed
	}
	def := g.byDefault(j, in)
	def.redactions = o.redactions
	if why := in.facts.unclear(); why != "" && def.action != v1alpha1.ActionAllow {
		def.message += "; " + why
	}
	return def
}

func first(a, b *outcome) *outcome {
	if a != nil {
		return a
	}
	return b
}

// strict judges deny and ask rules and what the lists deny or ask.
func (g *group) strict(ctx context.Context, j *judged, in *input) (o outcome, failed *outcome) {
	ask := outcome{}
	for _, r := range g.calls[v1alpha1.ActionDeny] {
		switch t, err := r.holdsFor(ctx, in); {
		case err != nil:
			failed = first(failed, g.failure(r, err))
		case t == expr.True:
			return outcome{action: v1alpha1.ActionDeny, rule: r.id, message: because(r.explain(ctx, in, j, "denies"), r.cause(ctx, in))}, nil
		case t == expr.Unknown && ask.action == "":
			ask = r.unsure(in, "deny")
			ask.unsure = true
		}
	}
	for _, p := range g.lists {
		switch v := p.judge(j.tool, in.facts); {
		case v == v1alpha1.ActionDeny:
			return outcome{action: v1alpha1.ActionDeny, rule: p.name + "/permissions", message: because(fmt.Sprintf("the permissions of policy %s deny this call of %s", p.name, j.tool.Name), p.causeOf(j.tool, in.facts, v))}, nil
		case v == v1alpha1.ActionAsk && (ask.action == "" || ask.unsure):
			ask = outcome{action: v1alpha1.ActionAsk, rule: p.name + "/permissions", message: because(fmt.Sprintf("the permissions of policy %s ask for this call of %s", p.name, j.tool.Name), p.causeOf(j.tool, in.facts, v))}
		}
	}
	for _, r := range g.calls[v1alpha1.ActionAsk] {
		switch t, err := r.holdsFor(ctx, in); {
		case err != nil:
			failed = first(failed, g.failure(r, err))
		case t == expr.True && (ask.action == "" || ask.unsure):
			ask = outcome{action: v1alpha1.ActionAsk, rule: r.id, message: because(r.explain(ctx, in, j, "asks for"), r.cause(ctx, in))}
		case t == expr.Unknown && ask.action == "":
			ask = r.unsure(in, "ask")
		}
	}
	return ask, failed
}

// allow finds an allow rule or list.
func (g *group) allow(ctx context.Context, j *judged, in *input) (*outcome, *outcome) {
	var allowed, failed *outcome
	for _, r := range g.calls[v1alpha1.ActionAllow] {
		if !lifts(r, j.tool) {
			continue
		}
		t, err := r.truth(ctx, in)
		if err != nil {
			failed = first(failed, g.failure(r, err))
		} else if t == expr.True && allowed == nil && !r.blind(in.facts) {
			allowed = &outcome{action: v1alpha1.ActionAllow, rule: r.id}
		}
	}
	if allowed != nil || j.tool.risk() == v1alpha1.RiskR3 {
		return allowed, failed
	}
	for _, p := range g.lists {
		if p.judge(j.tool, in.facts) == v1alpha1.ActionAllow {
			return &outcome{action: v1alpha1.ActionAllow, rule: p.name + "/permissions"}, failed
		}
	}
	return nil, failed
}

// lifts reports whether an allow applies to the tool: R3 must be named.
func lifts(r *rule, t *Tool) bool {
	return t.risk() != v1alpha1.RiskR3 || slices.Contains(r.spec.Match.Risks, v1alpha1.RiskR3)
}

func (g *group) failure(r *rule, err error) *outcome {
	return &outcome{action: v1alpha1.ActionDeny, rule: r.id, message: fmt.Sprintf("rule %s could not be judged, so the call is denied: %v", r.id, err)}
}

// explain returns the rule's own message, or a sentence of ours.
func (r *rule) explain(ctx context.Context, in *input, j *judged, verb string) string {
	if r.message != nil {
		if s, err := r.message.EvalString(ctx, in.of(ctx, r.policy)); err == nil && s != "" {
			return bounded(s)
		}
	}
	return fmt.Sprintf("rule %s of policy %s %s this call of %s", r.spec.Name, r.policy.name, verb, j.tool.Name)
}

// messageLimit bounds what an expression can put in front of a person.
const messageLimit = 2000

func bounded(s string) string {
	runes := []rune(s)
	if len(runes) <= messageLimit {
		return s
	}
	return string(runes[:messageLimit]) + "…"
}

// ruleDynamic asks about a call of which only the run can tell what it does, where a rule
// depends on that.
const ruleDynamic = "default/dynamic"

// unsure asks about a call because a rule may hold for it.
func (r *rule) unsure(in *input, verb string) outcome {
	if in.unknown == nil {
		return outcome{
			action: v1alpha1.ActionAsk, rule: r.id,
			message: fmt.Sprintf("rule %s would %s depending on something only the run can tell: it may reach hosts that it does not name", r.id, verb),
		}
	}
	why := "what it does"
	if len(in.facts.script.Reasons) > 0 {
		why = in.facts.script.Reasons[0]
	}
	return outcome{
		action: v1alpha1.ActionAsk, rule: ruleDynamic,
		message: fmt.Sprintf("only the run can tell: %s; rule %s of policy %s may %s it", why, r.spec.Name, r.policy.name, verb),
	}
}

// byDefault is what happens to a call that no rule speaks of.
func (g *group) byDefault(j *judged, in *input) outcome {
	def, rule := g.def, g.from+"/default"
	if def == "" || def == v1alpha1.DefaultByRisk {
		return byRisk(j.tool, in.facts)
	}
	o := outcome{action: v1alpha1.Action(def), rule: rule}
	switch {
	case def == v1alpha1.DefaultDeny:
		o.message = fmt.Sprintf("policy %s denies what no rule allows", g.from)
	case def == v1alpha1.DefaultAsk:
		o.message = fmt.Sprintf("policy %s asks for what no rule allows", g.from)
	case def != v1alpha1.DefaultAllow:
		o.action, o.message = v1alpha1.ActionDeny, fmt.Sprintf("policy %s has the default %q, which is none", g.from, def)
	case j.tool.risk() == v1alpha1.RiskR3:
		return byRisk(j.tool, in.facts)
	}
	return o
}

// byRisk judges what a call can do at worst, given how it is contained.
func byRisk(t *Tool, f *facts) outcome {
	allow := outcome{action: v1alpha1.ActionAllow, rule: ruleByRisk}
	ask := func(why string) outcome {
		return outcome{action: v1alpha1.ActionAsk, rule: ruleByRisk, message: fmt.Sprintf("%s: %s", t.Name, why)}
	}
	switch t.risk() {
	case v1alpha1.RiskR0:
		return allow
	case v1alpha1.RiskR1:
		if f.shell && f.script.Dynamic && !t.Contained {
			return ask("its risk is R1 and only the run can tell what it touches")
		}
		if f.shell && f.script.Opaque && !t.Contained {
			return ask("its risk is R1 and it may touch anything")
		}
		for i := range f.paths {
			if !f.paths[i].InWorkspace {
				return ask("its risk is R1 and " + f.paths[i].Raw + " is outside the workspace")
			}
		}
		return allow
	case v1alpha1.RiskR2:
		if t.Contained {
			return allow
		}
		return ask("its risk is R2, it runs programs or reaches outside, and it is not contained")
	case v1alpha1.RiskR3:
		return ask("its risk is R3, it cannot be undone, so each call is asked about")
	}
	return outcome{action: v1alpha1.ActionDeny, rule: ruleByRisk, message: fmt.Sprintf("%s has the risk %q, which is none", t.Name, t.Risk)}
}
