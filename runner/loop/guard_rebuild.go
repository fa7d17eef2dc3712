package loop

import (
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
)

// rebuild loads what a run has done so far, so that a resumed run stops where
// the first would have stopped. Open calls are left out: they are judged when
// they are resumed. Check is the toolbox's; a call that it no longer accepts is
// equal only to itself.
func (g *guard) rebuild(v *view.Run, check func(message.CallRequest) (message.Checked, error)) {
	g.renew()
	for _, m := range v.Messages {
		switch {
		case posted(v, m):
			g.renew()
		case m.Summary && m.Error == "" && !m.Open():
			g.stall.forget()
		}
		if m.Role != message.RoleAssistant || m.Summary || m.Error == message.Void {
			continue
		}
		if calls := m.Calls(); len(calls) > 0 {
			g.stall.says(m.Text(), v.Step(calls[0].CallID))
			g.remember(v, calls, check)
		}
	}
}

// recalled is a call of an earlier process: its place, or unseen.
type recalled struct {
	asked
	place int
}

// remember adds the calls of one answer: first all calls, then their results.
// No result was known when the calls were judged.
func (g *guard) remember(v *view.Run, calls []*message.ToolPart, check func(message.CallRequest) (message.Checked, error)) {
	made, ended, valid := make([]recalled, len(calls)), 0, 0
	for i, c := range calls {
		made[i].place = unseen
		if c.Result == nil {
			valid++ // it was judged, and waits
			continue
		}
		ended++
		if isInvalid(c) {
			continue
		}
		valid++
		made[i] = g.recall(c, v.Step(c.CallID), check)
	}
	if ended == len(calls) {
		_ = g.answered(valid, len(calls))
	}
	for i, c := range calls {
		if made[i].place != unseen && (c.Start != 0 || refused(c.Result.Code)) { // another call that did not run changed nothing
			g.result(made[i].place, made[i].asked, c.Result)
		}
	}
}

// isInvalid reports whether a call was not valid: a tool may answer with these
// codes, too.
func isInvalid(c *message.ToolPart) bool {
	switch c.Result.Code { //nolint:exhaustive // the other calls were valid
	case message.CodeUnknownTool, message.CodeBadJSON, message.CodeSchema:
		return c.Start == 0
	}
	return false
}

// recall adds one call that was valid, unless the guard had held it up.
func (g *guard) recall(c *message.ToolPart, step int, check func(message.CallRequest) (message.Checked, error)) recalled {
	checked, err := check(message.CallRequest{ID: c.CallID, Tool: c.Tool, Args: c.Raw})
	if err != nil {
		checked = message.Checked{Tool: c.Tool, Args: []byte(c.Raw), Signature: c.Tool + "\n" + c.Raw}
	}
	a := newAsked(checked)
	_, wrong, _ := g.before(a, step, c.Workspace)
	switch {
	case c.Result.Code == message.CodeLoop:
		g.nudge(a.signature)
		return recalled{a, unseen}
	case wrong != "" && g.Act == GuardAsk:
		if c.Approval == message.Unanswered || c.Approval == message.Expired {
			g.nudge(a.signature)
		}
		return recalled{a, unseen}
	}
	return recalled{a, g.made(a, step, c.Workspace)}
}

// nudge remembers that the model was warned about a call, and reports whether
// that was the first time.
func (g *guard) nudge(signature string) bool {
	if g.nudged[signature] {
		return false
	}
	if g.nudged == nil {
		g.nudged = map[string]bool{}
	}
	g.nudged[signature] = true
	return true
}
