package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/httpapi"
	"agentctl.dev/agentctl/runner/model/jsonpass"
)

// Bounds of what an answer may have besides its text.
const (
	maxThoughts = 7 << 20
	maxMessages = 256
)

// replyAnswer gathers an answer of the responses API.
type replyAnswer struct {
	*httpapi.Gather
	tally httpapi.Tally
	// ended is the word for the end; halfCall is set when the server marked a
	// call as incomplete.
	ended    string
	halfCall bool
	// working is set when an item has begun which is not a message.
	working bool

	// messages make up the text. Said is the length of the text before the
	// message that is being streamed, apart is set until its first piece has
	// come, phase is the kind of that message.
	messages []spoken
	said     int
	apart    bool
	phase    string
	// places of the calls in the output, and those of all items that are done.
	places []place
	done   []int64
	// thoughts that no other item has followed yet, and the size of all thoughts
	// so far. Pause is set when the next piece of the shown reasoning begins a
	// part.
	thoughts []json.RawMessage
	weight   int
	pause    bool

	cur   jsonpass.Cursor
	event streamed
}

// place is the position of a call in the output.
type place struct {
	index int64
	item  string
}

// Event adds one event.
func (a *replyAnswer) Event(_ string, data []byte) error {
	if string(bytes.TrimSpace(data)) == "[DONE]" {
		return httpapi.Garbage("the server ended the stream without an answer")
	}
	a.read(data)
	e := &a.event
	if err := a.cur.Err(); err != nil {
		return err
	}
	if err := a.take(e, data); err != nil {
		return err
	}
	return a.Err()
}

// take acts on an event by its type. Unknown events are ignored.
func (a *replyAnswer) take(e *streamed, data []byte) error {
	switch string(e.kind) {
	case "response.output_text.delta", "response.refusal.delta":
		return e.piece(a.speak)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return e.piece(a.think)
	case "response.reasoning_summary_part.added":
		a.pause = true
	case "response.function_call_arguments.delta":
		return e.piece(func(s []byte) {
			if at := a.place(e.index, string(e.id)); at >= 0 {
				a.Args(at, s)
			}
		})
	case "response.function_call_arguments.done":
		a.argsEnd(a.place(e.index, string(e.id)), e.args)
	case "response.output_item.added":
		return a.itemBegins(e.index, e.item)
	case "response.output_item.done":
		return a.itemEnds(e.index, e.item)
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		if e.response == nil {
			return httpapi.Garbage("the server ended the stream without a response: %s", model.Quote(data))
		}
		return a.end(strings.TrimPrefix(string(e.kind), "response."), e.response)
	case "error":
		return httpapi.Refused(model.ParseFault(data))
	case "":
		return untyped(e, data)
	default:
		if other := typed(e.kind); other != nil && other != speaksResponses {
			return mistaken(other, data)
		}
	}
	return nil
}

// speak adds to the text. Messages are kept apart from each other, up to a
// number that no model means.
func (a *replyAnswer) speak(s []byte) {
	if len(s) == 0 {
		return
	}
	last := len(a.messages) - 1
	if last < 0 || a.apart && last+1 < maxMessages {
		if last >= 0 {
			a.Text([]byte(between))
		}
		a.messages = append(a.messages, spoken{followed: followed{a.thoughts}, Phase: a.phase})
		a.thoughts = nil
		last++
	}
	a.apart = false
	a.messages[last].Size += len(s)
	a.Text(s)
}

// think adds to the reasoning. Its parts are kept apart where they are shown.
func (a *replyAnswer) think(s []byte) {
	if len(s) == 0 {
		return
	}
	if a.pause && a.ReasoningSize() > 0 {
		a.Reasoning([]byte(between))
	}
	a.pause = false
	a.Reasoning(s)
}

// place returns which call an event is about, -1 when it is about none. The index
// decides where there is one: some gateways give every event another id.
func (a *replyAnswer) place(index int64, id string) int {
	return slices.IndexFunc(a.places, func(p place) bool {
		return index >= 0 && p.index == index || index < 0 && id != "" && p.item == id
	})
}

func (a *replyAnswer) itemBegins(index int64, raw []byte) error {
	i, err := readItem(raw)
	if err != nil {
		return err
	}
	a.Piece()
	a.working = i.kind != "message"
	switch i.kind {
	case "message":
		a.apart, a.phase, a.said = true, i.phase, a.TextSize()
	case "function_call":
		a.call(index, i)
	case "reasoning":
		a.pause = true
	}
	return nil
}

// call begins a call and returns its place in the answer, -1 when there are too
// many.
func (a *replyAnswer) call(index int64, i *item) int {
	at := a.Begin()
	if at < 0 {
		return at
	}
	a.places = append(a.places, place{index, i.id})
	c := a.Calls[at]
	c.ID, c.Tool = i.call, i.name
	if len(a.thoughts) > 0 {
		c.Metadata = encode(followed{a.thoughts})
		a.thoughts = nil
	}
	a.Args(at, nil)
	return at
}

// itemEnds completes an item. Servers that stream little of it, or nothing, have
// all of it in here.
func (a *replyAnswer) itemEnds(index int64, raw []byte) error {
	i, err := readItem(raw)
	if err != nil {
		return err
	}
	a.Piece()
	a.working = false
	if index >= 0 {
		a.done = append(a.done, index)
	}
	switch i.kind {
	case "message":
		return a.messageEnds(i)
	case "function_call":
		a.halfCall = a.halfCall || i.status == "incomplete"
		at := a.place(index, i.id)
		if at < 0 {
			at = a.call(index, i)
		}
		a.named(at, i)
		a.argsEnd(at, i.args)
	case "reasoning":
		if a.ReasoningSize() == 0 {
			text, err := i.text()
			if err != nil {
				return err
			}
			a.think(text)
		}
		return a.keep(i.thought())
	}
	return nil
}

// named fills in what the begin of a call has left open.
func (a *replyAnswer) named(at int, i *item) {
	if at < 0 {
		return
	}
	c := a.Calls[at]
	c.ID, c.Tool = cmp.Or(c.ID, i.call), cmp.Or(c.Tool, i.name)
}

// argsEnd adds what was not streamed of the arguments of the call at a place.
func (a *replyAnswer) argsEnd(at int, args []byte) {
	if at < 0 || a.Err() != nil {
		return
	}
	if rest, longer := bytes.CutPrefix(args, a.Calls[at].Args); longer && len(rest) > 0 {
		a.Args(at, rest)
	}
}

func (a *replyAnswer) messageEnds(i *item) error {
	switch streamed := a.TextSize() > a.said; {
	case !streamed:
		text, err := i.text()
		if err != nil {
			return err
		}
		a.apart, a.phase = true, i.phase
		a.speak(text)
	case i.phase != "":
		a.messages[len(a.messages)-1].Phase = i.phase
	}
	a.apart, a.phase, a.said = true, "", a.TextSize()
	return nil
}

// keep keeps a reasoning item for the item that follows it.
func (a *replyAnswer) keep(t json.RawMessage) error {
	if t == nil {
		return nil
	}
	if a.weight += len(t); a.weight > maxThoughts {
		return fmt.Errorf("the reasoning is longer than %d bytes", maxThoughts)
	}
	a.thoughts = append(a.thoughts, t)
	return nil
}

// Whole adds an answer that was not streamed.
func (a *replyAnswer) Whole(data []byte) error {
	a.read(data)
	var head struct {
		Object string
		Output json.RawMessage
	}
	switch {
	case a.cur.Err() != nil:
		return a.cur.Err()
	case a.event.other != nil:
		return mistaken(a.event.other, data)
	case json.Unmarshal(data, &head) == nil && (head.Object == "response" || len(head.Output) > 0):
		return a.end("", data)
	}
	return faultIn(data)
}

// Complete implements httpapi.Answer.
func (a *replyAnswer) Complete() bool { return a.ended != "" }

// Busy implements httpapi.Worker: a reasoning whose summary is not asked for is
// not streamed, nor are the tools of the API's own.
func (a *replyAnswer) Busy() bool { return a.working }

// Over implements httpapi.Answer: the message of the API is in its last event.
func (a *replyAnswer) Over() bool { return a.ended != "" }

// Output returns the complete answer.
func (a *replyAnswer) Output() *message.Output {
	out := replyEndings.Output(a.Gather, a.ended, "")
	a.tally.Into(out)
	// One message without a history of its own needs no list.
	if n := len(a.messages); n > 1 || n == 1 && (a.messages[0].Phase != "" || len(a.messages[0].Thoughts) > 0) {
		out.TextMetadata = encode(a.messages)
	}
	return out
}
