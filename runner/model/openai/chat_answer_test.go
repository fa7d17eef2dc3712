package openai

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model/httpapi"
)

func delta(s string) string { return `{"choices":[{"index":0,"delta":` + s + `}]}` }

func finished(s string) string {
	return `{"choices":[{"index":0,"delta":{},"finish_reason":"` + s + `"}]}`
}

func TestServersThatDiffer(t *testing.T) {
	two := []message.CallRequest{{ID: "a", Tool: "bash", Args: `{"x":1}`}, {ID: "b", Tool: "bash", Args: `{"x":2}`}}
	wanted := json.RawMessage(`{"member":"reasoning_content"}`)
	cases := map[string]struct {
		reason string
		chunks []string
		want   message.Output
	}{
		"names repeated": {"some send id and name with every fragment", []string{
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"bash","arguments":"{\"x\""}}]}`),
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"bash","arguments":":1}"}}]}`),
		}, message.Output{Calls: two[:1], Finish: message.FinishToolCalls}},
		"ids that change": {"some make up a new id for every fragment", []string{
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"bash","arguments":"{\"x\""}}]}`),
			delta(`{"tool_calls":[{"index":0,"id":"zzz","function":{"arguments":":1}"}}]}`),
		}, message.Output{Calls: two[:1], Finish: message.FinishToolCalls}},
		"no index": {"some send whole calls without an index", []string{
			delta(`{"tool_calls":[{"id":"a","function":{"name":"bash","arguments":"{\"x\":1}"}},{"id":"b","function":{"name":"bash","arguments":"{\"x\":2}"}}]}`),
			finished("stop"),
		}, message.Output{Calls: two, Finish: message.FinishToolCalls}},
		"one index": {"some give every call the index 0", []string{
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"bash","arguments":"{\"x\":1}"}}]}`),
			delta(`{"tool_calls":[{"index":0,"id":"b","function":{"name":"bash","arguments":"{\"x\":2}"}}]}`),
		}, message.Output{Calls: two, Finish: message.FinishToolCalls}},
		"no index, no id": {"and some send neither", []string{
			delta(`{"tool_calls":[{"function":{"name":"bash","arguments":"{\"x\":1}"}}]}`),
			delta(`{"tool_calls":[{"index":null,"id":null,"function":{"name":"bash","arguments":"{\"x\":2}"}}]}`),
		}, message.Output{Calls: []message.CallRequest{{ID: "call_1", Tool: "bash", Args: `{"x":1}`}, {ID: "call_2", Tool: "bash", Args: `{"x":2}`}}, Finish: message.FinishToolCalls}},
		"fragments without index": {"a fragment without a name continues the last call", []string{
			delta(`{"tool_calls":[{"id":"a","function":{"name":"bash"}}]}`),
			delta(`{"tool_calls":[{"function":{"arguments":"{\"x\""}}]}`), delta(`{"tool_calls":[{"function":{"arguments":":1}"}}]}`),
		}, message.Output{Calls: two[:1], Finish: message.FinishToolCalls}},
		"interleaved": {"fragments of two calls alternate", []string{
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"bash","arguments":"{\"x\""}},{"index":1,"id":"b","function":{"name":"bash","arguments":"{\"x\""}}]}`),
			delta(`{"tool_calls":[{"index":1,"function":{"arguments":":2}"}},{"index":0,"function":{"arguments":":1}"}}]}`),
		}, message.Output{Calls: two, Finish: message.FinishToolCalls}},
		"odd indexes": {"indexes are names, not places in memory", []string{
			delta(`{"tool_calls":[{"index":1000000000,"id":"a","function":{"name":"bash","arguments":"{\"x\":1}"}}]}`),
			delta(`{"tool_calls":[{"index":7,"id":"b","function":{"name":"bash","arguments":"{\"x\":2}"}}]}`),
		}, message.Output{Calls: two, Finish: message.FinishToolCalls}},
		"name in pieces": {"a few stream the name", []string{
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"ba","arguments":""}}]}`),
			delta(`{"tool_calls":[{"index":0,"function":{"name":"sh","arguments":""}}]}`),
			delta(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":1}"}}]}`),
		}, message.Output{Calls: two[:1], Finish: message.FinishToolCalls}},
		"arguments as object": {"an object has one reading only", []string{
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"bash","arguments":{"x":1}}}]}`),
		}, message.Output{Calls: two[:1], Finish: message.FinishToolCalls}},
		"function_call": {"the old form", []string{
			delta(`{"function_call":{"name":"bash","arguments":"{\"x\""}}`), delta(`{"function_call":{"arguments":":1}"}}`), finished("function_call"),
		}, message.Output{Calls: []message.CallRequest{{ID: "call_1", Tool: "bash", Args: `{"x":1}`}}, Finish: message.FinishToolCalls}},
		"not streamed": {"a whole message", []string{
			`{"choices":[{"index":0,"message":{"role":"assistant","content":"hi","tool_calls":null,"refusal":null},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`,
		}, message.Output{Text: "hi", Finish: message.FinishStop, Usage: message.Usage{Input: 1, Output: 2}}},
		"content list": {"typed pieces", []string{
			delta(`{"content":[{"type":"text","text":"a"},{"type":"thinking","thinking":[{"type":"text"}]},{"type":"text","text":"b"}]}`), finished("stop"),
		}, message.Output{Text: "ab", Finish: message.FinishStop}},
		"reasoning twice": {"the same text under two names counts once", []string{
			delta(`{"reasoning":"th","reasoning_content":"th"}`), delta(`{"reasoning":"ink","reasoning_content":"ink","content":null}`), finished("stop"),
		}, message.Output{Reasoning: "think", ReasoningMetadata: wanted, Finish: message.FinishStop}},
		"extra": {"what is signed goes back with its call", []string{
			delta(`{"tool_calls":[{"index":0,"id":"a","extra_content":{"google": {"thought_signature":"AA=="}},"function":{"name":"bash","arguments":"{\"x\":1}"}},{"index":1,"id":"b","extra_content":null,"function":{"name":"bash","arguments":"{\"x\":2}"}}]}`),
			finished("tool_calls"),
		}, message.Output{Calls: []message.CallRequest{{ID: "a", Tool: "bash", Args: `{"x":1}`, Metadata: json.RawMessage(`{"extra_content":{"google":{"thought_signature":"AA=="}}}`)}, two[1]}, Finish: message.FinishToolCalls}},
		"reasoning":       {"nobody wants it back under this name", []string{delta(`{"reasoning":"think","reasoning_content":null}`), finished("stop")}, message.Output{Reasoning: "think", Finish: message.FinishStop}},
		"empty reasoning": {"a text without a thought is only a text", []string{delta(`{"reasoning_content":"","content":"a"}`), finished("stop")}, message.Output{Text: "a", Finish: message.FinishStop}},
		"call without a thought": {"a call wants back even the thought that it did without", []string{
			delta(`{"reasoning_content":"","tool_calls":[{"index":0,"id":"a","function":{"name":"bash","arguments":"{\"x\":1}"}}]}`), finished("tool_calls"),
		}, message.Output{Calls: two[:1], ReasoningMetadata: wanted, Finish: message.FinishToolCalls}},
		"two finishes": {"the first one counts", []string{finished("length"), finished("stop")}, message.Output{Finish: message.FinishLength}},
		"filter":       {"the filter's end", []string{finished("content_filter")}, message.Output{Finish: message.FinishContentFilter}},
		"unknown end":  {"a word nobody knows", []string{finished("because")}, message.Output{Finish: message.FinishUnknown, Warnings: []string{"the model ended its answer with because, which is not known to end a whole answer"}}},
		"length with calls": {"cut calls stay cut", []string{
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"bash","arguments":"{\"x\":"}}]}`), finished("length"),
		}, message.Output{Calls: []message.CallRequest{{ID: "a", Tool: "bash", Args: `{"x":`}}, Finish: message.FinishLength}},
		"split character": {"halves of a character in two chunks", []string{
			delta("{\"content\":\"a\xe2\x98\"}"), delta("{\"content\":\"\x83b\"}"), finished("stop"),
		}, message.Output{Text: "a☃b", Finish: message.FinishStop}},
		"broken text": {"bytes that are no text are replaced", []string{delta("{\"content\":\"a\xffb\"}"), finished("stop")}, message.Output{Text: "a\uFFFDb", Finish: message.FinishStop}},
		"escapes":     {"every escape", []string{delta(`{"content":"\"\\\/\b\f\n\r\t\u00e4\ud83d\ude00\ud83d"}`), finished("stop")}, message.Output{Text: "\"\\/\b\f\n\r\tä😀\uFFFD", Finish: message.FinishStop}},
		"usage twice": {"servers that report often count up", []string{
			`{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":1}}`, `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5.0}}`, finished("stop"),
		}, message.Output{Finish: message.FinishStop, Usage: message.Usage{Input: 10, Output: 5}}},
		"reasoning apart": {"a total that shows reasoning beside completion", []string{
			`{"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":22,"completion_tokens_details":{"reasoning_tokens":7}}}`, finished("stop"),
		}, message.Output{Finish: message.FinishStop, Usage: message.Usage{Input: 10, Output: 12, Reasoning: 7}}},
		"cache": {"reads and writes are no input", []string{
			`{"usage":{"prompt_tokens":100,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":60,"cache_write_tokens":30,"x":[1]}}}`, finished("stop"),
		}, message.Output{Finish: message.FinishStop, Usage: message.Usage{Input: 10, Output: 1, CacheRead: 60, CacheWrite: 30}}},
		"negative usage": {"a negative count is none", []string{`{"usage":{"prompt_tokens":-5,"completion_tokens":-1,"prompt_tokens_details":null}}`, finished("stop")}, message.Output{Finish: message.FinishStop, Warnings: []string{
			"the server reported prompt_tokens: -5; it counts as 0", "the server reported completion_tokens: -1; it counts as 0",
		}}},
		"no number": {"what is no number counts as none, and the rest counts", []string{`{"usage":{"prompt_tokens":12,"completion_tokens": NaN,"total_tokens":Infinity,"completion_tokens_details":{"reasoning_tokens":-Infinity}}}`, finished("stop")}, message.Output{Finish: message.FinishStop, Usage: message.Usage{Input: 12}, Warnings: []string{
			"the server reported completion_tokens: NaN; it counts as 0", "the server reported total_tokens: Infinity; it counts as 0", "the server reported reasoning_tokens: -Infinity; it counts as 0",
		}}},
		"mended usage":          {"only the last report counts", []string{`{"usage":{"prompt_tokens":NaN}}`, `{"usage":{"prompt_tokens":3}}`, finished("stop")}, message.Output{Finish: message.FinishStop, Usage: message.Usage{Input: 3}}},
		"more cached than sent": {"input is never negative", []string{`{"usage":{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":40}}}`, finished("stop")}, message.Output{Finish: message.FinishStop, Usage: message.Usage{CacheRead: 40}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a := &chatAnswer{Gather: httpapi.NewGather(func(message.Delta) {})}
			for i, s := range c.chunks {
				if err := a.chunk([]byte(s)); err != nil {
					t.Fatalf("%s: chunk %d: %v", c.reason, i, err)
				}
			}
			got := *a.Output()
			if c.want.Finish == message.FinishToolCalls && a.finish == "" {
				a.finish = "stop"
				got = *a.Output()
			}
			counted := slices.ContainsFunc(c.chunks, func(s string) bool { return strings.Contains(s, `"usage":{`) }) && name != "negative usage"
			if c.want.Uncounted = !counted; got.Uncounted == counted {
				t.Errorf("%s: uncounted %v", c.reason, got.Uncounted)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, d)
			}
		})
	}
}

func TestMalformedChunksNameTheirPlace(t *testing.T) {
	for in, says := range map[string]string{
		`{"choices":{}}`:                                         `"choices": want an array, got an object`,
		`{"choices":[{"delta":{"content":5}}]}`:                  `"content": want a string, got a number`,
		`{"choices":[{"delta":{"tool_calls":[{"index":"0"}]}}]}`: `"index": want a number, got a string`,
		`{"choices":[{"delta":{"tool_calls":[{"index":1.5}]}}]}`: `"index": want a whole number`,
		`{"choices":[{"delta":{"content":"a`:                     "string without an end",
		`{"choices":[]} x`:                                       "text after the value",
		`[]`:                                                     "want an object, got an array",
		`{"a":01}`:                                               "want",
		`{"a":nul}`:                                              "want null",
		`{a:1}`:                                                  "member's name",
		`{"a" 1}`:                                                "':'",
		`{"a":1,}`:                                               "member's name",
		`{"a":"\q"}`:                                             "escape",
		`{"a":"\u12`:                                             "escape",
		`{"choices":[{"delta":{"tool_calls":[{"index":1e400}]}}]}`:                "whole number",
		`{"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`:       "nested deeper",
		`{"choices":[{"delta":{"content":[{"type":"text","text":"a"},"b"]}}]}`:    "want an object",
		`{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":[1]}}]}}]}`: "want a string, got an array",
	} {
		a := &chatAnswer{Gather: httpapi.NewGather(func(message.Delta) {})}
		if err := a.chunk([]byte(in)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", in, err, says)
		}
	}
}

func TestAnswersAreBounded(t *testing.T) {
	a := &chatAnswer{Gather: httpapi.NewGather(func(message.Delta) {})}
	var b strings.Builder
	for i := range 4097 {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"index":` + string(rune('0'+i%10)) + `,"id":"` + "i" + strconv.Itoa(i) + `","function":{"name":"x","arguments":"{}"}}`)
	}
	if err := a.chunk([]byte(delta(`{"tool_calls":[` + b.String() + `]}`))); err == nil || !strings.Contains(err.Error(), "more than 4096") {
		t.Errorf("too many calls: %v", err)
	}
	for says, big := range map[string]string{
		"longer than": `{"content":"` + strings.Repeat("x", 4<<20) + `"}`,
		"beside them": `{"tool_calls":[{"index":0,"extra_content":{"x":"` + strings.Repeat("x", 1<<20) + `"},"function":{"arguments":""}}]}`,
	} {
		a := &chatAnswer{Gather: httpapi.NewGather(func(message.Delta) {})}
		var err error
		for i := 0; i < 10 && err == nil; i++ {
			err = a.chunk([]byte(delta(big)))
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("an endless answer: %v, want %q", err, says)
		}
	}
}

// FuzzChunk holds what is read of an event against encoding/json.
func FuzzChunk(f *testing.F) {
	for _, s := range []string{
		delta(`{"content":"a\u00e4\n","tool_calls":[{"index":0,"id":"a","function":{"name":"n","arguments":"{}"}}]}`),
		finished("stop"), `{"usage":{"prompt_tokens":1.0e1,"x":-0.5E-3}}`, `{"error":{"message":"m"}}`, `{"a":[true,false,null,{"b":"\ud800"}]}`,
		`{"choices":[{"message":{"content":[{"text":"x"}]}}]}`, ` { } `,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		a := &chatAnswer{Gather: httpapi.NewGather(func(message.Delta) {})}
		if a.chunk(in) != nil {
			return
		}
		if !json.Valid(in) && !bytes.Contains(in, []byte("NaN")) && !bytes.Contains(in, []byte("Infinity")) {
			t.Fatalf("accepted invalid JSON %q", in)
		}
		var want struct {
			Choices []struct {
				Delta struct{ Content any }
			}
		}
		out := a.Output()
		if bytes.Contains(in, []byte("message")) || bytes.Contains(in, []byte("refusal")) || json.Unmarshal(in, &want) != nil || len(want.Choices) != 1 {
			return
		}
		if s, ok := want.Choices[0].Delta.Content.(string); ok && bytes.Count(in, []byte("ontent")) == 1 && bytes.Contains(in, []byte(`"content"`)) && bytes.Count(in, []byte("elta")) == 1 && bytes.Contains(in, []byte(`"delta"`)) && bytes.Contains(in, []byte(`"choices"`)) && !bytes.ContainsAny(in, `\`) && s != out.Text {
			t.Fatalf("%q: text %q, want %q", in, out.Text, s)
		}
	})
}
