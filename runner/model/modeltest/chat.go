package modeltest

import (
	"fmt"
	"net/http"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
)

// Chat is the chat completions API.
var Chat Wire = chat{}

type chat struct{}

func (chat) Name() string { return "chat" }
func (chat) Base() string { return "/v1" }

func (chat) Key(h http.Header) string { return bearer(h) }

func bearer(h http.Header) string {
	key, _ := strings.CutPrefix(h.Get("Authorization"), "Bearer ")
	return key
}

func (chat) Route(r Request) (int, error) {
	return route(r, strings.HasSuffix(r.Path, "/v1/chat/completions"))
}

// route returns what is wrong with an address and with the type of the body.
func route(r Request, exists bool) (int, error) {
	if !exists || r.Method != http.MethodPost {
		return http.StatusNotFound, fmt.Errorf("no such route: %s %s", r.Method, r.Path)
	}
	if t := r.Header.Get("Content-Type"); !strings.HasPrefix(t, "application/json") {
		return http.StatusUnsupportedMediaType, fmt.Errorf("the content type is %q, not application/json", t)
	}
	return 0, nil
}

func (w chat) Stream(a Answer) []byte {
	var e events
	w.delta(&e, object{"role": "assistant", "content": ""})
	for _, s := range a.texts(a.Reasoning) {
		w.delta(&e, object{"reasoning_content": s})
	}
	for _, s := range a.texts(a.Text) {
		w.delta(&e, object{"content": s})
	}
	for i, c := range a.Calls {
		w.call(&e, a, i, c)
	}
	w.chunk(&e, []any{object{"index": 0, "delta": object{}, "logprobs": nil, "finish_reason": a.finish("stop", "tool_calls")}}, nil)
	if u := a.Usage; u != nil {
		input := object{"cached_tokens": u.Cached, "audio_tokens": 0}
		if u.CacheWrite > 0 {
			input["cache_write_tokens"] = u.CacheWrite
		}
		w.chunk(&e, []any{}, object{
			"prompt_tokens": u.Prompt, "completion_tokens": u.Completion, "total_tokens": u.Prompt + u.Completion,
			"prompt_tokens_details": input, "completion_tokens_details": object{"reasoning_tokens": u.Reasoning},
		})
	}
	if !a.NoDone {
		e.WriteString("data: [DONE]\n\n")
	}
	return e.Bytes()
}

// call sends the name first and the arguments after it, as the real API does.
func (w chat) call(e *events, a Answer, i int, c Call) {
	first := object{"index": i, "id": c.ID, "type": "function", "function": object{"name": c.Tool, "arguments": ""}}
	w.delta(e, object{"tool_calls": []any{first}})
	for _, s := range a.args(c) {
		w.delta(e, object{"tool_calls": []any{object{"index": i, "function": object{"arguments": s}}}})
	}
}

func (w chat) delta(e *events, delta object) {
	w.chunk(e, []any{object{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": nil}}, nil)
}

func (chat) chunk(e *events, choices []any, usage any) {
	e.add("", object{
		"id": "chatcmpl-0123456789abcdefghijklmnopqrs", "object": "chat.completion.chunk", "created": 1750000000, "model": "test-model",
		"service_tier": "default", "system_fingerprint": "fp_0123456789", "choices": choices, "usage": usage,
	})
}

func (chat) Begun(text string) string {
	return event(object{"choices": []any{object{"index": 0, "delta": object{"content": text}}}})
}

func (chat) Fault(status int, message, code string) string {
	if code == "" {
		code = openAICode(status)
	}
	return string(encode(object{"error": object{"message": message, "type": "error", "param": nil, "code": code}}))
}

// openAICode is the word for what happened that goes with a status.
func openAICode(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "invalid_api_key"
	case http.StatusNotFound:
		return "model_not_found"
	case http.StatusTooManyRequests:
		return "rate_limit_exceeded"
	case http.StatusInternalServerError:
		return "server_error"
	}
	return ""
}

// InStream has the status as the code, as gateways do, if there is no word.
func (w chat) InStream(status int, message, code string) string {
	if code == "" && status != 0 {
		return event(object{"error": object{"message": message, "code": status}})
	}
	return "data: " + w.Fault(0, message, code) + "\n\n"
}

func (w chat) traits() traits {
	return traits{
		address: "/v1", shown: true, writes: true, stop: "stop", silent: `"tool_choice":"none"`,
		failed: []string{"tool: no such file", "bad_json: not JSON"},
		finishes: map[string]message.Finish{
			"stop": message.FinishStop, "length": message.FinishLength, "content_filter": message.FinishContentFilter, "because": message.FinishUnknown,
			"eos_token": message.FinishStop, "STOP": message.FinishStop, "MAX_TOKENS": message.FinishLength, "model_length": message.FinishLength,
			"sensitive": message.FinishContentFilter, "OTHER": message.FinishUnknown, "repetition": message.FinishUnknown,
		},
		unknown: []string{
			"event: surprise\ndata: {\"object\":\"chat.completion.surprise\",\"surprise\":{\"choices\":5}}\n\n",
			"data: {\"choices\":[{\"index\":0,\"delta\":{\"surprise\":[{\"text\":\"x\"}]},\"surprise\":1}]}\n\n",
			"data: {}\n\n", "id: 7\nretry: 100\n: a comment\n\n",
		},
		ping:   event(object{"choices": []any{}}),
		quirks: w.quirks, faults: w.faults,
	}
}

func (w chat) faults() map[string]fault {
	begun := w.Begun("half")
	return map[string]fault{
		"overflow":            {Refuse(400, nil, w.Fault(400, "This model's maximum context length is 8192 tokens", "context_length_exceeded")), reason.ContextExhausted, 1, ""},
		"content filter":      {Refuse(400, nil, w.Fault(400, "filtered", "content_filter")), reason.ContentFiltered, 1, ""},
		"quota":               {Refuse(429, nil, w.Fault(429, "You exceeded your current quota", "insufficient_quota")), reason.ProviderUnavailable, 1, "billing"},
		"NUL bytes":           {Events("data: {\"choices\":[{\"delta\":{\"content\":\"a\x00b\"}}]}\n\n"), reason.ModelError, 1, "control character"},
		"truncated event":     {Events("data: {\"choices\":[{\"del\n\n"), reason.ModelError, 1, ""},
		"deep nesting":        {Events("data: {\"choices\":" + strings.Repeat("[", 100000) + "\n\n"), reason.ModelError, 1, ""},
		"error in the stream": {Events(begun + "data: {\"error\":{\"message\":\"it broke\",\"code\":\"odd\"}}\n\n"), reason.ModelError, 1, "it broke"},
		"busy in the stream":  {Events(begun + "data: {\"error\":{\"message\":\"The server is overloaded\"}}\n\n"), reason.ProviderUnavailable, 3, "overloaded"},
		"error event":         {Events(begun + "event: error\ndata: {\"message\":\"it broke\"}\n\n"), reason.ModelError, 1, "it broke"},
		"done without finish": {Events(begun + "data: [DONE]\n\n"), reason.ProviderUnavailable, 3, "finish reason"},
		"finish error":        {Answer{Text: "half", Finish: "error"}.Step(), reason.ProviderUnavailable, 3, "error"},
		"finish abort":        {Answer{Text: "half", Finish: "abort"}.Step(), reason.ProviderUnavailable, 3, "abort"},
		"no resources":        {Answer{Text: "half", Finish: "insufficient_system_resource"}.Step(), reason.ProviderUnavailable, 3, "insufficient"},
		"malformed call":      {Answer{Text: "half", Finish: "malformed_function_call"}.Step(), reason.ModelError, 3, "malformed"},
		"done without answer": {Events("data: [DONE]\n\n"), reason.ModelError, 1, "without an answer"},
	}
}
