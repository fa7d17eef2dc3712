package anthropic

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/httpapi"
	"agentctl.dev/agentctl/runner/model/jsonpass"
)

// Bounds of what is kept of an answer and is neither text nor a call.
const (
	maxKept   = 2 << 20
	maxBlocks = 10_000
)

// kind of a block.
type kind int

const (
	otherBlock kind = iota // of the API's own tools, or of a later version
	textBlock
	thinkingBlock
	redactedBlock
	callBlock
)

// block is one of the pieces an answer is made of.
type block struct {
	kind kind
	// index is the place that the server gave it.
	index int64
	// size of its text.
	size int
	// kept is a signature, a thought that only the API can read, or a block of its
	// own tools.
	kept []byte
	// call is the position among the calls, input the arguments that a server
	// sends at once.
	call  int
	input []byte
}

// answer gathers an answer of the messages API.
type answer struct {
	*httpapi.Gather
	blocks []block
	// torn is set when two thoughts were interleaved: it cannot be known which
	// text was signed by which thought.
	torn bool
	kept int
	stop string
	over bool
	open bool // the newest block

	tally  httpapi.Tally
	counts counts

	cur   jsonpass.Cursor
	piece piece
}

// counts are tokens as the API counts them.
type counts struct{ input, read, written, output, thought int64 }

func newAnswer(tell func(message.Delta)) httpapi.Answer {
	return &answer{Gather: httpapi.NewGather(tell)}
}

// Complete implements httpapi.Answer.
func (a *answer) Complete() bool { return a.stop != "" }

// Over implements httpapi.Answer.
func (a *answer) Over() bool { return a.over }

// Busy implements httpapi.Worker. A thought may be hidden, tools of the API's own
// run between pings, and the arguments of a call come one member at a time, however
// long a member is.
func (a *answer) Busy() bool {
	return a.open && len(a.blocks) > 0 && a.blocks[len(a.blocks)-1].kind != textBlock
}

// begin begins the block that was read. The calls of a message that is whole have
// their arguments with them.
func (a *answer) begin() error {
	p := &a.piece
	if len(a.blocks) == maxBlocks {
		return fmt.Errorf("more than %d blocks", maxBlocks)
	}
	b := block{kind: kindOf(p.kind), index: p.index}
	switch b.kind {
	case callBlock:
		if b.call = a.Begin(); b.call < 0 {
			return nil // the error is reported with the event
		}
		c := a.Calls[b.call]
		c.ID, c.Tool = string(p.id), string(p.name)
		b.input = slices.Clone(p.input)
		a.Args(b.call, nil)
	case redactedBlock, thinkingBlock:
		b.kept = slices.Clone(p.kept)
		a.kept += len(b.kept)
	case otherBlock:
		b.kept = slices.Clone(p.raw)
		a.kept += len(b.kept)
	case textBlock:
	}
	a.blocks = append(a.blocks, b)
	a.open = true
	a.Piece()
	return a.say(len(a.blocks) - 1)
}

func kindOf(name []byte) kind {
	switch string(name) {
	case "text":
		return textBlock
	case "thinking":
		return thinkingBlock
	case "redacted_thinking":
		return redactedBlock
	case "tool_use":
		return callBlock
	}
	return otherBlock
}

// at returns the newest block at a place: a server that gives all the same one
// sends them one after the other.
func (a *answer) at(index int64) int {
	for i := range slices.Backward(a.blocks) {
		if a.blocks[i].index == index {
			return i
		}
	}
	return -1
}

// delta adds the piece that was read to its block.
func (a *answer) delta() error {
	p := &a.piece
	at := a.at(p.index)
	if at < 0 {
		return fmt.Errorf("a piece of block %d, which has not begun", p.index)
	}
	b := &a.blocks[at]
	want := otherBlock
	switch string(p.kind) {
	case "text_delta":
		want = textBlock
	case "thinking_delta", "signature_delta":
		want = thinkingBlock
	case "input_json_delta":
		want = callBlock
	}
	if b.kind == otherBlock {
		b.input = append(b.input, p.args...)
		a.kept += len(p.args)
	}
	if want == otherBlock || b.kind == otherBlock {
		a.Piece()
		return a.bounded()
	}
	if b.kind != want {
		return fmt.Errorf("a %s in block %d, which is of another type", p.kind, p.index)
	}
	if want == callBlock {
		a.Args(b.call, p.args)
		return nil
	}
	b.kept = append(b.kept, p.kept...)
	a.kept += len(p.kept)
	if len(p.kept) > 0 {
		a.Piece()
	}
	return a.say(at)
}

// say emits the text of the piece that was read.
func (a *answer) say(at int) error {
	b, text := &a.blocks[at], a.piece.text
	switch b.kind {
	case textBlock:
		a.Text(text)
	case thinkingBlock:
		later := func(other block) bool { return other.kind == thinkingBlock && other.size > 0 }
		a.torn = a.torn || len(text) > 0 && slices.ContainsFunc(a.blocks[at+1:], later)
		a.Reasoning(text)
	case redactedBlock, callBlock, otherBlock:
		return a.bounded()
	}
	b.size += len(text)
	return a.bounded()
}

func (a *answer) bounded() error {
	if a.kept > maxKept {
		return fmt.Errorf("more than %d bytes of signatures and of the API's own tools", maxKept)
	}
	return nil
}

// finish takes the word for the end of the answer. The first one counts.
func (a *answer) finish(word string) {
	if word == "" || a.stop != "" {
		return
	}
	a.stop = word
	for i := range a.blocks {
		b := &a.blocks[i]
		if b.kind != callBlock || len(a.Calls[b.call].Args) > 0 {
			continue
		}
		cut := i == len(a.blocks)-1 && !endings.Finish(word).Whole()
		a.Args(b.call, b.arguments(cut))
	}
}

// arguments are those of a call without pieces: what it began with, or an empty
// object. A call that was cut before its first piece has incomplete arguments.
// They are unknown, so the call must not run.
func (b *block) arguments(cut bool) []byte {
	switch {
	case len(b.input) > 0:
		return b.input
	case cut:
		return []byte("{")
	}
	return []byte("{}")
}

// Output returns the complete answer.
func (a *answer) Output() *message.Output {
	out := endings.Output(a.Gather, a.stop, "")
	n := a.counts
	a.tally.Usage = message.Usage{Input: n.input, Output: n.output, Reasoning: min(n.thought, n.output), CacheRead: n.read, CacheWrite: n.written}
	a.tally.Into(out)
	if !a.torn {
		out.ReasoningMetadata = note(a.blocks)
	}
	return out
}

// endings are the stop reasons of the messages API.
var endings = httpapi.Endings{
	"end_turn":      {Finish: message.FinishStop},
	"stop_sequence": {Finish: message.FinishStop},
	"tool_use":      {Finish: message.FinishToolCalls},

	"max_tokens":                    {Finish: message.FinishLength},
	"model_context_window_exceeded": {Finish: message.FinishLength},

	"refusal":    {Finish: message.FinishContentFilter},
	"pause_turn": {Finish: message.FinishPause},
}

// Event adds one event.
func (a *answer) Event(name string, data []byte) error {
	if string(bytes.TrimSpace(data)) == "[DONE]" { // the end of another API, which some add
		if a.stop == "" {
			return httpapi.Garbage("the server ended the stream without an answer")
		}
		a.over = true
		return nil
	}
	kind, err := a.read(name, data)
	if err != nil {
		return err
	}
	return errors.Join(a.apply(kind, data), a.Err())
}

func (a *answer) apply(kind string, data []byte) error {
	switch kind {
	case blockStart:
		return a.begin()
	case blockDelta:
		return a.delta()
	case blockStop:
		if a.open {
			a.open = false
			a.Piece()
		}
	case messageDelta:
		a.finish(string(a.piece.stop))
	case messageStop:
		if a.stop == "" && (a.TextSize() > 0 || len(a.Calls) > 0) {
			return httpapi.Unfinished("message_stop")
		}
		a.over = a.stop != ""
	case fault:
		return httpapi.Refused(model.ParseFault(data))
	}
	return nil
}

// Whole adds an answer that was not streamed.
func (a *answer) Whole(data []byte) error {
	c := &a.cur
	c.Reset(data)
	kind, refused := "", false
	c.Object(func(key []byte) {
		switch string(key) {
		case "type":
			kind = string(c.Text())
		case "error":
			refused = string(c.Raw()) != "null" || refused
		default:
			c.Skip()
		}
	})
	c.End()
	if c.Err() != nil {
		return c.Err()
	}
	if refused || kind == fault {
		return httpapi.Refused(model.ParseFault(data))
	}
	if kind != "message" {
		return nil
	}
	return a.message(data)
}
