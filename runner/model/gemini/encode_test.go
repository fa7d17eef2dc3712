package gemini

import (
	"encoding/json"
	"errors"
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

func marked(p message.Part, metadata string) message.Part {
	p.Metadata = json.RawMessage(metadata)
	return p
}

// plain is a model that wants no signatures, strict one that does.
const (
	plain  = "gemini-2.5-flash"
	strict = "gemini-3-pro"
)

// open is a conversation with nothing around it.
func open(t testing.TB, name string, prompt message.Prompt) *Conversation {
	t.Helper()
	c, err := New(httpapi.Config{Name: "m", Model: name, Blob: func(id string) ([]byte, error) {
		if id == "sha256:gone" {
			return nil, errors.New("it is gone")
		}
		return []byte("hi"), nil
	}}, prompt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// request is what the conversation would send.
func request(c *Conversation, end string) string {
	if c.history.role == "" {
		end = end[len(closing):]
	}
	return string(c.history.b) + end
}

func TestMapping(t *testing.T) {
	user, assistant := message.RoleUser, message.RoleAssistant
	ok := &message.ToolResult{Text: "out", Output: "out"}
	own := &message.ModelRef{Name: "m", Provider: "gemini", Model: strict}
	other := &message.ModelRef{Name: "n", Provider: "gemini", Model: plain}
	file := func(mime, url string) message.Part {
		return message.Part{Type: message.PartFile, File: &message.File{Filename: "x", Mime: mime, URL: url}}
	}
	cases := map[string]struct {
		reason string
		model  string
		m      []message.Message
		want   string
	}{
		"user": {
			"one text is sent as it is", plain,
			[]message.Message{{Role: user, Parts: []message.Part{say("a <b> & \"c\"\n\x01\u2028")}}},
			`{"role":"user","parts":[{"text":"a <b> & \"c\"\n\u0001` + "\u2028" + `"}]}`,
		},
		"neighbours": {
			"after a compaction two user messages stand in a row: they are one turn", plain,
			[]message.Message{{Role: user, Parts: []message.Part{say("a")}}, {Role: user, Parts: []message.Part{say("b")}}, {Role: assistant, Parts: []message.Part{say("c")}}, {Role: assistant, Parts: []message.Part{say("d")}}},
			`{"role":"user","parts":[{"text":"a"},{"text":"b"}]},{"role":"model","parts":[{"text":"c"},{"text":"d"}]}`,
		},
		"media": {
			"what the model takes is sent, of the rest it is told", plain,
			[]message.Message{{Role: user, Parts: []message.Part{say("see"), file("image/png", "blob:sha256:1"), file("application/pdf", "data:application/pdf;base64,JVBE"), file("image/gif", "data:image/gif;base64,R0"), file("image/png", "file:x")}}},
			`{"role":"user","parts":[{"text":"see"},{"inlineData":{"mimeType":"image/png","data":"aGk="}},{"inlineData":{"mimeType":"application/pdf","data":"JVBE"}},{"text":"[attached: x (image/gif), content not shown]\n\n[attached: x (image/png), content not shown]"}]}`,
		},
		"nothing":  {"an empty message is none", plain, []message.Message{{Role: user}, {Role: assistant, Parts: []message.Part{say("")}}}, ``},
		"thoughts": {"a summary of thoughts is for people", strict, []message.Message{{Role: assistant, Model: own, Parts: []message.Part{{Type: message.PartReasoning, Text: "hm"}, say("a")}}}, `{"role":"model","parts":[{"text":"a"}]}`},
		"signed text": {
			"a signature goes back on the part it came on", strict,
			[]message.Message{{Role: assistant, Model: own, Parts: []message.Part{marked(say("Hello ☃!"), `{"signatures":[{"thoughtSignature":"AA==","from":6,"to":9},{"thoughtSignature":"BB==","from":10,"to":10}]}`)}}},
			`{"role":"model","parts":[{"text":"Hello "},{"text":"☃","thoughtSignature":"AA=="},{"text":"!"},{"text":"","thoughtSignature":"BB=="}]}`,
		},
		"signed thought": {
			"also where the model thought it", strict,
			[]message.Message{{Role: assistant, Model: own, Parts: []message.Part{marked(message.Part{Type: message.PartReasoning, Text: "a b"}, `{"signatures":[{"thoughtSignature":"AA==","from":2,"to":3}]}`), say("c")}}},
			`{"role":"model","parts":[{"text":"b","thought":true,"thoughtSignature":"AA=="},{"text":"c"}]}`,
		},
		"changed text": {
			"a text that was changed is not what was signed", strict,
			[]message.Message{{Role: assistant, Model: own, Parts: []message.Part{marked(say("ä"), `{"signatures":[{"thoughtSignature":"AA==","from":0,"to":1}]}`)}}, {Role: assistant, Model: own, Parts: []message.Part{marked(say("b"), `{"signatures":[{"thoughtSignature":"AA==","from":0,"to":9}]}`)}}, {Role: assistant, Model: own, Parts: []message.Part{marked(say("c"), `[`)}}},
			`{"role":"model","parts":[{"text":"ä"},{"text":"b"},{"text":"c"}]}`,
		},
		"call": {
			"arguments are an object, the result is the user's", plain,
			[]message.Message{{Role: assistant, Parts: []message.Part{say("t"), tool("c1", "bash", `{"a": 1}`, ok), tool("c2", "read", "", nil)}}},
			`{"role":"model","parts":[{"text":"t"},{"functionCall":{"id":"c1","name":"bash","args":{"a": 1}}},{"functionCall":{"id":"c2","name":"read","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"bash","response":{"output":"out"}}},{"functionResponse":{"id":"c2","name":"read","response":{"error":"interrupted: the call has no result; it may or may not have run"}}}]}`,
		},
		"bad call": {
			"what no server would take is wrapped", plain,
			[]message.Message{{Role: assistant, Parts: []message.Part{tool("c1", "1no such.tool☃", `{"a":`, &message.ToolResult{Text: "position 5", Code: message.CodeBadJSON})}}},
			`{"role":"model","parts":[{"functionCall":{"id":"c1","name":"_1no_such_tool_","args":{"invalid_arguments":"{\"a\":"}}}]},{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"_1no_such_tool_","response":{"error":"bad_json: position 5"}}}]}`,
		},
		"signed calls": {
			"each call has its own signature, a parallel one has none", strict,
			[]message.Message{{Role: assistant, Model: own, Parts: []message.Part{marked(tool("c1", "bash", "{}", ok), `{"thoughtSignature":"AA=="}`), tool("c2", "bash", "{}", ok)}}},
			`{"role":"model","parts":[{"functionCall":{"id":"c1","name":"bash","args":{}},"thoughtSignature":"AA=="},{"functionCall":{"id":"c2","name":"bash","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"bash","response":{"output":"out"}}},{"functionResponse":{"id":"c2","name":"bash","response":{"output":"out"}}}]}`,
		},
		"foreign call": {
			"another model's signature stays with it; a model that insists is told so", strict,
			[]message.Message{{Role: assistant, Model: other, Parts: []message.Part{marked(tool("c1", "bash", "{}", ok), `{"thoughtSignature":"AA=="}`)}}},
			`{"role":"model","parts":[{"functionCall":{"id":"c1","name":"bash","args":{}},"thoughtSignature":"skip_thought_signature_validator"}]},{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"bash","response":{"output":"out"}}}]}`,
		},
		"results and text": {
			"what the user says next stands behind the results, in the same turn", plain,
			[]message.Message{{Role: assistant, Parts: []message.Part{tool("c1", "bash", `{}`, ok)}}, {Role: user, Parts: []message.Part{say("go on")}}},
			`{"role":"model","parts":[{"functionCall":{"id":"c1","name":"bash","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"bash","response":{"output":"out"}}},{"text":"go on"}]}`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			talk := open(t, c.model, message.Prompt{})
			for i := range c.m {
				if err := talk.Append(&c.m[i]); err != nil {
					t.Fatal(err)
				}
			}
			got := request(talk, talk.end)
			if d := cmp.Diff(`{"contents":[`+c.want+`]}`, got); d != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, d)
			}
			if !json.Valid([]byte(got)) {
				t.Errorf("no JSON: %s", got)
			}
		})
	}
}

func TestWhatCannotBeEncodedLeavesTheConversationAsItIs(t *testing.T) {
	c := open(t, plain, message.Prompt{})
	if err := c.Append(&message.Message{Role: message.RoleUser, Parts: []message.Part{say("a")}}); err != nil {
		t.Fatal(err)
	}
	before := request(c, c.end)
	gone := message.Part{Type: message.PartFile, File: &message.File{Mime: "image/png", URL: "blob:sha256:gone"}}
	for name, m := range map[string]*message.Message{
		"role": {Role: "system", Parts: []message.Part{say("x")}},
		"blob": {Role: message.RoleUser, Parts: []message.Part{say("look"), gone}},
	} {
		if err := c.Append(m); reason.Of(err) != reason.Internal || request(c, c.end) != before {
			t.Errorf("%s: %v: %s", name, err, request(c, c.end))
		}
		if err := c.Reset([]*message.Message{m}); reason.Of(err) != reason.Internal || request(c, c.end) != before {
			t.Errorf("%s: %v: %s", name, err, request(c, c.end))
		}
	}
}

func TestLayout(t *testing.T) {
	prompt := message.Prompt{System: "sys", Tools: []message.ToolSpec{{Name: "a", Description: "d", Parameters: []byte(`{"type":"object"}`)}, {Name: "b"}}}
	c, err := New(httpapi.Config{Name: "m", Model: plain, Parameters: []byte(`{"temperature":0,"stop":"END","maxOutputTokens": 10,"reasoningEffort":"high","includeThoughts":true,"extra":{"safetySettings":[{"a": 1}],"generationConfig":{"mediaResolution":"MEDIA_RESOLUTION_LOW"}}}`)}, prompt)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	before := request(c, c.end)
	if err := c.Append(&message.Message{Role: message.RoleUser, Parts: []message.Part{say("hi")}}); err != nil {
		t.Fatal(err)
	}
	head := `{"systemInstruction":{"parts":[{"text":"sys"}]},"tools":[{"functionDeclarations":[{"name":"a","description":"d","parametersJsonSchema":{"type":"object"}},{"name":"b"}]}],` +
		`"generationConfig":{"maxOutputTokens":10,"temperature":0,"mediaResolution":"MEDIA_RESOLUTION_LOW","stopSequences":["END"],"thinkingConfig":{"includeThoughts":true,"thinkingBudget":24576}},"safetySettings":[{"a":1}],"contents":[`
	for want, got := range map[string]string{
		head + `]}`: before,
		head + `{"role":"user","parts":[{"text":"hi"}]}]}`:                                                        request(c, c.end),
		head + `{"role":"user","parts":[{"text":"hi"}]}],"toolConfig":{"functionCallingConfig":{"mode":"NONE"}}}`: request(c, c.silent),
	} {
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for name, cfg := range map[string]httpapi.Config{
		"address":    {BaseURL: "localhost:8080"},
		"login":      {BaseURL: "http://user:pw@host"},
		"parameters": {Parameters: []byte(`{"nope":1}`)},
	} {
		if c, err := New(cfg, message.Prompt{}); err == nil || c != nil || reason.Of(err) != reason.ModelError {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New(httpapi.Config{}, message.Prompt{Tools: []message.ToolSpec{{Name: "x", Parameters: []byte("{")}}}); err == nil || !strings.Contains(err.Error(), `"x"`) {
		t.Errorf("a tool with a broken schema was taken: %v", err)
	}
}

func TestAddress(t *testing.T) {
	for name, want := range map[string]string{
		"gemini-3-pro":         "https://h/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse",
		"models/gemini-3-pro":  "https://h/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse",
		"tunedModels/mine-1":   "https://h/v1beta/tunedModels/mine-1:streamGenerateContent?alt=sse",
		"../../v1/secrets?a=b": "https://h/v1beta/models/..%2F..%2Fv1%2Fsecrets%3Fa=b:streamGenerateContent?alt=sse",
	} {
		if got := address("https://h/", name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestGeneration(t *testing.T) {
	for name, want := range map[string]int{
		"gemini-3-pro-preview": 3, "models/gemini-3.1-flash": 3, "gemini-2.5-pro": 2, "gemini-12": 12, "gemini-flash-latest": newest, "gemini-1.5-pro-latest": 1, "gemini-exp": 0, "gemma-3": 0, "gemini-99999999999999999999": 0, "": 0,
	} {
		if got := generation(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}
