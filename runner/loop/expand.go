package loop

import (
	"context"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
)

// expand makes the calls that the author of the newest prompt asks for in its text, before
// a model is asked. They are judged, asked about, run and recorded as those of a model are.
// No call is executed if one of them is refused; a call that fails ends the run.
func (l *loop) expand(ctx context.Context) (*End, error) {
	calls := l.expansions()
	if len(calls) == 0 {
		return nil, nil
	}
	l.current = l.View.Said()[0]
	defer func() { l.current = nil }()
	if end, err := l.performPrompt(ctx, calls); end != nil || err != nil {
		return end, err
	}
	l.guard.renew() // the model has not seen these calls, and may make them
	l.refused, l.unanswered = false, false
	return l.unexpanded(), nil
}

// expansions are the calls of the newest prompt, where some have no result or have failed.
func (l *loop) expansions() (all []message.CallRequest) {
	said := l.View.Said()
	if len(said) == 0 || len(said) > 1 && l.unexpanded() == nil {
		return nil
	}
	for _, c := range said[0].Calls() {
		all = append(all, message.CallRequest{ID: c.CallID, Tool: c.Tool, Args: c.Raw})
	}
	return all
}

// performPrompt judges all calls, and runs them if none is refused.
func (l *loop) performPrompt(ctx context.Context, requests []message.CallRequest) (*End, error) {
	calls := make([]*call, 0, len(requests))
	for i, req := range requests {
		c, end, err := l.take(ctx, req, i)
		if err != nil {
			return nil, err
		}
		if end != nil {
			return end, l.abandon(append(calls, pending(requests[i+1:], l.current)...), message.CodeCancelled, "not run: the run ended before")
		}
		if c != nil {
			calls = append(calls, c)
		}
	}
	if end := l.unexpanded(); end != nil {
		return end, l.abandon(calls, message.CodeCancelled, "not run: another part of the prompt was refused")
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

// pending are calls that were not judged.
func pending(requests []message.CallRequest, in *message.Message) (all []*call) {
	for _, req := range requests {
		all = append(all, &call{ToolCall: message.ToolCall{ID: req.ID, Message: in.ID, Tool: req.Tool}, seen: unseen})
	}
	return all
}

// unexpanded is the end of a run whose prompt could not be expanded; nil if nothing has failed.
func (l *loop) unexpanded() *End {
	for _, c := range l.View.Said()[0].Calls() {
		if c.State != message.StateError || c.Result.ExitCode != nil {
			continue // a program that exits with another code than 0 has run, and its output says so
		}
		if c.Result.Code == message.CodeCancelled || c.Result.Code == message.CodeUnknown {
			continue // another call is why, or a process that was killed: the model reads so
		}
		end := &End{
			Reason: reason.ToolError, Message: sentence("the prompt asks for %s, and the call of %s failed: %s", c.Expands, c.Tool, firstRunes(c.Result.Text, mostFailure)),
			Hint: asText(c),
		}
		switch {
		case c.Approval == message.Unanswered || c.Approval == message.Expired:
			end.Reason = reason.ApprovalRequired
			end.Hint = "add an allow rule for the call, or answer with --approve; " + end.Hint
		case refused(c.Result.Code):
			end.Reason, end.Message = reason.Denied, sentence("the prompt asks for %s, and the call of %s was refused: %s", c.Expands, c.Tool, c.Result.Text)
			end.Hint = "add an allow rule for the call; " + end.Hint
		}
		return end
	}
	return nil
}

// mostFailure is how much of the text of a call that failed is in the message of the end.
const mostFailure = 400

// asText says how a place of the prompt remains text.
func asText(c *message.ToolPart) string {
	sign := c.Expands[:min(1, len(c.Expands))]
	return sentence("%s%s in the prompt is only text", sign, c.Expands)
}
