package modeltest

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
)

// quirk is an answer that another server, or another day, spells otherwise.
type quirk struct {
	// reason names the servers that do so.
	reason string
	// body is a stream of events, or one JSON object.
	body string
	// want is the answer. A call without an id is given one of its own, and a
	// finish that is left out may be any.
	want message.Output
}

// quirks holds the answers of servers that differ against what they mean.
func (s suite) quirks(t *testing.T) {
	all := s.spellings()
	maps.Copy(all, s.wire.traits().quirks())
	for name, q := range all {
		t.Run(name, func(t *testing.T) {
			step := Events(q.body)
			if strings.HasPrefix(q.body, "{") {
				step = Refuse(200, nil, q.body)
			}
			k := s.talk(t, step)
			got, err := k.next(t, t.Context(), message.Request{})
			if err != nil {
				t.Fatalf("%s: %v", q.reason, err)
			}
			if d := cmp.Diff(respelled(&q.want), q.essence(t, got)); d != "" {
				t.Errorf("%s (-want +got):\n%s", q.reason, d)
			}
		})
	}
}

// essence is an answer as far as a quirk fixes it.
func (q quirk) essence(t *testing.T, out *message.Output) *message.Output {
	t.Helper()
	bare(out)
	out = respelled(out)
	out.Uncounted, out.Warnings = false, nil
	if q.want.Finish == "" {
		out.Finish = ""
	}
	seen := map[string]bool{}
	for i, c := range out.Calls {
		if c.ID == "" || seen[c.ID] {
			t.Errorf("%s: call %d has the id %q", q.reason, i, c.ID)
		}
		seen[c.ID] = true
		if i < len(q.want.Calls) && q.want.Calls[i].ID == "" {
			out.Calls[i].ID = ""
		}
	}
	return out
}

// spellings are the ways to write the same events.
func (s suite) spellings() map[string]quirk {
	stream := string(s.wire.Stream(full))
	alike := func(why, body string) quirk { return quirk{why, body, *wantFull()} }
	return map[string]quirk{
		"CRLF":            alike("the standard allows it", strings.ReplaceAll(stream, "\n", "\r\n")),
		"no space":        alike("the space behind the colon is optional", strings.ReplaceAll(stream, "data: ", "data:")),
		"comments":        alike("proxies keep a stream alive with comments", ": hello\n\n"+strings.ReplaceAll(stream, "\n\n", "\n\n: keep-alive\n\n")),
		"mark":            alike("a byte order mark is allowed in front", "\ufeff"+stream),
		"no names":        alike("the name of an event stands in its data too, and some leave it out", withoutNames(stream)),
		"ids":             alike("events may have ids and retry times", strings.ReplaceAll(stream, "data: ", "id: 7\nretry: 100\ndata: ")),
		"no last line":    alike("servers forget the final blank line", strings.TrimSuffix(stream, "\n")),
		"done at the end": alike("proxies end every stream as chat completions do", strings.TrimSuffix(stream, "data: [DONE]\n\n")+"data: [DONE]\n\n"),
	}
}

// withoutNames takes the names off the events.
func withoutNames(stream string) string {
	var b strings.Builder
	for line := range strings.Lines(stream) {
		if !strings.HasPrefix(line, "event: ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// two are two calls of one tool, with ids or without.
func two(ids ...string) []message.CallRequest {
	calls := []message.CallRequest{{Tool: "bash", Args: `{"x":1}`}, {Tool: "bash", Args: `{"x":2}`}}
	for i, id := range ids {
		calls[i].ID = id
	}
	return calls
}

func (w chat) quirks() map[string]quirk {
	delta := func(d object) string { return event(object{"choices": []any{object{"index": 0, "delta": d}}}) }
	end := func(word string) string {
		return event(object{"choices": []any{object{"index": 0, "delta": object{}, "finish_reason": word}}})
	}
	call := func(id any, args string) object {
		return object{"id": id, "type": "function", "function": object{"name": "bash", "arguments": args}}
	}
	numbered := func(c object, index any) object { c["index"] = index; return c }
	const done = "data: [DONE]\n\n"
	said := message.Output{Text: "half", Finish: message.FinishStop}
	called := func(ids ...string) message.Output {
		return message.Output{Calls: two(ids...), Finish: message.FinishToolCalls}
	}
	return map[string]quirk{
		"no [DONE]":    {"some hang up behind the finish", w.Begun("half") + end("stop"), said},
		"two finishes": {"some finish twice", w.Begun("half") + end("length") + end("stop") + done, message.Output{Text: "half", Finish: message.FinishLength}},
		"usage with the finish": {
			"some have no chunk of its own for it",
			w.Begun("half") + event(object{"choices": []any{object{"index": 0, "delta": object{}, "finish_reason": "stop"}}, "usage": object{"prompt_tokens": 3, "completion_tokens": 2}}) + done,
			message.Output{Text: "half", Finish: message.FinishStop, Usage: message.Usage{Input: 3, Output: 2}},
		},
		"numbers as strings": {
			"the JSON of protobuf has long numbers in strings",
			w.Begun("half") + end("stop") + event(object{"choices": []any{}, "usage": object{"prompt_tokens": "3", "completion_tokens": "2"}}) + done,
			message.Output{Text: "half", Finish: message.FinishStop, Usage: message.Usage{Input: 3, Output: 2}},
		},
		"one message": {
			"some do not stream",
			string(encode(object{"object": "chat.completion", "choices": []any{object{"index": 0, "message": object{"role": "assistant", "content": "half", "refusal": nil}, "finish_reason": "stop"}}})),
			said,
		},
		"stop with calls":      {"some say stop and call", delta(object{"tool_calls": []any{numbered(call("a", `{"x":1}`), 0), numbered(call("b", `{"x":2}`), 1)}}) + end("stop") + done, called("a", "b")},
		"no index":             {"some send whole calls without one", delta(object{"tool_calls": []any{call("a", `{"x":1}`), call("b", `{"x":2}`)}}) + end("tool_calls") + done, called("a", "b")},
		"one index":            {"some give every call the index 0", delta(object{"tool_calls": []any{numbered(call("a", `{"x":1}`), 0)}}) + delta(object{"tool_calls": []any{numbered(call("b", `{"x":2}`), 0)}}) + end("tool_calls") + done, called("a", "b")},
		"empty ids":            {"some have none", delta(object{"tool_calls": []any{numbered(call("", `{"x":1}`), 0)}}) + delta(object{"tool_calls": []any{numbered(call(nil, `{"x":2}`), 1)}}) + end("tool_calls") + done, called()},
		"function_call":        {"the old form", delta(object{"function_call": object{"name": "bash", "arguments": `{"x":1}`}}) + end("function_call") + done, message.Output{Calls: two()[:1], Finish: message.FinishToolCalls}},
		"arguments are object": {"it has one reading only", delta(object{"tool_calls": []any{object{"index": 0, "id": "a", "function": object{"name": "bash", "arguments": object{"x": 1}}}}}) + end("tool_calls") + done, message.Output{Calls: two("a")[:1], Finish: message.FinishToolCalls}},
		"reasoning":            {"another name for the same", delta(object{"reasoning": "hm"}) + w.Begun("half") + end("stop") + done, message.Output{Reasoning: "hm", Text: "half", Finish: message.FinishStop}},
		"refusal":              {"a refusal is what the model says", delta(object{"refusal": "half"}) + end("stop") + done, said},
	}
}

func (w responses) quirks() map[string]quirk {
	part := object{"type": "output_text", "text": "half", "annotations": []any{}}
	item := object{"id": "msg_0", "type": "message", "status": "completed", "role": "assistant", "content": []any{part}}
	call := func(id, args string) object {
		return object{"id": "fc_" + id, "type": "function_call", "status": "completed", "call_id": id, "name": "bash", "arguments": args}
	}
	completed := func(items ...any) string {
		return w.event("response.completed", object{"response": w.response("completed", items)})
	}
	added := func(at int, item object) string {
		return w.event("response.output_item.added", object{"output_index": at, "item": item})
	}
	done := func(at int, item object) string {
		return w.event("response.output_item.done", object{"output_index": at, "item": item})
	}
	created := w.event("response.created", object{"response": w.response("in_progress", nil)})
	calls := message.Output{Calls: two("a", "b"), Finish: message.FinishToolCalls}
	said := message.Output{Text: "half", Finish: message.FinishStop}
	incomplete := w.response("incomplete", []any{item})
	incomplete["incomplete_details"] = object{"reason": "max_output_tokens"}
	refused := object{"item_id": "msg_0", "output_index": 0, "content_index": 0}
	thought := object{"item_id": "rs_0", "output_index": 0, "content_index": 0, "delta": "hm"}
	return map[string]quirk{
		"only whole items":       {"some servers send no pieces", created + done(0, call("a", `{"x":1}`)) + done(1, call("b", `{"x":2}`)) + completed(call("a", `{"x":1}`), call("b", `{"x":2}`)), calls},
		"only the end":           {"nor items", created + completed(item), said},
		"no output in the end":   {"proxies leave it out", w.Begun("half") + completed(), said},
		"numbers as strings":     {"the JSON of protobuf has long numbers in strings", w.Begun("half") + w.event("response.completed", object{"response": object{"status": "completed", "output": []any{}, "usage": object{"input_tokens": "3", "output_tokens": "2"}}}), message.Output{Text: "half", Finish: message.FinishStop, Usage: message.Usage{Input: 3, Output: 2}}},
		"one response":           {"some do not stream", string(encode(w.response("completed", []any{item}))), said},
		"one cut response":       {"nor do they here", string(encode(incomplete)), message.Output{Text: "half", Finish: message.FinishLength}},
		"two ends":               {"the first one counts", w.Begun("half") + completed(item) + w.event("response.incomplete", object{"response": incomplete}), message.Output{Text: "half"}},
		"arguments at once":      {"some send them with the item", created + added(0, call("a", `{"x":1}`)) + done(0, call("a", `{"x":1}`)) + completed(call("a", `{"x":1}`)), message.Output{Calls: two("a")[:1], Finish: message.FinishToolCalls}},
		"arguments when done":    {"some send no pieces of them", created + added(0, call("a", "")) + w.event("response.function_call_arguments.done", object{"item_id": "fc_a", "output_index": 0, "arguments": `{"x":1}`}) + completed(), message.Output{Calls: two("a")[:1], Finish: message.FinishToolCalls}},
		"interleaved calls":      {"pieces of two calls alternate", created + added(0, call("a", "")) + added(1, call("b", "")) + w.piece("fc_a", 0, `{"x":`) + w.piece("fc_b", 1, `{"x":`) + w.piece("fc_a", 0, `1}`) + w.piece("fc_b", 1, `2}`) + completed(call("a", `{"x":1}`), call("b", `{"x":2}`)), calls},
		"refusal":                {"a refusal is what the model says", created + w.event("response.refusal.delta", with(refused, "delta", "half")) + w.event("response.refusal.done", with(refused, "refusal", "half")) + completed(), said},
		"open reasoning":         {"models that hide nothing send the thought itself", created + w.event("response.reasoning_text.delta", thought) + w.Begun("half") + completed(), message.Output{Reasoning: "hm", Text: "half", Finish: message.FinishStop}},
		"no numbers, no indexes": {"some leave out what the client needs for nothing", created + event(object{"type": "response.output_text.delta", "delta": "half"}) + event(object{"type": "response.completed", "response": object{"status": "completed"}}), said},
	}
}

// piece is a piece of a call's arguments.
func (w responses) piece(id string, at int, s string) string {
	return w.event("response.function_call_arguments.delta", object{"item_id": id, "output_index": at, "delta": s})
}

// with is an object with one member more.
func with(o object, name string, v any) object {
	o = maps.Clone(o)
	o[name] = v
	return o
}

func (w anthropic) quirks() map[string]quirk {
	var start messageStream
	w.start(&start, nil)
	block := func(at int, b object, deltas ...object) string {
		s := w.event("content_block_start", object{"index": at, "content_block": b})
		for _, d := range deltas {
			s += w.event("content_block_delta", object{"index": at, "delta": d})
		}
		return s + w.event("content_block_stop", object{"index": at})
	}
	use := func(id string, input object) object {
		return object{"type": "tool_use", "id": id, "name": "bash", "input": input}
	}
	end := func(word string) string {
		return w.event("message_delta", object{"delta": object{"stop_reason": word, "stop_sequence": nil}})
	}
	stop := w.event("message_stop", object{})
	text := func(s string) object { return object{"type": "text", "text": s} }
	said := message.Output{Text: "half", Finish: message.FinishStop}
	whole := object{
		"id": "msg_0", "type": "message", "role": "assistant", "model": "x", "content": []any{text("half"), use("a", object{"x": 1})}, "stop_reason": "tool_use",
		"usage": object{"input_tokens": 3, "output_tokens": 2},
	}
	one := message.Output{Calls: two("a")[:1], Finish: message.FinishToolCalls}
	none := message.Output{Calls: []message.CallRequest{{ID: "a", Tool: "bash", Args: "{}"}}, Finish: message.FinishToolCalls}
	return map[string]quirk{
		"text in the start":    {"some begin a block with its text", start.String() + block(0, text("half")) + end("end_turn") + stop, said},
		"input in the start":   {"some send arguments whole", start.String() + block(0, use("a", object{"x": 1})) + end("tool_use") + stop, one},
		"no input":             {"a call without arguments has no pieces", start.String() + block(0, use("a", object{}), object{"type": "input_json_delta", "partial_json": ""}) + end("tool_use") + stop, none},
		"no ids":               {"some have none", start.String() + block(0, use("", object{"x": 1})) + block(1, use("", object{"x": 2})) + end("tool_use") + stop, message.Output{Calls: two(), Finish: message.FinishToolCalls}},
		"two stop reasons":     {"counts are sent again and again, and a word with them", start.String() + block(0, text("half")) + end("max_tokens") + end("end_turn") + stop, message.Output{Text: "half"}},
		"no message_stop":      {"some hang up", start.String() + block(0, text("half")) + end("end_turn"), said},
		"one message":          {"some do not stream", string(encode(whole)), message.Output{Text: "half", Calls: two("a")[:1], Finish: message.FinishToolCalls, Usage: message.Usage{Input: 3, Output: 2}}},
		"unknown delta":        {"a later version may add to a block", start.String() + block(0, text(""), object{"type": "surprise_delta", "surprise": 1}, object{"type": "text_delta", "text": "half"}, object{"type": "citations_delta", "citation": object{"type": "char_location"}}) + end("end_turn") + stop, said},
		"unknown block":        {"tools of the API's own have blocks of their own", start.String() + block(0, object{"type": "server_tool_use", "id": "srvtoolu_0", "name": "web_search", "input": object{}}, object{"type": "input_json_delta", "partial_json": `{"q":1}`}) + block(1, text("half")) + end("end_turn") + stop, said},
		"texts in two blocks":  {"a citation begins a new one", start.String() + block(0, text("ha")) + block(1, text("lf")) + end("end_turn") + stop, said},
		"numbers as strings":   {"the JSON of protobuf has long numbers in strings", start.String() + block(0, text("half")) + w.event("message_delta", object{"delta": object{"stop_reason": "end_turn"}, "usage": object{"input_tokens": "3", "output_tokens": "2"}}) + stop, message.Output{Text: "half", Finish: message.FinishStop, Usage: message.Usage{Input: 3, Output: 2}}},
		"count of the end":     {"only the last count holds, and servers that know it late send it all there", start.String() + block(0, text("half")) + w.event("message_delta", object{"delta": object{"stop_reason": "end_turn"}, "usage": object{"input_tokens": 3, "output_tokens": 2, "cache_read_input_tokens": 1}}) + stop, message.Output{Text: "half", Finish: message.FinishStop, Usage: message.Usage{Input: 3, Output: 2, CacheRead: 1}}},
		"nothing but a reason": {"a turn may be empty", start.String() + end("end_turn") + stop, message.Output{Finish: message.FinishStop}},
	}
}

func (w gemini) quirks() map[string]quirk {
	answer := func(word string, parts ...any) string {
		c := object{"content": object{"role": "model", "parts": parts}, "index": 0}
		if word != "" {
			c["finishReason"] = word
		}
		return event(object{"candidates": []any{c}})
	}
	text := func(s string) object { return object{"text": s} }
	call := func(more object) object { more["name"] = "bash"; return object{"functionCall": more} }
	said := message.Output{Text: "half", Finish: message.FinishStop}
	calls := message.Output{Calls: two(), Finish: message.FinishToolCalls}
	none := message.Output{Calls: []message.CallRequest{{Tool: "bash", Args: "{}"}}, Finish: message.FinishToolCalls}
	return map[string]quirk{
		"no ids":                {"older models give none", answer("", call(object{"args": object{"x": 1}})) + answer("STOP", call(object{"args": object{"x": 2}})), calls},
		"all in one chunk":      {"a chunk may hold many parts", answer("STOP", object{"text": "hm", "thought": true}, text("ha"), text("lf"), call(object{"args": object{"x": 1}}), call(object{"args": object{"x": 2}})), message.Output{Reasoning: "hm", Text: "half", Calls: two(), Finish: message.FinishToolCalls}},
		"no arguments":          {"an empty object may be left out", answer("STOP", call(object{})), none},
		"two finish chunks":     {"the answer is whole either way", answer("", text("half")) + answer("MAX_TOKENS", text("")) + answer("STOP", text("")), message.Output{Text: "half"}},
		"finish without parts":  {"the last chunk may hold nothing else", answer("", text("half")) + event(object{"candidates": []any{object{"finishReason": "STOP", "index": 0}}}), said},
		"content without parts": {"nor its content", answer("", text("half")) + event(object{"candidates": []any{object{"content": object{"role": "model"}, "finishReason": "STOP"}}}), said},
		"no role, no index":     {"proxies leave them out", event(object{"candidates": []any{object{"content": object{"parts": []any{text("half")}}, "finishReason": "STOP"}}}), said},
		"numbers as strings":    {"the JSON of protobuf has long numbers in strings", answer("STOP", text("half")) + event(object{"usageMetadata": object{"promptTokenCount": "3", "candidatesTokenCount": "2"}}), message.Output{Text: "half", Finish: message.FinishStop, Usage: message.Usage{Input: 3, Output: 2}}},
		"usage behind the end":  {"some count in a chunk of its own", answer("STOP", text("half")) + event(object{"usageMetadata": object{"promptTokenCount": 3, "candidatesTokenCount": 2, "thoughtsTokenCount": 4}}), message.Output{Text: "half", Finish: message.FinishStop, Usage: message.Usage{Input: 3, Output: 6, Reasoning: 4}}},
		"one chunk":             {"some do not stream", strings.TrimSpace(strings.TrimPrefix(answer("STOP", text("half")), "data: ")), said},
		"other parts":           {"tools of the API's own have parts of their own", answer("STOP", object{"executableCode": object{"language": "PYTHON", "code": "1"}}, object{"codeExecutionResult": object{"outcome": "OUTCOME_OK", "output": "1"}}, text("half")), said},
	}
}
