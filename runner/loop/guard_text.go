package loop

import (
	"crypto/sha256"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
)

const (
	// textLimit is how often a text may be said while no call completes.
	textLimit = 3
	// textsKept bounds the memory for what is said without progress.
	textsKept = 1024
	// textHint tells people how to go on: the limit is none that can be raised.
	textHint = "the limit is fixed; say in spec.instructions of the agent what to do when it is stuck, or choose another model in spec.modelRef"
)

// text takes what an assistant message says and whether a call completed since
// the message before, and returns what is wrong, "" when nothing is. A message
// without text says nothing again.
func (g *guard) text(text string, progress bool) string {
	if progress {
		clear(g.texts)
	}
	words := strings.Fields(strings.ToLower(text))
	if len(words) == 0 {
		return ""
	}
	if g.texts == nil || len(g.texts) >= textsKept {
		g.texts = map[[sha256.Size]byte]int{}
	}
	sum := sha256.Sum256([]byte(strings.Join(words, " ")))
	g.texts[sum]++
	if g.texts[sum] < textLimit {
		return ""
	}
	return sentence("%d messages say the same and no call completed between them", g.texts[sum])
}

// progressed says whether a call of the message completed.
func progressed(m *message.Message) bool {
	for i := range m.Parts {
		if c := m.Parts[i].Tool; c != nil && c.State == message.StateCompleted {
			return true
		}
	}
	return false
}

// echoes ends a run whose model says the same before each call and gets none
// done. An answer without calls is judged as an answer.
func (l *loop) echoes(out *message.Output) (*End, error) {
	if len(out.Calls) == 0 {
		return nil, nil
	}
	before := l.before(l.current)
	wrong := l.guard.text(out.Text, before != nil && progressed(before))
	if wrong == "" {
		return nil, nil
	}
	calls := make([]*call, len(out.Calls))
	for i, req := range out.Calls {
		calls[i] = &call{ToolCall: message.ToolCall{ID: req.ID}}
	}
	if err := l.abandon(calls, message.CodeLoop, "not run: "+wrong); err != nil {
		return nil, err
	}
	l.finishStep(out)
	return &End{Reason: reason.LoopDetected, Message: wrong, Hint: textHint}, nil
}

// before returns the assistant's message that stands before m, nil when there is none.
func (l *loop) before(m *message.Message) *message.Message {
	found := false
	for _, p := range slices.Backward(l.View.Messages) {
		switch {
		case p == m:
			found = true
		case found && p.Role == message.RoleAssistant && p.Error == "" && !p.Summary:
			return p
		}
	}
	return nil
}
