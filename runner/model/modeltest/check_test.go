package modeltest_test

import (
	"net/http"
	"strings"
	"testing"

	"agentctl.dev/agentctl/runner/model/modeltest"
)

// holds checks requests: says is part of the refusal, "" if there is none.
func holds(t *testing.T, w modeltest.Wire, cases map[string]string) {
	t.Helper()
	for in, says := range cases {
		err := w.Check([]byte(in))
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", in, err, says)
		}
	}
}

func TestChatRefusesWhatTheAPIRefuses(t *testing.T) {
	request := func(messages string) string { return `{"model":"m","stream":true,"messages":[` + messages + `]}` }
	calls := `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"x","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"x","arguments":"{}"}}]}`
	a, b := `{"role":"tool","tool_call_id":"a","content":""}`, `{"role":"tool","tool_call_id":"b","content":""}`
	holds(t, modeltest.Chat, map[string]string{
		goodRequest:                             "",
		request(calls + "," + a + "," + b):      "",
		"{":                                     "no JSON",
		`{"model":"m","messages":[]}`:           "stream",
		request(""):                             "empty",
		request(`{"role":"user","content":""}`): "content is empty",
		request(`{"role":"user"}`):              "content is empty",
		request(`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBO"}}]}`): "",
		request(`{"role":"user","content":[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBE"}}]}`):       "",
		request(`{"role":"user","content":[{"type":"file","file":{"filename":"a.zip","file_data":"data:application/zip;base64,JVBE"}}]}`):       "content[0]",
		request(`{"role":"user","content":[{"type":"file","file":{"file_data":"data:application/pdf;base64,JVBE"}}]}`):                          "content[0]",
		request(`{"role":"user","content":[]}`):                                                              "neither a text nor a list",
		request(`{"role":"user","content":[{"type":"text","text":""}]}`):                                     "content[0]",
		request(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"file:///etc/passwd"}}]}`): "content[0]",
		request(`{"role":"system","content":[{"type":"text","text":"a"}]}`):                                  "neither a text nor a list",
		request(`{"role":"assistant","content":[{"type":"text","text":"a"}]}`):                               "no text",
		request(`{"role":"god","content":"x"}`):                                                              "unknown role",
		request(`{"role":"assistant","content":null}`):                                                       "neither",
		request(calls + "," + b + "," + a):                                                                   "result of",
		request(calls + "," + a):                                                                             "no result",
		request(calls + `,{"role":"user","content":"x"}`):                                                    "no result",
		request(a): "result of",
		request(strings.Replace(calls, `"b"`, `"a"`, 1)):                                                       "twice",
		request(strings.Replace(calls, `"{}"`, `"{"`, 1)):                                                      "malformed",
		request(strings.Replace(calls, `"x"`, `"x.y"`, 1)):                                                     "malformed",
		`{"model":"m","stream":true,"parallel_tool_calls":true,"messages":[{"role":"user","content":"x"}]}`:    "parallel_tool_calls",
		`{"model":"m","stream":true,"tools":[{"type":"function"}],"messages":[{"role":"user","content":"x"}]}`: "tools[0]",
	})
}

func TestResponsesRefusesWhatTheAPIRefuses(t *testing.T) {
	with := func(more, items string) string {
		return `{"model":"m","stream":true,"store":false,` + more + `"input":[` + items + `]}`
	}
	input := func(items ...string) string { return with("", strings.Join(items, ",")) }
	const (
		user   = `{"role":"user","content":"hi"}`
		callA  = `{"type":"function_call","call_id":"a","name":"x","arguments":"{}"}`
		callB  = `{"type":"function_call","call_id":"b","name":"x","arguments":"{}"}`
		outA   = `{"type":"function_call_output","call_id":"a","output":"ok"}`
		outB   = `{"type":"function_call_output","call_id":"b","output":[{"type":"input_text","text":"ok"}]}`
		tool   = `{"type":"function","name":"x","strict":false,"parameters":{"type":"object"}}`
		closed = `{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{},"additionalProperties":false}}},"required":["a"],"additionalProperties":false}`
	)
	// The signature of the text "hm", as the server makes it, and another one.
	thought := func(text, signature string) string {
		return `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"` + text + `"}],"encrypted_content":"` + signature + `"}`
	}
	genuine := signatureOf(t, modeltest.Responses, modeltest.Answer{Reasoning: "hm", Text: "x"})
	pieces := func(role, list string) string { return `{"role":"` + role + `","content":[` + list + `]}` }
	holds(t, modeltest.Responses, map[string]string{
		input(user):                                                                                               "",
		input(user, callA, callB, outB, outA):                                                                     "",
		input(user, callA, outA, callB, outB):                                                                     "",
		input(user, thought("hm", genuine), callA, outA):                                                          "",
		input(user, thought("hm", "somebody's else"), callA, outA):                                                "",
		`{"model":"m","stream":true,"store":false,"input":"hi"}`:                                                  "",
		with(`"tools":[`+tool+`],"tool_choice":"none",`, user):                                                    "",
		with(`"tools":[{"type":"function","name":"x","strict":true,"parameters":`+closed+`}],`, user):             "",
		with(`"text":{"format":{"type":"json_schema","name":"answer","schema":`+closed+`,"strict":true}},`, user): "",
		input(pieces("user", `{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:image/png;base64,iVBO"},{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,JVBE"}`)): "",
		input(pieces("assistant", `{"type":"output_text","text":"a"}`)): "",

		"{": "no JSON",
		`{"model":"m","stream":true,"store":false,"messages":[]}`:              "messages",
		`{"model":"m","stream":true,"store":false,"input":"x","max_tokens":5}`: "max_tokens",
		`{"stream":true,"store":false,"input":"x"}`:                            "model is missing",
		`{"model":"m","store":false,"input":"x"}`:                              "stream",
		`{"model":"m","stream":true,"input":"x"}`:                              "store",
		`{"model":"m","stream":true,"store":false}`:                            "neither",
		`{"model":"m","stream":true,"store":false,"input":""}`:                 "empty",
		input():                               "neither",
		with(`"max_output_tokens":15,`, user): "below 16",
		with(`"tool_choice":"none",`, user):   "only allowed with tools",
		with(`"tools":[{"type":"function","function":{"name":"x"}}],`, user):                                                       "tools[0] is no function",
		with(`"tools":[{"type":"function","name":"x","parameters":{"type":"object"}}],`, user):                                     "strict",
		with(`"tools":[{"type":"function","name":"x","strict":true,"parameters":{"type":"object","properties":{"a":{}}}}],`, user): "strict",
		with(`"text":{"format":{"type":"json_schema","schema":{}}},`, user):                                                        "lacks a name",
		with(`"text":{"format":{"type":"json_schema","name":"a","schema":{"type":"object"},"strict":true}},`, user):                "strict",
		input(`{"role":"tool","content":"x"}`):                                                                                     "unknown role",
		input(`{"role":"user","content":""}`):                                                                                      "empty",
		input(`{"role":"user","content":"x","name":"y"}`):                                                                          "unknown field",
		input(`{"type":"surprise"}`):                                                                                               "unknown type",
		input(user, callA):                                                                                                         "no tool output",
		input(user, callA, user):                                                                                                   "no tool output",
		input(user, outA):                                                                                                          "no tool call found",
		input(user, callA, callA, outA):                                                                                            "twice",
		input(user, callA, outA, callA, outA):                                                                                      "twice",
		input(user, strings.Replace(callA, `"{}"`, `"{"`, 1), outA):                                                                "malformed",
		input(user, thought("hm", genuine)):                                                                                        "required following item",
		input(user, thought("hm", genuine), user):                                                                                  "required following item",
		input(user, thought("hum", genuine), callA, outA):                                                                          "could not be verified",
		input(user, strings.Replace(thought("hm", genuine), "rs_1", "x", 1), callA, outA):                                          "does not begin with rs",
		input(user, `{"type":"reasoning","id":"rs_1"}`, callA, outA):                                                               "summary is missing",
		input(pieces("assistant", `{"type":"input_text","text":"a"}`)):                                                             "holds no such",
		input(pieces("user", `{"type":"output_text","text":"a"}`)):                                                                 "holds no such",
		input(pieces("user", `{"type":"input_image","image_url":"file:///etc/passwd"}`)):                                           "holds no such",
		input(pieces("user", `{"type":"image_url","image_url":{"url":"x"}}`)):                                                      "neither",
	})
}

// signatureOf is the signature that a stream holds.
func signatureOf(t *testing.T, w modeltest.Wire, a modeltest.Answer) string {
	t.Helper()
	_, rest, _ := strings.Cut(string(w.Stream(a)), `"c2ln`)
	s, _, ok := strings.Cut(rest, `"`)
	if !ok {
		t.Fatalf("no signature in the stream of %s", w.Name())
	}
	return "c2ln" + s
}

func TestAnthropicRefusesWhatTheAPIRefuses(t *testing.T) {
	with := func(more string, messages ...string) string {
		return `{"model":"m","stream":true,"max_tokens":4096,` + more + `"messages":[` + strings.Join(messages, ",") + `]}`
	}
	const (
		tools = `"tools":[{"name":"x","input_schema":{"type":"object"}}],`
		user  = `{"role":"user","content":"hi"}`
		useA  = `{"type":"tool_use","id":"a","name":"x","input":{}}`
		useB  = `{"type":"tool_use","id":"b","name":"x","input":{}}`
		resA  = `{"type":"tool_result","tool_use_id":"a","content":"ok"}`
		resB  = `{"type":"tool_result","tool_use_id":"b","is_error":true,"content":[{"type":"text","text":"no"}]}`
		text  = `{"type":"text","text":"x"}`
		think = `"thinking":{"type":"enabled","budget_tokens":1024},`
	)
	says := func(role string, blocks ...string) string {
		return `{"role":"` + role + `","content":[` + strings.Join(blocks, ",") + `]}`
	}
	signature := signatureOf(t, modeltest.Anthropic, modeltest.Answer{Reasoning: "hm"})
	thought := `{"type":"thinking","thinking":"hm","signature":"` + signature + `"}`
	marked := strings.Replace(text, `"x"}`, `"x","cache_control":{"type":"ephemeral"}}`, 1)
	holds(t, modeltest.Anthropic, map[string]string{
		with("", user): "",
		with(tools, user, says("assistant", text, useA, useB), says("user", resB, resA, text)):      "",
		with(tools+think, user, says("assistant", thought, useA), says("user", resA)):               "",
		with(tools+`"tool_choice":{"type":"none"},`, user):                                          "",
		with(`"system":"s",`, user, user):                                                           "",
		with(`"system":[`+marked+`],`, says("user", text, marked)):                                  "",
		with(`"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}},`, user): "",
		with("", says("user", `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO"}}`, `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBE"}}`)): "",

		"{": "no JSON",
		`{"model":"m","stream":true,"messages":[` + user + `]}`:    "max_tokens",
		`{"model":"m","max_tokens":5,"messages":[` + user + `]}`:   "stream",
		`{"stream":true,"max_tokens":5,"messages":[` + user + `]}`: "model",
		with(""):                     "at least one message",
		with(`"store":false,`, user): "store",
		with(`"tool_choice":{"type":"none"},`, user):                                                                        "tool_choice",
		with(`"tools":[{"type":"function","function":{"name":"x"}}],`, user):                                                "unknown field",
		with(`"tools":[{"name":"x.y","input_schema":{"type":"object"}}],`, user):                                            "tools.0",
		with(`"tools":[{"name":"x","input_schema":{}}],`, user):                                                             "tools.0",
		with(`"thinking":{"type":"enabled","budget_tokens":1023},`, user):                                                   "budget_tokens",
		with(`"thinking":{"type":"enabled","budget_tokens":4096},`, user):                                                   "budget_tokens",
		with(`"temperature":0,`+think, user):                                                                                "temperature",
		with(tools+`"tool_choice":{"type":"any"},`+think, user):                                                             "forces tool use",
		with("", says("assistant", text)):                                                                                   "first message",
		with("", user, says("assistant", text)):                                                                             "end with a user",
		with("", `{"role":"system","content":"x"}`):                                                                         "first message",
		with("", user, `{"role":"tool","content":"x"}`):                                                                     "unknown role",
		with("", `{"role":"user","content":""}`):                                                                            "non-whitespace",
		with("", says("user", `{"type":"text","text":" \n"}`)):                                                              "non-whitespace",
		with("", says("user")):                                                                                              "content is empty",
		with(`"system":"",`, user):                                                                                          "system",
		with("", user, says("assistant", useA), says("user", resA)):                                                         "must define tools",
		with(tools, user, says("assistant", useA)):                                                                          "end with a user",
		with(tools, user, says("assistant", useA), user):                                                                    "without tool_result",
		with(tools, user, says("assistant", useA, useB), says("user", resA)):                                                "without tool_result",
		with(tools, user, says("assistant", useA), says("assistant", text), says("user", resA)):                             "without tool_result",
		with(tools, user, says("assistant", useA), says("user", text, resA)):                                                "must come first",
		with(tools, user, says("user", resA)):                                                                               "unexpected tool_use_id",
		with(tools, user, says("assistant", useA, useA), says("user", resA)):                                                "unique",
		with(tools, user, says("assistant", useA), says("user", resA), says("assistant", useA), says("user", resA)):         "unique",
		with(tools, user, says("assistant", strings.Replace(useA, "{}", `"{}"`, 1)), says("user", resA)):                    "malformed",
		with(tools, user, says("assistant", strings.Replace(useA, `"x"`, `"x.y"`, 1)), says("user", resA)):                  "malformed",
		with(tools, user, says("assistant", useA, thought), says("user", resA)):                                             "thoughts must come first",
		with(tools, user, says("assistant", strings.Replace(thought, "hm", "hum", 1), useA), says("user", resA)):            "invalid `signature`",
		with(tools, user, says("assistant", `{"type":"thinking","thinking":"hm"}`, useA), says("user", resA)):               "invalid `signature`",
		with(tools+think, user, says("assistant", useA), says("user", resA)):                                                "must start with a thinking block",
		with("", says("user", marked, marked, marked, marked, marked)):                                                      "maximum of 4",
		with("", says("user", strings.Replace(marked, "ephemeral", "eternal", 1))):                                          "cache_control",
		with("", user, says("assistant", strings.Replace(thought, `}`, `,"cache_control":{"type":"ephemeral"}}`, 1)), user): "cache_control",
		with("", says("user", `{"type":"image","source":{"type":"base64","media_type":"image/svg+xml","data":"PHN2"}}`)):    "no such",
		with("", says("user", `{"type":"image_url","image_url":{"url":"x"}}`)):                                              "unknown field",
	})
}

func TestGeminiRefusesWhatTheAPIRefuses(t *testing.T) {
	with := func(more string, contents ...string) string {
		return `{` + more + `"contents":[` + strings.Join(contents, ",") + `]}`
	}
	says := func(role string, parts ...string) string {
		return `{"role":"` + role + `","parts":[` + strings.Join(parts, ",") + `]}`
	}
	const (
		text  = `{"text":"x"}`
		callA = `{"functionCall":{"name":"a","args":{"x":1}}}`
		callB = `{"functionCall":{"name":"b","id":"7"}}`
		resA  = `{"functionResponse":{"name":"a","response":{"output":"ok"}}}`
		resB  = `{"functionResponse":{"name":"b","id":"7","response":{"error":"no"}}}`
		tools = `"tools":[{"functionDeclarations":[{"name":"a","parametersJsonSchema":{"type":"object","additionalProperties":false}}]}],`
	)
	user := says("user", text)
	signature := signatureOf(t, modeltest.Gemini, modeltest.Answer{Hidden: true, Calls: []modeltest.Call{{Tool: "a", Args: `{"x":1}`}}})
	signed := func(part string) string {
		return strings.TrimSuffix(part, "}") + `,"thoughtSignature":"` + signature + `"}`
	}
	config := func(s string) string { return with(`"generationConfig":{`+s+`},`, user) }
	holds(t, modeltest.Gemini, map[string]string{
		with("", user): "",
		with(tools, user, says("model", text, signed(callA), callB), says("user", resA, resB)):                                               "",
		with(tools+`"toolConfig":{"functionCallingConfig":{"mode":"NONE"}},`, user):                                                          "",
		with(`"systemInstruction":{"parts":[`+text+`]},`, user, user):                                                                        "",
		with(`"tools":[{"functionDeclarations":[{"name":"a","parameters":{"type":"OBJECT","properties":{"x":{"type":"STRING"}}}}]}],`, user): "",
		config(`"responseMimeType":"application/json","responseJsonSchema":{"type":"object"},"thinkingConfig":{"includeThoughts":true}`):     "",
		with("", says("user", text, `{"inlineData":{"mimeType":"application/pdf","data":"JVBE"}}`)):                                          "",
		with("", user, says("model", `{"text":"","thoughtSignature":"c29tZWJvZHkncw=="}`), user):                                             "",

		"{":                                   "invalid JSON",
		`{"contents":[]}`:                     "contents is not specified",
		with(`"model":"m",`, user):            "unknown field",
		with(`"stream":true,`, user):          "unknown field",
		with("", says("system", text)):        "valid role",
		with("", says("assistant", text)):     "valid role",
		with("", says("user")):                "must not be empty",
		with("", says("user", "{}")):          "oneof",
		with("", says("user", `{"text":""}`)): "text is empty",
		with("", says("user", `{"text":"x","inlineData":{"mimeType":"image/png","data":"iVBO"}}`)): "oneof",
		with("", says("model", text)):                                                                                                            "the first turn",
		with("", user, says("model", text)):                                                                                                      "the last turn",
		with(tools, user, says("model", callA)):                                                                                                  "the last turn",
		with(tools, user, says("model", callA), user):                                                                                            "is not equal",
		with(tools, user, says("model", callA, callB), says("user", resA)):                                                                       "is not equal",
		with(tools, user, says("user", resA)):                                                                                                    "is not equal",
		with(tools, user, says("model", callA, callB), says("user", resB, resA)):                                                                 "answers the call",
		with(tools, user, says("model", text), says("model", callA), says("user", resA)):                                                         "comes immediately after",
		with(tools, user, says("model", strings.Replace(callA, `{"x":1}`, `"{}"`, 1)), says("user", resA)):                                       "malformed function call",
		with(tools, user, says("model", strings.Replace(callA, `"a"`, `"a b"`, 1)), says("user", resA)):                                          "malformed function call",
		with(tools, user, says("model", callA), says("user", strings.Replace(resA, `{"output":"ok"}`, `"ok"`, 1))):                               "malformed function response",
		with(tools, user, says("user", callA), says("user", resA)):                                                                               "malformed function call",
		with(tools, user, says("model", signed(strings.Replace(callA, "1", "2", 1))), says("user", resA)):                                        "signature is not valid",
		with(tools, user, says("model", signed(text), callA), says("user", resA)):                                                                "signature is not valid",
		with("", says("user", signed(text))):                                                                                                     "signature is not valid",
		with(`"systemInstruction":{"parts":[]},`, user):                                                                                          "no parts",
		with(`"systemInstruction":{"parts":[{"text":""}]},`, user):                                                                               "systemInstruction",
		with(`"toolConfig":{"functionCallingConfig":{"mode":"NONE"}},`, user):                                                                    "without function declarations",
		with(tools+`"toolConfig":{"functionCallingConfig":{"mode":"never"}},`, user):                                                             "unknown mode",
		with(`"tools":[{"functionDeclarations":[{"name":"a b"}]}],`, user):                                                                       "invalid name",
		with(`"tools":[{"functionDeclarations":[{"name":"a","parameters":{"type":"object","additionalProperties":false}}]}],`, user):             "additionalProperties",
		with(`"tools":[{"functionDeclarations":[{"name":"a","parameters":{"type":"object","properties":{"x":{"$ref":"#"}}}}]}],`, user):          "$ref",
		with(`"tools":[{"functionDeclarations":[{"name":"a","parameters":{"type":"object"},"parametersJsonSchema":{"type":"object"}}]}],`, user): "exclude each other",
		config(`"responseJsonSchema":{"type":"object"}`):                                                                                         "mime type",
		config(`"max_tokens":5`):      "unknown field",
		config(`"maxOutputTokens":0`): "not positive",
		config(`"responseMimeType":"application/json","responseSchema":{"type":"object","$schema":"x"}`): "$schema",
		with("", says("user", `{"inlineData":{"mimeType":"image/svg+xml","data":"PHN2"}}`)):              "inlineData",
		with("", user, says("model", `{"inlineData":{"mimeType":"image/png","data":"iVBO"}}`), user):     "inlineData",
	})
}

func TestEachWireHasItsAddress(t *testing.T) {
	plain := http.Header{"Content-Type": {"application/json"}}
	versioned := http.Header{"Content-Type": {"application/json; charset=utf-8"}, "Anthropic-Version": {"2023-06-01"}}
	for _, c := range []struct {
		reason              string
		wire                modeltest.Wire
		method, path, query string
		header              http.Header
		status              int
	}{
		{"its own", modeltest.Chat, "POST", "/v1/chat/completions", "", plain, 0},
		{"behind a gateway's path", modeltest.Chat, "POST", "/proxy/v1/chat/completions", "", plain, 0},
		{"without a version", modeltest.Chat, "POST", "/chat/completions", "", plain, 404},
		{"another method", modeltest.Chat, "GET", "/v1/chat/completions", "", plain, 404},
		{"no content type", modeltest.Chat, "POST", "/v1/chat/completions", "", nil, 415},
		{"its own", modeltest.Responses, "POST", "/v1/responses", "", plain, 0},
		{"the other API", modeltest.Responses, "POST", "/v1/chat/completions", "", plain, 404},
		{"its own", modeltest.Anthropic, "POST", "/v1/messages", "", versioned, 0},
		{"no version of the API", modeltest.Anthropic, "POST", "/v1/messages", "", plain, 400},
		{"the version twice", modeltest.Anthropic, "POST", "/v1/v1/messages", "", versioned, 404},
		{"its own", modeltest.Gemini, "POST", "/v1beta/models/gemini-3-pro:streamGenerateContent", "alt=sse", plain, 0},
		{"not as events", modeltest.Gemini, "POST", "/v1beta/models/gemini-3-pro:streamGenerateContent", "", plain, 400},
		{"not streamed", modeltest.Gemini, "POST", "/v1beta/models/gemini-3-pro:generateContent", "alt=sse", plain, 404},
		{"a model that is a path", modeltest.Gemini, "POST", "/v1beta/models/a/b:streamGenerateContent", "alt=sse", plain, 404},
	} {
		status, err := c.wire.Route(modeltest.Request{Method: c.method, Path: c.path, Query: c.query, Header: c.header})
		if (err == nil) != (c.status == 0) || err != nil && status != c.status {
			t.Errorf("%s, %s: %d, %v, want %d", c.wire.Name(), c.reason, status, err, c.status)
		}
	}
}

func TestAServerRefusesInItsOwnWords(t *testing.T) {
	for _, w := range modeltest.Wires() {
		s := serve(t, w)
		if !strings.HasSuffix(s.URL, w.Base()) {
			t.Errorf("%s: address %s", w.Name(), s.URL)
		}
		status, body := post(t, s.URL+"/nowhere", "{}")
		if want := w.Fault(404, "no such route: POST "+w.Base()+"/nowhere", ""); status != 404 || body != want {
			t.Errorf("%s: %d %s, want %s", w.Name(), status, body, want)
		}
	}
}
