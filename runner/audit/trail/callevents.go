package trail

import (
	"fmt"

	"agentctl.dev/agentctl/api/audit"
	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// forget drops the calls of a message that is void: none of them was judged.
func (p *Projection) forget(of string) {
	if of == "" {
		return
	}
	for id, c := range p.calls {
		if c.message == of {
			delete(p.calls, id)
		}
	}
}

// ofCall applies an event of a call.
func (p *Projection) ofCall(l line) error {
	if l.kind == event.TypeToolInputStart {
		c := p.newCall(l.message, l.call, fmt.Sprintf("step_%d", p.step))
		return members(l.data, func(name string, value []byte) bool {
			if name == "tool" {
				c.Tool = unquoted(value)
			}
			return true
		})
	}
	c := p.calls[l.call]
	if c == nil {
		return nil // as the fold refuses it
	}
	switch l.kind {
	case event.TypeToolInputEnd:
		return p.complete(c, l)
	case event.TypePolicyDecision:
		return p.decided(c, l.data)
	case event.TypeApprovalRequested:
		c.ApprovalID, c.asked, c.Approval = fmt.Sprintf("approval_%d", l.seq), millis(l.time), nil
		return nil
	case event.TypeApprovalDecided:
		return p.answered(c, l)
	case event.TypeToolCall:
		return p.intend(c, l)
	case event.TypeToolResult:
		return p.result(c, message.StateCompleted, l)
	case event.TypeToolError:
		return p.result(c, message.StateError, l)
	default:
		return nil
	}
}

// newCall begins a call of a step.
func (p *Projection) newCall(in, id, step string) *call {
	p.begun++
	c := &call{message: in, place: p.begun}
	c.StepID, c.CallID, c.State = step, id, string(message.StatePending)
	p.calls[id] = c
	return c
}

// prompt begins the calls that the author of the prompt of a turn asks for in its text.
func (p *Projection) prompt(l line, turn int, asked []message.Expansion) {
	for i, x := range asked {
		if x.Agent == "" {
			p.newCall(l.message, fmt.Sprintf("%s-expand%d", l.message, i+1), fmt.Sprintf("prompt_%d", turn)).Tool = x.Tool
		}
	}
}

// complete takes the arguments of a call that the model has written.
func (p *Projection) complete(c *call, l line) error {
	var raw, input []byte
	err := members(l.data, func(name string, value []byte) bool {
		switch name {
		case "tool":
			c.Tool = unquoted(value)
		case "raw":
			raw = value
		case "input":
			input = value
		}
		return true
	})
	if input == nil {
		input = raw
	}
	p.given(c, input)
	return err
}

// intend takes the intent to run a call.
func (p *Projection) intend(c *call, l line) error {
	c.started, c.State = true, string(message.StateRunning)
	attempt := 1
	err := members(l.data, func(name string, value []byte) bool {
		switch name {
		case "args":
			p.given(c, value)
		case "attempt":
			if n := whole(value); n != nil {
				attempt = max(1, int(*n))
			}
		}
		return true
	})
	c.Attempt = attempt
	return err
}

// answered makes the record of the end of a question.
func (p *Projection) answered(c *call, l line) error {
	var d message.Answer
	if err := l.decode(&d); err != nil {
		return err
	}
	out := audit.Outcome{State: string(d.State), By: d.By, Scope: string(d.Scope)}
	c.Approval = &out
	a := audit.Approval{
		StepID: c.StepID, CallID: c.CallID, Tool: named(c.Tool), ApprovalID: c.ApprovalID, Outcome: out, Reason: excerpt(d.Reason),
		Rule: c.Rule, RuleSource: c.RuleSource, RiskLevel: c.RiskLevel, Request: d.Request, Remembered: len(d.Remember), EndRun: d.EndRun,
	}
	if now := millis(l.time); c.asked > 0 && now > c.asked {
		a.WaitedMs = now - c.asked
	}
	return p.record(l, string(l.kind), func(t audit.Task) audit.Details { a.Task = t; return a })
}

// result makes the record of a call that has ended.
func (p *Projection) result(c *call, state message.ToolState, l line) error {
	if err := p.ended(c, state, l.seq, l.data); err != nil {
		return err
	}
	delete(p.calls, c.CallID)
	return p.close(l, c)
}

// close counts a call that has ended, and makes its record.
func (p *Projection) close(l line, c *call) error {
	if c.Decision != nil {
		switch message.Action(*c.Decision) {
		case message.Allow:
			p.decisions.Allow++
		case message.Ask:
			p.decisions.Ask++
		case message.Deny:
			p.decisions.Deny++
		case message.Redact:
			p.decisions.Redact++
		}
	}
	if c.refused() {
		p.decisions.Refused++
	}
	return p.record(l, eventType(c.Tool), func(t audit.Task) audit.Details { return p.details(c, t) })
}

// details completes what a record says of a call.
func (p *Projection) details(c *call, t audit.Task) audit.Call {
	d := c.Call
	d.Task, d.Workspace, d.Tool = t, p.started.Workspace.Dir, named(c.Tool)
	declared := c.Tool
	if of, ok := p.functions[declared]; ok {
		declared = of
	}
	d.Isolation, d.Secrets = p.started.Isolation, p.secrets[declared]
	if other, ok := p.started.ToolIsolation[declared]; ok {
		d.Isolation = other
	}
	return d
}
