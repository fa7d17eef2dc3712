package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
)

// Anthropic is the messages API.
var Anthropic Wire = anthropic{}

type anthropic struct{}

func (anthropic) Name() string { return "anthropic" }
func (anthropic) Base() string { return "" }

func (anthropic) Key(h http.Header) string { return h.Get("X-Api-Key") }

func (anthropic) Route(r Request) (int, error) {
	if v := r.Header.Get("Anthropic-Version"); v != "2023-06-01" && r.Path == "/v1/messages" {
		return http.StatusBadRequest, fmt.Errorf("anthropic-version: %q is no version", v)
	}
	return route(r, r.Path == "/v1/messages")
}

// messageStream writes the events of one message: its blocks have places.
type messageStream struct {
	events
	block int
}

// add writes the type in front of the rest, as the API does.
func (s *messageStream) add(kind string, data object) {
	raw := encode(object{"type": kind})
	if len(data) > 0 {
		raw = append(append(raw[:len(raw)-1], ','), encode(data)[1:]...)
	}
	s.events.add(kind, json.RawMessage(raw))
}

func (s *messageStream) begin(block object) {
	s.add("content_block_start", object{"index": s.block, "content_block": block})
}

func (s *messageStream) delta(kind, member, text string) {
	s.add("content_block_delta", object{"index": s.block, "delta": object{"type": kind, member: text}})
}

func (s *messageStream) end() {
	s.add("content_block_stop", object{"index": s.block})
	s.block++
}

func (w anthropic) Stream(a Answer) []byte {
	var s messageStream
	w.start(&s, a.Usage)
	s.add("ping", object{})
	if a.Hidden {
		s.begin(object{"type": "redacted_thinking", "data": sign("redacted", "")})
		s.end()
	}
	if a.Reasoning != "" {
		s.begin(object{"type": "thinking", "thinking": "", "signature": ""})
		for _, t := range a.texts(a.Reasoning) {
			s.delta("thinking_delta", "thinking", t)
		}
		s.delta("signature_delta", "signature", sign("thinking", a.Reasoning))
		s.end()
	}
	if a.Text != "" {
		s.begin(object{"type": "text", "text": ""})
		for _, t := range a.texts(a.Text) {
			s.delta("text_delta", "text", t)
		}
		s.end()
	}
	for _, c := range a.Calls {
		s.begin(object{"type": "tool_use", "id": c.ID, "name": c.Tool, "input": object{}})
		s.delta("input_json_delta", "partial_json", "")
		for _, t := range a.args(c) {
			s.delta("input_json_delta", "partial_json", t)
		}
		s.end()
	}
	last := object{"delta": object{"stop_reason": a.finish("end_turn", "tool_use"), "stop_sequence": nil}}
	if u := a.Usage; u != nil {
		last["usage"] = w.usage(u, u.Completion)
	}
	s.add("message_delta", last)
	if !a.NoDone {
		s.add("message_stop", object{})
	}
	return s.Bytes()
}

// start begins a message. What the answer will take is not known yet, so that
// the first count of the output is not the one that holds.
func (w anthropic) start(s *messageStream, u *Usage) {
	m := object{
		"id": "msg_0123456789abcdefghijkl", "type": "message", "role": "assistant", "model": "test-model", "content": []any{},
		"stop_reason": nil, "stop_sequence": nil,
	}
	if u != nil {
		m["usage"] = w.usage(u, min(1, u.Completion))
	}
	s.add("message_start", object{"message": m})
}

// usage counts input apart from what the cache held or took.
func (anthropic) usage(u *Usage, output int) object {
	return object{
		"input_tokens": u.Prompt - u.Cached - u.CacheWrite, "cache_read_input_tokens": u.Cached, "cache_creation_input_tokens": u.CacheWrite,
		"cache_creation": object{"ephemeral_5m_input_tokens": u.CacheWrite, "ephemeral_1h_input_tokens": 0},
		"output_tokens":  output, "output_tokens_details": object{"thinking_tokens": min(u.Reasoning, output)}, "service_tier": "standard",
	}
}

func (w anthropic) Begun(text string) string {
	var s messageStream
	w.start(&s, nil)
	s.begin(object{"type": "text", "text": ""})
	s.delta("text_delta", "text", text)
	return s.String()
}

func (anthropic) Fault(status int, message, code string) string {
	if code == "" {
		code = anthropicCode(status)
	}
	return string(encode(object{"type": "error", "error": object{"type": code, "message": message}, "request_id": "req_0123456789"}))
}

func anthropicCode(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusPaymentRequired:
		return "billing_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusGatewayTimeout:
		return "timeout_error"
	case 529:
		return "overloaded_error"
	}
	if status >= 500 {
		return "api_error"
	}
	return "invalid_request_error"
}

func (w anthropic) InStream(status int, message, code string) string {
	return "event: error\ndata: " + w.Fault(status, message, code) + "\n\n"
}

func (w anthropic) event(kind string, data object) string {
	var s messageStream
	s.add(kind, data)
	return s.String()
}

func (w anthropic) traits() traits {
	return traits{
		address: "baseURL", signed: true, writes: true, stop: "end_turn", silent: `"tool_choice":{"type":"none"}`,
		failed: []string{`"is_error":true`},
		finishes: map[string]message.Finish{
			"end_turn": message.FinishStop, "stop_sequence": message.FinishStop, "max_tokens": message.FinishLength,
			"model_context_window_exceeded": message.FinishLength, "refusal": message.FinishContentFilter,
			"pause_turn": message.FinishPause, "because": message.FinishUnknown,
		},
		unknown: []string{
			w.event("surprise", object{"index": 5, "delta": "x"}), w.event("ping", object{}), named("surprise", object{"type": "surprise"}),
			w.event("content_block_start", object{"index": 90, "content_block": object{"type": "surprise_result", "content": 5}}) +
				w.event("content_block_delta", object{"index": 90, "delta": object{"type": "surprise_delta", "text": "x"}}) +
				w.event("content_block_stop", object{"index": 90}),
		},
		ping:     w.event("ping", object{}),
		thoughts: w.thoughts, quirks: w.quirks, faults: w.faults,
	}
}

// thoughts are turns that were interleaved with thinking.
func (w anthropic) thoughts() map[string]string {
	think := func(s *messageStream, text string) {
		s.begin(object{"type": "thinking", "thinking": "", "signature": ""})
		s.delta("thinking_delta", "thinking", text)
		s.delta("signature_delta", "signature", sign("thinking", text))
		s.end()
	}
	say := func(s *messageStream, text string) {
		s.begin(object{"type": "text", "text": ""})
		s.delta("text_delta", "text", text)
		s.end()
	}
	use := func(s *messageStream, id string) {
		s.begin(object{"type": "tool_use", "id": id, "name": "bash", "input": object{}})
		s.delta("input_json_delta", "partial_json", `{"command":"ls"}`)
		s.end()
	}
	stream := func(word string, blocks ...func(*messageStream)) string {
		var s messageStream
		w.start(&s, nil)
		for _, add := range blocks {
			add(&s)
		}
		s.add("message_delta", object{"delta": object{"stop_reason": word, "stop_sequence": nil}})
		s.add("message_stop", object{})
		return s.String()
	}
	first := func(s *messageStream) { think(s, "One.") }
	second := func(s *messageStream) { think(s, "Two.") }
	hidden := func(s *messageStream) {
		s.begin(object{"type": "redacted_thinking", "data": sign("redacted", "")})
		s.end()
	}
	silent := func(s *messageStream) { think(s, "") }
	text := func(s *messageStream) { say(s, "I look.") }
	call := func(s *messageStream) { use(s, "call_a") }
	return map[string]string{
		"between text and call": stream("tool_use", first, text, second, call),
		"one behind the other":  stream("tool_use", first, second, call),
		"hidden and shown":      stream("tool_use", hidden, first, text, call),
		"shown and hidden":      stream("tool_use", first, hidden, call),
		"without a text":        stream("tool_use", silent, call),
		"without a call":        stream("end_turn", first, text),
	}
}

func (w anthropic) faults() map[string]fault {
	begun := w.Begun("half")
	var counted messageStream
	w.start(&counted, nil)
	long := "prompt is too long: 210000 tokens > 200000 maximum"
	return map[string]fault{
		"overflow":                    {Refuse(400, nil, w.Fault(400, long, "")), reason.ContextExhausted, 1, ""},
		"overflow with the output":    {Refuse(400, nil, w.Fault(400, "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000, decrease input length or `max_tokens` and try again", "")), reason.ContextExhausted, 1, ""},
		"413 in its own words":        {Refuse(413, nil, w.Fault(413, "Request exceeds the maximum size", "")), reason.ContextExhausted, 1, ""},
		"content filter":              {Refuse(400, nil, w.Fault(400, "Output blocked by content filtering policy", "")), reason.ContentFiltered, 1, ""},
		"quota":                       {Refuse(400, nil, w.Fault(400, "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.", "")), reason.ProviderUnavailable, 1, "billing"},
		"402":                         {Refuse(402, nil, w.Fault(402, "There is an issue with your billing.", "")), reason.ProviderUnavailable, 1, "billing"},
		"529 in its own words":        {Refuse(529, nil, w.Fault(529, "Overloaded", "")), reason.ProviderUnavailable, 3, "Overloaded"},
		"overloaded in the stream":    {Events(begun + w.InStream(529, "Overloaded", "")), reason.ProviderUnavailable, 3, "Overloaded"},
		"overloaded before the start": {Events(w.InStream(529, "Overloaded", "")), reason.ProviderUnavailable, 3, "Overloaded"},
		"rate limit in the stream":    {Events(begun + w.InStream(429, "This request would exceed your rate limit", "")), reason.ProviderUnavailable, 3, "rate limit"},
		"500 in the stream":           {Events(begun + w.InStream(500, "Internal server error", "")), reason.ProviderUnavailable, 3, "Internal server error"},
		"time-out in the stream":      {Events(begun + w.InStream(504, "Request timed out", "")), reason.ProviderUnavailable, 3, "timed out"},
		"error without a name":        {Events(begun + "data: " + w.Fault(400, "it broke", "") + "\n\n"), reason.ModelError, 1, "it broke"},
		"NUL bytes":                   {Events(begun + "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\x00b\"}}\n\n"), reason.ModelError, 1, "character"},
		"truncated event":             {Events(begun + "data: {\"type\":\"content_bl\n\n"), reason.ModelError, 1, ""},
		"deep nesting":                {Events("data: {\"type\":\"message_start\",\"message\":" + strings.Repeat("[", 100000) + "\n\n"), reason.ModelError, 1, ""},
		"stop without a reason":       {Events(begun + w.event("content_block_stop", object{"index": 0}) + w.event("message_stop", object{})), reason.ProviderUnavailable, 3, "finish reason"},
		"stop without an answer":      {Events(counted.String() + w.event("message_stop", object{})), reason.ProviderUnavailable, 3, "ended"},
		"delta without its block":     {Events(counted.String() + w.event("content_block_delta", object{"index": 3, "delta": object{"type": "text_delta", "text": "x"}})), reason.ModelError, 1, ""},
	}
}
