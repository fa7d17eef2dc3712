package loop

import (
	"math"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
)

const (
	// bytesPerToken is the usual rate; a factor corrects it, within bounds that
	// no odd count of a provider may leave.
	bytesPerToken            = 4
	leastFactor, mostFactor  = 0.25, 4.0
	mediaBytes, markerLength = 4096, 80
)

// estimate guesses the tokens of the next request from its bytes. The provider's
// counts correct it: a request holds at least what was counted last.
type estimate struct {
	bytes   int64   // of everything the next request holds
	factor  float64 // 0: not known, counts as 1
	counted int64   // tokens of the newest exchange, answer included
	fresh   int64   // bytes that came after it
}

// add counts a message that was added to the conversation.
func (e *estimate) add(m *message.Message) {
	n := size(m)
	e.bytes += n
	if m.Role == message.RoleAssistant { // its own words were counted with the answer
		n = 0
		for _, c := range m.Calls() {
			n += int64(outputSize(c))
		}
	}
	e.fresh += n
}

// saw corrects the estimate by the reported size of a request that had
// everything so far.
func (e *estimate) saw(u message.Usage) {
	if input := u.Total() - u.Output; input > 0 && e.bytes > 0 {
		e.factor = min(max(bytesPerToken*float64(input)/float64(e.bytes), leastFactor), mostFactor)
	}
	if u.Total() > 0 {
		e.counted, e.fresh = u.Total()-u.Reasoning, 0 // reasoning is not sent back
	}
}

// shrunk sets the bytes of a conversation that was shortened.
func (e *estimate) shrunk(bytes int64) { e.bytes, e.counted, e.fresh = bytes, 0, 0 }

// tokens guesses how many tokens so many bytes are.
func (e *estimate) tokens(bytes int64) int64 {
	factor := e.factor
	if factor == 0 {
		factor = 1
	}
	return int64(math.Ceil(factor * float64(bytes) / bytesPerToken))
}

// fit returns how many bytes so many tokens are.
func (e *estimate) fit(tokens int64) int64 {
	return tokens * bytesPerToken * 1000 / max(1, e.tokens(bytesPerToken*1000))
}

func (e *estimate) next() int64 {
	return max(e.tokens(e.bytes), e.counted+e.fresh/bytesPerToken)
}

// rebuild counts the conversation of a resumed run. Counts from before it was
// last shortened do not apply to its size now.
func (e *estimate) rebuild(prompt int64, v *view.Run, history []*message.Message) {
	*e = estimate{bytes: prompt}
	shortened := lastShortened(v)
	for _, m := range history {
		if m.Role == message.RoleAssistant && m.Time.Completed > shortened {
			e.saw(m.Usage)
		}
		e.add(m)
	}
}

// lastShortened returns when a conversation was last pruned or summarised; the
// least time there is when it never was.
func lastShortened(v *view.Run) int64 {
	last := int64(math.MinInt64)
	for _, m := range v.Messages {
		if isSummary(m) {
			last = max(last, m.Time.Completed)
		}
		for i := range m.Parts {
			if c := m.Parts[i].Tool; c != nil && c.Compacted != 0 {
				last = max(last, c.Compacted)
			}
		}
	}
	return last
}

// size counts the bytes of a message that a model is sent. Reasoning is left
// out: most models do not get theirs back.
func size(m *message.Message) int64 {
	var n int
	for i := range m.Parts {
		switch p := &m.Parts[i]; {
		case p.Type == message.PartText && !p.Ignored:
			n += len(p.Text)
		case p.File != nil:
			n += mediaBytes
		case p.Tool != nil:
			n += len(p.Tool.Tool) + max(len(p.Tool.Raw), len(p.Tool.Input)) + outputSize(p.Tool)
		}
	}
	return int64(n)
}

// outputSize counts the bytes of a result as it is sent.
func outputSize(c *message.ToolPart) int {
	switch {
	case c.Result == nil:
		return 0
	case c.Compacted != 0:
		return markerLength
	}
	return len(c.Result.Text) + mediaBytes*len(c.Result.Attachments)
}

func sizes(messages []*message.Message) (n int64) {
	for _, m := range messages {
		n += size(m)
	}
	return n
}
