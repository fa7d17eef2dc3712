package loop

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
)

// call is one tool call of a step on its way to a result.
type call struct {
	message.ToolCall
	decision  message.Decision
	given     json.RawMessage // the arguments before a rule has taken something away
	exclusive bool
	note      string          // what the model should know about how its call was read
	looping   string          // the reason of the guard, when it requires an approval
	hint      string          // how to allow a looping call
	asked     asked           // the call as the guard compares it
	seen      int             // its place in the guard's memory, or unseen
	done      bool            // it has its result already
	invalid   bool            // it was no call of a tool
	waited    bool            // something happened between its judgement and its turn
	attempt   int             // 2 or more: the call was interrupted and runs again
	approved  bool            // approved by a person
	rejected  *message.Answer // rejected by a person, to an earlier process
	questions int             // how often a person was asked
	ended     chan struct{}   // closed when the call needs no more turns
	behind    []*call         // calls of the same answer that it waits for
	expires   int64           // until when the yes may be used, in milliseconds since 1970; 0 is for ever
}

// unseen is the place of a call that the guard stopped: it neither breaks a row
// of equal calls nor extends it.
const unseen = -1

// act takes the calls of one answer to their results. The End is set when the
// run is over after this step.
func (l *loop) act(ctx context.Context, requests []message.CallRequest) (*End, error) {
	calls := make([]*call, 0, len(requests))
	var stop *End
	for i, req := range requests {
		c, end, err := l.take(ctx, req, i)
		if err != nil {
			return nil, err
		}
		if end != nil {
			stop = end
		}
		if c != nil {
			calls = append(calls, c)
		}
	}
	if stop != nil && stop.Reason == reason.Denied {
		return stop, l.abandon(calls, message.CodeCancelled, "not run: a person ended the run")
	}
	if stop == nil {
		stop = l.onlyInvalid(requests, calls)
	}
	if stop != nil {
		return stop, l.abandon(calls, message.CodeLoop, "not run: the run ends because the model repeats itself")
	}
	end, err := l.performAll(ctx, calls)
	if err != nil {
		// Whatever stopped the run, every call gets an end that can be recorded.
		_ = l.abandon(calls, message.CodeCancelled, "cancelled before it ran")
		return nil, err
	}
	l.syncSoon()
	return end, nil
}

// mostCalls is how many calls of one answer may run. Those beyond get an error
// result: the model can ask for them again.
const mostCalls = 128

// take brings a call to where it may run; place is its place in the answer. The call is nil when an earlier
// process has brought it to its end.
func (l *loop) take(ctx context.Context, req message.CallRequest, place int) (*call, *End, error) {
	switch p := l.View.Call(req.ID); p.State {
	case message.StateCompleted, message.StateError:
		return nil, l.ended(p), nil
	case message.StateRunning:
		return l.resumeCall(ctx, p)
	case message.StatePending:
	}
	return l.judge(ctx, req, place)
}

// judge checks one call, compares it with the earlier calls in the guard, and
// gets the decision of the policy.
func (l *loop) judge(ctx context.Context, req message.CallRequest, place int) (*call, *End, error) {
	c := &call{ToolCall: message.ToolCall{ID: req.ID, Message: l.current.ID, Tool: req.Tool, Step: l.View.Steps}, seen: unseen}
	checked, err := l.check(req)
	if err == nil && place >= mostCalls {
		err = &message.CallError{
			Code: message.CodeOutputLimit,
			Text: sentence("not run: one answer may ask for %d calls, and this is call %d. Ask for it again after the results of the others.", mostCalls, place+1),
		}
	}
	if err != nil {
		return c, nil, l.invalid(c, req, err)
	}
	c.Tool, c.Args, c.given, c.exclusive = checked.Tool, checked.Args, checked.Args, checked.Exclusive
	if checked.Coerced {
		c.note = "the arguments were read as " + string(c.Args)
	}
	c.asked = newAsked(checked)
	state := l.stateBefore(ctx, c)
	if err := l.tell(c, event.ToolInputEnd{Tool: c.Tool, Raw: req.Args, Input: c.Args, Workspace: state}); err != nil {
		return c, nil, err
	}
	if checked.Repaired {
		if err := l.record(event.Event{Call: c.ID, Data: event.Warning{Message: sentence("the model called %q; the tool's name is %q", req.Tool, c.Tool)}}); err != nil {
			return c, nil, err
		}
	}
	wrong, hint := l.compare(c, state)
	if wrong == "" {
		return c, nil, l.decide(ctx, c)
	}
	if end, err := l.looping(c, wrong, hint); c.done || end != nil || err != nil {
		return c, end, err
	}
	return c, nil, l.decide(ctx, c)
}

// compare has the guard look at a call; see guard.before.
func (l *loop) compare(c *call, state string) (wrong, hint string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.Repeats, wrong, hint = l.guard.before(c.asked, l.View.Steps, state)
	if wrong == "" {
		c.seen = l.guard.made(c.asked, l.View.Steps, state)
	}
	return wrong, hint
}

// stateBefore returns the state of the workspace where the guard needs it: a
// run that repeats no call does not pay for it.
func (l *loop) stateBefore(ctx context.Context, c *call) string {
	if l.Files == nil || l.Clients != nil || !l.guard.familiar(c.asked) {
		return ""
	}
	if l.stateStep != l.View.Steps || l.state == "" { // no call runs while the calls of a step are judged
		l.stateStep, l.state = l.View.Steps, l.Files.State(ctx, c.ID)
	}
	return l.state
}

// invalid describes the errors of an invalid call, so that the model can fix
// it.
func (l *loop) invalid(c *call, req message.CallRequest, err error) error {
	wrong, ok := errors.AsType[*message.CallError](err)
	if !ok {
		return err
	}
	if err := l.tell(c, event.ToolInputEnd{Tool: req.Tool, Raw: req.Args}); err != nil {
		return err
	}
	c.invalid = true
	if wrong.Code == message.CodeUnknownTool {
		if err := l.record(event.Event{Call: c.ID, Data: event.Warning{Message: sentence("the model called a tool %q, which the agent does not have", brief(req.Tool))}}); err != nil {
			return err
		}
	}
	return l.fail(c, wrong.Code, wrong.Text)
}

// mostName is how much of a name that a model made up is reported.
const mostName = 64

func brief(name string) string {
	if len(name) <= mostName {
		return name
	}
	return strings.ToValidUTF8(name[:mostName], "") + "…"
}

// onlyInvalid ends the run after too many answers in a row without a valid call.
// Answers count and not calls: the model reads what is wrong only with the next
// request. Calls are those of requests that had no end yet.
func (l *loop) onlyInvalid(requests []message.CallRequest, calls []*call) *End {
	if len(calls) < len(requests) {
		return nil // counted by an earlier process, or none of its business
	}
	valid := 0
	for _, c := range calls {
		if !c.invalid {
			valid++
		}
	}
	wrong := l.guard.answered(valid, len(calls))
	if wrong == "" {
		return nil
	}
	return &End{
		Reason: reason.LoopDetected, Message: wrong,
		Hint: sentence("the model may not be able to call tools: choose another in spec.modelRef of the agent, or raise spec.loopGuard.invalidAnswers (%d; 0 switches the detector off)", l.guard.Invalid),
	}
}

// looping does what the agent declares about a call that repeats.
func (l *loop) looping(c *call, wrong, hint string) (*End, error) {
	switch {
	case l.guard.Act == GuardAsk:
		c.looping, c.hint = wrong, hint
		return nil, nil
	case l.guard.Act == GuardNudge && l.guard.nudge(c.asked.signature):
		return nil, l.fail(c, message.CodeLoop, "not run: "+wrong+". The result would be the same; do something else, or give the final answer.")
	}
	return repeated(c.Tool, wrong, hint), l.fail(c, message.CodeLoop, "not run: "+wrong)
}

// loopRule is what asks about a call that repeats and that no policy asks about.
const loopRule = "default/loopGuard"

// decide asks the policy. Everything but a clear yes keeps the call from running.
func (l *loop) decide(ctx context.Context, c *call) error {
	d, err := l.Gate.Decide(ctx, c.ToolCall)
	if err != nil {
		d.Action, d.Message = message.Deny, "the policy could not be evaluated: "+err.Error()
	}
	switch d.Action {
	case message.Allow, message.Ask, message.Redact, message.Deny:
	default:
		d.Action, d.Message = message.Deny, "the policy gave no decision"
	}
	if c.looping != "" && d.Action != message.Deny {
		if d.Action != message.Ask {
			d.Rule = loopRule
		}
		d.Action, d.Message = message.Ask, c.looping
		d.Always, d.Once = nil, "a call that repeats itself is approved one by one"
	}
	l.recallAnswer(c, &d)
	c.decision = d
	if err := l.tell(c, event.PolicyDecision{Decision: d}); err != nil {
		return err
	}
	for _, w := range d.Warnings {
		if err := l.record(event.Event{Call: c.ID, Data: event.Warning{Message: w}}); err != nil {
			return err
		}
	}
	if len(d.Args) > 0 {
		c.Args = d.Args
	}
	if d.Action == message.Deny {
		l.mu.Lock()
		l.refused = true
		l.mu.Unlock()
		return l.fail(c, message.CodeDenied, denied(d))
	}
	return nil
}

func denied(d message.Decision) string {
	text := "denied by rule " + d.Rule
	if d.Rule == "" {
		text = "denied"
	}
	if d.Message != "" {
		text += ": " + d.Message
	}
	return text
}

// rejected gives the model the refusal as the result of the call. The run ends
// only if the person chose that as well.
func (l *loop) rejected(c *call, a message.Answer) (*End, error) {
	text := "rejected by a person"
	if a.Reason != "" {
		text += ": " + a.Reason
	}
	l.mu.Lock()
	l.refused = true
	l.mu.Unlock()
	err := l.fail(c, message.CodeRejected, text)
	if a.EndRun {
		return rejectedEnd(c.Tool), err
	}
	return nil, err
}

func rejectedEnd(tool string) *End {
	return &End{
		Reason: reason.Denied, Message: sentence("a person refused the call of %s and ended the run", tool),
		Hint: "a refusal that does not end the run lets the agent continue without the call",
	}
}

// end records the result of a call that ran, after the policy has seen it.
func (l *loop) end(ctx context.Context, c *call, result *message.ToolResult) error {
	shown, err := l.Gate.Review(ctx, c.ToolCall, result)
	if err != nil {
		shown = &message.ToolResult{
			Code: message.CodeDenied, Text: "the result is withheld: " + err.Error(),
			ExitCode: result.ExitCode, DurationMicros: result.DurationMicros, Writes: result.Writes, Record: result.Record.Withheld(),
			Origin: &message.Origin{Kind: message.OriginRunner},
		}
	}
	if shown.Child != result.Child { // what a child has used counts, whatever a rule withholds
		kept := *shown
		kept.Child, shown = result.Child, &kept
	}
	l.mu.Lock()
	l.guard.result(c.seen, c.asked, shown)
	l.mu.Unlock()
	if c.note != "" {
		noted := *shown
		noted.Text += "\n[" + c.note + "]"
		shown = &noted
	}
	if shown.Failed() {
		return l.tell(c, event.ToolError{ToolResult: *shown})
	}
	return l.tell(c, event.ToolResult{ToolResult: *shown})
}

// fail ends a call that did not run, in the words of the runner.
func (l *loop) fail(c *call, code message.ErrorCode, text string) error {
	return l.failWith(c, message.ToolResult{Code: code, Text: text, Origin: &message.Origin{Kind: message.OriginRunner}})
}

// failWith ends a call that has no result of its tool.
func (l *loop) failWith(c *call, result message.ToolResult) error {
	c.done = true
	if refused(result.Code) {
		l.mu.Lock()
		l.guard.result(c.seen, c.asked, &result)
		l.mu.Unlock()
	}
	return l.tell(c, event.ToolError{ToolResult: result})
}

// origin is that of words of the tool which are in no result of it.
func (c *call) origin() *message.Origin {
	return &message.Origin{Kind: message.OriginTool, Name: c.Tool}
}

// refused reports whether a call with that code was judged and not executed:
// the model reads why, like a result.
func refused(code message.ErrorCode) bool {
	return code == message.CodeDenied || code == message.CodeRejected
}

// abandon ends the calls that have no result yet.
func (l *loop) abandon(calls []*call, code message.ErrorCode, text string) error {
	for _, c := range calls {
		if !l.unfinished(c) {
			continue
		}
		if err := l.fail(c, code, text); err != nil {
			return err
		}
	}
	return nil
}

// unfinished reports whether a call has no result yet.
func (l *loop) unfinished(c *call) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.View.Call(c.ID)
	return p != nil && p.State != message.StateCompleted && p.State != message.StateError
}

func (l *loop) tell(c *call, p event.Payload) error {
	return l.record(event.Event{Message: c.Message, Call: c.ID, Data: p})
}
