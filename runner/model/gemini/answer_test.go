package gemini

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/modeltest"
)

// chunk is an event with parts of the answer.
func chunk(parts string) string {
	return `{"candidates":[{"content":{"role":"model","parts":[` + parts + `]},"index":0}]}`
}

func finished(word string) string {
	return `{"candidates":[{"finishReason":"` + word + `","index":0}],"modelVersion":"x"}`
}

func quiet(message.Delta) error { return nil }

func gather(t *testing.T, chunks ...string) (*answer, error) {
	t.Helper()
	a := newAnswer(func(message.Delta) {}).(*answer)
	for _, c := range chunks {
		if err := a.Event("", []byte(c)); err != nil {
			return a, err
		}
	}
	return a, nil
}

func TestAnswersThatDiffer(t *testing.T) {
	stop := finished("STOP")
	call := func(id, args, metadata string) message.CallRequest {
		c := message.CallRequest{ID: id, Tool: "bash", Args: args}
		if metadata != "" {
			c.Metadata = json.RawMessage(`{"thoughtSignature":"` + metadata + `"}`)
		}
		return c
	}
	cases := map[string]struct {
		reason string
		chunks []string
		want   message.Output
	}{
		"pieces": {"text comes in parts", []string{chunk(`{"text":"a"},{"text":"b"}`), chunk(`{"text":"c"}`), stop}, message.Output{Text: "abc", Finish: message.FinishStop}},
		"thoughts": {"a summary of thoughts is no text, wherever the mark stands", []string{
			chunk(`{"text":"hm ","thought":true}`), chunk(`{"thought":true,"text":"so"},{"text":"x","thought":false}`), stop,
		}, message.Output{Text: "x", Reasoning: "hm so", Finish: message.FinishStop}},
		"calls": {"stop with calls is an answer with calls, in their order and their own spelling", []string{
			chunk(`{"functionCall":{"args":{"x": 1},"name":"bash","id":"a"},"thoughtSignature":"AA=="}`), chunk(`{"functionCall":{"id":"b","name":"bash","args":{"y":[{"z":"}"}]}}}`), stop,
		}, message.Output{Finish: message.FinishToolCalls, Calls: []message.CallRequest{call("a", `{"x": 1}`, "AA=="), call("b", `{"y":[{"z":"}"}]}`, "")}}},
		"no id": {"the API may give none, and no arguments", []string{
			chunk(`{"functionCall":{"name":"bash"}},{"functionCall":{"name":"bash","args":null,"id":""}}`), stop,
		}, message.Output{Finish: message.FinishToolCalls, Calls: []message.CallRequest{call("call_1", "{}", ""), call("call_2", "{}", "")}}},
		"no call": {"a null is none", []string{chunk(`{"functionCall":null,"text":"a"}`), stop}, message.Output{Text: "a", Finish: message.FinishStop}},
		"signed text": {"a signature says which bytes it stood on", []string{
			chunk(`{"text":"ä"}`), chunk(`{"text":"bc","thoughtSignature":"AA=="}`), chunk(`{"text":"","thoughtSignature":"BB=="}`), chunk(`{"thoughtSignature":"CC=="}`), stop,
		}, message.Output{Text: "äbc", Finish: message.FinishStop, TextMetadata: json.RawMessage(`{"signatures":[{"thoughtSignature":"AA==","from":2,"to":4},{"thoughtSignature":"BB==","from":4,"to":4},{"thoughtSignature":"CC==","from":4,"to":4}]}`)}},
		"signed thought": {"also on a thought", []string{chunk(`{"text":"a","thought":true},{"text":"b","thought":true,"thoughtSignature":"AA=="}`), stop}, message.Output{
			Reasoning: "ab", Finish: message.FinishStop, ReasoningMetadata: json.RawMessage(`{"signatures":[{"thoughtSignature":"AA==","from":1,"to":2}]}`),
		}},
		"unknown parts": {"what nobody knows is passed over, with its signature", []string{
			chunk(`{"executableCode":{"code":"1"},"thoughtSignature":"AA=="},{"inlineData":{"data":"AA=="}},{"text":"a","partMetadata":{"x":1}}`), stop,
		}, message.Output{Text: "a", Finish: message.FinishStop}},
		"one candidate": {"one answer was asked for", []string{`{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"},{"content":{"parts":[{"text":"b"}]},"index":1}]}`}, message.Output{Text: "a", Finish: message.FinishStop}},
		"every chunk stops": {"the word for the end on every chunk is not the end", []string{
			`{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}`, `{"candidates":[{"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}]}`,
		}, message.Output{Text: "ab", Finish: message.FinishStop}},
		"two ends":        {"the first one counts", []string{finished("MAX_TOKENS"), stop}, message.Output{Finish: message.FinishLength}},
		"no end yet":      {"an unspecified end is none", []string{finished("FINISH_REASON_UNSPECIFIED"), finished("SAFETY")}, message.Output{Finish: message.FinishContentFilter}},
		"done":            {"gateways say that it is done", []string{chunk(`{"text":"a"}`), stop, "[DONE]"}, message.Output{Text: "a", Finish: message.FinishStop}},
		"null members":    {"a member that is null is not there", []string{`{"candidates":null,"usageMetadata":null,"promptFeedback":null,"error":null}`, `{"candidates":[{"content":null,"finishReason":null}]}`, `{"candidates":[{"content":{"parts":null}}]}`, stop}, message.Output{Finish: message.FinishStop}},
		"split character": {"halves of a character in two chunks", []string{chunk("{\"text\":\"a\xe2\x98\"}"), chunk("{\"text\":\"\x83b\"}"), stop}, message.Output{Text: "a☃b", Finish: message.FinishStop}},
		"usage": {"cached tokens are no input, thoughts are output, the last report counts", []string{
			`{"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":1}}`,
			`{"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":40,"toolUsePromptTokenCount":7,"candidatesTokenCount":15,"thoughtsTokenCount":5,"totalTokenCount":127,"promptTokensDetails":[{"modality":"TEXT","tokenCount":100}]}}`, stop,
		}, message.Output{Finish: message.FinishStop, Usage: message.Usage{Input: 67, Output: 20, Reasoning: 5, CacheRead: 40}}},
		"more cached than sent": {"input is never negative", []string{`{"usageMetadata":{"promptTokenCount":10,"cachedContentTokenCount":40}}`, stop}, message.Output{Finish: message.FinishStop, Usage: message.Usage{CacheRead: 40}}},
		"odd usage": {"counts that cannot be count as none", []string{`{"usageMetadata":{"promptTokenCount":-5,"candidatesTokenCount":NaN,"thoughtsTokenCount":3.0}}`, stop}, message.Output{
			Finish: message.FinishStop, Usage: message.Usage{Output: 3, Reasoning: 3}, Warnings: []string{"the server reported promptTokenCount: -5; it counts as 0", "the server reported candidatesTokenCount: NaN; it counts as 0"},
		}},
		"mended usage": {"only the last report counts", []string{`{"usageMetadata":{"promptTokenCount":NaN}}`, `{"usageMetadata":{"promptTokenCount":3}}`, stop}, message.Output{Finish: message.FinishStop, Usage: message.Usage{Input: 3}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a, err := gather(t, c.chunks...)
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}
			if !a.Complete() || a.Over() {
				t.Errorf("%s: complete %v, over %v", c.reason, a.Complete(), a.Over())
			}
			c.want.Uncounted = !slices.ContainsFunc(c.chunks, func(s string) bool { return strings.Contains(s, `"usageMetadata":{`) })
			if d := cmp.Diff(&c.want, a.Output()); d != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, d)
			}
		})
	}
}

// What a call is signed with goes back with it, through the journal.
func TestAnswersComeBackAsTheyWere(t *testing.T) {
	parts := []string{
		`{"text":"I "},{"text":"look","thoughtSignature":"AA=="}`, `{"text":"","thoughtSignature":"BB=="}`,
		`{"functionCall":{"id":"a","name":"bash","args":{"x": 1}},"thoughtSignature":"CC=="}`, `{"functionCall":{"id":"b","name":"bash","args":{}}}`,
	}
	a, err := gather(t, chunk(parts[0]), chunk(parts[1]), chunk(parts[2]+","+parts[3]), finished("STOP"))
	if err != nil {
		t.Fatal(err)
	}
	c := open(t, strict, message.Prompt{})
	out := a.Output()
	out.Model = c.Self()
	if err := c.Append(modeltest.ToMessage(out, "m")); err != nil {
		t.Fatal(err)
	}
	want := `{"contents":[{"role":"model","parts":[` + strings.Join(parts, ",") + `]},`
	if got := request(c, c.end); !strings.HasPrefix(got, want) {
		t.Errorf("(-want +got):\n%s", cmp.Diff(want, got))
	}
}

func TestWholeAnswers(t *testing.T) {
	for name, body := range map[string]string{
		"object": `{"candidates":[{"content":{"parts":[{"text":"ab"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1}}`,
		"list":   `[` + chunk(`{"text":"a"}`) + "\n,\r\n" + chunk(`{"text":"b"}`) + `,{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1}}]`,
	} {
		a := newAnswer(func(message.Delta) {})
		if err := a.Whole([]byte(body)); err != nil || !a.Complete() {
			t.Fatalf("%s: %v, complete %v", name, err, a.Complete())
		}
		if d := cmp.Diff(&message.Output{Text: "ab", Finish: message.FinishStop, Usage: message.Usage{Input: 1}}, a.Output()); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	for name, body := range map[string]string{
		"without an end": chunk(`{"text":"a"}`), "empty list": `[]`, "no candidates": `{"candidates":[],"modelVersion":"x"}`,
	} {
		a := newAnswer(func(message.Delta) {})
		if err := a.Whole([]byte(body)); err != nil || a.Complete() {
			t.Errorf("%s: %v, complete %v", name, err, a.Complete())
		}
	}
}

func TestRefusalsInsideAnAnswer(t *testing.T) {
	begun := chunk(`{"text":"half"}`)
	for name, c := range map[string]struct {
		chunks []string
		want   reason.Reason
		says   string
	}{
		"blocked":          {[]string{`{"promptFeedback":{"safetyRatings":[],"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":5}}`}, reason.ContentFiltered, "SAFETY"},
		"blocked late":     {[]string{begun, `{"promptFeedback":{"blockReason":"OTHER"}}`}, reason.ContentFiltered, "OTHER"},
		"busy":             {[]string{begun, `{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}`}, reason.ProviderUnavailable, "overloaded"},
		"bad key":          {[]string{`{"error":{"code":400,"message":"API key not valid","details":[{"reason":"API_KEY_INVALID"}]}}`}, reason.CredentialRejected, "not valid"},
		"error as a text":  {[]string{`{"error":"no"}`}, reason.ModelError, "no"},
		"after the answer": {[]string{finished("STOP"), `{"error":{"code":500,"message":"broke"}}`}, reason.ProviderUnavailable, "broke"},
	} {
		_, err := gather(t, c.chunks...)
		failed, ok := err.(*model.Error) //nolint:errorlint // Event returns it bare
		if !ok || failed.Reason() != c.want || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, whole := range map[string]string{
		"list": `[` + begun + `,{"error":{"code":503,"message":"overloaded"}}]`, "object": `{"error":{"code":503,"message":"overloaded"}}`,
	} {
		err := newAnswer(func(message.Delta) {}).Whole([]byte(whole))
		if failed, ok := err.(*model.Error); !ok || failed.Kind != model.Retryable { //nolint:errorlint // Whole returns it bare
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := newAnswer(nil).Event("error", []byte(`{"message":"it broke"}`)); err == nil || !strings.Contains(err.Error(), "it broke") {
		t.Errorf("an event that is an error: %v", err)
	}
	if _, err := gather(t, `{"promptFeedback":{"blockReason":"BLOCK_REASON_UNSPECIFIED"}}`, `{}`); err != nil {
		t.Errorf("no reason is no block: %v", err)
	}
}

func TestMalformedChunksNameTheirPlace(t *testing.T) {
	for _, c := range []struct{ in, says string }{
		{`{"candidates":{}}`, `"candidates": want an array, got an object`},
		{chunk(`{"text":5}`), `"text": want a string, got a number`},
		{chunk(`"a"`), "want an object, got a string"},
		{chunk(`{"functionCall":{"name":"a","args":"{}"}}`), "functionCall.args: want an object"},
		{chunk(`{"functionCall":[]}`), "want an object"},
		{chunk(`{"functionCall":{"name":"a","partialArgs":[{"a":1}]}}`), "in pieces"},
		{chunk(`{"text":"a","thoughtSignature":7}`), `"thoughtSignature": want a string`},
		{`{"usageMetadata":{"promptTokenCount":[]}}`, `"promptTokenCount": want a number, got an array`},
		{`{"candidates":[{"content":{"parts":[{"text":"a`, "string without an end"},
		{`{"candidates":[]} x`, "text after the value"},
		{`[]`, "want an object, got an array"},
		{`{"choices":[{"delta":{"content":"a"}}],"object":"chat.completion.chunk"}`, "nothing that this API sends"},
		{`{"type":"message_stop"}`, "nothing that this API sends"},
	} {
		if _, err := gather(t, c.in); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.in, err, c.says)
		}
	}
}

func TestAnswersAreBounded(t *testing.T) {
	calls := strings.TrimSuffix(strings.Repeat(`{"functionCall":{"name":"a"}},`, 4097), ",")
	if _, err := gather(t, chunk(calls)); err == nil || !strings.Contains(err.Error(), "more than 4096") {
		t.Errorf("too many calls: %v", err)
	}
	for name, c := range map[string]string{
		"text": chunk(`{"text":"` + strings.Repeat("x", 4<<20) + `"}`), "thoughts": chunk(`{"thought":true,"text":"` + strings.Repeat("x", 4<<20) + `"}`),
		"arguments": chunk(`{"functionCall":{"name":"a","args":{"a":"` + strings.Repeat("x", 4<<20) + `"}}}`), "signatures": chunk(`{"text":"","thoughtSignature":"` + strings.Repeat("x", 1<<20) + `"}`),
	} {
		if _, err := gather(t, slices.Repeat([]string{c}, 10)...); err == nil || !strings.Contains(err.Error(), "longer than") {
			t.Errorf("endless %s: %v", name, err)
		}
	}
}
