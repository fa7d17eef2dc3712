package openai

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/model/httpapi"
)

func say(s string) message.Part { return message.Part{Type: message.PartText, Text: s} }

func tool(id, name, raw string, r *message.ToolResult) message.Part {
	return message.Part{Type: message.PartTool, Tool: &message.ToolPart{CallID: id, Tool: name, Raw: raw, Result: r}}
}

func TestMapping(t *testing.T) {
	user, assistant := message.RoleUser, message.RoleAssistant
	ok := &message.ToolResult{Text: "out", Output: "out"}
	own, other := &message.ModelRef{Name: "fast", Provider: "openai", Model: "gpt-5-mini"}, &message.ModelRef{Name: "fast", Provider: "openai", Model: "gpt-5"}
	thought := message.Part{Type: message.PartReasoning, Text: "hm", Metadata: []byte(`{"member":"reasoning_content"}`)}
	signed := tool("c1", "a", "", ok)
	signed.Metadata = []byte(`{"extra_content":{"google":1}}`)
	long := strings.Repeat("i", maxCallID+1)
	short := callID(long, false)
	cases := map[string]struct {
		reason string
		m      message.Message
		want   string
	}{
		"thought":   {"a server that wants its reasoning back is sent it", message.Message{Role: assistant, Model: own, Parts: []message.Part{thought, tool("c1", "a", "", ok)}}, `{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"c1","type":"function","function":{"name":"a","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":"out"}`},
		"said":      {"with a text as well", message.Message{Role: assistant, Model: own, Parts: []message.Part{thought, say("a")}}, `{"role":"assistant","content":"a","reasoning_content":"hm"}`},
		"no answer": {"a thought that nothing came of is none", message.Message{Role: assistant, Model: own, Parts: []message.Part{thought}}, ``},
		"foreign":   {"another model's stays with it", message.Message{Role: assistant, Model: other, Parts: []message.Part{thought, say("a")}}, `{"role":"assistant","content":"a"}`},
		"extra":     {"what came with a call goes back with it", message.Message{Role: assistant, Model: own, Parts: []message.Part{signed}}, `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"a","arguments":"{}"},"extra_content":{"google":1}}]},{"role":"tool","tool_call_id":"c1","content":"out"}`},
		"not extra": {"and to nobody else", message.Message{Role: assistant, Model: other, Parts: []message.Part{signed}}, `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"a","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":"out"}`},
		"long id":   {"the id of another model's call may be too long", message.Message{Role: assistant, Model: other, Parts: []message.Part{tool(long, "a", "", ok)}}, `{"role":"assistant","content":null,"tool_calls":[{"id":"` + short + `","type":"function","function":{"name":"a","arguments":"{}"}}]},{"role":"tool","tool_call_id":"` + short + `","content":"out"}`},
		"own id":    {"its own is what it wants back", message.Message{Role: assistant, Model: own, Parts: []message.Part{tool(long, "a", "", ok)}}, `{"role":"assistant","content":null,"tool_calls":[{"id":"` + long + `","type":"function","function":{"name":"a","arguments":"{}"}}]},{"role":"tool","tool_call_id":"` + long + `","content":"out"}`},
		"user":      {"one text is sent as it is", message.Message{Role: user, Parts: []message.Part{say("a <b> & \"c\"\n\x01\u2028")}}, `{"role":"user","content":"a <b> & \"c\"\n\u0001` + "\u2028" + `"}`},
		"parts":     {"synthetic text is sent, ignored text is not", message.Message{Role: user, Parts: []message.Part{say("a"), {Type: message.PartText, Text: "s", Synthetic: true}, {Type: message.PartText, Text: "i", Ignored: true}, say("")}}, `{"role":"user","content":"a\n\ns"}`},
		"file":      {"a file is named", message.Message{Role: user, Parts: []message.Part{{Type: message.PartFile, File: &message.File{Filename: "x.png", Mime: "image/png", URL: "file:///x.png"}}}}, `{"role":"user","content":"[attached: x.png (image/png), content not shown]"}`},
		"nothing":   {"an empty message is none", message.Message{Role: user}, ``},
		"answer":    {"steps are left out, and reasoning that nobody wants back", message.Message{Role: assistant, Parts: []message.Part{{Type: message.PartStepStart}, {Type: message.PartReasoning, Text: "hm"}, say("a"), say("b"), {Type: "future"}}}, `{"role":"assistant","content":"ab"}`},
		"empty":     {"an empty answer is void", message.Message{Role: assistant, Parts: []message.Part{say("")}}, ``},
		"failed":    {"a failed answer is void", message.Message{Role: assistant, Error: "Aborted", Parts: []message.Part{say("half")}}, ``},
		"call":      {"content is null when there are calls only", message.Message{Role: assistant, Parts: []message.Part{tool("c1", "bash", `{"a": 1}`, ok)}}, `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"bash","arguments":"{\"a\": 1}"}}]},{"role":"tool","tool_call_id":"c1","content":"out"}`},
		"two calls": {"results follow in the order of the calls", message.Message{Role: assistant, Parts: []message.Part{say("t"), tool("c1", "a", "", ok), tool("c2", "b", "{}", nil)}}, `{"role":"assistant","content":"t","tool_calls":[{"id":"c1","type":"function","function":{"name":"a","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"b","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":"out"},{"role":"tool","tool_call_id":"c2","content":"interrupted: the call has no result; it may or may not have run"}`},
		"bad call":  {"what no server would take is wrapped", message.Message{Role: assistant, Parts: []message.Part{tool("c1", "no such.tool☃", `{"a":`, &message.ToolResult{Text: "position 5", Code: message.CodeBadJSON})}}, `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"no_such_tool_","arguments":"{\"invalid_arguments\":\"{\\\"a\\\":\"}"}}]},{"role":"tool","tool_call_id":"c1","content":"bad_json: position 5"}`},
		"error":     {"an error begins with its code, once", message.Message{Role: assistant, Parts: []message.Part{tool("c1", "", `[1]`, &message.ToolResult{Text: "denied: no", Code: message.CodeDenied})}}, `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"unknown","arguments":"{\"invalid_arguments\":\"[1]\"}"}}]},{"role":"tool","tool_call_id":"c1","content":"denied: no"}`},
	}
	conv, err := New(httpapi.Config{Name: "fast", Model: "gpt-5-mini"}, message.Prompt{})
	if err != nil {
		t.Fatal(err)
	}
	defer conv.Close()
	for name, c := range cases {
		got, err := conv.message([]byte("["), &c.m)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff("["+c.want, string(got)); d != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, c.reason, d)
		}
		if !json.Valid(append(got, ']')) {
			t.Errorf("%s: no JSON: %s", name, got)
		}
	}
	if _, err := conv.message(nil, &message.Message{Role: "system"}); err == nil {
		t.Error("an unknown role was taken")
	}
}

func TestLayout(t *testing.T) {
	prompt := message.Prompt{System: "sys", Tools: []message.ToolSpec{{Name: "a", Description: "d", Parameters: []byte(`{"type":"object"}`)}, {Name: "b"}}}
	c, err := New(httpapi.Config{Name: "m", Model: "x", Parameters: []byte(`{"temperature":0,"parallelToolCalls":false,"maxOutputTokens": 10,"extra":{"zz":[1, 2],"aa":"b"}}`)}, prompt)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Append(&message.Message{Role: message.RoleUser, Parts: []message.Part{say("hi")}}); err != nil {
		t.Fatal(err)
	}
	want := `{"model":"x","stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":10,"temperature":0,"aa":"b","zz":[1,2],"messages":[{"role":"system","content":"sys"},{"role":"user","content":"hi"}],"parallel_tool_calls":false,"tools":[{"type":"function","function":{"name":"a","description":"d","parameters":{"type":"object"}}},{"type":"function","function":{"name":"b","description":"","parameters":{"type":"object","properties":{}}}}]}`
	if d := cmp.Diff(want, string(c.history)+string(c.withTool)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	// OpenAI keeps what it has read: a request that forbids calls begins alike.
	closing := strings.Replace(want, `"parallel_tool_calls":false,`, `"tool_choice":"none",`, 1)
	if d := cmp.Diff(closing, string(c.history)+string(c.noTool)); d != "" {
		t.Errorf("closing request (-want +got):\n%s", d)
	}
	// Not every other server knows how to forbid them.
	c, err = New(httpapi.Config{Name: "m", Model: "x", BaseURL: "http://host/v1"}, prompt)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := string(c.history) + string(c.noTool); !json.Valid([]byte(got)) || strings.Contains(got, "tool") {
		t.Errorf("closing request: %s", got)
	}
}

func TestCheckParameters(t *testing.T) {
	if p := CheckParameters([]byte(`{"temperature":0.5,"topP":1,"maxOutputTokens":8000,"reasoningEffort":"low","seed":-1,"stop":["a","b"],"presencePenalty":-2,"frequencyPenalty":2,"parallelToolCalls":true,"serviceTier":"flex","user":"u","verbosity":"low","extra":{"top_k":40}}`)); len(p) > 0 {
		t.Errorf("good parameters: %v", p)
	}
	for _, none := range []string{"", "null", "{}", " "} {
		if p := CheckParameters([]byte(none)); len(p) > 0 {
			t.Errorf("%q: %v", none, p)
		}
	}
	cases := map[string]struct{ path, says string }{
		`[]`:                             {"spec.parameters", "object"},
		`{"temperature":"0"}`:            {"spec.parameters.temperature", "from 0 to 2"},
		`{"temperature":3}`:              {"spec.parameters.temperature", "from 0 to 2"},
		`{"temperature":null}`:           {"spec.parameters.temperature", "number"},
		`{"topP":-1}`:                    {"spec.parameters.topP", "from 0 to 1"},
		`{"maxOutputTokens":0}`:          {"spec.parameters.maxOutputTokens", "at least 1"},
		`{"maxOutputTokens":1.5}`:        {"spec.parameters.maxOutputTokens", "whole number"},
		`{"seed":"x"}`:                   {"spec.parameters.seed", "whole number"},
		`{"stop":["a","b","c","d","e"]}`: {"spec.parameters.stop", "at most 4"},
		`{"stop":[]}`:                    {"spec.parameters.stop", "at most 4"},
		`{"parallelToolCalls":"yes"}`:    {"spec.parameters.parallelToolCalls", "true or false"},
		`{"user":""}`:                    {"spec.parameters.user", "text"},
		`{"max_tokens":5}`:               {"spec.parameters.max_tokens", "did you mean maxOutputTokens?"},
		`{"top_p":1}`:                    {"spec.parameters.top_p", "did you mean topP?"},
		`{"reasoning":1}`:                {"spec.parameters.reasoning", "it has frequencyPenalty"},
		`{"extra":1}`:                    {"spec.parameters.extra", "object"},
		`{"extra":{"messages":[]}}`:      {"spec.parameters.extra.messages", "decided by the run"},
		`{"extra":{"temperature":1}}`:    {"spec.parameters.extra.temperature", "name of its own"},
		`{"extra":{"stream":false}}`:     {"spec.parameters.extra.stream", "decided by the run"},
	}
	for in, c := range cases {
		p := CheckParameters([]byte(in))
		if len(p) != 1 || p[0].Path != c.path || !strings.Contains(p[0].Message, c.says) {
			t.Errorf("%s: %v, want %s: %s", in, p, c.path, c.says)
		}
	}
	if p := CheckParameters([]byte(`{"temperature":9,"topP":9,"a":1,"b":1}`)); len(p) != 4 {
		t.Errorf("all mistakes at once: %v", p)
	}
}

func TestNewRefuses(t *testing.T) {
	for name, cfg := range map[string]httpapi.Config{
		"address":    {BaseURL: "localhost:8080"},
		"scheme":     {BaseURL: "ftp://host/v1"},
		"login":      {BaseURL: "http://user:pw@host/v1"},
		"no host":    {BaseURL: "http:///v1"},
		"parameters": {Parameters: []byte(`{"nope":1}`)},
	} {
		if c, err := New(cfg, message.Prompt{}); err == nil || c != nil || reason.Of(err) != reason.ModelError {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New(httpapi.Config{}, message.Prompt{Tools: []message.ToolSpec{{Name: "x", Parameters: []byte("{")}}}); err == nil {
		t.Error("a tool with a broken schema was taken")
	}
}

func TestKeys(t *testing.T) {
	asked := 0
	missing := reason.New(reason.CredentialMissing, "no key")
	for name, c := range map[string]struct {
		key  func(context.Context) (string, error)
		want reason.Reason
	}{
		"missing":    {func(context.Context) (string, error) { return "", missing }, reason.CredentialMissing},
		"line break": {func(context.Context) (string, error) { asked++; return "sk-x\n", nil }, reason.CredentialRejected},
	} {
		conv, err := New(httpapi.Config{Name: "m", BaseURL: "http://127.0.0.1:1/v1", APIKey: c.key}, message.Prompt{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = conv.Next(t.Context(), message.Request{}, nil)
		if reason.Of(err) != c.want || strings.Contains(err.Error(), "sk-x") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}
