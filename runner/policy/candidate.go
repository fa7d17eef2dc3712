package policy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/expr"
)

// Candidate is a rule, a list or a default that was asked about a call, and what
// it said by itself.
type Candidate struct {
	Origin
	Action v1alpha1.Action
	Mode   v1alpha1.PolicyMode
	// When is the condition; "" if there is none.
	When string
	// Truth is true, false, unknown or error; Error is the reason of the latter.
	Truth, Error string
	// Steps are the values of the parts of the condition.
	Steps []expr.Step
}

// Candidates asks everything that can concern a call, each by itself: a second
// evaluation, for people. The call is not counted.
func (e *Engine) Candidates(ctx context.Context, policies []*Compiled, call message.ToolCall) ([]Candidate, error) {
	j, ok := e.tools[call.Tool]
	if !ok {
		return nil, nil
	}
	in, err := e.input(j, call)
	if err != nil {
		return nil, fmt.Errorf("read the arguments: %w", err)
	}
	var all []Candidate
	for _, g := range append([]group{j.enforced}, j.others...) {
		for _, rules := range g.calls {
			for _, r := range rules {
				c := r.candidate(ctx, in)
				c.Mode = g.mode
				all = append(all, c)
			}
		}
	}
	all = append(all, e.readCandidates(ctx, j, in)...)
	for _, c := range e.ceilings {
		more, err := c.Candidates(ctx, nil, call)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	for _, p := range policies {
		all = append(all, e.entryCandidates(ctx, p, call)...)
		if d := p.spec.Default; d != "" {
			all = append(all, Candidate{Origin: Origin{p.name, "default", "spec.default"}, Action: v1alpha1.Action(d), Mode: mode(p), Truth: "true"})
		}
	}
	slices.SortStableFunc(all, func(a, b Candidate) int {
		return cmp.Or(strings.Compare(a.Policy, b.Policy), cmp.Compare(weight(a.Path), weight(b.Path)))
	})
	return slices.CompactFunc(all, func(a, b Candidate) bool { return a.Origin == b.Origin && a.Truth == b.Truth }), nil
}

// readCandidates are the rules about reading that hold for a file which a call of
// another tool reaches.
func (e *Engine) readCandidates(ctx context.Context, j *judged, in *input) []Candidate {
	if j == e.reader || !e.reader.enforced.byPath {
		return nil
	}
	r, err := e.reading(ctx)
	if err != nil {
		return nil
	}
	paths := slices.DeleteFunc(slices.Clone(in.facts.paths), func(p Path) bool { return p.Op != opRead && p.Op != opExecute })
	for _, tree := range in.facts.script.Trees {
		files, _ := e.context.Workspace.within(in.facts, tree)
		for _, name := range files {
			paths = append(paths, e.context.Workspace.resolve(name, opRead))
		}
	}
	kept, _ := e.shown(ctx, j, in, r)
	paths = append(paths, kept...)
	var all []Candidate
	for _, rules := range [][]*rule{e.reader.enforced.calls[v1alpha1.ActionDeny], e.reader.enforced.calls[v1alpha1.ActionAsk]} {
		for _, rule := range rules {
			for _, p := range paths {
				p.Op = opRead
				if t, err := rule.truth(ctx, r.in.on(p)); err != nil || t == expr.False {
					continue
				}
				c := rule.candidate(ctx, r.in.on(p))
				c.Mode = e.reader.enforced.mode
				all = append(all, c)
				break
			}
		}
	}
	return all
}

func mode(p *Compiled) v1alpha1.PolicyMode {
	if p.spec.Mode == "" {
		return v1alpha1.PolicyEnforce
	}
	return p.spec.Mode
}

// weight sorts paths as a policy is written: the list, the rules by their
// number, the default.
func weight(path string) int {
	n := 0
	if _, err := fmt.Sscanf(path, "spec.rules[%d]", &n); err == nil {
		return 10_000 + n
	}
	if _, err := fmt.Sscanf(path, "spec.permissions[%d]", &n); err == nil {
		return n
	}
	return 1 << 30
}

// entryCandidates are the entries of a list that were the last to match
// something the call does.
func (e *Engine) entryCandidates(ctx context.Context, p *Compiled, call message.ToolCall) []Candidate {
	if len(p.entries) == 0 {
		return nil
	}
	s, err := p.Trace(ctx, e.context, call, nil)
	if err != nil {
		return nil
	}
	var all []Candidate
	for _, i := range s.Entries {
		entry := p.spec.Permissions[i]
		all = append(all, Candidate{
			Origin: Origin{p.name, "permissions", index("spec.permissions", i)}, Action: entry.Action, Mode: mode(p),
			When: entry.Permission + " " + cmp.Or(entry.Pattern, "*"), Truth: "true",
		})
	}
	return all
}

func (r *rule) candidate(ctx context.Context, in *input) Candidate {
	c := Candidate{Origin: Origin{r.policy.name, r.spec.Name, index("spec.rules", r.order)}, Action: r.spec.Action, When: strings.TrimSpace(r.spec.When)}
	t, err := r.truth(ctx, in)
	switch {
	case err != nil:
		c.Truth, c.Error = "error", err.Error()
	case t == expr.Unknown:
		c.Truth = "unknown"
	default:
		c.Truth = fmt.Sprint(t == expr.True)
	}
	if r.when != nil {
		// What cannot be traced has been judged all the same.
		c.Steps, _ = r.when.Trace(ctx, in.leaveOpen(in.of(ctx, r.policy), r.when))
	}
	if t == expr.True && r.spec.Action == v1alpha1.ActionAllow && r.blind(in.facts) {
		c.Truth = "unknown"
		c.Steps = append(c.Steps, expr.Step{Expression: "cmd.opaque", Value: "true: " + in.facts.unclear() + ", and the condition does not read it"})
	}
	return c
}
