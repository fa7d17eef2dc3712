package modeltest

import (
	"fmt"
	"net/http"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
)

// Responses is OpenAI's responses API.
var Responses Wire = responses{}

type responses struct{}

func (responses) Name() string { return "responses" }
func (responses) Base() string { return "/v1" }

func (responses) Key(h http.Header) string { return bearer(h) }

func (responses) Route(r Request) (int, error) {
	return route(r, strings.HasSuffix(r.Path, "/v1/responses"))
}

// responseStream writes the events of one response: each has a number, each
// item has a place.
type responseStream struct {
	events
	n     int
	items []any
}

func (s *responseStream) add(kind string, data object) {
	data["type"], data["sequence_number"] = kind, s.n
	s.n++
	s.events.add(kind, data)
}

// part adds an event that belongs to the item at the end of the list.
func (s *responseStream) part(kind, item string, data object) {
	data["item_id"], data["output_index"] = item, len(s.items)
	s.add(kind, data)
}

func (s *responseStream) begin(item object) {
	s.add("response.output_item.added", object{"output_index": len(s.items), "item": item})
}

func (s *responseStream) end(item object) {
	s.add("response.output_item.done", object{"output_index": len(s.items), "item": item})
	s.items = append(s.items, item)
}

func (w responses) Stream(a Answer) []byte {
	var s responseStream
	s.add("response.created", object{"response": w.response("in_progress", nil)})
	s.add("response.in_progress", object{"response": w.response("in_progress", nil)})
	if a.Reasoning != "" || a.Hidden {
		w.reasoning(&s, a)
	}
	if a.Text != "" {
		w.text(&s, a)
	}
	for _, c := range a.Calls {
		w.call(&s, a, c)
	}
	word := a.finish("completed", "completed")
	kind, status := "response.completed", "completed"
	if word != "completed" {
		kind, status = "response.incomplete", "incomplete"
	}
	last := w.response(status, s.items)
	if word != "completed" {
		last["incomplete_details"] = object{"reason": word}
	}
	if u := a.Usage; u != nil {
		last["usage"] = object{
			"input_tokens": u.Prompt, "output_tokens": u.Completion, "total_tokens": u.Prompt + u.Completion,
			"input_tokens_details":  object{"cached_tokens": u.Cached, "cache_write_tokens": u.CacheWrite},
			"output_tokens_details": object{"reasoning_tokens": u.Reasoning},
		}
	}
	s.add(kind, object{"response": last})
	return s.Bytes()
}

func (responses) response(status string, output []any) object {
	if output == nil {
		output = []any{}
	}
	// The API repeats the settings of the request here, which are not needed.
	return object{
		"id": "resp_0123456789abcdef", "object": "response", "created_at": 1750000000, "status": status, "error": nil,
		"incomplete_details": nil, "model": "test-model", "output": output, "store": false, "usage": nil,
	}
}

func (responses) reasoning(s *responseStream, a Answer) {
	const id = "rs_0123456789abcdef"
	item := func(summary []any, encrypted string) object {
		return object{"id": id, "type": "reasoning", "summary": summary, "encrypted_content": encrypted}
	}
	summary := []any{}
	s.begin(item(summary, "gAAAA"))
	if a.Reasoning != "" {
		place := func(more object) object { more["summary_index"] = 0; return more }
		whole := object{"type": "summary_text", "text": a.Reasoning}
		s.part("response.reasoning_summary_part.added", id, place(object{"part": object{"type": "summary_text", "text": ""}}))
		for _, t := range a.texts(a.Reasoning) {
			s.part("response.reasoning_summary_text.delta", id, place(object{"delta": t, "obfuscation": "x7f"}))
		}
		s.part("response.reasoning_summary_text.done", id, place(object{"text": a.Reasoning}))
		s.part("response.reasoning_summary_part.done", id, place(object{"part": whole}))
		summary = append(summary, whole)
	}
	s.end(item(summary, sign("reasoning", a.Reasoning)))
}

func (responses) text(s *responseStream, a Answer) {
	const id = "msg_0123456789abcdef"
	item := func(status string, content []any) object {
		return object{"id": id, "type": "message", "status": status, "role": "assistant", "content": content}
	}
	part := func(text string) object {
		return object{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}
	}
	place := func(more object) object { more["content_index"] = 0; return more }
	s.begin(item("in_progress", []any{}))
	s.part("response.content_part.added", id, place(object{"part": part("")}))
	for _, t := range a.texts(a.Text) {
		s.part("response.output_text.delta", id, place(object{"delta": t, "logprobs": []any{}, "obfuscation": "x7f"}))
	}
	s.part("response.output_text.done", id, place(object{"text": a.Text, "logprobs": []any{}}))
	s.part("response.content_part.done", id, place(object{"part": part(a.Text)}))
	s.end(item("completed", []any{part(a.Text)}))
}

func (responses) call(s *responseStream, a Answer, c Call) {
	id := "fc_" + c.ID
	item := func(status, args string) object {
		return object{"id": id, "type": "function_call", "status": status, "call_id": c.ID, "name": c.Tool, "arguments": args}
	}
	s.begin(item("in_progress", ""))
	for _, t := range a.args(c) {
		s.part("response.function_call_arguments.delta", id, object{"delta": t, "obfuscation": "x7f"})
	}
	s.part("response.function_call_arguments.done", id, object{"name": c.Tool, "arguments": c.Args})
	s.end(item("completed", c.Args))
}

func (w responses) Begun(text string) string {
	var s responseStream
	s.add("response.created", object{"response": w.response("in_progress", nil)})
	s.begin(object{"id": "msg_0", "type": "message", "status": "in_progress", "role": "assistant", "content": []any{}})
	s.part("response.content_part.added", "msg_0", object{"content_index": 0, "part": object{"type": "output_text", "text": "", "annotations": []any{}}})
	s.part("response.output_text.delta", "msg_0", object{"content_index": 0, "delta": text})
	return s.String()
}

func (responses) Fault(status int, message, code string) string {
	return Chat.Fault(status, message, code)
}

// InStream is a failed response where the server is to blame, else an error.
func (w responses) InStream(status int, message, code string) string {
	if code == "" {
		code = openAICode(status)
	}
	if code == "" {
		code = "invalid_prompt"
		if status >= 500 {
			code = "server_error"
		}
	}
	if status < 500 {
		return w.event("error", object{"code": code, "message": message, "param": nil})
	}
	return w.failed(object{"code": code, "message": message})
}

func (w responses) failed(err object) string {
	r := w.response("failed", nil)
	r["error"] = err
	return w.event("response.failed", object{"response": r})
}

func (responses) event(kind string, data object) string {
	var s responseStream
	s.n = 99
	s.add(kind, data)
	return s.String()
}

func (w responses) traits() traits {
	return traits{
		address: "/v1", signed: true, writes: true, stop: "completed", silent: `"tool_choice":"none"`,
		failed: []string{"tool: no such file", "bad_json: not JSON"},
		finishes: map[string]message.Finish{
			"completed": message.FinishStop, "max_output_tokens": message.FinishLength, "content_filter": message.FinishContentFilter,
			"because": message.FinishUnknown,
		},
		ping: w.event("response.in_progress", object{"response": w.response("in_progress", nil)}),
		unknown: []string{
			w.event("response.surprise.delta", object{"item_id": "x", "output_index": 7, "delta": object{"surprise": 1}}),
			w.event("keepalive", object{}),
			w.event("response.output_item.added", object{"output_index": 90, "item": object{"id": "x", "type": "surprise", "content": 5}}) +
				w.event("response.output_item.done", object{"output_index": 90, "item": object{"id": "x", "type": "surprise", "content": 5}}),
		},
		thoughts: w.thoughts, quirks: w.quirks, faults: w.faults,
	}
}

// thoughts are answers with more than one reasoning item.
func (w responses) thoughts() map[string]string {
	think := func(s *responseStream, n int, summaries ...string) {
		list := []any{}
		for _, t := range summaries {
			list = append(list, object{"type": "summary_text", "text": t})
		}
		item := object{"id": fmt.Sprintf("rs_%d", n), "type": "reasoning", "summary": list, "encrypted_content": sign("reasoning", strings.Join(summaries, ""))}
		s.begin(with(item, "summary", []any{}))
		for i, t := range summaries {
			s.part("response.reasoning_summary_text.delta", fmt.Sprintf("rs_%d", n), object{"summary_index": i, "delta": t})
		}
		s.end(item)
	}
	stream := func(add func(*responseStream)) string {
		var s responseStream
		s.add("response.created", object{"response": w.response("in_progress", nil)})
		add(&s)
		s.add("response.completed", object{"response": w.response("completed", s.items)})
		return s.String()
	}
	a := Answer{Text: "I look."}
	call := func(id string) Call { return Call{ID: id, Tool: "bash", Args: `{"command":"ls"}`} }
	return map[string]string{
		"before each call": stream(func(s *responseStream) {
			think(s, 1, "One.")
			w.call(s, a, call("call_a"))
			think(s, 2, "Two.")
			w.call(s, a, call("call_b"))
		}),
		"before text and call": stream(func(s *responseStream) {
			think(s, 1, "One.")
			w.text(s, a)
			think(s, 2)
			w.call(s, a, call("call_a"))
		}),
		"two summaries": stream(func(s *responseStream) {
			think(s, 1, "One.", "Two.")
			w.call(s, a, call("call_a"))
		}),
		"without a call": stream(func(s *responseStream) {
			think(s, 1, "One.")
			w.text(s, a)
		}),
	}
}

func (w responses) faults() map[string]fault {
	begun := w.Begun("half")
	full := "Your input exceeds the context window of this model. Please adjust your input and try again."
	quota := "You exceeded your current quota, please check your plan and billing details."
	return map[string]fault{
		"overflow":                     {Refuse(400, nil, w.Fault(400, full, "context_length_exceeded")), reason.ContextExhausted, 1, ""},
		"overflow in the stream":       {Events(begun + w.failed(object{"code": "context_length_exceeded", "message": full})), reason.ContextExhausted, 1, ""},
		"content filter":               {Refuse(400, nil, w.Fault(400, "filtered", "content_filter")), reason.ContentFiltered, 1, ""},
		"quota":                        {Refuse(429, nil, w.Fault(429, quota, "insufficient_quota")), reason.ProviderUnavailable, 1, "billing"},
		"quota in the stream":          {Events(begun + w.failed(object{"code": "insufficient_quota", "message": quota})), reason.ProviderUnavailable, 1, "billing"},
		"rate limit in the stream":     {Events(begun + w.failed(object{"code": "rate_limit_exceeded", "message": "Rate limit reached"})), reason.ProviderUnavailable, 3, "Rate limit"},
		"failed for no known reason":   {Events(begun + w.failed(object{"code": "odd", "message": "it broke"})), reason.ModelError, 1, "it broke"},
		"failed without an error":      {Events(begun + w.event("response.failed", object{"response": w.response("failed", nil)})), reason.ModelError, 1, ""},
		"error event with an object":   {Events(begun + w.event("error", object{"error": object{"type": "invalid_request_error", "code": "odd", "message": "it broke"}})), reason.ModelError, 1, "it broke"},
		"cancelled by somebody":        {Events(begun + w.event("response.cancelled", object{"response": w.response("cancelled", nil)})), reason.ProviderUnavailable, 3, ""},
		"NUL bytes":                    {Events(begun + "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"a\x00b\"}\n\n"), reason.ModelError, 1, "character"},
		"truncated event":              {Events(begun + "data: {\"type\":\"response.output_te\n\n"), reason.ModelError, 1, ""},
		"deep nesting":                 {Events("data: {\"type\":\"response.created\",\"response\":" + strings.Repeat("[", 100000) + "\n\n"), reason.ModelError, 1, ""},
		"completed without a response": {Events(w.event("response.completed", object{})), reason.ModelError, 1, ""},
	}
}
