package policy

import (
	"context"
	"slices"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/expr"
)

// Answer is the result of one rule for a call by itself, whatever the results of the
// others are.
type Answer struct {
	// Rule is its place in spec.rules.
	Rule  int
	Truth expr.Truth
	// Err is why the rule could not be judged, so that it denies.
	Err error
}

// RuleTrace lists the result of every rule of a policy for a call, including those that a
// deny overrides.
type RuleTrace struct {
	// Answers of the rules whose match selects the call, in no order.
	Answers []Answer
	// Entries are the places in spec.permissions that were the last to match
	// something the call does, in order.
	Entries []int
}

// Trace asks every rule of one policy about a call, and those on results about
// its result, if there is one. The call is not counted.
func (c *Compiled) Trace(ctx context.Context, about Context, call message.ToolCall, result *message.ToolResult) (RuleTrace, error) {
	e := NewEngine([]*Compiled{c}, about)
	j, ok := e.tools[call.Tool]
	if !ok {
		return RuleTrace{}, nil
	}
	in, err := e.input(j, call)
	if err != nil {
		return RuleTrace{}, err
	}
	s := c.trace(ctx, j.tool, about.Agent.Name, in, false)
	if result != nil {
		in.result(result)
		s.Answers = append(s.Answers, c.trace(ctx, j.tool, about.Agent.Name, in, true).Answers...)
	}
	return s, nil
}

// trace asks the rules of a policy about a call, or about its result.
func (c *Compiled) trace(ctx context.Context, t *Tool, agent string, in *input, result bool) (s RuleTrace) {
	for _, r := range c.rules[t.compiledAs()] {
		if (r.spec.On == v1alpha1.OnResult) != result || !MatchesAgent(&r.spec.Match, agent) || !selects(&r.spec.Match, t) {
			continue
		}
		truth, err := r.truth(ctx, in)
		s.Answers = append(s.Answers, Answer{Rule: r.order, Truth: truth, Err: err})
	}
	if result || len(c.entries) == 0 {
		return s
	}
	seen := *c
	seen.entries = slices.Clone(c.entries)
	won := make([]bool, len(seen.entries))
	for i := range seen.entries {
		seen.entries[i].won = &won[i]
	}
	seen.judge(t, in.facts)
	for i, w := range won {
		if w {
			s.Entries = append(s.Entries, i)
		}
	}
	return s
}

// traced reports what the policies of the engine say, to a context that wants to know.
func (e *Engine) traced(ctx context.Context, j *judged, in *input, result bool) {
	if e.context.Traced == nil {
		return
	}
	for _, c := range e.policies {
		e.context.Traced(c.name, c.trace(ctx, j.tool, e.context.Agent.Name, in, result), result)
	}
}
