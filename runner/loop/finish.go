package loop

import (
	"encoding/json"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
)

// maxPauses is how often in a row a provider may pause one turn. Each pause is a
// step of its own, so that limits.maxSteps bounds them, too; without that limit a
// provider could pause for ever.
const maxPauses = 8

// brokenOff ends the run after an answer whose calls may not run and whose text is
// not a final answer; nil for any other. What becomes of an answer depends on how
// it ended:
//
//	Finish           its calls run             without calls
//	stop, tool-calls all                       it is the final answer
//	length           those that are whole      the run ends with OutputTruncated
//	pause            those that are whole      it is sent back, and the turn continues
//	content-filter   none                      the run ends with ContentFiltered
//	any other        none                      the run ends with ModelError
func (l *loop) brokenOff(out *message.Output) *End {
	switch out.Finish {
	case message.FinishStop, message.FinishToolCalls, message.FinishLength, message.FinishPause:
		return nil
	case message.FinishContentFilter:
		return &End{Reason: reason.ContentFiltered, Message: "the provider's content filter stopped the answer", Output: out.Text}
	case message.FinishUnknown:
	}
	return &End{
		Reason: reason.ModelError, Message: "the provider ended the answer before it was whole, for a reason that is not known",
		Hint: "the warnings of the run name the reason; try again, or name another model in spec.fallbacks of the Model", Output: out.Text,
	}
}

// drop ends the calls of an answer that may not run.
func (l *loop) drop(requests []message.CallRequest) error {
	calls := make([]*call, len(requests))
	for i, req := range requests {
		calls[i] = &call{ToolCall: message.ToolCall{ID: req.ID, Message: l.current.ID, Tool: req.Tool, Step: l.View.Steps}}
	}
	return l.abandon(calls, message.CodeCancelled, "not run: the answer with the call is not whole")
}

// check reads a call. A call that was cut off in the middle of its arguments is
// invalid: without arguments it would run as a call that needs none.
func (l *loop) check(req message.CallRequest) (message.Checked, error) {
	if !l.current.Finish.Whole() && !json.Valid([]byte(req.Args)) {
		return message.Checked{}, &message.CallError{
			Code: message.CodeBadJSON,
			Text: "the call was cut off before its arguments were complete. Nothing was run; write the whole call again, in several smaller calls if it was long.",
		}
	}
	return l.Toolbox.Check(req)
}

// pause sends a paused answer back, so that the provider continues the turn.
// The End is set when it has been paused too often, or has nothing to send
// back.
func (l *loop) pause(out *message.Output) (*End, error) {
	if strings.TrimSpace(out.Text) == "" && !slices.ContainsFunc(l.current.Parts, func(p message.Part) bool { return p.Type == message.PartReasoning }) {
		return l.noAnswer(), nil
	}
	if len(l.paused()) >= maxPauses {
		return &End{
			Reason: reason.ModelError, Message: sentence("the provider has paused the turn %d times in a row and did not finish it", maxPauses),
			Hint: "give the agent a smaller task, or name another model in spec.modelRef of the agent",
		}, nil
	}
	return nil, l.remember(l.current)
}

// paused returns the newest answers in a row that were paused, the oldest first:
// the turn that is not over. The current answer ends the row when it is complete.
func (l *loop) paused() []*message.Message {
	var row []*message.Message
	for _, m := range slices.Backward(l.View.Messages) {
		pause := m.Role == message.RoleAssistant && m.Finish == message.FinishPause && len(m.Calls()) == 0
		switch {
		case m.Error != "" || m.Open() || m.Summary || m == l.current && !pause:
		case pause:
			row = append(row, m)
		default:
			slices.Reverse(row)
			return row
		}
	}
	slices.Reverse(row)
	return row
}

// wholeTurn returns an answer with the text of the paused answers before it: the
// text of the turn as one.
func (l *loop) wholeTurn(out *message.Output) *message.Output {
	row := l.paused()
	if len(row) == 0 {
		return out
	}
	var text strings.Builder
	for _, m := range row {
		if m != l.current {
			text.WriteString(m.Text())
		}
	}
	whole := *out
	whole.Text = text.String() + out.Text
	return &whole
}
