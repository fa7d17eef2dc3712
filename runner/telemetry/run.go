package telemetry

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/secret"
)

// RunOptions describe a run. ID is required.
type RunOptions struct {
	// ID of the run.
	ID string
	// Above is the run whose call Call has started this one; nil at the top.
	Above *Run
	Call  string
	// Before is a resumed run as it was before; nil for a new one.
	Before *view.Run
	// Redactor returns what removes the secrets of the run from captured content; nil, or
	// a nil Redactor, removes nothing.
	Redactor func() *secret.Redactor
}

// Run makes the spans of one run from its events. nil makes none.
type Run struct {
	client  *Client
	id      string
	attempt int
	trace   []byte
	state   string
	// above is the span that the span of the run is below; nil at the top of the trace.
	above []byte
	// content is nil where none is sent.
	content *content

	mu      sync.Mutex
	started *event.RunStarted
	tools   map[string]bool // the call names of the tools that exist
	agent   *tracepb.Span   // nil before the run has begun, and after its end
	chat    *chat
	calls   map[string]*call
	newest  time.Time
}

// chat is a request that was not answered yet.
type chat struct {
	span *tracepb.Span
}

// call is a call of a tool that has not ended.
type call struct {
	tool     string
	args     string
	decided  time.Time
	decision message.Decision
	asked    time.Time
	approval *tracepb.Span // while a person is asked
	answer   string
	waited   time.Duration
	span     *tracepb.Span // while it runs
}

// Begin returns what takes the events of a run; nil where no telemetry is sent.
func (c *Client) Begin(o RunOptions) *Run {
	if c == nil || c.settings.traces == nil && c.settings.metrics == nil {
		return nil
	}
	r := &Run{client: c, id: o.ID, attempt: 1, tools: map[string]bool{}, calls: map[string]*call{}}
	if c.settings.content && c.settings.traces != nil {
		redactor := o.Redactor
		if redactor == nil {
			redactor = func() *secret.Redactor { return nil }
		}
		r.content = &content{redactor: redactor}
	}
	if v := o.Before; v != nil {
		r.started, r.attempt = &v.Started, max(v.Attempt, 1)+1
		r.knows(v.Started.Tools)
		for _, d := range v.Described {
			r.knows(d.Functions)
		}
	}
	switch from := c.settings.parent; {
	case o.Above != nil:
		r.trace, r.state, r.above = o.Above.trace, o.Above.state, o.Above.spanID(opExecuteTool, o.Call)
	case from.trace != nil:
		r.trace, r.state, r.above = from.trace, from.state, from.span
	default: // the same one after a resume
		sum := sha256.Sum256([]byte("trace " + o.ID))
		r.trace = sum[:16]
	}
	return r
}

func (r *Run) knows(tools []string) {
	for _, name := range tools {
		r.tools[name] = true
	}
}

// spanID is the id of a span. It follows from what the span is about, so that a run below a
// call knows it before the event of the call has come here.
func (r *Run) spanID(operation, about string) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %s %s", r.id, r.attempt, operation, about))
	return sum[:8]
}

// span begins a span.
func (r *Run) span(kind tracepb.Span_SpanKind, operation, object, about string, above []byte, at time.Time) *tracepb.Span {
	name := operation
	if object != "" {
		name += " " + object
	}
	return &tracepb.Span{
		TraceId: r.trace, SpanId: r.spanID(operation, about), ParentSpanId: above, TraceState: r.state, Flags: 1, Name: name, Kind: kind, StartTimeUnixNano: nanos(at),
		Attributes: []attribute{text(attrOperation, operation), text(attrConversation, r.id)},
	}
}

// end ends a span. A failure has a word for what failed.
func (r *Run) end(s *tracepb.Span, at time.Time, failure string, attributes ...attribute) {
	s.EndTimeUnixNano = max(nanos(at), s.GetStartTimeUnixNano())
	s.Attributes = append(s.Attributes, filled(attributes...)...)
	if failure != "" {
		s.Attributes = append(s.Attributes, text(attrError, failure))
		s.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR}
	}
	if r.client.settings.traces != nil {
		r.client.offer(s, proto.Size(s))
	}
}

// took measures an operation.
func (r *Run) took(s *tracepb.Span, operation, failure string, attributes ...attribute) {
	seconds := time.Duration(s.GetEndTimeUnixNano() - s.GetStartTimeUnixNano()).Seconds() //nolint:gosec // a span of time
	all := append([]attribute{text(attrOperation, operation)}, attributes...)
	r.client.meter.add(metricDuration, seconds, filled(append(all, text(attrError, failure))...)...)
}

// Event takes the next event.
func (r *Run) Event(e event.Event) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.newest = e.Time
	switch d := e.Data.(type) {
	case event.RunStarted:
		r.started = &d
		r.knows(d.Tools)
		r.begin(e.Time)
		r.content.hear("user", part{Type: "text", Content: d.Prompt})
	case event.RunResumed:
		if t := d.Turn; t != nil && r.started != nil {
			now := r.started.InTurn(d)
			r.started = &now
			r.knows(t.Tools)
			r.content.hear("user", part{Type: "text", Content: t.Prompt})
		}
		r.begin(e.Time)
	case event.RunFinished:
		r.finish(e.Time, &d)
	case event.ToolsDescribed:
		r.knows(d.Functions)
	case event.UserMessage:
		r.content.hear("user", part{Type: "text", Content: d.Text})
	case event.MessageReceived:
		r.content.hear("user", part{Type: "text", Content: d.Text})
	case event.ModelRequest, event.ModelResponse, event.ModelRetry, event.ContextCompaction, event.TextEnd, event.ReasoningEnd:
		r.ofModel(e)
	default:
		if e.Call != "" {
			r.ofCall(e)
		}
	}
}

func (r *Run) begin(at time.Time) {
	if r.started == nil || r.agent != nil {
		return
	}
	s, d := r.span(tracepb.Span_SPAN_KIND_INTERNAL, opInvokeAgent, r.started.Agent, "", r.above, at), r.started
	s.Attributes = append(s.Attributes, filled(
		text(attrAgentName, d.Agent), text(attrAgentID, "agent/"+d.Agent), text(attrProvider, provider(d.Model)), text(attrRequestModel, modelName(d.Model)),
	)...)
	if r.attempt > 1 {
		s.Attributes = append(s.Attributes, whole(attrAttempt, int64(r.attempt)))
	}
	r.agent = s
}

func provider(m message.ModelRef) string {
	if name := providers[m.Provider]; name != "" {
		return name
	}
	return m.Provider
}

// modelName is the model as its provider knows it; those without a server have only the
// name of the manifest.
func modelName(m message.ModelRef) string { return cmp.Or(m.Model, m.Name) }

func (r *Run) ofModel(e event.Event) {
	switch d := e.Data.(type) {
	case event.ModelRequest:
		r.request(e, &d)
	case event.ModelResponse:
		r.respond(e.Time, d.Model, d.Tokens, d.Estimate != nil, d.Cost, string(d.Finish), d.FirstByteMs)
	case event.ContextCompaction:
		r.content.void()
		r.content.say(part{Type: "text", Content: d.Summary})
		r.respond(e.Time, d.Model, d.Tokens, d.Estimate != nil, d.Cost, "", 0)
	case event.ModelRetry:
		r.content.void()
		maps.DeleteFunc(r.calls, func(_ string, c *call) bool { return c.decided.IsZero() && c.span == nil })
		if r.chat != nil {
			r.chat.span.Events = append(r.chat.span.Events, &tracepb.Span_Event{
				Name: eventRetry, TimeUnixNano: nanos(e.Time), Attributes: filled(text(attrError, d.Class), whole(attrRetry, int64(d.Attempt))),
			})
		}
	case event.TextEnd:
		r.content.say(part{Type: "text", Content: d.Text})
	case event.ReasoningEnd:
		r.content.say(part{Type: "reasoning", Content: d.Text})
	}
}

func (r *Run) request(e event.Event, d *event.ModelRequest) {
	if r.agent == nil {
		return
	}
	if r.chat != nil { // it was given up
		r.abandon(e.Time, string(reason.ModelError))
	}
	model := r.started.Model
	s := r.span(tracepb.Span_SPAN_KIND_CLIENT, opChat, modelName(model), strconv.FormatInt(e.Seq, 10), r.agent.GetSpanId(), e.Time)
	s.Attributes = append(s.Attributes, filled(text(attrAgentName, r.started.Agent), text(attrProvider, provider(model)), text(attrRequestModel, modelName(model)))...)
	if d.Summary {
		s.Attributes = append(s.Attributes, boolean(attrSummary, true))
	}
	r.chat = &chat{span: s}
}

// respond ends a request that was answered. Another model than the agent's own, which
// answers in its place, is the one that was asked.
func (r *Run) respond(at time.Time, m message.ModelRef, u message.Usage, uncounted bool, cost *message.Cost, finish string, firstMs int64) {
	if r.chat == nil {
		return
	}
	s := r.chat.span
	r.chat = nil
	s.Name = opChat + " " + modelName(m)
	for _, a := range s.Attributes {
		switch a.GetKey() {
		case attrProvider:
			a.Value = text("", provider(m)).GetValue()
		case attrRequestModel:
			a.Value = text("", modelName(m)).GetValue()
		}
	}
	attributes := []attribute{text(attrResponseModel, modelName(m))}
	if finish != "" {
		attributes = append(attributes, list(attrFinish, finish))
	}
	if firstMs > 0 {
		attributes = append(attributes, number(attrFirstChunk, float64(firstMs)/1000))
	}
	if !uncounted {
		attributes = append(attributes, usage(u)...)
	}
	if cost != nil {
		attributes = append(attributes, number(attrCost, cost.Dollars()))
	}
	r.end(s, at, "", append(attributes, r.content.exchange(finish)...)...)
	same := []attribute{text(attrProvider, provider(m)), text(attrRequestModel, modelName(m)), text(attrResponseModel, modelName(m))}
	r.took(s, opChat, "", same...)
	if uncounted {
		return
	}
	for _, t := range []struct {
		kind   string
		tokens int64
	}{{"input", input(u)}, {"output", u.Output}} {
		r.client.meter.add(metricTokens, float64(t.tokens), filled(append([]attribute{text(attrOperation, opChat), text(attrTokenType, t.kind)}, same...)...)...)
	}
}

// input are all tokens that were sent, with those that the provider had cached.
func input(u message.Usage) int64 { return u.Input + u.CacheRead + u.CacheWrite }

func usage(u message.Usage) []attribute {
	all := []attribute{whole(attrInputTokens, input(u)), whole(attrOutputTokens, u.Output)}
	for _, part := range []struct {
		key string
		n   int64
	}{{attrCacheRead, u.CacheRead}, {attrCacheWrite, u.CacheWrite}, {attrReasoning, u.Reasoning}} {
		if part.n > 0 {
			all = append(all, whole(part.key, part.n))
		}
	}
	return all
}

// abandon ends a request without an answer.
func (r *Run) abandon(at time.Time, failure string) {
	s := r.chat.span
	r.chat = nil
	r.content.void()
	r.end(s, at, failure, r.content.exchange("")...)
	r.took(s, opChat, failure, text(attrProvider, provider(r.started.Model)), text(attrRequestModel, modelName(r.started.Model)))
}

// finish ends the span of the run, and what is open in it.
func (r *Run) finish(at time.Time, d *event.RunFinished) {
	failure := ""
	if d.Phase != view.Succeeded && d.Phase != view.Suspended {
		failure = d.Reason
	}
	attributes := append(usage(d.Tokens), text(attrPhase, d.Phase), text(attrReason, d.Reason), whole(attrSteps, int64(d.Steps)))
	if d.Cost != nil {
		attributes = append(attributes, number(attrCost, d.Cost.Dollars()))
	}
	open := cmp.Or(failure, d.Reason)
	if d.Phase == view.Suspended { // it continues
		open = ""
	}
	r.close(at, open, failure, attributes...)
}

// interrupted is the error of what had not ended when the process left the run.
const interrupted = "interrupted"

// End ends the spans of a run that was left before its end. It does nothing for one that has
// ended.
func (r *Run) End() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.close(r.newest, interrupted, interrupted)
}

// close ends everything: what is open with one word, "" for what is to continue, and the run
// with another, "" for one that has not failed.
func (r *Run) close(at time.Time, open, failure string, attributes ...attribute) {
	if r.agent == nil {
		return
	}
	if r.chat != nil {
		r.abandon(at, open)
	}
	for _, id := range r.pending() {
		r.leave(id, at, open)
	}
	s := r.agent
	r.agent = nil
	r.end(s, at, failure, attributes...)
	r.took(s, opInvokeAgent, failure, text(attrProvider, provider(r.started.Model)), text(attrRequestModel, modelName(r.started.Model)), text(attrAgentName, r.started.Agent))
}

// pending are the calls that were judged and have no result, in a fixed order.
func (r *Run) pending() []string {
	var ids []string
	for id, c := range r.calls {
		if !c.decided.IsZero() || c.span != nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
