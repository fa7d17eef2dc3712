package openai

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/model/httpapi"
	"agentctl.dev/agentctl/runner/model/modeltest"
)

// replying is a conversation over the responses API at OpenAI itself.
func replying(t testing.TB, parameters string, prompt message.Prompt) *Conversation {
	t.Helper()
	blob := func(string) ([]byte, error) { return []byte("content"), nil }
	c, err := NewResponses(httpapi.Config{Name: "fast", Model: "gpt-5-mini", Parameters: []byte(parameters), Blob: blob}, prompt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func bash() []message.ToolSpec {
	return []message.ToolSpec{{Name: "bash", Description: "Runs a command.", Parameters: []byte(`{"type":"object"}`)}}
}

// thoughtful is an answer of the model itself, with what it wants back. The
// thoughts are signed as the suite's server signs them.
func thoughtful() *message.Message {
	call := tool("call_1", "bash", `{"command":"ls"}`, &message.ToolResult{Text: "a.txt"})
	call.Metadata = []byte(`{"reasoning":[{"type":"reasoning","id":"rs_2","summary":[{"type":"summary_text","text":"Two."}],"encrypted_content":"c2lnvZwcnk9Wf7QHBQGZelKlt1Rgc1+gM2NzebNmhB0sCTM="}]}`)
	return &message.Message{
		ID: "m90", Role: message.RoleAssistant, Model: &message.ModelRef{Name: "fast", Provider: "openai", Model: "gpt-5-mini"},
		Parts: []message.Part{{Type: message.PartReasoning, Text: "One.\n\nTwo."}, {
			Type: message.PartText, Text: "I look.",
			Metadata: []byte(`[{"reasoning":[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"One."}],"encrypted_content":"c2lnm6HVdXK5MdIVTWeFEsyUZaD+H1B2WTpAhOylYNX2wbQ="}],"size":7,"phase":"commentary"}]`),
		}, call},
	}
}

func TestReplyMapping(t *testing.T) {
	own, other := &message.ModelRef{Name: "fast", Provider: "openai", Model: "gpt-5-mini"}, &message.ModelRef{Name: "fast", Provider: "openai", Model: "gpt-5"}
	thought := `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"}`
	ok := &message.ToolResult{Text: "out"}
	text := func(s, metadata string) message.Part {
		return message.Part{Type: message.PartText, Text: s, Metadata: json.RawMessage(metadata)}
	}
	call := func(id, metadata string) message.Part {
		p := tool(id, "bash", "{}", ok)
		p.Metadata = json.RawMessage(metadata)
		return p
	}
	long := strings.Repeat("i", 65)
	short := callID(long, false)
	if len(short) > maxCallID || short == callID(long+"i", false) {
		t.Errorf("%q is short for an id", short)
	}
	for name, c := range map[string]struct {
		reason string
		role   message.Role
		model  *message.ModelRef
		parts  []message.Part
		want   string
	}{
		"user":    {"one text is sent as it is", message.RoleUser, nil, []message.Part{say("a \"b\"")}, `{"role":"user","content":"a \"b\""}`},
		"nothing": {"an empty message is none", message.RoleUser, nil, nil, ``},
		"media": {"pictures and papers are shown", message.RoleUser, nil, []message.Part{
			say("Look."),
			{Type: message.PartFile, File: &message.File{Mime: "image/png", URL: "data:image/png;base64,iVBORw0KGgo="}},
			{Type: message.PartFile, File: &message.File{Mime: "application/pdf", URL: "blob:sha256:aa"}},
		}, `{"role":"user","content":[{"type":"input_text","text":"Look."},{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo="},{"type":"input_file","filename":"document.pdf","file_data":"data:application/pdf;base64,Y29udGVudA=="}]}`},
		"text":  {"a text without metadata is one message", message.RoleAssistant, own, []message.Part{say("a"), say("b")}, `{"role":"assistant","content":"ab"}`},
		"empty": {"an empty answer is void", message.RoleAssistant, own, []message.Part{say("")}, ``},
		"calls": {"results follow all calls of a step", message.RoleAssistant, own, []message.Part{say("t"), call("c1", ""), call("talk", "")}, `{"role":"assistant","content":"t"},{"type":"function_call","call_id":"c1","name":"bash","arguments":"{}"},{"type":"function_call","call_id":"talk","name":"bash","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"out"},{"type":"function_call_output","call_id":"talk","output":"out"}`},
		"thoughts": {
			"what was thought stands in front of what followed it", message.RoleAssistant, own,
			[]message.Part{text("t", `[{"reasoning":[`+thought+`],"size":1,"phase":"commentary"}]`), call("c1", ""), call("talk", `{"reasoning":[`+thought+`]}`)},
			thought + `,{"role":"assistant","content":"t","phase":"commentary"},{"type":"function_call","call_id":"c1","name":"bash","arguments":"{}"},` + thought + `,{"type":"function_call","call_id":"talk","name":"bash","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"out"},{"type":"function_call_output","call_id":"talk","output":"out"}`,
		},
		"messages": {
			"two messages are two again", message.RoleAssistant, own,
			[]message.Part{text("ä\n\nb", `[{"size":2,"phase":"commentary"},{"reasoning":[`+thought+`],"size":1,"phase":"final_answer"}]`)},
			`{"role":"assistant","content":"ä","phase":"commentary"},` + thought + `,{"role":"assistant","content":"b","phase":"final_answer"}`,
		},
		"other model":       {"another model's thoughts are left out", message.RoleAssistant, other, []message.Part{text("t", `[{"reasoning":[`+thought+`],"size":1,"phase":"x"}]`), call("c1", `{"reasoning":[`+thought+`]}`)}, `{"role":"assistant","content":"t"},{"type":"function_call","call_id":"c1","name":"bash","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"out"}`},
		"sizes too short":   {"a list that does not fit its text is none", message.RoleAssistant, own, []message.Part{text("abc", `[{"size":2}]`)}, `{"role":"assistant","content":"abc"}`},
		"sizes too long":    {"a list that does not fit its text is none", message.RoleAssistant, own, []message.Part{text("abc", `[{"size":4}]`)}, `{"role":"assistant","content":"abc"}`},
		"sizes without gap": {"a list that does not fit its text is none", message.RoleAssistant, own, []message.Part{text("abcd", `[{"size":1},{"size":1}]`)}, `{"role":"assistant","content":"abcd"}`},
		"negative size":     {"a list that does not fit its text is none", message.RoleAssistant, own, []message.Part{text("abc", `[{"size":-1}]`)}, `{"role":"assistant","content":"abc"}`},
		"no list":           {"metadata of an older version is passed over", message.RoleAssistant, own, []message.Part{text("abc", `{"signature":"x"}`), call("c1", `[1]`)}, `{"role":"assistant","content":"abc"},{"type":"function_call","call_id":"c1","name":"bash","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"out"}`},
		"long id":           {"an id that the API refuses is another one, the same for the result", message.RoleAssistant, other, []message.Part{call(long, "")}, `{"type":"function_call","call_id":"` + short + `","name":"bash","arguments":"{}"},{"type":"function_call_output","call_id":"` + short + `","output":"out"}`},
		"bad call":          {"what no server would take is wrapped", message.RoleAssistant, own, []message.Part{tool("c1", "no such.tool", `{"a":`, &message.ToolResult{Text: "position 5", Code: message.CodeBadJSON})}, `{"type":"function_call","call_id":"c1","name":"no_such_tool","arguments":"{\"invalid_arguments\":\"{\\\"a\\\":\"}"},{"type":"function_call_output","call_id":"c1","output":"bad_json: position 5"}`},
		"interrupted":       {"a call without a result has one that says so", message.RoleAssistant, own, []message.Part{tool("c1", "bash", "{}", nil)}, `{"type":"function_call","call_id":"c1","name":"bash","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"interrupted: the call has no result; it may or may not have run"}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := replying(t, "", message.Prompt{})
			got, err := w.message([]byte("["), &message.Message{Role: c.role, Model: c.model, Parts: c.parts})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff("["+c.want, string(got)); d != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, d)
			}
			if !json.Valid(append(got, ']')) {
				t.Errorf("no JSON: %s", got)
			}
		})
	}
}

func TestReplyMappingRefuses(t *testing.T) {
	c := replying(t, "", message.Prompt{})
	if err := c.Append(&message.Message{ID: "m1", Role: "system"}); reason.Of(err) != reason.Internal {
		t.Errorf("an unknown role: %v", err)
	}
	lost := &message.Message{ID: "m2", Role: message.RoleUser, Parts: []message.Part{{Type: message.PartFile, File: &message.File{Mime: "image/png", URL: "blob:x"}}}}
	c, err := NewResponses(httpapi.Config{Name: "m", Model: "x"}, message.Prompt{})
	if err != nil {
		t.Fatal(err)
	}
	for _, take := range []func() error{func() error { return c.Append(lost) }, func() error { return c.Reset([]*message.Message{lost}) }} {
		if err := take(); reason.Of(err) != reason.Internal || !strings.Contains(err.Error(), "blob x") {
			t.Errorf("a picture whose content is gone: %v", err)
		}
	}
}

func TestReplyLayout(t *testing.T) {
	schema := `{"type":"object","properties":{"v":{"type":"string"}},"required":["v"],"additionalProperties":false}`
	prompt := message.Prompt{System: "sys", Tools: []message.ToolSpec{{Name: "a", Description: "d"}}, Output: []byte(schema), CacheKey: strings.Repeat("k", 70)}
	c := replying(t, `{"maxOutputTokens":100,"reasoningEffort":"low","reasoningSummary":"auto","verbosity":"low","parallelToolCalls":false,"truncation":"auto","extra":{"metadata":{"a":"b"}}}`, prompt)
	if err := c.Append(&message.Message{Role: message.RoleUser, Parts: []message.Part{say("hi")}}); err != nil {
		t.Fatal(err)
	}
	head := `{"model":"gpt-5-mini","stream":true,"store":false,"max_output_tokens":100,"truncation":"auto","metadata":{"a":"b"},"include":["reasoning.encrypted_content"],"reasoning":{"effort":"low","summary":"auto"},"instructions":"sys","input":[{"role":"user","content":"hi"}`
	end := `],"text":{"verbosity":"low","format":{"type":"json_schema","name":"answer","schema":` + schema + `,"strict":true}},"prompt_cache_key":"` + strings.Repeat("k", 64) + `",`
	tools := `"tools":[{"type":"function","name":"a","description":"d","parameters":{"type":"object","properties":{}},"strict":false}]}`
	for name, c := range map[string]struct{ want, got string }{
		"request": {head + end + `"parallel_tool_calls":false,` + tools, string(c.history) + string(c.withTool)},
		"closing": {head + end + `"tool_choice":"none",` + tools, string(c.history) + string(c.noTool)},
		"aside":   {`],"text":{"verbosity":"low"}}`, string(c.aside)},
	} {
		if d := cmp.Diff(c.want, c.got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	if got := string(replying(t, "", message.Prompt{}).withTool); got != "]}" {
		t.Errorf("a request without anything ends in %s", got)
	}
}

func TestCheckResponsesParameters(t *testing.T) {
	if p := CheckResponsesParameters([]byte(`{"temperature":0.5,"topP":1,"maxOutputTokens":8000,"reasoningEffort":"low","reasoningSummary":"auto","parallelToolCalls":true,"serviceTier":"flex","user":"u","safetyIdentifier":"s","verbosity":"low","truncation":"disabled","structuredOutput":false,"encryptedReasoning":true,"extra":{"top_logprobs":1}}`)); len(p) > 0 {
		t.Errorf("good parameters: %v", p)
	}
	for in, c := range map[string]struct{ path, says string }{
		`{"seed":1}`:                               {"spec.parameters.seed", "openai with api responses has no parameter seed"},
		`{"stop":"x"}`:                             {"spec.parameters.stop", "no parameter"},
		`{"truncation":"maybe"}`:                   {"spec.parameters.truncation", "auto, disabled"},
		`{"structuredOutput":"yes"}`:               {"spec.parameters.structuredOutput", "true or false"},
		`{"max_output_tokens":1}`:                  {"spec.parameters.max_output_tokens", "did you mean maxOutputTokens?"},
		`{"extra":{"store":true}}`:                 {"spec.parameters.extra.store", "decided by the run"},
		`{"extra":{"previous_response_id":"r"}}`:   {"spec.parameters.extra.previous_response_id", "decided by the run"},
		`{"extra":{"reasoning":{"effort":"low"}}}`: {"spec.parameters.extra.reasoning", "decided by the run"},
	} {
		if p := CheckResponsesParameters([]byte(in)); len(p) != 1 || p[0].Path != c.path || !strings.Contains(p[0].Message, c.says) {
			t.Errorf("%s: %v, want %s: %s", in, p, c.path, c.says)
		}
	}
	if _, err := NewResponses(httpapi.Config{Parameters: []byte(`{"seed":1}`)}, message.Prompt{}); reason.Of(err) != reason.ModelError {
		t.Errorf("a wrong parameter: %v", err)
	}
}

// OpenAI answers 400 when it is asked for the thoughts of a model that has none.
func TestThoughtsAreAskedForOfModelsThatThink(t *testing.T) {
	for name, c := range map[string]struct {
		model, parameters string
		want              bool
	}{
		"reasoning":      {"gpt-5-mini", `{}`, true},
		"o series":       {"o4-mini", `{}`, true},
		"unknown":        {"my-deployment", `{}`, true},
		"4o":             {"gpt-4o-2024-11-20", `{}`, false},
		"4.1":            {"gpt-4.1", `{}`, false},
		"tuned":          {"ft:gpt-4.1-mini:org::x", `{}`, false},
		"chat":           {"gpt-5-chat-latest", `{}`, false},
		"said not to":    {"my-deployment", `{"encryptedReasoning": false}`, false},
		"said to anyway": {"gpt-4x", `{"encryptedReasoning":true}`, true},
	} {
		talk, err := NewResponses(httpapi.Config{Name: "m", Model: c.model, Parameters: []byte(c.parameters)}, message.Prompt{})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(talk.history), `"include":["reasoning.encrypted_content"],`); got != c.want {
			t.Errorf("%s: asked %v: %s", name, got, talk.history)
		}
		_ = talk.Close()
	}
}

// A question beside the conversation is asked with the smallest limit that the
// API takes, and keeps to the Model's own.
func TestAsideOverResponses(t *testing.T) {
	for parameters, want := range map[string]string{
		`{}`:                       `"max_output_tokens":16,`,
		`{"maxOutputTokens":5000}`: `"max_output_tokens":16,`,
		`{"verbosity":"low"}`:      `"text":{"verbosity":"low"}}`,
	} {
		server := modeltest.Serve(t, modeltest.Responses, modeltest.Answer{Text: "ok"}.Step())
		c, err := NewResponses(fast(httpapi.Config{BaseURL: server.URL, Parameters: []byte(parameters)}), message.Prompt{System: "s", Tools: bash()})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Next(t.Context(), message.Request{Aside: &message.Aside{System: "Sum up.", Text: "all", MaxOutputTokens: 5}}, quiet); err != nil {
			t.Fatal(err)
		}
		if body := string(server.Requests()[0].Body); !strings.Contains(body, want) || strings.Contains(body, "tools") || !strings.Contains(body, `"instructions":"Sum up."`) {
			t.Errorf("%s: %s, want %s", parameters, body, want)
		}
	}
}
