package loop

import (
	"context"
	"slices"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
)

// Context sets when a conversation is shortened, and what stays of it.
type Context struct {
	// Window is the context window of the model in tokens. 0: not known; then a
	// conversation is shortened only when the provider refuses it.
	Window int64
	// ReserveOutput is the most tokens that an answer of that model may have, 0
	// where it is not known: a request and its answer share the window.
	ReserveOutput int64
	// AtPercent of the window is where the conversation is shortened; 0 is
	// never, also when the provider refuses it.
	AtPercent int
	// KeepRecent is how many tokens of the newest steps stay word for word.
	KeepRecent int64
	// Prune takes out old tool output before anything is summarised.
	Prune bool
	// PromptBytes is the size of what precedes the conversation: the system
	// prompt and the tools.
	PromptBytes int64

	// Summarizer writes the summaries; nil is the run's own model.
	Summarizer Model
	// SummarizerRef names it for its price, SummarizerWindow is what it holds;
	// both are those of the run's own model when they are zero.
	SummarizerRef    message.ModelRef
	SummarizerWindow int64
}

// A summary frees this part of the conversation, or it was no use.
const gainNum, gainDen = 1, 5

// makeRoom shortens the conversation when the next request comes close to the
// context window of the model: first old tool output goes, then a summary
// replaces all but the newest steps. The End is set when there is no room to be
// had.
func (l *loop) makeRoom(ctx context.Context) (*End, error) {
	if !l.crowded() {
		return nil, nil //nolint:nilnil // there is room, and the run continues
	}
	if l.Context.Prune {
		if pruned, err := l.prune(); err != nil || pruned && !l.crowded() {
			return nil, err
		}
	}
	return l.compact(ctx, false)
}

// overflowed shortens the conversation after the provider has refused it as too
// long, whatever its estimated size was. The End is set when that does not
// help, or was done just before; otherwise the same request is sent again.
func (l *loop) overflowed(ctx context.Context) (*End, error) {
	if l.Context.AtPercent == 0 {
		return exhausted("the provider refused it as too long, and spec.context.compactAtPercent of the agent is 0: it is never shortened"), nil
	}
	if end, err := l.compact(ctx, true); end != nil || err != nil {
		return end, err
	}
	return l.overLimit(), nil
}

// tooLong reports whether the provider refused a request because of its length.
func tooLong(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() == nil && reason.Of(err) == reason.ContextExhausted
}

// crowded reports whether the next request is to be shortened.
func (l *loop) crowded() bool {
	c := &l.Context
	if c.AtPercent == 0 || c.Window == 0 {
		return false
	}
	next := l.estimate.next()
	return next >= c.Window*int64(c.AtPercent)/100 || next+c.ReserveOutput > c.Window
}

// compact replaces the older part of the conversation by a summary.
func (l *loop) compact(ctx context.Context, overflow bool) (*End, error) {
	if l.idle() {
		return exhausted("it was just shortened, nothing was said or done since, and it is too long again"), nil
	}
	before, whole := l.estimate.next(), l.estimate.bytes
	c := l.cut(overflow)
	if gained(whole, whole-c.freed()) {
		end, err := l.summarise(ctx, c, overflow)
		if end != nil || err != nil {
			return end, err
		}
		if err := l.reset(); err != nil {
			return nil, err
		}
		if left := l.Context.PromptBytes + sizes(l.View.History()); gained(whole, left) {
			l.estimate.shrunk(left)
			return nil, nil //nolint:nilnil // there is room, and the run continues
		}
		return exhausted("a summary did not make it shorter by a fifth"), nil
	}
	if overflow || before > l.Context.Window {
		return exhausted("what must stay of it fills the window: the instructions, the tools, the prompt and the newest step"), nil
	}
	return nil, nil //nolint:nilnil // the provider decides
}

func gained(before, after int64) bool { return (before-after)*gainDen >= before*gainNum }

func exhausted(why string) *End {
	return &End{
		Reason:  reason.ContextExhausted,
		Message: "the conversation does not fit into the model's context window: " + why,
		Hint: "set spec.contextWindow of the Model to what it holds, set spec.context.compactAtPercent or lower " +
			"spec.context.keepRecentTokens of the agent, or give it a smaller task",
	}
}

// idle reports whether nothing was said or done since the newest summary.
func (l *loop) idle() bool {
	for _, m := range slices.Backward(l.View.Messages) {
		switch {
		case isSummary(m):
			return true
		case posted(l.View, m):
			return false
		case m.Role != message.RoleAssistant || m.Error != "" || m.Open():
		case m.Text() != "" || slices.ContainsFunc(m.Calls(), func(c *message.ToolPart) bool { return c.Result != nil }):
			return false
		}
	}
	return false
}

// isSummary reports whether a message is a complete summary.
func isSummary(m *message.Message) bool {
	return m.Summary && m.Error == "" && !m.Open() && m.Text() != ""
}

// cut is a conversation split into what stays and what a summary replaces. The
// first prompt always stays: it is the task.
type cut struct {
	first   *message.Message
	earlier *message.Message // the previous summary, nil when there is none
	drop    []*message.Message
	tail    []*message.Message
	// todos is the todo list where the tail does not have it.
	todos message.Todos
	room  int64 // tokens that the next request should have at most
	notes int64 // tokens that the summary may have
}

// freed is how many bytes go with the summary.
func (c *cut) freed() int64 {
	n := sizes(c.drop)
	if c.earlier != nil {
		n += size(c.earlier)
	}
	return n
}

// tailStart is the id of the first message that stays word for word.
func (c *cut) tailStart() string {
	if len(c.tail) == 0 {
		return ""
	}
	return c.tail[0].ID
}

// cut parts the conversation. A message holds its calls with their results, so
// they are never torn apart.
func (l *loop) cut(overflow bool) *cut {
	history := l.View.History()
	c := &cut{first: history[0], drop: history[1:], room: l.room(overflow), notes: l.notes()}
	if len(c.drop) > 0 && c.drop[0].Summary {
		c.earlier, c.drop = c.drop[0], c.drop[1:]
	}
	fixed := l.estimate.tokens(l.Context.PromptBytes + size(c.first))
	budget := min(l.Context.KeepRecent, c.room-fixed-c.notes)
	start, kept := len(c.drop), int64(0)
	for start > 0 {
		from := stepStart(c.drop, start)
		kept += l.estimate.tokens(sizes(c.drop[from:start]))
		newest := start == len(c.drop)
		if kept > budget && (!newest || fixed+kept > l.most(c.room, overflow)) {
			break
		}
		start = from
	}
	if open := slices.IndexFunc(c.drop[:start], unresolved); open >= 0 {
		start = open
	}
	c.drop, c.tail = c.drop[:start], c.drop[start:]
	if !slices.ContainsFunc(c.tail, listsTodos) {
		c.todos = l.View.Todos
	}
	return c
}

// listsTodos reports whether a call of the message has written the todo list.
func listsTodos(m *message.Message) bool {
	return slices.ContainsFunc(m.Calls(), func(c *message.ToolPart) bool { return c.Result != nil && c.Result.Todos != nil })
}

// room is how many tokens the next request should have at most. Of a refused
// request only the size is known, and half of it may be accepted.
func (l *loop) room(overflow bool) int64 {
	c := &l.Context
	half := l.estimate.next() / 2
	if c.Window == 0 {
		return half
	}
	room := min(c.Window*int64(c.AtPercent)/100, c.Window-c.ReserveOutput)
	if overflow {
		room = min(room, half)
	}
	return room
}

// most is what the next request may have so that the newest step is kept, which
// the model has not read yet.
func (l *loop) most(room int64, overflow bool) int64 {
	if overflow || l.Context.Window == 0 {
		return room
	}
	return l.Context.Window - l.Context.ReserveOutput
}

// stepStart returns where the step that ends at end begins. A step is an answer
// with the paused ones before it, and the messages to the model after it.
func stepStart(messages []*message.Message, end int) int {
	from := end - 1
	for from > 0 && (messages[from].Role != message.RoleAssistant || messages[from-1].Finish == message.FinishPause) {
		from--
	}
	return from
}

// unresolved reports whether some call of the message has no result.
func unresolved(m *message.Message) bool {
	return slices.ContainsFunc(m.Calls(), func(c *message.ToolPart) bool { return c.Result == nil })
}

// summarise asks for the summary and records it.
func (l *loop) summarise(ctx context.Context, c *cut, overflow bool) (*End, error) {
	s, end, err := l.summary(ctx, c, overflow)
	if end != nil || err != nil {
		return end, err
	}
	left := l.Context.PromptBytes + size(c.first) + int64(len(s.out.Text)+len(c.todos.Text())) + sizes(c.tail)
	return nil, l.compacted(s, c, overflow, l.estimate.tokens(left))
}
