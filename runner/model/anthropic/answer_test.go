package anthropic

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/httpapi"
	"agentctl.dev/agentctl/runner/model/modeltest"
)

// stream writes events, each with the name that its type says.
func stream(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString("data: " + e + "\n\n")
	}
	return b.String()
}

const (
	startText = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	hello     = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}`
	endTurn   = `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`
	stop      = `{"type":"message_stop"}`
)

// readAnswer reads a body as the answer to the first request.
func readAnswer(t testing.TB, body string) (*message.Output, error) {
	t.Helper()
	c, err := New(httpapi.Config{Name: "m", Model: "x", Transport: &modeltest.Played{Streams: []io.Reader{strings.NewReader(body)}}, Retry: model.Retry{Attempts: 1}}, message.Prompt{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.Next(t.Context(), message.Request{}, quiet)
	if err == nil {
		out.Model = message.ModelRef{}
	}
	return out, err
}

func begins(index, content string) string {
	return `{"type":"content_block_start","index":` + index + `,"content_block":` + content + `}`
}

func adds(index, content string) string {
	return `{"type":"content_block_delta","index":` + index + `,"delta":` + content + `}`
}

func TestStreamsThatAreReadAllTheSame(t *testing.T) {
	text := &message.Output{Text: "hello", Finish: message.FinishStop, Uncounted: true}
	call := func(args string) *message.Output {
		return &message.Output{Calls: []message.CallRequest{{ID: "a", Tool: "ls", Args: args}}, Finish: message.FinishToolCalls, Uncounted: true}
	}
	thought := func(out message.Output, reasoning, metadata string) *message.Output {
		out.Reasoning, out.ReasoningMetadata = reasoning, json.RawMessage(metadata)
		return &out
	}
	with := func(usage message.Usage) *message.Output {
		return &message.Output{Text: "hello", Finish: message.FinishStop, Usage: usage}
	}
	use := `{"type":"tool_use","id":"a","name":"ls","input":{}}`
	cases := map[string]struct {
		reason string
		stream string
		want   *message.Output
	}{
		"plain":           {"a text", stream(startText, hello, endTurn, stop), text},
		"type last":       {"the type may stand anywhere", stream(startText, `{"index":0,"delta":{"text":"hello","type":"text_delta"},"type":"content_block_delta"}`, endTurn, stop), text},
		"type in name":    {"or in the name of the event alone", stream(startText) + "event: content_block_delta\ndata: {\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"hello\"}}\n\n" + stream(endTurn, stop), text},
		"text at once":    {"a block may begin with its text", stream(begins("0", `{"type":"text","text":"hello"}`), endTurn, stop), text},
		"no stop":         {"the word for the end is the end", stream(startText, hello, endTurn), text},
		"done":            {"some add the end of another API", stream(startText, hello, endTurn, "[DONE]"), text},
		"first word":      {"the first word for the end holds", stream(startText, hello, endTurn, `{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}`, stop), text},
		"null word":       {"null is none", stream(startText, hello, `{"type":"message_delta","delta":{"stop_reason":null}}`, endTurn, stop), text},
		"other blocks":    {"what nobody asked for is kept for a turn that is paused", stream(begins("0", `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`), adds("0", `{"type":"input_json_delta","partial_json":"{}"}`), `{"type":"content_block_stop","index":0}`, begins("1", `{"type":"web_search_tool_result","content":[{"text":"x"}]}`), begins("2", `{"type":"text","text":""}`), adds("2", `{"type":"citations_delta","citation":{"text":"no"}}`), adds("2", `{"type":"text_delta","text":"hello"}`), endTurn, stop), &message.Output{Text: "hello", Finish: message.FinishStop, Uncounted: true, ReasoningMetadata: json.RawMessage(`{"blocks":[{"other":{"id":"s","input":{},"name":"web_search","type":"server_tool_use"}},{"other":{"type":"web_search_tool_result","content":[{"text":"x"}]}}]}`)}},
		"odd members":     {"members of another type are passed over", stream(begins("0", `{"type":"text","text":null,"id":7,"name":{},"data":[]}`), hello, endTurn, stop), text},
		"same index":      {"a server that gives all the same index is understood", stream(startText, hello, begins("0", use), adds("0", `{"type":"input_json_delta","partial_json":"{\"a\":1}"}`), endTurn, stop), &message.Output{Text: "hello", Calls: call(`{"a":1}`).Calls, Finish: message.FinishToolCalls, Uncounted: true}},
		"no arguments":    {"a call without arguments has an empty object", stream(begins("0", use), adds("0", `{"type":"input_json_delta","partial_json":""}`), `{"type":"content_block_stop","index":0}`, endTurn, stop), call("{}")},
		"whole arguments": {"arguments may come with the beginning", stream(begins("0", `{"type":"tool_use","id":"a","name":"ls","input":{"a": 1}}`), `{"type":"content_block_stop","index":0}`, endTurn, stop), call(`{"a": 1}`)},
		"never ended":     {"a block that is never ended ends with the answer", stream(begins("0", `{"type":"tool_use","id":"a","name":"ls","input":{"a":1}}`), endTurn, stop), call(`{"a":1}`)},
		"cut call":        {"a call that was cut in front of its arguments cannot run", stream(startText, hello, begins("1", use), `{"type":"content_block_stop","index":1}`, `{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}`, stop), &message.Output{Text: "hello", Calls: call("{").Calls, Finish: message.FinishLength, Uncounted: true}},
		"cut text":        {"but one in front of what was cut can", stream(begins("1", use), startText, hello, `{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}`, stop), &message.Output{Text: "hello", Calls: call("{}").Calls, Finish: message.FinishLength, Uncounted: true}},
		"odd input":       {"an input that is no object is none", stream(begins("0", `{"type":"tool_use","id":"a","name":"ls","input":""}`), adds("0", `{"type":"input_json_delta","partial_json":"{\"b\":2}"}`), endTurn, stop), call(`{"b":2}`)},
		"redacted":        {"what only the API can read is kept", stream(begins("0", `{"type":"redacted_thinking","data":"x"}`), begins("1", `{"type":"text","text":"hello"}`), endTurn, stop), thought(*text, "", `{"blocks":[{"redacted":"x"}]}`)},
		"signed at once":  {"a thought may come whole", stream(begins("0", `{"type":"thinking","thinking":"hm","signature":"s"}`), begins("1", `{"type":"text","text":"hello"}`), endTurn, stop), thought(*text, "hm", `{"blocks":[{"thinking":2,"signature":"s"}]}`)},
		"omitted":         {"a thought may have no text", stream(begins("0", `{"type":"thinking","thinking":"","signature":""}`), adds("0", `{"type":"signature_delta","signature":"s"}`), begins("1", `{"type":"text","text":"hello"}`), endTurn, stop), thought(*text, "", `{"blocks":[{"thinking":0,"signature":"s"}]}`)},
		"empty thought":   {"an empty one is none", stream(begins("0", `{"type":"thinking","thinking":"","signature":""}`), begins("1", `{"type":"text","text":"hello"}`), endTurn, stop), text},
		"between":         {"thoughts keep their place", stream(begins("0", `{"type":"thinking","thinking":"hm","signature":"s"}`), begins("1", `{"type":"text","text":"hello"}`), begins("2", use), begins("3", `{"type":"thinking","thinking":"so","signature":"t"}`), endTurn, stop), thought(message.Output{Text: "hello", Calls: call("{}").Calls, Finish: message.FinishToolCalls, Uncounted: true}, "hmso", `{"blocks":[{"thinking":2,"signature":"s"},{"text":5},{"calls":1},{"thinking":2,"signature":"t"}]}`)},
		"torn":            {"thoughts that came through each other cannot go back", stream(begins("0", `{"type":"thinking","thinking":"h","signature":"s"}`), begins("1", `{"type":"thinking","thinking":"so","signature":"t"}`), adds("0", `{"type":"thinking_delta","thinking":"m"}`), begins("2", `{"type":"text","text":"hello"}`), endTurn, stop), thought(*text, "hsom", "")},
		"counted":         {"the last count of each holds", stream(`{"type":"message_start","message":{"usage":{"input_tokens":7,"cache_read_input_tokens":3,"cache_creation_input_tokens":2,"output_tokens":1}}}`, startText, hello, `{"type":"message_delta","delta":{},"usage":{"output_tokens":4}}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":8,"cache_read_input_tokens":null,"output_tokens":9,"output_tokens_details":{"thinking_tokens":5,"odd":1}}}`, stop), with(message.Usage{Input: 8, Output: 9, Reasoning: 5, CacheRead: 3, CacheWrite: 2})},
		"too much":        {"what was thought is a part of what was said", stream(startText, hello, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4,"output_tokens_details":{"thinking_tokens":50}}}`, stop), with(message.Usage{Output: 4, Reasoning: 4})},
		"no usage":        {"null is no count", stream(`{"type":"message_start","message":{"usage":null}}`, startText, hello, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":null}`, stop), text},
		"whole":           {"a server may not stream at all", `{"type":"message","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"hello"},{"type":"tool_use","id":"a","name":"ls","input":{"a":1}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":4},"error":null}`, thought(message.Output{Text: "hello", Calls: call(`{"a":1}`).Calls, Finish: message.FinishToolCalls, Usage: message.Usage{Input: 3, Output: 4}}, "hm", `{"blocks":[{"thinking":2,"signature":"s"}]}`)},
	}
	for name, c := range cases {
		got, err := readAnswer(t, c.stream)
		if err != nil {
			t.Errorf("%s: %s: %v", name, c.reason, err)
			continue
		}
		if len(c.want.ReasoningMetadata) == 0 {
			c.want.ReasoningMetadata = nil
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, c.reason, d)
		}
	}
}

func TestCountsThatCannotBe(t *testing.T) {
	out, err := readAnswer(t, stream(
		`{"type":"message_start","message":{"usage":{"input_tokens":-5,"cache_read_input_tokens":NaN}}}`, startText, hello,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":-5,"output_tokens":4}}`, stop))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"the server reported input_tokens: -5; it counts as 0", "the server reported cache_read_input_tokens: NaN; it counts as 0"}
	if d := cmp.Diff(want, out.Warnings); d != "" || out.Usage != (message.Usage{Output: 4}) {
		t.Errorf("usage %+v, warnings (-want +got):\n%s", out.Usage, d)
	}
}

func TestStreamsThatAreRefused(t *testing.T) {
	many := make([]string, maxBlocks+1)
	for i := range many {
		many[i] = startText
	}
	calls := make([]string, 4097)
	for i := range calls {
		calls[i] = begins("0", `{"type":"tool_use","id":"a","name":"ls","input":{}}`)
	}
	long := strings.Repeat("x", 4<<20)
	sign := adds("0", `{"type":"signature_delta","signature":"`+long+`"}`)
	cases := map[string]struct {
		stream string
		want   reason.Reason
		says   string
	}{
		"no type":           {stream(`{"index":0}`), reason.ModelError, "no type"},
		"no event":          {stream(`{"type":7}`), reason.ModelError, "want a string"},
		"late garbage":      {stream(`{"index":"x","type":"content_block_delta"}`), reason.ModelError, "want a number"},
		"other API":         {stream(`{"type":"response.created","response":{}}`), reason.ModelError, "responses API"},
		"done too early":    {stream(startText, hello, "[DONE]"), reason.ModelError, "without an answer"},
		"gateway's own":     {stream(startText, `{"error":{"message":"it broke"}}`), reason.ModelError, "it broke"},
		"wrong block":       {stream(startText, adds("0", `{"type":"input_json_delta","partial_json":"{"}`)), reason.ModelError, "another type"},
		"no such block":     {stream(startText, adds("1", `{"type":"text_delta","text":"x"}`)), reason.ModelError, "has not begun"},
		"too many blocks":   {stream(many...), reason.ModelError, "blocks"},
		"too many calls":    {stream(calls...), reason.ModelError, "tool calls"},
		"long signature":    {stream(begins("0", `{"type":"thinking","thinking":""}`), sign, sign, sign), reason.ModelError, "signatures"},
		"long data":         {stream(begins("0", `{"type":"redacted_thinking","data":"`+long+`"}`), begins("1", `{"type":"redacted_thinking","data":"`+long+`"}`), begins("2", `{"type":"redacted_thinking","data":"x"}`)), reason.ModelError, "signatures"},
		"whole error":       {`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, reason.ProviderUnavailable, "Overloaded"},
		"stop alone":        {stream(startText, hello, stop), reason.ProviderUnavailable, "finish reason"},
		"whole, unended":    {`{"type":"message","content":[{"type":"text","text":"hello"}],"stop_reason":null}`, reason.ModelError, "finish reason"},
		"whole, other":      {`{"type":"list","data":[]}`, reason.ModelError, "no answer"},
		"whole, broken":     {`{"type":"message","content":[{"type":"text","text":5}`, reason.ModelError, ""},
		"whole, bad blocks": {`{"type":"message","content":[5]}`, reason.ModelError, "want an object"},
	}
	for name, c := range cases {
		out, err := readAnswer(t, c.stream)
		if reason.Of(err) != c.want || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %+v, %v, want %s and %q", name, out, err, c.want, c.says)
		}
	}
}

// The vendor's own client reads the same from a stream.
func TestAnswersAreWhatTheSDKReads(t *testing.T) {
	for _, a := range []modeltest.Answer{
		{Text: "☃ \"quoted\" \\ and\nlines.", Reasoning: "I think.", Calls: []modeltest.Call{{ID: "call_a", Tool: "bash", Args: `{"command":"ls \"ü\""}`}}, Usage: &modeltest.Usage{Prompt: 100, Completion: 20, Cached: 40, CacheWrite: 25, Reasoning: 5}, TextSize: 3, ArgsSize: 2},
		{Text: "ok", Hidden: true},
		{Text: "ok", Finish: "refusal", Usage: &modeltest.Usage{Prompt: 1}},
	} {
		body := modeltest.Anthropic.Stream(a)
		got, err := readAnswer(t, string(body))
		if err != nil {
			t.Fatal(err)
		}
		var m sdk.Message
		for line := range strings.SplitSeq(string(body), "\n") {
			data, ok := strings.CutPrefix(line, "data: ")
			if !ok {
				continue
			}
			var e sdk.MessageStreamEventUnion
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				t.Fatal(err)
			}
			if err := m.Accumulate(e); err != nil {
				t.Fatal(err)
			}
		}
		want := &message.Output{
			Finish: endings.Finish(string(m.StopReason)), Uncounted: a.Usage == nil, ReasoningMetadata: got.ReasoningMetadata,
			Usage: message.Usage{
				Input: m.Usage.InputTokens, Output: m.Usage.OutputTokens, Reasoning: m.Usage.OutputTokensDetails.ThinkingTokens,
				CacheRead: m.Usage.CacheReadInputTokens, CacheWrite: m.Usage.CacheCreationInputTokens,
			},
		}
		for _, b := range m.Content {
			want.Text += b.Text
			want.Reasoning += b.Thinking
			if b.Type == "tool_use" {
				want.Calls = append(want.Calls, message.CallRequest{ID: b.ID, Tool: b.Name, Args: string(b.Input)})
			}
			if sign := b.Signature + b.Data; !strings.Contains(string(got.ReasoningMetadata), sign) {
				t.Errorf("the signature %q is not kept: %s", sign, got.ReasoningMetadata)
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-SDK +ours):\n%s", d)
		}
	}
}

// The vendor's own types read the request that we write, and lose nothing of it.
func TestRequestsAreWhatTheSDKWrites(t *testing.T) {
	body := request(appendAll(t, conversation(t), modeltest.Conversation(t)))
	var params sdk.MessageNewParams
	if err := json.Unmarshal(body, &params); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	var want, got map[string]any
	if err := json.Unmarshal(body, &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(again, &got); err != nil {
		t.Fatal(err)
	}
	delete(want, "stream") // the SDK adds it to a request that streams
	// A result's content may be a text; the SDK writes it as a list of one.
	listed(want)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-ours +SDK):\n%s", d)
	}
}

// listed writes every content that is a text as a list.
func listed(v any) {
	switch v := v.(type) {
	case map[string]any:
		if s, ok := v["content"].(string); ok {
			v["content"] = []any{map[string]any{"type": "text", "text": s}}
		}
		for _, m := range v {
			listed(m)
		}
	case []any:
		for _, m := range v {
			listed(m)
		}
	}
}
