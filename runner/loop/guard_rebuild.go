package loop

import (
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
)

// rebuild remembers what a run has done so far, so that a resumed one stops
// where the first would have. Open calls are left out: whoever takes them up
// judges them. Check is the toolbox's; a call it no longer takes is equal only
// to itself.
func (g *guard) rebuild(v *view.Run, check func(message.CallRequest) (message.Checked, error)) {
	g.renew()
	progress := false
	for _, m := range v.Messages {
		if posted(v, m) {
			g.renew()
		}
		if m.Role != message.RoleAssistant || m.Summary || m.Error == message.Void {
			continue
		}
		if calls := m.Calls(); len(calls) > 0 {
			g.text(m.Text(), progress)
			g.remember(v, calls, check)
		}
		progress = progressed(m)
	}
}

// remember adds the calls of one answer: first all of them, then their results,
// as it was when they were judged.
func (g *guard) remember(v *view.Run, calls []*message.ToolPart, check func(message.CallRequest) (message.Checked, error)) {
	places := make([]int, len(calls))
	for i, c := range calls {
		places[i] = unseen
		if c.Result == nil {
			continue
		}
		switch c.Result.Code { //nolint:exhaustive // the other calls were made
		case message.CodeUnknownTool, message.CodeBadJSON, message.CodeSchema:
			if c.Start == 0 { // a tool may answer with these codes, too
				g.invalid++
				continue
			}
		default:
		}
		places[i] = g.recall(c, v.Step(c.CallID), check)
	}
	for i, c := range calls {
		if places[i] != unseen && c.Start != 0 { // a call that did not run changed nothing
			g.result(places[i], c.Result)
		}
	}
}

// recall adds one call that was valid, unless the guard had held it up.
func (g *guard) recall(c *message.ToolPart, step int, check func(message.CallRequest) (message.Checked, error)) int {
	signature := c.Tool + "\n" + c.Raw
	if checked, err := check(message.CallRequest{ID: c.CallID, Tool: c.Tool, Args: c.Raw}); err == nil {
		signature = checked.Signature
	}
	_, wrong, _ := g.before(signature, step)
	switch {
	case c.Result.Code == message.CodeLoop:
		g.nudge(signature)
		return unseen
	case wrong != "" && g.Act == GuardAsk:
		if c.Approval == message.Unanswered || c.Approval == message.Expired {
			g.nudge(signature)
		}
		return unseen
	}
	return g.made(signature, step)
}

// nudge remembers that the model was told about a call, and says whether that
// was the first time.
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
