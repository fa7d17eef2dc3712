package execution

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/policy"
)

// GateOptions configure a Gate. All may be nil.
type GateOptions struct {
	// Present returns the rules that apply to the run at this moment; nil: those of the
	// plan alone judge.
	Present func(context.Context) ([]*policy.Compiled, error)
	// Locate returns the file and line where a decision comes from, for refusals and
	// questions; "" is unknown.
	Locate func(context.Context, message.ToolCall, message.Decision) (file string, line int)
	// Claims returns what else a person who is asked about a call is shown, such as what
	// the program of its tool says about it. It decides nothing.
	Claims func(call message.ToolCall) string
}

// Gate judges the calls of a run. A call that has waited for a person is judged by the
// policies of the plan and by the present ones. The strictest decision applies, so a rule
// that was made while the call waited is not too late for it:
//
//	plan            present                  decision
//	any             error                    deny
//	any             deny                     deny
//	any             redacts something else   deny: the call that was approved would not be the one that runs
//	deny            any                      deny
//	ask             ask, redact, allow       ask, as the plan does: an approval stays valid
//	redact, allow   ask                      ask: another question
//	redact, allow   redact, allow            as the plan does
type Gate struct {
	*policy.Engine
	GateOptions

	mu    sync.Mutex
	asked map[string]bool // the calls about which a person was asked
}

// judge decides a call, without the place of its rule.
func (g *Gate) judge(ctx context.Context, call message.ToolCall) (message.Decision, error) {
	d, err := g.Engine.Decide(ctx, call)
	if err != nil {
		return d, err
	}
	g.mu.Lock()
	waited := g.asked[call.ID] && g.Present != nil
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

func (g *Gate) judgeNow(ctx context.Context, call message.ToolCall) (message.Decision, error) {
	rules, err := g.Present(ctx)
	if err != nil {
		return message.Decision{}, err
	}
	call.Again = true // it is counted by the plan's engine
	return g.Engine.With(rules).Decide(ctx, call)
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
			planned.Binding = cmp.Or(planned.Binding, now.Binding) // of the same facts
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

// NewGate returns the gate of a run whose calls were judged up to v.
func NewGate(planned *policy.Engine, v *view.Run, o GateOptions) *Gate {
	g := &Gate{Engine: planned, GateOptions: o, asked: map[string]bool{}}
	for _, m := range v.Messages {
		for _, call := range m.Calls() {
			g.asked[call.CallID] = v.Question(call.CallID) != nil
		}
	}
	return g
}

// Decide implements loop.Gate.
func (g *Gate) Decide(ctx context.Context, call message.ToolCall) (message.Decision, error) {
	d, err := g.judge(ctx, call)
	if err == nil && d.Action == message.Ask && g.Claims != nil {
		if claim := g.Claims(call); claim != "" {
			d.Message = strings.TrimPrefix(d.Message+"; "+claim, "; ")
		}
	}
	if err != nil || g.Locate == nil || d.Action != message.Deny && d.Action != message.Ask {
		return d, err
	}
	if file, line := g.Locate(ctx, call, d); file != "" {
		d.Source = file
		if line > 0 {
			d.Source += ":" + strconv.Itoa(line)
		}
	}
	return d, nil
}

// Judged counts the calls that earlier processes of a run have judged, so that a rule over
// session counts them, too. Calls that are still open are judged again.
func Judged(v *view.Run) (calls map[string]int, denials int) {
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
