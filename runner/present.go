package runner

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/policy"
)

// PresentPolicies returns the policies that hold for the agent of a run at this
// moment. planned names those of the run's plan: one of them counts as it is now,
// unless it is gone.
type PresentPolicies func(ctx context.Context, planned []string) ([]*v1alpha1.Policy, error)

// presentGate judges a call that has waited for a person by the policies of the
// plan and by the present ones. The strictest decision holds, so a rule that was
// made while the call waited is not too late for it:
//
//	plan            present                  decision
//	any             error                    deny
//	any             deny                     deny
//	any             redacts something else   deny: the call that was approved would not be the one that runs
//	deny            any                      deny
//	ask             ask, redact, allow       ask, as the plan does: an approval stays valid
//	redact, allow   ask                      ask: another question
//	redact, allow   redact, allow            as the plan does
type presentGate struct {
	*policy.Engine
	present func(context.Context) (*policy.Engine, error) // nil: the plan alone judges

	mu    sync.Mutex
	asked map[string]bool // the calls about which a person was asked
}

// Decide implements loop.Gate.
func (g *presentGate) Decide(ctx context.Context, call message.ToolCall) (message.Decision, error) {
	d, err := g.Engine.Decide(ctx, call)
	if err != nil {
		return d, err
	}
	g.mu.Lock()
	waited := g.asked[call.ID] && g.present != nil
	g.asked[call.ID] = g.asked[call.ID] || d.Action == message.Ask
	g.mu.Unlock()
	if !waited || d.Action == message.Deny {
		return d, nil
	}
	now, err := g.judgeNow(ctx, call)
	if err != nil {
		d.Action, d.Rule = message.Deny, "default/error"
		d.Message = fmt.Sprintf("the policies as they are now could not be read: %v", err)
		return d, nil
	}
	return strictest(d, now), nil
}

func (g *presentGate) judgeNow(ctx context.Context, call message.ToolCall) (message.Decision, error) {
	e, err := g.present(ctx)
	if err != nil {
		return message.Decision{}, err
	}
	call.Again = true // it is counted by the plan's engine
	return e.Decide(ctx, call)
}

// strictest is the stricter of two decisions on a call, of which the plan's does
// not deny it.
func strictest(planned, now message.Decision) message.Decision {
	switch {
	case now.Action == message.Deny:
		now.Message = "by the policies as they are now" + colon(now.Message)
		return now
	case string(now.Args) != string(planned.Args) && len(now.Args) > 0:
		now.Action, now.Args = message.Deny, nil
		now.Message = "by the policies as they are now, something is taken out of the call: it would not be the call that was approved"
		return now
	case now.Action == message.Ask && planned.Action != message.Ask:
		return now
	case now.Action == message.Ask, now.Action == message.Redact, now.Action == message.Allow:
		if planned.Action != message.Ask { // else a person has approved the paths
			planned.Outside = both(planned.Outside, now.Outside)
		}
		return planned
	}
	now.Action = message.Deny // an unknown decision is a refusal
	return now
}

// both returns the paths outside the workspace that two decisions open.
func both(planned, now []message.OutsidePath) (in []message.OutsidePath) {
	for _, p := range planned {
		if slices.Contains(now, p) {
			in = append(in, p)
		}
	}
	return in
}

func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// presently makes a gate judge calls that have waited by the present policies,
// where the run has such.
func (s *session) presently(planned *policy.Engine) *presentGate {
	g := &presentGate{Engine: planned, asked: map[string]bool{}}
	for _, m := range s.view.Messages {
		for _, call := range m.Calls() {
			g.asked[call.CallID] = s.view.Question(call.CallID) != nil
		}
	}
	if s.opts.Present == nil {
		return g
	}
	g.present = func(ctx context.Context) (*policy.Engine, error) {
		policies, err := s.opts.Present(ctx, s.policyNames)
		if err != nil {
			return nil, err
		}
		return planned.With(s.Compile(policies)), nil
	}
	return g
}
