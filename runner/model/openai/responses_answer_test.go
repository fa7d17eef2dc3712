package openai

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/httpapi"
)

const (
	completed = `{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":1,"output_tokens":2}}}`
	callAdded = `{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc_1","call_id":"a","name":"bash","arguments":""}}`
)

func textDelta(s string) string { return `{"type":"response.output_text.delta","delta":"` + s + `"}` }

func argsDelta(where, s string) string {
	return `{"type":"response.function_call_arguments.delta",` + where + `,"delta":"` + s + `"}`
}

func itemDone(index int, item string) string {
	return fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, index, item)
}

func itemAdded(index int, item string) string {
	return fmt.Sprintf(`{"type":"response.output_item.added","output_index":%d,"item":%s}`, index, item)
}

func newReply() *replyAnswer {
	return &replyAnswer{Gather: httpapi.NewGather(func(message.Delta) {})}
}

func reply(events ...string) (*message.Output, error) {
	a := newReply()
	for _, e := range events {
		if err := a.Event("", []byte(e)); err != nil {
			return nil, err
		}
	}
	if !a.Complete() || !a.Over() {
		return nil, errors.New("the answer is not complete")
	}
	return a.Output(), nil
}

func TestRepliesThatDiffer(t *testing.T) {
	usage := message.Usage{Input: 1, Output: 2}
	one := []message.CallRequest{{ID: "a", Tool: "bash", Args: `{"x":1}`}}
	thought := func(id string) string {
		return `{"type":"reasoning","id":"` + id + `","summary":[],"encrypted_content":"x"}`
	}
	for name, c := range map[string]struct {
		reason string
		events []string
		want   message.Output
	}{
		"deltas only":      {"some send no items for a text", []string{textDelta("a"), textDelta("b"), completed}, message.Output{Text: "ab"}},
		"items only":       {"some send no pieces", []string{itemDone(0, `{"type":"message","content":[{"type":"output_text","text":"ab"},{"type":"refusal","refusal":"c"}]}`), itemDone(1, `{"type":"function_call","call_id":"a","name":"bash","arguments":"{\"x\":1}"}`), completed}, message.Output{Text: "abc", Calls: one}},
		"end only":         {"some send all in the last event", []string{`{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"ab"}]},{"type":"function_call","call_id":"a","name":"bash","arguments":"{\"x\":1}"}],"usage":{"input_tokens":1,"output_tokens":2}}}`}, message.Output{Text: "ab", Calls: one}},
		"calls at end":     {"some stream the text and forget the calls", []string{textDelta("ab"), itemDone(0, `{"type":"message","content":[{"text":"ab"}]}`), `{"type":"response.completed","response":{"output":[{"type":"message","content":[{"type":"output_text","text":"ab"}]},{"type":"function_call","call_id":"a","name":"bash","arguments":"{\"x\":1}"}],"usage":{"input_tokens":1,"output_tokens":2}}}`}, message.Output{Text: "ab", Calls: one}},
		"no indexes":       {"the item's id is enough", []string{`{"type":"response.output_item.added","item":{"type":"function_call","id":"fc_1","call_id":"a","name":"bash","arguments":""}}`, argsDelta(`"item_id":"fc_1"`, `{\"x\":1}`), `{"type":"response.output_item.done","item":{"type":"function_call","id":"fc_1","call_id":"a","name":"bash","arguments":"{\"x\":1}"}}`, completed}, message.Output{Calls: one}},
		"ids that vary":    {"gateways give every event another id", []string{callAdded, argsDelta(`"item_id":"zz","output_index":0`, `{\"x\":1}`), itemDone(0, `{"type":"function_call","id":"yy","call_id":"a","name":"bash","arguments":"{\"x\":1}"}`), completed}, message.Output{Calls: one}},
		"no begin":         {"pieces of a call that has not begun are in its end again", []string{argsDelta(`"output_index":0`, `{\"x`), itemDone(0, `{"type":"function_call","id":"fc_1","call_id":"a","name":"bash","arguments":"{\"x\":1}"}`), completed}, message.Output{Calls: one}},
		"half in pieces":   {"the end has the rest", []string{callAdded, argsDelta(`"output_index":0`, `{\"x`), itemDone(0, `{"type":"function_call","call_id":"a","name":"bash","arguments":"{\"x\":1}"}`), completed}, message.Output{Calls: one}},
		"named at the end": {"some begin a call without a name", []string{itemAdded(0, `{"type":"function_call","id":"fc_1"}`), argsDelta(`"output_index":0`, `{\"x\":1}`), itemDone(0, `{"type":"function_call","id":"fc_1","call_id":"a","name":"bash","arguments":"{\"x\":1}"}`), completed}, message.Output{Calls: one}},
		"interleaved": {"the pieces of two calls alternate", []string{
			callAdded, itemAdded(1, `{"type":"function_call","id":"fc_2","call_id":"b","name":"bash"}`),
			argsDelta(`"output_index":1`, `{\"x\":`), argsDelta(`"output_index":0`, `{\"x\":1}`), argsDelta(`"output_index":1`, `2}`), completed,
		}, message.Output{Calls: append(one[:1:1], message.CallRequest{ID: "b", Tool: "bash", Args: `{"x":2}`})}},
		"arguments as object": {"an object has one reading only", []string{itemDone(0, `{"type":"function_call","call_id":"a","name":"bash","arguments":{"x":1}}`), completed}, message.Output{Calls: one}},
		"two messages": {"they are kept apart and counted", []string{
			itemAdded(0, `{"type":"message","phase":"commentary"}`), textDelta("ä"), itemDone(0, `{"type":"message","phase":"commentary","content":[{"type":"output_text","text":"ä"}]}`),
			itemDone(1, thought("rs_1")), itemAdded(2, `{"type":"message"}`), textDelta("b"), textDelta("c"), itemDone(2, `{"type":"message","phase":"final_answer","content":[{"text":"bc"}]}`), completed,
		}, message.Output{Text: "ä\n\nbc", TextMetadata: []byte(`[{"size":2,"phase":"commentary"},{"reasoning":[` + thought("rs_1") + `],"size":2,"phase":"final_answer"}]`)}},
		"an empty message": {"a message without a text is none, and what was thought waits for the next", []string{
			itemDone(0, thought("rs_1")), itemAdded(1, `{"type":"message"}`), itemDone(1, `{"type":"message","content":[]}`), itemDone(2, `{"type":"function_call","call_id":"a","name":"bash","arguments":"{\"x\":1}"}`), completed,
		}, message.Output{Calls: []message.CallRequest{{ID: "a", Tool: "bash", Args: `{"x":1}`, Metadata: []byte(`{"reasoning":[` + thought("rs_1") + `]}`)}}}},
		"two thoughts":    {"both belong to what follows", []string{itemDone(0, thought("rs_1")), itemDone(1, thought("rs_2")), textDelta("a"), completed}, message.Output{Text: "a", TextMetadata: []byte(`[{"reasoning":[` + thought("rs_1") + `,` + thought("rs_2") + `],"size":1}]`)}},
		"a lone thought":  {"nothing followed it: it cannot go back", []string{itemDone(0, `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"x"}`), completed}, message.Output{Reasoning: "hm"}},
		"nothing to keep": {"a thought without its content is only a name", []string{itemDone(0, `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":null}`), itemDone(1, `{"type":"reasoning","summary":[],"encrypted_content":"x"}`), textDelta("a"), completed}, message.Output{Text: "a"}},
		"open thought": {"open models think in clear", []string{
			itemAdded(0, `{"type":"reasoning","id":"rs_1"}`), `{"type":"response.reasoning_text.delta","delta":"hm"}`, itemDone(0, `{"type":"reasoning","id":"rs_1","status":"completed","content":[{"type":"reasoning_text","text":"hm"}]}`), textDelta("a"), completed,
		}, message.Output{Reasoning: "hm", Text: "a", TextMetadata: []byte(`[{"reasoning":[{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}],"size":1}]`)}},
		"parts of a summary": {"they are kept apart", []string{
			itemAdded(0, `{"type":"reasoning"}`), `{"type":"response.reasoning_summary_part.added","summary_index":0}`, `{"type":"response.reasoning_summary_text.delta","delta":"a"}`,
			`{"type":"response.reasoning_summary_part.added","summary_index":1}`, `{"type":"response.reasoning_summary_text.delta","delta":"b"}`, `{"type":"response.reasoning_summary_text.delta","delta":"c"}`, completed,
		}, message.Output{Reasoning: "a\n\nbc"}},
		"refusal":       {"what the model refuses with is what it says", []string{`{"type":"response.refusal.delta","delta":"no"}`, completed}, message.Output{Text: "no"}},
		"length":        {"cut calls stay cut", []string{callAdded, argsDelta(`"output_index":0`, `{\"x`), `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"usage":{"input_tokens":1,"output_tokens":2}}}`}, message.Output{Calls: []message.CallRequest{{ID: "a", Tool: "bash", Args: `{"x`}}, Finish: message.FinishLength}},
		"filter":        {"the filter's end", []string{textDelta("a"), `{"type":"response.incomplete","response":{"incomplete_details":{"reason":"content_filter"},"usage":{"input_tokens":1,"output_tokens":2}}}`}, message.Output{Text: "a", Finish: message.FinishContentFilter}},
		"no cause":      {"an end for a reason that nobody says", []string{textDelta("a"), `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":null,"usage":{"input_tokens":1,"output_tokens":2}}}`}, message.Output{Text: "a", Finish: message.FinishUnknown, Warnings: []string{"the model ended its answer with incomplete, which is not known to end a whole answer"}}},
		"half a call":   {"an item that is incomplete is none, whatever the response says", []string{callAdded, `{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"fc_1","call_id":"a","name":"bash","arguments":"","status":"incomplete"}}`, `{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":1,"output_tokens":2}}}`}, message.Output{Calls: []message.CallRequest{{ID: "a", Tool: "bash"}}, Finish: message.FinishUnknown, Warnings: []string{"the model ended its answer with a call that is incomplete, which is not known to end a whole answer"}}},
		"later version": {"events, items and members that nobody knows", []string{`{"type":"response.surprise","delta":{"a":1}}`, `{"type":"keepalive"}`, itemDone(0, `{"type":"surprise","content":5,"summary":"x","arguments":[1]}`), `{"type":"response.output_text.delta","delta":"a","surprise":[{}]}`, completed}, message.Output{Text: "a"}},
		"broken text":   {"bytes that are no text are replaced, in what goes back as well", []string{itemDone(0, "{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"\xff\"}],\"encrypted_content\":\"x\"}"), textDelta("a\xff"), completed}, message.Output{Reasoning: "\uFFFD", Text: "a\uFFFD", TextMetadata: []byte(`[{"reasoning":[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"` + "\uFFFD" + `"}],"encrypted_content":"x"}],"size":2}]`)}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := reply(c.events...)
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}
			if c.want.Finish == "" {
				c.want.Finish = message.FinishStop
				if len(c.want.Calls) > 0 {
					c.want.Finish = message.FinishToolCalls
				}
			}
			c.want.Usage = usage
			if d := cmp.Diff(&c.want, got); d != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, d)
			}
		})
	}
}

func TestWholeReplies(t *testing.T) {
	a := newReply()
	if err := a.Whole([]byte(`{"object":"response","status":"completed","error":null,"output":[{"type":"message","content":[{"type":"output_text","text":"hi"}]}]}`)); err != nil || !a.Complete() {
		t.Fatal(err)
	}
	if out := a.Output(); out.Text != "hi" || !out.Uncounted || out.Finish != message.FinishStop {
		t.Errorf("%+v", out)
	}
	for in, says := range map[string]string{
		`{"object":"response","status":"failed","error":{"code":"server_error","message":"it broke"}}`:   "it broke",
		`{"object":"response","status":"cancelled","output":[]}`:                                         "cancelled",
		`{"object":"response","status":"completed","output":[{"type":"function_call","arguments":[1]}]}`: "want a string",
		`{"error":{"message":"no such model"}}`:                                                          "no such model",
		`{"object":"chat.completion","choices":[]}`:                                                      "chat completions API",
		`{"candidates":[]}`: "Gemini API",
		`[1]`:               "want an object",
	} {
		if err := newReply().Whole([]byte(in)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", in, err, says)
		}
	}
}

func TestMalformedRepliesNameTheirPlace(t *testing.T) {
	for in, says := range map[string]string{
		`{"delta":"a"}`:                         "no type",
		`{"type":5}`:                            `"type": want a string`,
		`{"type":"response.output_text.delta"}`: "want a string",
		`{"type":"response.output_text.delta","delta":{"a":1}}`:                                              "want a string",
		`{"type":"response.function_call_arguments.delta","output_index":"0","delta":"x"}`:                   `"output_index": want a number`,
		`{"type":"response.output_item.added","item":5}`:                                                     "want an object",
		`{"type":"response.output_item.done"}`:                                                               "want an object",
		`{"type":"response.output_item.done","item":{"type":"function_call","arguments":7}}`:                 "want a string",
		`{"type":"response.output_item.done","item":{"type":"message","content":5}}`:                         "want an array",
		`{"type":"response.output_item.done","item":{"type":"reasoning","summary":["a"]}}`:                   "want an object",
		`{"type":"response.completed"}`:                                                                      "without a response",
		`{"type":"response.completed","response":5}`:                                                         "want an object",
		`{"type":"response.completed","response":{"output":{}}}`:                                             "want an array",
		`{"type":"response.completed","response":{"output":[5]}}`:                                            "want an object",
		`{"type":"response.completed","response":{"usage":{"input_tokens":[]}}}`:                             `"input_tokens": want a number`,
		`{"type":"response.failed","response":{"status":"failed","error":null}}`:                             "does not say why",
		`{"type":"response.cancelled","response":{"status":"cancelled"}}`:                                    "cancelled",
		`{"error":{"message":"upstream"}}`:                                                                   "upstream",
		`[DONE]`:                                                                                             "without an answer",
		`{"type":"message_start","message":{}}`:                                                              "Anthropic",
		`{"type":"content_block_delta","delta":{"type":"text_delta","text":"x"}}`:                            "Anthropic",
		`{"id":"c","object":"chat.completion.chunk","choices":[{"delta":{"content":"x"}}]}`:                  "chat completions",
		`{"candidates":[{"content":{"parts":[{"text":"x"}]}}]}`:                                              "Gemini",
		`{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`:                           "no",
		`{"type":"response.output_text.delta","delta":"a"} x`:                                                "text after the value",
		`{"type":"response.created","response":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`: "nested deeper",
	} {
		if _, err := reply(in); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", in, err, says)
		}
	}
}

func TestWrongAPIsAreNamed(t *testing.T) {
	chunk := `{"choices":[{"delta":{"content":"x"}}]}`
	for name, c := range map[string]struct {
		read func([]byte) error
		data string
		hint string
	}{
		"chat for responses":     {func(b []byte) error { return newReply().Event("", b) }, chunk, "spec.api: chat"},
		"messages for responses": {func(b []byte) error { return newReply().Event("", b) }, `{"type":"message_start"}`, "spec.provider: anthropic"},
		"gemini for responses":   {func(b []byte) error { return newReply().Event("", b) }, `{"usageMetadata":{}}`, "spec.provider: gemini"},
		"responses for chat":     {chatEvent, `{"type":"response.created","response":{}}`, "spec.api: responses"},
		"a response for chat":    {chatEvent, `{"object":"response","output":[]}`, "spec.api: responses"},
		"messages for chat":      {chatEvent, `{"type":"content_block_start"}`, "spec.provider: anthropic"},
		"gemini for chat":        {chatEvent, `{"candidates":[]}`, "spec.provider: gemini"},
	} {
		failed, ok := errors.AsType[*model.Error](c.read([]byte(c.data)))
		if !ok || failed.Kind != model.Never || failed.Class != "protocol" || !strings.Contains(failed.Hint, c.hint) {
			t.Errorf("%s: %+v, want a hint that says %s", name, failed, c.hint)
		}
	}
	if err := chatEvent([]byte(`{"type":"chunk","choices":[]}`)); err != nil {
		t.Errorf("a type of a server's own: %v", err)
	}
	if err := chatEvent([]byte(`{"type":{"response.":1},"choices":[]}`)); err != nil {
		t.Errorf("a type that is none: %v", err)
	}
}

func chatEvent(data []byte) error {
	return (&chatAnswer{Gather: httpapi.NewGather(func(message.Delta) {})}).Event("", data)
}

func TestRepliesAreBounded(t *testing.T) {
	a := newReply()
	var err error
	for i := 0; i < 5000 && err == nil; i++ {
		err = a.Event("", []byte(itemDone(i, fmt.Sprintf(`{"type":"function_call","call_id":"c%d","name":"x","arguments":"{}"}`, i))))
	}
	if err == nil || !strings.Contains(err.Error(), "more than 4096") {
		t.Errorf("too many calls: %v", err)
	}
	a, err = newReply(), nil
	big := itemDone(0, `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"`+strings.Repeat("x", 4<<20)+`"}`)
	for i := 0; i < 10 && err == nil; i++ {
		err = a.Event("", []byte(big))
	}
	if err == nil || !strings.Contains(err.Error(), "reasoning is longer") {
		t.Errorf("endless reasoning: %v", err)
	}
	a = newReply()
	for i := range 2 * maxMessages {
		if err := a.Event("", []byte(itemDone(i, `{"type":"message","content":[{"text":"x"}]}`))); err != nil {
			t.Fatal(err)
		}
	}
	if len(a.messages) != maxMessages || a.TextSize() == 0 {
		t.Errorf("%d messages in one answer", len(a.messages))
	}
}
