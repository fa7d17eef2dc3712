package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/httpapi"
	"agentctl.dev/agentctl/runner/model/jsonpass"
)

// chatAnswer gathers an answer of the chat completions API.
type chatAnswer struct {
	*httpapi.Gather
	// reasoningKey is the member the server streams its reasoning in. Some send
	// the same text in two.
	reasoningKey string
	wantsBack    bool // the reasoning: it came under the name that is asked for again
	slots        []slot
	chunks       int // that have been read
	extra        int // bytes that came in addition to the calls
	finish       string
	over         bool
	tally        httpapi.Tally
	known        bool // some event was a chat completion

	cur  jsonpass.Cursor
	frag fragment
}

// slot is what distinguishes the fragments of a call from those of others.
type slot struct {
	// wire is the index the server gave, -1 when it gave none.
	wire int64
	// chunk counts the chunk that brought the last fragment.
	chunk int
}

// fragment is one piece of a tool call.
type fragment struct {
	wire           int64
	id, name, args []byte
	extra          []byte // that is to go back with the call
}

// Event adds the JSON object of one event.
func (a *chatAnswer) Event(name string, data []byte) error {
	if name == "error" {
		return httpapi.Refused(model.ParseFault(data))
	}
	if string(bytes.TrimSpace(data)) == "[DONE]" {
		if a.chunks == 0 {
			return httpapi.Garbage("the server ended the stream without an answer")
		}
		if a.finish == "" {
			return httpapi.Unfinished("[DONE]")
		}
		a.over = true
		return nil
	}
	return a.chunk(data)
}

// Whole adds an answer that was not streamed.
func (a *chatAnswer) Whole(data []byte) error {
	return a.chunk(data)
}

// Complete implements httpapi.Answer.
func (a *chatAnswer) Complete() bool { return a.finish != "" }

// Over implements httpapi.Answer.
func (a *chatAnswer) Over() bool { return a.over }

// Busy implements httpapi.Worker: some servers send the arguments of a call when
// they are complete.
func (a *chatAnswer) Busy() bool { return len(a.Calls) > 0 && a.finish == "" }

// Known implements httpapi.Knower.
func (a *chatAnswer) Known() bool { return a.known }

func (a *chatAnswer) chunk(data []byte) error {
	c := &a.cur
	c.Reset(data)
	refused, other := false, (*foreignAPI)(nil)
	c.Object(func(key []byte) {
		switch string(key) {
		case "choices":
			a.known = true
			c.Array(a.choice)
		case "usage":
			readUsage(c, &a.tally)
		case "error":
			refused = string(c.Raw()) != "null" || refused
		case "object":
			switch string(c.Text()) {
			case "error":
				refused = true
			case "response":
				other = speaksResponses
			}
		case "type":
			if c.Next() != '"' {
				c.Skip()
				return
			}
			other = cmp.Or(typed(c.Text()), other)
		default:
			other = cmp.Or(shaped(key), other)
			c.Skip()
		}
	})
	c.End()
	a.chunks++
	if err := errors.Join(c.Err(), a.Err()); err != nil {
		return err
	}
	if refused {
		return httpapi.Refused(model.ParseFault(data))
	}
	if other != nil {
		return mistaken(other, data)
	}
	return chatEndings.Failure(a.finish, "")
}

func (a *chatAnswer) choice() {
	c := &a.cur
	c.Object(func(key []byte) {
		switch string(key) {
		case "delta", "message":
			// A server that does not stream answers with one whole message.
			a.delta()
		case "finish_reason":
			if s := c.Text(); a.finish == "" && len(s) > 0 {
				a.finish = strings.ToLower(string(s)) // gateways send the words of other APIs
			}
		default:
			c.Skip()
		}
	})
}

func (a *chatAnswer) delta() {
	c := &a.cur
	c.Object(func(key []byte) {
		switch string(key) {
		case "content", "refusal":
			a.content()
		case thoughtKey, "reasoning":
			if c.Next() != '"' {
				c.Skip()
				return
			}
			a.wantsBack = a.wantsBack || string(key) == thoughtKey
			if a.reasoningKey == "" {
				a.reasoningKey = string(key)
			}
			mine := a.reasoningKey == string(key)
			if s := c.Text(); mine {
				a.Reasoning(s)
			}
		case "tool_calls":
			c.Array(a.toolCall)
		case "function_call":
			if c.Next() != '{' {
				c.Skip()
				return
			}
			a.frag = fragment{wire: -1, id: a.frag.id[:0], name: a.frag.name[:0], args: a.frag.args[:0]}
			a.function()
			a.add()
		default:
			c.Skip()
		}
	})
}

// content reads a string, or the list of typed pieces some servers send.
func (a *chatAnswer) content() {
	c := &a.cur
	if c.Next() != '[' {
		a.Text(c.Text())
		return
	}
	c.Array(func() {
		c.Object(func(key []byte) {
			if string(key) == "text" && c.Next() == '"' {
				a.Text(c.Text())
				return
			}
			c.Skip()
		})
	})
}

func (a *chatAnswer) toolCall() {
	c, f := &a.cur, &a.frag
	*f = fragment{wire: -1, id: f.id[:0], name: f.name[:0], args: f.args[:0]} // extra is kept, and so not used again
	c.Object(func(key []byte) {
		switch string(key) {
		case "index":
			if c.Next() == 'n' {
				c.Skip()
				return
			}
			f.wire = c.Integer()
		case "id":
			f.id = append(f.id, c.Text()...)
		case "function":
			a.function()
		case extraKey:
			if c.Next() == '{' {
				f.extra = bytes.ToValidUTF8(c.Raw(), []byte("\uFFFD"))
				return
			}
			c.Skip()
		default:
			c.Skip()
		}
	})
	a.add()
}

func (a *chatAnswer) function() {
	c, f := &a.cur, &a.frag
	c.Object(func(key []byte) {
		switch string(key) {
		case "name":
			f.name = append(f.name, c.Text()...)
		case "arguments":
			if c.Next() == '{' {
				// Not the wire format, but it has only one reading.
				f.args = append(f.args, c.Raw()...)
				return
			}
			f.args = append(f.args, c.Text()...)
		default:
			c.Skip()
		}
	})
}

// add puts the fragment where it belongs.
func (a *chatAnswer) add() {
	if a.cur.Err() != nil {
		return
	}
	f := &a.frag
	at := a.slot()
	if at < 0 {
		if at = a.Begin(); at < 0 {
			return
		}
		a.slots = append(a.slots, slot{wire: f.wire})
	}
	a.slots[at].chunk = a.chunks
	c := a.Calls[at]
	if c.ID == "" {
		c.ID = string(f.id)
	}
	// Most send the name once, some with every fragment, a few in pieces.
	if string(f.name) != c.Tool && (c.Tool == "" || len(c.Args) == 0) {
		c.Tool += string(f.name)
	}
	if a.extra += len(f.extra); a.extra > maxExtra {
		a.cur.Fail("the calls come with more than %d bytes beside them", maxExtra)
		return
	}
	if len(f.extra) > 0 {
		c.Metadata = encode(extra{f.extra})
	}
	a.Args(at, f.args)
}

// slot returns the position of the call that the fragment continues, or -1 when
// it begins a call. The index decides if it is usable. Some servers send whole
// calls under the same index, or without an index; those are distinguished by
// id and name.
func (a *chatAnswer) slot() int {
	f := &a.frag
	at := -1
	for i := len(a.Calls) - 1; i >= 0 && at < 0; i-- {
		if f.wire >= 0 && a.slots[i].wire == f.wire || f.wire < 0 && len(f.id) > 0 && a.Calls[i].ID == string(f.id) {
			at = i
		}
	}
	if at < 0 {
		if f.wire >= 0 || len(f.id) > 0 || len(a.Calls) == 0 {
			return -1
		}
		at = len(a.Calls) - 1
	}
	c := a.Calls[at]
	if len(f.name) == 0 || c.Tool == "" {
		return at // most fragments: what follows reads all arguments so far
	}
	other := len(f.id) > 0 && c.ID != "" && c.ID != string(f.id)
	whole := len(f.id) == 0 && len(f.args) > 0 && (a.slots[at].chunk == a.chunks || closed(c.Args) && json.Valid(c.Args))
	if other || whole {
		return -1
	}
	return at
}

// closed reports whether arguments may be complete. It is a cheap check that
// avoids parsing all of them with every fragment.
func closed(args []byte) bool {
	return bytes.HasSuffix(bytes.TrimRight(args, " \t\r\n"), []byte("}"))
}

// Output returns the complete answer.
func (a *chatAnswer) Output() *message.Output {
	out := chatEndings.Output(a.Gather, a.finish, "")
	a.tally.Into(out)
	// A call must be sent back with its thought even where there was none to
	// show.
	if a.wantsBack && (out.Reasoning != "" || len(out.Calls) > 0) {
		out.ReasoningMetadata = encode(shown{thoughtKey})
	}
	return out
}

// chatEndings are the finish reasons of the chat completions API, in lower
// case: its own, and those that servers which imitate it, and gateways to other
// APIs, are known to send.
var chatEndings = httpapi.Endings{
	"stop":          {Finish: message.FinishStop},
	"complete":      {Finish: message.FinishStop}, // Cohere
	"end_turn":      {Finish: message.FinishStop}, // Anthropic
	"eos":           {Finish: message.FinishStop}, // Together
	"eos_token":     {Finish: message.FinishStop}, // Text Generation Inference
	"stop_sequence": {Finish: message.FinishStop}, // Text Generation Inference, Anthropic

	"tool_calls":    {Finish: message.FinishToolCalls},
	"function_call": {Finish: message.FinishToolCalls},
	"tool_use":      {Finish: message.FinishToolCalls}, // Anthropic

	"length":            {Finish: message.FinishLength},
	"max_tokens":        {Finish: message.FinishLength}, // Anthropic, Gemini
	"max_output_tokens": {Finish: message.FinishLength},
	"model_length":      {Finish: message.FinishLength}, // Mistral: the window is full

	"content_filter":     {Finish: message.FinishContentFilter},
	"content_filtered":   {Finish: message.FinishContentFilter}, // Bedrock
	"sensitive":          {Finish: message.FinishContentFilter}, // Z.ai
	"refusal":            {Finish: message.FinishContentFilter}, // Anthropic
	"safety":             {Finish: message.FinishContentFilter}, // Gemini
	"recitation":         {Finish: message.FinishContentFilter}, // Gemini
	"prohibited_content": {Finish: message.FinishContentFilter}, // Gemini
	"model_armor":        {Finish: message.FinishContentFilter}, // Vertex AI

	"error":                        {Failed: model.Retryable}, // OpenRouter, Mistral: the upstream server failed
	"abort":                        {Failed: model.Retryable}, // vLLM, SGLang: the request was dropped
	"network_error":                {Failed: model.Retryable}, // Z.ai
	"insufficient_system_resource": {Failed: model.Retryable}, // DeepSeek
	"malformed_function_call":      {Failed: model.Malformed}, // Gemini
}
