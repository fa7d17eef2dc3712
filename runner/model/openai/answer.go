package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model"
)

// Bounds of one answer.
const (
	maxAnswer = 32 << 20
	maxCalls  = 128
)

// answer gathers a streamed answer. It is made for one attempt.
type answer struct {
	emit func(message.Delta) error

	text, reasoning strings.Builder
	// reasoningKey is the member the server streams its reasoning in. Some send
	// the same text in two.
	reasoningKey string
	calls        []*call
	finish       string
	usage        message.Usage
	counted      bool // the server said how many tokens there were
	// miscounted tells of counts in usage that cannot be.
	miscounted []string
	size       int

	cur  cursor
	frag fragment
	// fault is an error object that came instead of a piece.
	fault *model.Fault
	// stopped is what emit returned.
	stopped error
}

// call is a tool call while its fragments come in.
type call struct {
	id, name string
	args     []byte
	// wire is the index the server gave, -1 when it gave none.
	wire int64
	// chunk counts the chunk that brought the last fragment.
	chunk int
}

// fragment is one piece of a tool call.
type fragment struct {
	wire           int64
	id, name, args []byte
}

// chunk adds the JSON object of one event.
func (a *answer) chunk(data []byte, n int) error {
	a.cur.reset(data)
	c := &a.cur
	refused := false
	c.object(func(key []byte) {
		switch string(key) {
		case "choices":
			c.array(func() { a.choice(n) })
		case "usage":
			a.readUsage()
		case "error":
			refused = string(c.raw()) != "null" || refused
		case "object":
			refused = string(c.text()) == "error" || refused
		default:
			c.skip()
		}
	})
	c.end()
	if a.stopped != nil {
		return a.stopped
	}
	if c.err != nil {
		return c.err
	}
	if refused {
		f := model.ParseFault(data)
		a.fault = &f
	}
	if a.size > maxAnswer {
		return fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	}
	return nil
}

func (a *answer) choice(n int) {
	c := &a.cur
	c.object(func(key []byte) {
		switch string(key) {
		case "delta", "message":
			// A server that does not stream answers with one whole message.
			a.delta(n)
		case "finish_reason":
			if s := c.text(); a.finish == "" && len(s) > 0 {
				a.finish = string(s)
			}
		default:
			c.skip()
		}
	})
}

func (a *answer) delta(n int) {
	c := &a.cur
	c.object(func(key []byte) {
		switch string(key) {
		case "content", "refusal":
			a.content()
		case "reasoning_content", "reasoning":
			if c.next() != '"' {
				c.skip()
				return
			}
			if a.reasoningKey == "" {
				a.reasoningKey = string(key)
			}
			mine := a.reasoningKey == string(key)
			if s := c.text(); mine {
				a.piece(message.DeltaReasoning, &a.reasoning, s)
			}
		case "tool_calls":
			c.array(func() { a.toolCall(n) })
		case "function_call":
			if c.next() != '{' {
				c.skip()
				return
			}
			a.frag = fragment{wire: -1, id: a.frag.id[:0], name: a.frag.name[:0], args: a.frag.args[:0]}
			a.function()
			a.add(n)
		default:
			c.skip()
		}
	})
}

// content reads a string, or the list of typed pieces some servers send.
func (a *answer) content() {
	c := &a.cur
	if c.next() != '[' {
		a.piece(message.DeltaText, &a.text, c.text())
		return
	}
	c.array(func() {
		c.object(func(key []byte) {
			if string(key) == "text" && c.next() == '"' {
				a.piece(message.DeltaText, &a.text, c.text())
				return
			}
			c.skip()
		})
	})
}

func (a *answer) piece(kind message.DeltaKind, into *strings.Builder, s []byte) {
	if len(s) == 0 || a.cur.err != nil || a.stopped != nil {
		return
	}
	a.size += len(s)
	text := string(s)
	into.WriteString(text)
	a.tell(message.Delta{Kind: kind, Text: strings.ToValidUTF8(text, "\uFFFD")})
}

func (a *answer) tell(d message.Delta) {
	if a.stopped == nil {
		a.stopped = a.emit(d)
	}
}

func (a *answer) toolCall(n int) {
	c, f := &a.cur, &a.frag
	*f = fragment{wire: -1, id: f.id[:0], name: f.name[:0], args: f.args[:0]}
	c.object(func(key []byte) {
		switch string(key) {
		case "index":
			if c.next() == 'n' {
				c.skip()
				return
			}
			f.wire = c.integer()
		case "id":
			f.id = append(f.id, c.text()...)
		case "function":
			a.function()
		default:
			c.skip()
		}
	})
	a.add(n)
}

func (a *answer) function() {
	c, f := &a.cur, &a.frag
	c.object(func(key []byte) {
		switch string(key) {
		case "name":
			f.name = append(f.name, c.text()...)
		case "arguments":
			if c.next() == '{' {
				// Not the wire format, but it has only one reading.
				f.args = append(f.args, c.raw()...)
				return
			}
			f.args = append(f.args, c.text()...)
		default:
			c.skip()
		}
	})
}

// add puts the fragment where it belongs.
func (a *answer) add(n int) {
	if a.cur.err != nil || a.stopped != nil {
		return
	}
	f := &a.frag
	at := a.slot(n)
	if at < 0 {
		if len(a.calls) == maxCalls {
			a.cur.fail("more than %d tool calls", maxCalls)
			return
		}
		at = len(a.calls)
		a.calls = append(a.calls, &call{wire: f.wire})
	}
	c := a.calls[at]
	c.chunk = n
	if c.id == "" {
		c.id = string(f.id)
	}
	// Most send the name once, some with every fragment, a few in pieces.
	if string(f.name) != c.name && (c.name == "" || len(c.args) == 0) {
		c.name += string(f.name)
	}
	c.args = append(c.args, f.args...)
	a.size += len(f.args) + len(f.name)
	a.tell(message.Delta{Kind: message.DeltaTool, Index: at, Tool: c.name, Call: c.id, Text: strings.ToValidUTF8(string(f.args), "\uFFFD")})
}

// slot returns the position of the call the fragment continues, or -1 when it
// begins one. The index decides where there is a usable one; servers that send
// whole calls under the same index, or none, are told apart by id and name.
func (a *answer) slot(n int) int {
	f := &a.frag
	at := -1
	for i := len(a.calls) - 1; i >= 0 && at < 0; i-- {
		switch c := a.calls[i]; {
		case f.wire >= 0 && c.wire == f.wire,
			f.wire < 0 && len(f.id) > 0 && c.id == string(f.id):
			at = i
		}
	}
	if at < 0 {
		if f.wire >= 0 || len(f.id) > 0 || len(a.calls) == 0 {
			return -1
		}
		at = len(a.calls) - 1
	}
	c := a.calls[at]
	other := len(f.id) > 0 && c.id != "" && c.id != string(f.id)
	whole := len(f.id) == 0 && len(f.args) > 0 && (c.chunk == n || json.Valid(c.args))
	if len(f.name) > 0 && c.name != "" && (other || whole) {
		return -1
	}
	return at
}

// readUsage keeps the last report: servers that send several count up.
func (a *answer) readUsage() {
	c := &a.cur
	if c.next() == 'n' {
		c.skip()
		return
	}
	a.counted = true
	var u struct{ prompt, completion, total, cached, written, reasoning int64 }
	a.miscounted = nil
	count := func(into *int64) {
		name, start := string(c.key), c.i
		n, ok := c.count()
		if !ok {
			a.miscounted = append(a.miscounted, fmt.Sprintf("the server reported %s: %s; it counts as 0", strings.Trim(name, `"`), model.Quote(bytes.TrimSpace(c.b[start:c.i]))))
		}
		*into = n
	}
	c.object(func(key []byte) {
		switch string(key) {
		case "prompt_tokens":
			count(&u.prompt)
		case "completion_tokens":
			count(&u.completion)
		case "total_tokens":
			count(&u.total)
		case "prompt_cache_hit_tokens":
			count(&u.cached)
		case "prompt_tokens_details":
			c.object(func(key []byte) {
				switch string(key) {
				case "cached_tokens":
					count(&u.cached)
				case "cache_write_tokens":
					count(&u.written)
				default:
					c.skip()
				}
			})
		case "completion_tokens_details":
			c.object(func(key []byte) {
				if string(key) == "reasoning_tokens" {
					count(&u.reasoning)
					return
				}
				c.skip()
			})
		default:
			c.skip()
		}
	})
	// A few servers do not count reasoning as completion; their total shows it.
	if u.reasoning > 0 && u.total == u.prompt+u.completion+u.reasoning {
		u.completion += u.reasoning
	}
	a.usage = message.Usage{
		Input: max(0, u.prompt-u.cached-u.written), Output: u.completion, Reasoning: u.reasoning,
		CacheRead: u.cached, CacheWrite: u.written,
	}
}

// output returns the complete answer.
func (a *answer) output() *message.Output {
	out := &message.Output{
		Text: valid(a.text.String()), Reasoning: valid(a.reasoning.String()),
		Finish: finishOf(a.finish), Usage: a.usage, Uncounted: !a.counted, Warnings: a.miscounted,
	}
	for i, c := range a.calls {
		if c.id == "" {
			c.id = "call_" + strconv.Itoa(i+1)
		}
		out.Calls = append(out.Calls, message.CallRequest{ID: c.id, Tool: valid(c.name), Args: valid(string(c.args))})
	}
	// The calls decide: several servers say stop and call all the same.
	if len(out.Calls) > 0 && (out.Finish == message.FinishStop || out.Finish == message.FinishUnknown) {
		out.Finish = message.FinishToolCalls
	}
	return out
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func finishOf(s string) message.Finish {
	switch s {
	case "stop", "end_turn", "eos", "stop_sequence":
		return message.FinishStop
	case "tool_calls", "function_call", "tool_use":
		return message.FinishToolCalls
	case "length", "max_tokens", "max_output_tokens":
		return message.FinishLength
	case "content_filter", "safety":
		return message.FinishContentFilter
	}
	return message.FinishUnknown
}
