package policy

import (
	"cmp"
	"context"
	"slices"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// ruleByRisk decides about a call when no policy has.
const ruleByRisk = "default/byRisk"

// Ceiling is a set of policies that can only narrow what others allow. It is judged by
// itself.
type Ceiling struct {
	Policies []*Compiled
	// Tightens is set for policies that nobody has chosen, as those of a repository: what
	// they allow has no effect at all, and their questions are answered one by one.
	Tightens bool
}

// newCeilings returns the engines of the ceilings of a context.
func newCeilings(c Context) (all []*Engine) {
	sets := c.Ceilings
	c.Ceilings, c.Demand = nil, nil // the engine above them asks
	for _, set := range sets {
		if len(set.Policies) > 0 {
			e := NewEngine(set.Policies, c)
			e.tightens = set.Tightens
			all = append(all, e)
		}
	}
	return all
}

// narrow judges a call by the ceilings as well, where the engine's own policies do not
// deny it. The strictest decision applies:
//
//	own             ceiling                the decision
//	deny            any                    own
//	any             silent: no rule, no    own
//	                list, no default
//	any             deny                   the ceiling's
//	redact, allow   ask                    the ceiling's
//	ask             ask                    own, approved once at a time
//	any             redact                 own or redact, with what both leave of the call
//	any             allow                  own: a ceiling allows nothing
//
// Of a ceiling that tightens, an allow is as if it were silent: paths outside the
// workspace that the own policies open stay open. An approval that such a ceiling asks for
// is not remembered, so that it answers no question of another policy.
func (e *Engine) narrow(ctx context.Context, j *judged, call message.ToolCall, d message.Decision) (message.Decision, error) {
	for _, c := range e.ceilings {
		if d.Action == message.Deny {
			return d, nil
		}
		left := call
		if len(d.Args) > 0 {
			left.Args = d.Args
		}
		by, err := c.Decide(ctx, left)
		if err != nil {
			return by, err
		}
		d.Warnings = append(d.Warnings, by.Warnings...)
		d.Binding = cmp.Or(d.Binding, by.Binding) // of the same facts
		if by.Rule == ruleByRisk || c.tightens && by.Action == message.Allow {
			continue
		}
		if c.tightens {
			by.Outside = d.Outside
			if by.Action == message.Ask {
				by.Always, by.Once = nil, "a policy of the repository asks"
			}
		}
		d = narrower(d, by)
		if len(by.Args) == 0 || d.Action == message.Deny {
			continue
		}
		left.Args, left.Again = by.Args, true
		again, err := e.decideInTime(ctx, j, left)
		if err != nil {
			return again, err
		}
		if d.Binding != nil {
			d.Binding = again.Binding
		}
		if rank(v1alpha1.Action(again.Action)) > rank(v1alpha1.Action(d.Action)) {
			again.Args, again.Warnings = by.Args, d.Warnings
			d = again
		}
	}
	return d, nil
}

// narrower is the stricter of a decision that does not deny and that of a ceiling.
func narrower(d, by message.Decision) message.Decision {
	warnings, binding := d.Warnings, d.Binding
	outside := slices.DeleteFunc(slices.Clone(d.Outside), func(p message.OutsidePath) bool { return !slices.Contains(by.Outside, p) })
	switch by.Action {
	case message.Allow, message.Redact, message.Ask:
	case message.Deny:
		by.Warnings = warnings
		return by
	default:
		by.Action, by.Warnings = message.Deny, warnings // an unknown decision is a refusal
		return by
	}
	args, hash := d.Args, d.Hash
	if len(by.Args) > 0 {
		args, hash = by.Args, by.Hash
	}
	switch {
	case by.Action == message.Ask && d.Action != message.Ask:
		d = by
	case by.Action == message.Ask:
		d.Always, d.Once = nil, "more than one policy asks: "+d.Rule+" and "+by.Rule
	case by.Action == message.Redact && d.Action == message.Allow:
		d = by
	}
	d.Args, d.Hash, d.Outside, d.Warnings, d.Binding = args, hash, outside, warnings, binding
	if len(outside) == 0 {
		d.Outside = nil
	}
	return d
}

// union returns what the engine or one of its ceilings names.
func (e *Engine) union(named func(*Engine) ([]string, error)) ([]string, error) {
	all, err := named(e)
	for _, c := range e.ceilings {
		if err != nil {
			return nil, err
		}
		var more []string
		more, err = named(c)
		for _, name := range more {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all, err
}
