package runner

import (
	"encoding/json"
	"fmt"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/policy"
	"agentctl.dev/agentctl/runner/tool"
)

// gate is the judge of the run's calls.
func (s *session) gate() (*presentGate, error) {
	inputs := map[string]any{}
	for name, raw := range s.inputs {
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			return nil, fmt.Errorf("input %q: %w", name, err)
		}
		inputs[name] = v
	}
	c := policy.Context{
		Agent:     policy.Agent{Name: s.Agent.Name, Namespace: s.Agent.Namespace, Labels: s.Agent.Labels, Mode: string(s.Agent.Spec.Mode)},
		Run:       policy.Run{Name: s.id, Interactive: s.opts.Terminal != nil, User: s.view.Started.User, Inputs: inputs},
		Workspace: policy.Workspace{Root: s.root(), Source: s.plan.files.Source},
		Ready:     s.files.Ready,
		Now:       time.Now,
		Budget:    s.budget,
		Approvals: s.approvals,
	}
	c.Calls, c.Denials = judgedBefore(s.view)
	if s.plan.Run != nil {
		c.Run.Labels = s.plan.Run.Labels
	}
	for i := range s.tools {
		c.Tools = append(c.Tools, judged(&s.tools[i], s.launcher.Level(), s.plan.files.Strategy))
		if d := &s.tools[i]; len(d.Spec.Isolation.Mounts) > 0 && level(d, s.launcher.Level()) != v1alpha1.IsolationNone {
			if why := reaches(d); why != "" { // a mount is easily added, and what follows from it easily missed
				s.shortfalls.add("calls of " + d.Name + " are judged as if nothing held it: " + why)
			}
		}
	}
	return s.presently(policy.NewEngine(s.compiled, c)), nil
}

// judgedBefore counts the calls of earlier processes of the run, so that a rule
// over session counts them, too. Calls that are still open are judged again.
func judgedBefore(v *view.Run) (calls map[string]int, denials int) {
	calls = map[string]int{}
	for _, m := range v.Messages {
		for _, c := range m.Calls() {
			if c.Decision == nil || c.State != message.StateCompleted && c.State != message.StateError {
				continue
			}
			calls[c.Tool]++
			if c.Decision.Action == message.Deny {
				denials++
			}
		}
	}
	return calls, denials
}

// judged is what a policy knows about a tool on a host that gives some level.
func judged(d *tool.Definition, host v1alpha1.IsolationLevel, files v1alpha1.WorkspaceStrategy) policy.Tool {
	return policy.Tool{
		Name: d.Name, Source: d.Kind, Builtin: d.Shipped, Risk: d.Spec.Risk, Effects: d.Spec.Effects, Category: d.Spec.Category,
		Schema: d.Parameters, Digest: d.Digest(), Annotations: d.Annotations,
		Contained: level(d, host) != v1alpha1.IsolationNone && reaches(d) == "" && files == v1alpha1.StrategyCopy,
	}
}

func (s *session) budget() policy.Budget {
	used := s.recorder.used()
	return policy.Budget{
		Tokens:  policy.Use{Used: used.Tokens.Total(), Limit: s.Limits.MaxTokens},
		Steps:   policy.Use{Used: int64(used.Steps), Limit: int64(s.Limits.MaxSteps)},
		Seconds: policy.Use{Used: int64(time.Since(used.Started).Seconds()), Limit: int64(s.deadline().Seconds())},
		Cost:    policy.Money{Used: used.Cost.Dollars(), Limit: s.maxCost().Dollars()},
	}
}

func (s *session) approvals() policy.Approvals {
	used := s.recorder.used()
	return policy.Approvals{Granted: used.Granted, Refused: used.Refused}
}
