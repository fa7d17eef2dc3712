package loop

import (
	"context"
	"slices"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
)

// recall brings a run to the state of its view. For a new run that is the first
// prompt. For a resumed run, or another turn, it is everything that was said, and current is the
// answer whose step is not complete, nil when there is none.
func (l *loop) recall() (current *message.Message, err error) {
	messages := slices.DeleteFunc(slices.Clone(l.View.Messages), func(m *message.Message) bool {
		return m.Error != "" || m.Open()
	})
	if last := messages[len(messages)-1]; last.Role == message.RoleAssistant && !last.Summary {
		current = last
	}
	if len(messages) > 1 {
		l.guard.rebuild(l.View, l.Toolbox.Check)
	}
	compacted := false
	for _, m := range messages {
		l.relive(m)
		if m == current {
			continue // it is appended with the results of its calls
		}
		compacted = compacted || m.Summary || pruned(m)
		if err := l.modelOf(m).Append(m); err != nil {
			return nil, err
		}
	}
	history := slices.DeleteFunc(l.View.History(), func(m *message.Message) bool { return m == current })
	l.estimate.rebuild(l.Context.PromptBytes, l.View, history)
	if current != nil {
		l.estimate.saw(current.Usage)
	}
	l.lost = lostRequests(l.View.Said(), l.estimate.next())
	if !compacted {
		return current, nil
	}
	return current, l.Model.Reset(history)
}

// modelOf returns the model that wrote a message, or will read it.
func (l *loop) modelOf(m *message.Message) Model {
	if m.Summary && l.Context.Summarizer != nil {
		return l.Context.Summarizer
	}
	return l.Model
}

func pruned(m *message.Message) bool {
	return slices.ContainsFunc(m.Calls(), func(c *message.ToolPart) bool { return c.Compacted != 0 })
}

// relive learns from a message what the loop remembers besides the view.
func (l *loop) relive(m *message.Message) {
	if m.Summary {
		return
	}
	switch {
	case l.View.Begins(m): // another turn answers for itself
		l.corrections, l.lastText, l.refused, l.unanswered = 0, "", false, false
		return
	case posted(l.View, m):
		l.corrections = 0
		return
	case m.Role == message.RoleUser:
		l.corrections++
		return
	}
	l.said(m.Text())
	for _, c := range m.Calls() {
		if c.State != message.StateError || c.Result.Code != message.CodeDenied && c.Result.Code != message.CodeRejected {
			continue
		}
		if c.Approval == message.Unanswered || c.Approval == message.Expired {
			l.unanswered = true
		} else {
			l.refused = true
		}
	}
}

// answerOf returns a recorded answer as the model gave it.
func answerOf(m *message.Message) *message.Output {
	out := &message.Output{Text: m.Text(), Finish: m.Finish, Usage: m.Usage, Uncounted: m.Estimate != nil}
	if m.Model != nil {
		out.Model = *m.Model
	}
	for _, c := range m.Calls() {
		out.Calls = append(out.Calls, message.CallRequest{ID: c.CallID, Tool: c.Tool, Args: c.Raw})
	}
	return out
}

// ended reports whether a call that an earlier process completed ended the run.
func (l *loop) ended(p *message.ToolPart) *End {
	answer := l.View.Answer(p.CallID)
	switch {
	case p.Result.Code == message.CodeLoop && l.guard.Act != GuardNudge && l.guard.Act != GuardAsk:
		return repeated(p.Tool, "it was stopped before the run was interrupted",
			"raise the limit in spec.loopGuard of the agent that its message names, or set spec.loopGuard.onDetect")
	case p.Approval == message.Rejected && answer != nil && answer.EndRun:
		return rejectedEnd(p.Tool)
	}
	return nil
}

// resumeCall continues a call whose intent is in the journal and whose result is
// not: it may have happened or not. A call that may be repeated is repeated;
// about any other a person is asked, and without a yes its outcome stays
// unknown.
func (l *loop) resumeCall(ctx context.Context, p *message.ToolPart) (*call, *End, error) {
	c := &call{
		ToolCall: message.ToolCall{ID: p.CallID, Message: l.current.ID, Tool: p.Tool, Args: p.Input, Step: l.View.Step(p.CallID)},
		seen:     unseen, attempt: p.Attempt + 1, waited: true,
	}
	if p.Decision != nil {
		c.decision = *p.Decision
	}
	checked, err := l.Toolbox.Check(message.CallRequest{ID: p.CallID, Tool: p.Tool, Args: string(p.Input)})
	if err != nil {
		return c, nil, l.unknown(ctx, c, p)
	}
	c.exclusive, c.given = checked.Exclusive, c.Args
	if first, err := l.Toolbox.Check(message.CallRequest{ID: p.CallID, Tool: p.Tool, Args: p.Raw}); err == nil {
		c.given = first.Args
	}
	c.asked = newAsked(checked)
	c.seen = l.guard.made(c.asked, c.Step, p.Workspace)
	if checked.Repeatable {
		c.approved = p.Approval == message.Approved
		return c, nil, nil
	}
	a, err := l.askAgain(ctx, c)
	if err != nil {
		return c, nil, err
	}
	c.expires, c.approved = a.ExpiresAt, a.State == message.Approved
	switch {
	case c.approved:
		return c, nil, nil
	case a.EndRun:
		return c, rejectedEnd(c.Tool), l.unknown(ctx, c, p)
	}
	return c, nil, l.unknown(ctx, c, p)
}

const (
	unknownText = "the run was interrupted while this call was running: it may have happened, completely or in part, or not at all. " +
		"Look at what is there before you decide whether to repeat it."
	unknownAsk = "the run was interrupted while this call was running: it may have happened already. Run it again?"
)

// unknown ends a call whose outcome cannot be known. Its output so far is a
// result like any other: the policy judges it first.
func (l *loop) unknown(ctx context.Context, c *call, p *message.ToolPart) error {
	text, from := unknownText, &message.Origin{Kind: message.OriginRunner}
	if p.Progress != "" {
		shown, err := l.Gate.Review(ctx, c.ToolCall, &message.ToolResult{Code: message.CodeUnknown, Text: p.Progress, Output: p.Progress})
		if err != nil {
			text += "\nIts output so far is withheld: " + err.Error()
		} else {
			text, from = text+"\nIts output so far:\n"+shown.Text, c.origin()
		}
	}
	return l.failWith(c, message.ToolResult{Code: message.CodeUnknown, Text: text, Origin: from})
}

// askAgain asks a person whether a call that may have happened runs again.
// Only an approval lets it.
func (l *loop) askAgain(ctx context.Context, c *call) (message.Answer, error) {
	d := c.decision
	d.Message = unknownAsk
	d.Always, d.Once = nil, "it may have happened already"
	return l.question(ctx, c, d, true)
}

func repeated(tool, wrong, hint string) *End {
	return &End{Reason: reason.LoopDetected, Message: sentence("%s: %s", tool, wrong), Hint: hint}
}
