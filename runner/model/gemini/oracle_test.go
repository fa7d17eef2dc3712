package gemini

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model/httpapi"
)

// oracle is a request in the SDK's own types.
type oracle struct {
	SystemInstruction *genai.Content          `json:"systemInstruction,omitempty"`
	Contents          []*genai.Content        `json:"contents,omitempty"`
	Tools             []*genai.Tool           `json:"tools,omitempty"`
	ToolConfig        *genai.ToolConfig       `json:"toolConfig,omitempty"`
	GenerationConfig  *genai.GenerationConfig `json:"generationConfig,omitempty"`
}

// normal is JSON without empty values: the SDK leaves out empty texts and objects, false
// and zero. It writes bytes in another base64 alphabet than that of the signature for a
// foreign call; the API reads both.
func normal(t *testing.T, raw []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(standard(raw), &v); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return strip(v)
}

func standard(raw []byte) []byte {
	return bytes.ReplaceAll(raw, []byte(foreignSignature), []byte(strings.ReplaceAll(foreignSignature, "_", "/")))
}

func strip(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, m := range v {
			if v[k] = strip(m); v[k] == nil {
				delete(v, k)
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		for i := range v {
			v[i] = strip(v[i])
		}
	case string:
		if v == "" {
			return nil
		}
	case bool:
		if !v {
			return nil
		}
	case float64:
		if v == 0 {
			return nil
		}
	}
	return v
}

// The SDK's types know every member of the request, and say the same with it.
func TestTheRequestIsOneOfTheSDK(t *testing.T) {
	raw, err := os.ReadFile("testdata/request.golden")
	if err != nil {
		t.Fatal(err)
	}
	var o oracle
	d := json.NewDecoder(bytes.NewReader(standard(raw)))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(normal(t, raw), normal(t, again)); d != "" {
		t.Errorf("(-ours +the SDK's):\n%s", d)
	}
}

// sent is what a server was sent.
type sent struct {
	method, address, key, contentType string
	body                              []byte
}

// listen is a server that keeps the last request and answers in the SDK's words.
func listen(t *testing.T, chunks ...*genai.GenerateContentResponse) (url string, last *sent) {
	t.Helper()
	last = &sent{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read the request: %v", err)
		}
		*last = sent{r.Method, r.URL.String(), r.Header.Get("X-Goog-Api-Key"), r.Header.Get("Content-Type"), body}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, c := range chunks {
			b, err := json.Marshal(c)
			if err != nil {
				t.Errorf("encode a chunk: %v", err)
			}
			_, _ = w.Write([]byte("data: " + string(b) + "\r\n\r\n"))
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, last
}

func stopped(parts ...*genai.Part) *genai.GenerateContentResponse {
	return &genai.GenerateContentResponse{
		Candidates:    []*genai.Candidate{{Content: &genai.Content{Role: "model", Parts: parts}, FinishReason: genai.FinishReasonStop}},
		UsageMetadata: &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 10, CachedContentTokenCount: 4, CandidatesTokenCount: 3, ThoughtsTokenCount: 2},
	}
}

// What the SDK sends for a conversation is what we send for the same one.
func TestTheSDKSendsTheSame(t *testing.T) {
	const schema = `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`
	const output = `{"type":"object","properties":{"a":{"type":"string"}}}`
	url, last := listen(t, stopped(genai.NewPartFromText("ok")))

	talk, err := New(httpapi.Config{
		Name: "m", Model: "gemini-3-pro-preview", BaseURL: url, APIKey: func(context.Context) (string, error) { return "AIza-test", nil },
		Parameters: []byte(`{"temperature":0.5,"topK":40,"maxOutputTokens":99,"stop":["END"],"seed":7,"reasoningEffort":"low","includeThoughts":true,"presencePenalty":0.25,"structuredOutput":true,
			"extra":{"safetySettings":[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"BLOCK_NONE"}]}}`),
	}, message.Prompt{System: "Be brief.", Output: []byte(output), Tools: []message.ToolSpec{{Name: "read", Description: "Reads.", Parameters: []byte(schema)}}})
	if err != nil {
		t.Fatal(err)
	}
	defer talk.Close()
	self := talk.Self()
	for _, m := range []*message.Message{
		{Role: message.RoleUser, Parts: []message.Part{say("Look."), {Type: message.PartFile, File: &message.File{URL: "data:image/png;base64,iVBORw0KGgo="}}}},
		{Role: message.RoleAssistant, Model: &self, Parts: []message.Part{
			marked(say("I look."), `{"signatures":[{"thoughtSignature":"c2lnMQ==","from":7,"to":7}]}`),
			marked(tool("c1", "read", `{"path":"a"}`, &message.ToolResult{Text: "one"}), `{"thoughtSignature":"c2lnMg=="}`),
			tool("c2", "read", `{"path":"b"}`, &message.ToolResult{Text: "gone", Code: message.CodeTool}),
		}},
		{Role: message.RoleUser, Parts: []message.Part{say("Go on.")}},
	} {
		if err := talk.Append(m); err != nil {
			t.Fatal(err)
		}
	}
	out, err := talk.Next(t.Context(), message.Request{NoTools: true}, quiet)
	if err != nil || out.Text != "ok" {
		t.Fatalf("%+v, %v", out, err)
	}
	ours := *last

	client, err := genai.NewClient(t.Context(), &genai.ClientConfig{APIKey: "AIza-test", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: url}})
	if err != nil {
		t.Fatal(err)
	}
	call := func(id, path, signature string) *genai.Part {
		return &genai.Part{FunctionCall: &genai.FunctionCall{ID: id, Name: "read", Args: map[string]any{"path": path}}, ThoughtSignature: []byte(signature)}
	}
	result := func(id, key, text string) *genai.Part {
		return &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: id, Name: "read", Response: map[string]any{key: text}}}
	}
	contents := []*genai.Content{
		{Role: "user", Parts: []*genai.Part{{Text: "Look."}, {InlineData: &genai.Blob{MIMEType: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")}}}},
		{Role: "model", Parts: []*genai.Part{{Text: "I look."}, {ThoughtSignature: []byte("sig1")}, call("c1", "a", "sig2"), call("c2", "b", "")}},
		{Role: "user", Parts: []*genai.Part{result("c1", "output", "one"), result("c2", "error", "tool: gone"), {Text: "Go on."}}},
	}
	config := &genai.GenerateContentConfig{
		SystemInstruction: &genai.Content{Parts: []*genai.Part{{Text: "Be brief."}}},
		Temperature:       genai.Ptr[float32](0.5), TopK: genai.Ptr[float32](40), MaxOutputTokens: 99, StopSequences: []string{"END"}, Seed: genai.Ptr[int32](7), PresencePenalty: genai.Ptr[float32](0.25),
		ThinkingConfig:   &genai.ThinkingConfig{IncludeThoughts: true, ThinkingLevel: genai.ThinkingLevelLow},
		ResponseMIMEType: "application/json", ResponseJsonSchema: json.RawMessage(output),
		SafetySettings: []*genai.SafetySetting{{Category: genai.HarmCategoryHarassment, Threshold: genai.HarmBlockThresholdBlockNone}},
		Tools:          []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{{Name: "read", Description: "Reads.", ParametersJsonSchema: json.RawMessage(schema)}}}},
		ToolConfig:     &genai.ToolConfig{FunctionCallingConfig: &genai.FunctionCallingConfig{Mode: genai.FunctionCallingConfigModeNone}},
	}
	for _, err := range client.Models.GenerateContentStream(t.Context(), "gemini-3-pro-preview", contents, config) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if last.method != ours.method || last.address != ours.address || last.key != ours.key || last.contentType != ours.contentType {
		t.Errorf("ours %s %s %s %s, the SDK's %s %s %s %s", ours.method, ours.address, ours.key, ours.contentType, last.method, last.address, last.key, last.contentType)
	}
	theirs := normal(t, last.body)
	// The API's own examples leave it out: a system prompt has no role.
	if system, ok := theirs.(map[string]any)["systemInstruction"].(map[string]any); ok {
		delete(system, "role")
	}
	if d := cmp.Diff(theirs, normal(t, ours.body)); d != "" {
		t.Errorf("(-the SDK's +ours):\n%s", d)
	}
}

// What the SDK's types hold of an answer is what we read of it.
func TestAnswersInTheWordsOfTheSDK(t *testing.T) {
	url, _ := listen(t,
		&genai.GenerateContentResponse{Candidates: []*genai.Candidate{{Content: genai.NewContentFromParts([]*genai.Part{{Text: "Let me see.", Thought: true}}, "model")}}, ResponseID: "r"},
		&genai.GenerateContentResponse{Candidates: []*genai.Candidate{{Content: genai.NewContentFromText("I look: ☃", "model"), SafetyRatings: []*genai.SafetyRating{{Category: genai.HarmCategoryHarassment, Probability: genai.HarmProbabilityLow}}}}, ModelVersion: "gemini-3-pro"},
		stopped(
			&genai.Part{ThoughtSignature: []byte("sig1")},
			&genai.Part{FunctionCall: &genai.FunctionCall{ID: "c1", Name: "read", Args: map[string]any{"path": "a", "n": 1}}, ThoughtSignature: []byte("sig2")},
			&genai.Part{FunctionCall: &genai.FunctionCall{Name: "list"}},
		),
	)
	talk, err := New(httpapi.Config{Name: "m", Model: "gemini-3-pro", BaseURL: url}, message.Prompt{})
	if err != nil {
		t.Fatal(err)
	}
	defer talk.Close()
	out, err := talk.Next(t.Context(), message.Request{}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	want := &message.Output{
		Text: "I look: ☃", Reasoning: "Let me see.", Finish: message.FinishToolCalls, Model: talk.Self(),
		TextMetadata: json.RawMessage(`{"signatures":[{"thoughtSignature":"c2lnMQ==","from":11,"to":11}]}`),
		Calls: []message.CallRequest{
			{ID: "c1", Tool: "read", Args: `{"n":1,"path":"a"}`, Metadata: json.RawMessage(`{"thoughtSignature":"c2lnMg=="}`)},
			{ID: "call_2", Tool: "list", Args: "{}"},
		},
		Usage: message.Usage{Input: 6, Output: 5, Reasoning: 2, CacheRead: 4},
	}
	if d := cmp.Diff(want, out); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Every word the SDK knows for an end or a block is one that we have thought of.
func TestWordsOfTheSDK(t *testing.T) {
	for word, want := range map[genai.FinishReason]message.Finish{
		genai.FinishReasonStop: message.FinishStop, genai.FinishReasonMaxTokens: message.FinishLength,
		genai.FinishReasonSafety: message.FinishContentFilter, genai.FinishReasonRecitation: message.FinishContentFilter, genai.FinishReasonLanguage: message.FinishContentFilter,
		genai.FinishReasonBlocklist: message.FinishContentFilter, genai.FinishReasonProhibitedContent: message.FinishContentFilter, genai.FinishReasonSPII: message.FinishContentFilter,
		genai.FinishReasonOther: message.FinishUnknown, genai.FinishReasonMalformedFunctionCall: message.FinishUnknown,
		genai.FinishReasonUnexpectedToolCall: message.FinishUnknown, genai.FinishReasonTooManyToolCalls: message.FinishUnknown,
	} {
		if got := endings.Finish(string(word)); got != want {
			t.Errorf("%s: %s, want %s", word, got, want)
		}
	}
}
