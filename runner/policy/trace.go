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
	seen := *c
	seen.entries = slices.Clone(c.entries)
	won := make([]bool, len(seen.entries))
	for i := range seen.entries {
		seen.entries[i].won = &won[i]
	}
	e := NewEngine([]*Compiled{&seen}, about)
	j, ok := e.tools[call.Tool]
	if !ok {
		return RuleTrace{}, nil
	}
	in, err := e.input(j, call)
	if err != nil {
		return RuleTrace{}, err
	}
	var s RuleTrace
	s.ask(ctx, j.enforced.calls, in)
	seen.judge(j.tool, in.facts)
	for i, w := range won {
		if w {
			s.Entries = append(s.Entries, i)
		}
	}
	if result != nil {
		in.result(result)
		s.ask(ctx, j.enforced.after, in)
	}
	return s, nil
}

func (s *RuleTrace) ask(ctx context.Context, rules map[v1alpha1.Action][]*rule, in *input) {
	for _, of := range rules {
		for _, r := range of {
			t, err := r.truth(ctx, in)
			s.Answers = append(s.Answers, Answer{Rule: r.order, Truth: t, Err: err})
		}
	}
}
