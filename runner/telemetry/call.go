package telemetry

import (
	"encoding/json"
	"fmt"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// ofCall applies an event of a call.
func (r *Run) ofCall(e event.Event) {
	c := r.calls[e.Call]
	if c == nil {
		c = &call{}
		r.calls[e.Call] = c
	}
	switch d := e.Data.(type) {
	case event.ToolInputEnd:
		c.tool = d.Tool
		r.written(c, e.Call, &d)
	case event.PolicyDecision:
		c.decided, c.decision = e.Time, d.Decision
		c.decision.Args, c.decision.Facts, c.decision.Outside = nil, nil, nil // they may be large
	case event.ApprovalRequested:
		r.ask(c, e, d.Rule)
	case event.ApprovalDecided:
		r.answered(c, e.Time, &d.Answer)
	case event.ToolCall:
		c.tool = d.Tool
		if r.content != nil {
			c.args = string(d.Args)
		}
		r.run(c, e.Call, e.Time)
	case event.ToolResult:
		r.result(e, &d.ToolResult)
	case event.ToolError:
		r.result(e, &d.ToolResult)
	}
}

// written takes a call that the model has written.
func (r *Run) written(c *call, id string, d *event.ToolInputEnd) {
	if r.content == nil {
		return
	}
	c.args = d.Raw
	args := d.Input
	if len(args) == 0 {
		args, _ = json.Marshal(d.Raw) // a string is always JSON
	}
	r.content.say(part{Type: "tool_call", ID: id, Name: d.Tool, Arguments: args})
}

// known is the name of a tool. The name of one that does not exist is the model's text, which
// is content: "".
func (r *Run) known(tool string) string {
	if r.tools[tool] {
		return tool
	}
	return ""
}

// ask begins the span of the wait for a person.
func (r *Run) ask(c *call, e event.Event, rule string) {
	if r.agent == nil {
		return
	}
	c.asked = e.Time
	c.approval = r.span(tracepb.Span_SPAN_KIND_INTERNAL, attrApproval, r.known(c.tool), fmt.Sprint(e.Call, " ", e.Seq), r.agent.GetSpanId(), e.Time)
	c.approval.Attributes = append(c.approval.Attributes[1:], filled(text(attrToolName, r.known(c.tool)), text(attrCallID, e.Call), text(attrRule, rule))...)
}

func (r *Run) answered(c *call, at time.Time, a *message.Answer) {
	c.answer = string(a.State)
	if c.approval == nil {
		return
	}
	c.waited += at.Sub(c.asked)
	r.end(c.approval, at, "", text(attrApproval, c.answer))
	c.approval = nil
}

// run begins the span of a call that is executed.
func (r *Run) run(c *call, id string, at time.Time) {
	if r.agent == nil {
		return
	}
	name := r.known(c.tool)
	c.span = r.span(tracepb.Span_SPAN_KIND_INTERNAL, opExecuteTool, name, id, r.agent.GetSpanId(), at)
	c.span.Attributes = append(c.span.Attributes, filled(text(attrToolName, name), text(attrCallID, id), text(attrToolType, "function"), text(attrAgentName, r.started.Agent))...)
}

// result ends a call.
func (r *Run) result(e event.Event, d *message.ToolResult) {
	failure := string(d.Code)
	if _, failed := e.Data.(event.ToolError); failed && failure == "" {
		failure = string(message.CodeTool)
	}
	r.content.hear("tool", part{Type: "tool_call_response", ID: e.Call, Response: d.Text})
	r.endCall(e.Call, e.Time, failure, d.Text)
}

// leave ends a call without a result. One that is to be judged again later, and has not been
// executed, has no span yet.
func (r *Run) leave(id string, at time.Time, failure string) {
	c := r.calls[id]
	if failure != "" || c.span != nil {
		r.endCall(id, at, failure, "")
		return
	}
	delete(r.calls, id)
	if c.approval != nil {
		r.end(c.approval, at, "")
	}
}

// endCall ends the span of a call. One that was refused has a span from its judgement on.
func (r *Run) endCall(id string, at time.Time, failure, result string) {
	c := r.calls[id]
	delete(r.calls, id)
	if c.approval != nil { // nobody has answered
		r.end(c.approval, at, failure)
	}
	if c.span == nil {
		begun := c.decided
		if begun.IsZero() {
			begun = at
		}
		if r.run(c, id, begun); c.span == nil {
			return
		}
	}
	attributes := []attribute{text(attrDecision, string(c.decision.Action)), text(attrRule, c.decision.Rule), text(attrRisk, c.decision.Risk), text(attrApproval, c.answer)}
	if c.waited > 0 {
		attributes = append(attributes, whole(attrApprovalWait, c.waited.Milliseconds()))
	}
	attributes = append(attributes, r.content.said(attrArguments, c.args)...)
	attributes = append(attributes, r.content.said(attrResult, result)...)
	r.end(c.span, at, failure, attributes...)
	r.took(c.span, opExecuteTool, failure, text(attrToolName, r.known(c.tool)), text(attrDecision, string(c.decision.Action)))
}
