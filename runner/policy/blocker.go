package policy

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/expr"
	"agentctl.dev/agentctl/runner/policy/shell"
)

// blockerLimit bounds the list of blockers of a call.
const blockerLimit = 50

// Blockers returns all decisions that would have to change for a call to be allowed: the
// current one, then the one that would follow without its rule, and so on, up to the
// default. An allowed call has no blockers. The call is not counted.
func (e *Engine) Blockers(ctx context.Context, call message.ToolCall) []message.Decision {
	all := e.ownBlockers(ctx, call)
	for _, c := range e.ceilings {
		for _, d := range c.Blockers(ctx, call) {
			if d.Rule != ruleByRisk { // a ceiling that is silent blocks nothing
				all = append(all, d)
			}
		}
	}
	return all
}

func (e *Engine) ownBlockers(ctx context.Context, call message.ToolCall) []message.Decision {
	j, ok := e.tools[call.Tool]
	if !ok {
		return nil
	}
	supposed := e.supposed()
	var all []message.Decision
	for range blockerLimit {
		d := supposed.decide(ctx, j, call)
		if d.Action == message.Allow {
			return all
		}
		if d.Rule == ruleDynamic {
			d.Rule = supposed.unsure(ctx, j, call)
		}
		all = append(all, d)
		// A rule about reading speaks twice: of the call, and of each file.
		next, asked := j.without(d.Rule)
		reader, read := supposed.reader.without(d.Rule)
		if !asked && !read {
			return all
		}
		if j == supposed.reader {
			reader = next
		}
		j, supposed.reader = next, reader
	}
	return all
}

// unsure returns a rule that may hold for a call of which not everything is known.
func (e *Engine) unsure(ctx context.Context, j *judged, call message.ToolCall) string {
	in, err := e.input(j, call)
	if err != nil {
		return ruleDynamic
	}
	inputs := map[*judged]*input{j: in}
	if r, err := e.reading(ctx); err == nil {
		file := r.in.on(Path{Raw: shell.Unknown, Clean: shell.Unknown, Real: shell.Unknown, Op: opRead})
		file.unknown = expr.NewUnknowns([]string{"paths"}, []string{"call", "args", "path"})
		inputs[e.reader] = file
	}
	for _, of := range []*judged{j, e.reader} {
		for _, action := range []v1alpha1.Action{v1alpha1.ActionDeny, v1alpha1.ActionAsk} {
			for _, r := range of.enforced.calls[action] {
				if at := inputs[of]; at != nil {
					if t, err := r.truth(ctx, at); err == nil && t == expr.Unknown {
						return r.id
					}
				}
			}
		}
	}
	return ruleDynamic
}

// supposed is an engine of which rules can be taken away; what it counts is its own.
func (e *Engine) supposed() *Engine {
	e.mu.Lock()
	defer e.mu.Unlock()
	return &Engine{context: e.context, tools: e.tools, reader: e.reader, tracked: e.tracked, names: e.names, byPath: e.byPath, fixed: e.fixed, calls: maps.Clone(e.calls), denials: e.denials}
}

// without is the tool as if a rule, or a policy's list, were not there; false
// when it is neither.
func (j *judged) without(id string) (*judged, bool) {
	out := *j
	out.enforced.calls = maps.Clone(j.enforced.calls)
	found := false
	if name, ok := strings.CutSuffix(id, "/permissions"); ok {
		out.enforced.lists = slices.DeleteFunc(slices.Clone(j.enforced.lists), func(p *Compiled) bool {
			found = found || p.name == name
			return p.name == name
		})
	}
	for action, rules := range out.enforced.calls {
		out.enforced.calls[action] = slices.DeleteFunc(slices.Clone(rules), func(r *rule) bool {
			found = found || r.id == id
			return r.id == id
		})
	}
	return &out, found
}

// ruleOf takes a decision's rule apart; policy is "" for a default that no
// policy has set.
func ruleOf(decided string) (policy, rule string) {
	policy, rule, _ = strings.Cut(decided, "/")
	if policy == "default" {
		return "", decided
	}
	return policy, rule
}

// Origin is where a decision comes from.
type Origin struct {
	// Policy and Rule by name; Policy is "" for what no policy has said, and Rule
	// then is such as default/byRisk. A rule may also be "permissions" or "default".
	Policy, Rule string
	// Path of the field in the policy, "" without one.
	Path string
}

// Origin finds where a decision of this engine comes from.
func (e *Engine) Origin(ctx context.Context, policies []*Compiled, call message.ToolCall, d message.Decision) Origin {
	o := Origin{}
	o.Policy, o.Rule = ruleOf(d.Rule)
	at := slices.IndexFunc(policies, func(p *Compiled) bool { return p.name == o.Policy })
	if at < 0 || o.Policy == "" {
		return o
	}
	spec := policies[at].spec
	switch n := slices.IndexFunc(spec.Rules, func(r v1alpha1.Rule) bool { return r.Name == o.Rule }); {
	case n >= 0:
		o.Path = index("spec.rules", n)
	case o.Rule == "permissions":
		o.Path = "spec.permissions"
		if s, err := policies[at].Trace(ctx, e.context, call, nil); err == nil {
			if n := slices.IndexFunc(s.Entries, func(i int) bool { return string(spec.Permissions[i].Action) == string(d.Action) }); n >= 0 {
				o.Path = index(o.Path, s.Entries[n])
			}
		}
	case o.Rule == "default":
		o.Path = "spec.default"
	}
	return o
}

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
