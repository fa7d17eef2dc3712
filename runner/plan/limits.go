package plan

import (
	"encoding/json"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/loop"
	"agentctl.dev/agentctl/runner/tool"
)

// LoopLimits are the limits of the plan in the units of the loop.
func (p *Plan) LoopLimits() loop.Limits {
	l, models := p.Limits, p.Models()
	if p.Carried != nil { // the plan counts its steps itself: its end is none
		l.MaxSteps = 0
	}
	return loop.Limits{
		MaxSteps: int(l.MaxSteps), MaxTokens: l.MaxTokens, MaxCost: p.MaxCost(),
		MaxParallel: int(l.MaxParallelTools), ReserveOutput: models.longest(), Price: models.PriceAt(models.Prices()),
	}
}

// MaxCost is the limit of what the run may cost; 0 is no limit.
func (p *Plan) MaxCost() message.Cost {
	micros, _ := p.Limits.MaxCost.Micros() // admission has checked it
	return message.Cost(micros) * 1_000_000
}

// RecordedLimits are the limits of a turn as its first event has them.
func (p *Plan) RecordedLimits() *event.Limits {
	return &event.Limits{MaxSteps: p.LoopLimits().MaxSteps, MaxTokens: p.Limits.MaxTokens, MaxCost: p.MaxCost(), TimeoutMs: p.Deadline().Milliseconds()}
}

// LoopContext configures when the conversation is shortened.
func (p *Plan) LoopContext(offered message.Prompt) loop.Context {
	if p.modelless() { // a client has the conversation; a plan has none
		return loop.Context{}
	}
	declared := p.Agent.Spec.Context
	models := p.Models()
	c := loop.Context{Window: models.window(p.Model), ReserveOutput: models.answer(), PromptBytes: int64(len(offered.System) + len(offered.Output))}
	if declared.CompactAtPercent != nil {
		c.AtPercent = int(*declared.CompactAtPercent)
	}
	if declared.KeepRecentTokens != nil {
		c.KeepRecent = *declared.KeepRecentTokens
	}
	if declared.PruneToolOutput != nil {
		c.Prune = *declared.PruneToolOutput
	}
	if m := p.Summarizer; m != nil {
		c.SummarizerRef, c.SummarizerWindow = Ref(m), models.window(m)
	}
	for _, t := range offered.Tools {
		c.PromptBytes += int64(len(t.Name) + len(t.Description) + len(t.Parameters))
	}
	return c
}

// LoopGuard configures the detection of a run that is stuck.
func (p *Plan) LoopGuard() loop.Guard {
	if p.modelless() { // a client may ask the same question again, on another day; a plan ends by itself
		return loop.Guard{Act: loop.GuardStop}
	}
	declared, g := p.Agent.Spec.LoopGuard, loop.DefaultGuard()
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

// OutputSchema is what the final answer must satisfy; nil accepts any.
func (p *Plan) OutputSchema() json.RawMessage {
	if p.Agent.Spec.Output == nil || p.modelless() {
		return nil
	}
	return p.Agent.Spec.Output.Schema.Raw
}

// LoopAnswer configures what counts as the answer of the run.
func (p *Plan) LoopAnswer(failOnDenied bool) (loop.Answer, error) {
	a := loop.Answer{FailOnDenied: failOnDenied}
	out := p.Agent.Spec.Output
	if out == nil || p.modelless() {
		return a, nil
	}
	schema, err := tool.NewSchema(out.Schema.Raw)
	if err != nil {
		return a, reason.New(reason.Internal, "agent %q: spec.output.schema: %w", p.Agent.Name, err)
	}
	a.Check, a.Value = schema.CheckOutput, tool.Unfenced
	if out.Retries != nil {
		a.Retries = int(*out.Retries)
	}
	return a, nil
}

// Deadline is the wall time of the run.
func (p *Plan) Deadline() time.Duration { return p.Limits.Timeout.Duration }
