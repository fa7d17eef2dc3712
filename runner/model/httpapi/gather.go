package httpapi

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"agentctl.dev/agentctl/api/message"
)

// Limits of one answer. Each of its parts becomes one event, that of a call with its
// arguments twice, and a journal accepts 16 MiB: no model writes a tenth of it.
const (
	maxAnswer = 7 << 20
	// maxCalls is more than the loop runs of one answer: the calls beyond its limit
	// get an error result, which needs their ids.
	maxCalls = 4096
	maxName  = 1 << 10
)

// Gather collects an answer, and passes on each piece. Pieces may be cut inside a
// character: only the assembled text is valid again.
type Gather struct {
	emit            func(message.Delta)
	text, reasoning strings.Builder
	size            int
	pieces          int
	err             error

	// Calls in order.
	Calls []*Call
}

// Call is a tool call while its pieces come in.
type Call struct {
	ID, Tool string
	Args     []byte
	// Metadata is what the provider wants back with the call.
	Metadata json.RawMessage
}

// NewGather passes the pieces to emit.
func NewGather(emit func(message.Delta)) *Gather { return &Gather{emit: emit} }

// Err is the error for an answer that is larger than any valid one.
func (g *Gather) Err() error { return g.err }

func (g *Gather) grow(s []byte) {
	if g.size += written(s); g.size > maxAnswer && g.err == nil {
		g.err = fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	}
}

// written is the most bytes that a piece has when it is written down as JSON.
func written(s []byte) int {
	n := len(s)
	for _, b := range s {
		switch {
		case b < ' ':
			n += len(`\u0000`) - 1
		case b == '"' || b == '\\':
			n++
		case b >= 0x80:
			n += len("\uFFFD") - 1 // it may not be valid text
		}
	}
	return n
}

// Text adds a piece of the text.
func (g *Gather) Text(s []byte) { g.say(message.DeltaText, &g.text, s) }

// Reasoning adds a piece of the reasoning.
func (g *Gather) Reasoning(s []byte) { g.say(message.DeltaReasoning, &g.reasoning, s) }

func (g *Gather) say(kind message.DeltaKind, into *strings.Builder, s []byte) {
	if len(s) == 0 || g.err != nil {
		return
	}
	g.grow(s)
	g.Piece()
	text := string(s)
	into.WriteString(text)
	g.emit(message.Delta{Kind: kind, Text: valid(text)})
}

// Piece counts a piece of the answer that is neither text nor a call: a block that
// begins, a signature.
func (g *Gather) Piece() { g.pieces++ }

// Pieces is how many pieces there are so far.
func (g *Gather) Pieces() int { return g.pieces }

// TextSize is how much text there is so far, in bytes.
func (g *Gather) TextSize() int { return g.text.Len() }

// ReasoningSize is how much reasoning there is so far, in bytes.
func (g *Gather) ReasoningSize() int { return g.reasoning.Len() }

// Begin begins a call and returns its place, or -1 when there are too many.
func (g *Gather) Begin() int {
	if len(g.Calls) == maxCalls {
		g.err = fmt.Errorf("more than %d tool calls", maxCalls)
		return -1
	}
	g.Piece()
	g.Calls = append(g.Calls, &Call{})
	return len(g.Calls) - 1
}

// Args adds a piece of the arguments of the call at a place. Its id and name are passed on
// with it: the first piece may be empty.
func (g *Gather) Args(at int, s []byte) {
	if g.err != nil {
		return
	}
	c := g.Calls[at]
	if len(c.Tool) > maxName {
		g.err = fmt.Errorf("the name of a tool is longer than %d bytes", maxName)
		return
	}
	g.grow(s)
	if len(s) > 0 {
		g.Piece()
	}
	c.Args = append(c.Args, s...)
	g.emit(message.Delta{Kind: message.DeltaTool, Index: at, Tool: c.Tool, Call: c.ID, Text: valid(string(s))})
}

// Output returns what was gathered. A finish of stop becomes one for calls if there are
// calls, since several servers send stop after calls. Any other finish stays: an
// incomplete answer has no calls to run.
func (g *Gather) Output(finish message.Finish) *message.Output {
	out := &message.Output{Text: valid(g.text.String()), Reasoning: valid(g.reasoning.String()), Finish: finish}
	for i, c := range g.Calls {
		if c.ID == "" {
			c.ID = "call_" + strconv.Itoa(i+1)
		}
		out.Calls = append(out.Calls, message.CallRequest{ID: c.ID, Tool: valid(c.Tool), Args: valid(string(c.Args)), Metadata: c.Metadata})
	}
	if len(out.Calls) > 0 && finish == message.FinishStop {
		out.Finish = message.FinishToolCalls
	}
	return out
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
