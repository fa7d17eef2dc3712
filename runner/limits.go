package runner

import (
	"encoding/json"

	"agentctl.dev/agentctl/runner/model/provider"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/loop"
	"agentctl.dev/agentctl/runner/tool"
)

// limits are those of the plan, in the units of the loop.
func (s *session) limits() loop.Limits {
	l := s.Limits
	limits := loop.Limits{
		MaxSteps: int(l.MaxSteps), MaxTokens: l.MaxTokens, MaxCost: s.maxCost(),
		MaxParallel: int(l.MaxParallelTools), ReserveOutput: s.reserve(), Price: s.price(),
	}
	return limits
}

// maxCost is the limit of what the run may cost; 0 is none.
func (p *plan) maxCost() message.Cost {
	micros, _ := p.Limits.MaxCost.Micros() // admission has checked it
	return message.Cost(micros) * 1_000_000
}

// context says when the conversation is shortened.
func (s *session) context(p message.Prompt) loop.Context {
	declared := s.Agent.Spec.Context
	c := loop.Context{Window: provider.All().Window(&s.Model.Spec), ReserveOutput: provider.All().OutputLimit(&s.Model.Spec), PromptBytes: int64(len(p.System) + len(p.Output))}
	if declared.CompactAtPercent != nil {
		c.AtPercent = int(*declared.CompactAtPercent)
	}
	if declared.KeepRecentTokens != nil {
		c.KeepRecent = *declared.KeepRecentTokens
	}
	if declared.PruneToolOutput != nil {
		c.Prune = *declared.PruneToolOutput
	}
	for _, t := range p.Tools {
		c.PromptBytes += int64(len(t.Name) + len(t.Description) + len(t.Parameters))
	}
	return c
}

func (s *session) guard() loop.Guard {
	declared, g := s.Agent.Spec.LoopGuard, loop.DefaultGuard()
	for field, value := range map[*int]*int32{
		&g.Identical: declared.IdenticalCalls, &g.Cycles: declared.Cycles, &g.Stalled: declared.StalledSteps,
		&g.Invalid: declared.InvalidAnswers, &g.RepeatedText: declared.RepeatedTextBytes,
	} {
		if value != nil { // absent in the plan of a run that an earlier version began
			*field = int(*value)
		}
	}
	if declared.OnDetect != "" {
		g.Act = string(declared.OnDetect)
	}
	return g
}

// outputSchema is what the final answer must satisfy; nil asks for nothing.
func (s *session) outputSchema() json.RawMessage {
	if s.Agent.Spec.Output == nil {
		return nil
	}
	return s.Agent.Spec.Output.Schema.Raw
}

func (s *session) answer() (loop.Answer, error) {
	a := loop.Answer{FailOnDenied: s.opts.FailOnDenied}
	out := s.Agent.Spec.Output
	if out == nil {
		return a, nil
	}
	schema, err := tool.NewSchema(out.Schema.Raw)
	if err != nil {
		return a, reason.New(reason.Internal, "agent %q: spec.output.schema: %w", s.Agent.Name, err)
	}
	a.Check, a.Value = schema.CheckOutput, tool.Unfenced
	if out.Retries != nil {
		a.Retries = int(*out.Retries)
	}
	return a, nil
}
