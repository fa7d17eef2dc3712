package loop

import (
	"fmt"
	"slices"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
)

const (
	// The newest output stays: that of the last steps, and so many tokens of it.
	// Steps are counted and not turns of the user, for a run has one of these.
	pruneKeepSteps  = 2
	pruneKeepTokens = 40_000
	// pruneLeast is how many tokens have to go: every pruning costs the
	// provider's cache of the conversation.
	pruneLeast = 20_000
	// skillTool is the tool whose results are instructions, and stay.
	skillTool = "skill"
)

// prune takes old tool output out of the conversation, all that may go in one
// event, and reports whether it took any. The journal keeps the output, and the
// model can read it again.
func (l *loop) prune() (bool, error) {
	calls, freed := l.prunable(l.View.History())
	if l.estimate.tokens(freed) < pruneLeast {
		return false, nil
	}
	pruned := make([]event.PrunedCall, len(calls))
	for i, c := range calls {
		pruned[i] = event.PrunedCall{Call: c.CallID, Blob: c.Result.Blob}
		if c.Result.Blob != "" {
			continue
		}
		var err error
		if pruned[i].Blob, err = l.Journal.PutBlob([]byte(c.Result.Text)); err != nil {
			return false, reason.New(reason.Internal, "keep the output of call %s: %w", c.CallID, err)
		}
	}
	left := l.estimate.bytes - freed
	if err := l.record(event.Event{Data: event.ContextPrune{
		Calls: pruned, Before: l.estimate.next(), After: l.estimate.tokens(left),
	}}); err != nil {
		return false, err
	}
	l.estimate.shrunk(left)
	return true, l.reset()
}

// prunable returns the calls whose output may be removed, the oldest first, and
// how many bytes that frees. Errors stay: they are short, and show what not to
// try again.
func (l *loop) prunable(history []*message.Message) (calls []*message.ToolPart, freed int64) {
	steps, kept, keep := 0, int64(0), l.estimate.fit(pruneKeepTokens)
	for _, m := range slices.Backward(history) {
		if m.Role == message.RoleAssistant {
			steps++
		}
		for _, c := range slices.Backward(m.Calls()) {
			if c.Result == nil || c.Compacted != 0 {
				continue
			}
			n := int64(outputSize(c))
			kept += n
			if steps <= pruneKeepSteps || kept <= keep || c.State != message.StateCompleted || c.Tool == skillTool || n <= markerLength {
				continue
			}
			calls = append(calls, c)
			freed += n - markerLength
		}
	}
	slices.Reverse(calls)
	return calls, freed
}

// reset hands the model the conversation as the view now has it.
func (l *loop) reset() error {
	if err := l.Model.Reset(l.View.History()); err != nil {
		return fmt.Errorf("begin the shortened conversation: %w", err)
	}
	return nil
}
