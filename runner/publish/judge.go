package publish

import (
	"bytes"
	"context"
	"fmt"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/plan"
	"agentctl.dev/agentctl/runner/policy"
	"agentctl.dev/agentctl/runner/tool/builtin"
)

// judge judges the calls that have prepared items again, by the policies of the run and by
// those of the manifests as they are now. The stricter decision counts:
//
//	one of them                      decision
//	denies, or redacts the call      deny
//	asks                             ask
//	both allow                       allow
type judge struct {
	run     *recorded
	engines []*policy.Engine
}

func newJudge(r *recorded, then, now *plan.Plan) *judge {
	j := &judge{run: r}
	for _, p := range []*plan.Plan{then, now} {
		j.engines = append(j.engines, policy.NewEngine(p.Rules, r.context(p)))
	}
	return j
}

// context is what a decision depends on: the run as it has ended.
func (r *recorded) context(p *plan.Plan) policy.Context {
	v := r.view
	c := p.PolicyContext(p.Definitions, v1alpha1.IsolationLevel(v.Started.Isolation))
	c.Run.Name, c.Run.User = v.ID, v.Started.User
	c.Run.Inputs, _ = p.InputValues() // they come from a journal, and so are JSON
	c.Workspace = policy.Workspace{Root: v.Started.Workspace.Dir, Source: v.Started.Workspace.Source}
	c.Budget = func() policy.Budget { return p.Budget(used(v)) }
	c.Approvals = func() policy.Approvals { return policy.Approvals{Granted: v.Granted, Refused: v.Refused} }
	c.Calls = map[string]int{}
	for _, m := range v.Messages {
		for _, call := range m.Calls() {
			if call.Decision == nil {
				continue
			}
			c.Calls[call.Tool]++
			if call.Decision.Action == message.Deny {
				c.Denials++
			}
		}
	}
	return c
}

func (j *judge) decide(ctx context.Context, id string, it *Item) error {
	args, step, err := input(j.run.view, id)
	if err != nil {
		return err
	}
	c := j.run.view.Call(id)
	it.Decision = message.Allow
	for i, e := range j.engines {
		d, err := e.Decide(ctx, message.ToolCall{ID: id, Tool: c.Tool, Args: args, Step: step, Again: true})
		if err != nil {
			return fmt.Errorf("judge %s: %w", it.Name, err)
		}
		if d.Action == message.Redact {
			if d.Action = message.Allow; len(d.Args) > 0 && !bytes.Equal(d.Args, args) {
				d.Action, d.Message = message.Deny, "something is taken out of it: it would not be what was prepared"
			}
		}
		if i == 1 && d.Rule == "default/unknown-tool" {
			d.Message = "the agent has no tool " + c.Tool + " now, which " + builtin.Publish + " was called by"
		}
		if rank(d.Action) > rank(it.Decision) || it.Rule == "" {
			it.Decision, it.Rule, it.Reason = d.Action, d.Rule, d.Message
		}
	}
	return nil
}

// rank orders decisions by strictness; one that is unknown is a refusal.
func rank(a message.Action) int {
	switch a {
	case message.Allow:
		return 0
	case message.Ask:
		return 1
	default:
		return 2
	}
}
