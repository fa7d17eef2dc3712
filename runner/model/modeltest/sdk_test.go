package modeltest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"agentctl.dev/agentctl/runner/model/modeltest"
)

// The vendors' own clients are the judges of what the server sends: what they
// make of a stream is the answer it was made from. OpenAI's client is held
// against it by the provider's tests, the only ones that may import it.

var told = modeltest.Answer{
	Text: "I look: ☃ \"quoted\" <b>&\nlines.", Reasoning: "The user wants a list.",
	Calls: []modeltest.Call{{ID: "call_a", Tool: "bash", Args: `{"command":"ls -la \"ü\""}`}, {ID: "call_b", Tool: "read", Args: `{"path":"a.txt"}`}},
	Usage: &modeltest.Usage{Prompt: 100, Completion: 20, Cached: 40, CacheWrite: 25, Reasoning: 5}, TextSize: 5, ArgsSize: 3,
}

// heard is the answer as a client read it from a stream.
type heard struct {
	Text, Reasoning, Signature, Finish string
	Calls                              []modeltest.Call
	Usage                              modeltest.Usage
}

func serve(t *testing.T, w modeltest.Wire, steps ...modeltest.Step) *modeltest.Server {
	t.Helper()
	s, err := modeltest.Options{Wire: w}.Serve(steps...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func anthropicParams() anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: "test-model", MaxTokens: 4096, System: []anthropic.TextBlockParam{{Text: "Be brief.", CacheControl: anthropic.NewCacheControlEphemeralParam()}},
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("What is in the folder?"))},
		Tools: []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
			Name: "bash", Description: anthropic.String("Runs a command."), InputSchema: anthropic.ToolInputSchemaParam{Properties: map[string]any{"command": map[string]any{"type": "string"}}},
		}}},
		Thinking: anthropic.ThinkingConfigParamOfEnabled(1024),
	}
}

func askAnthropic(ctx context.Context, s *modeltest.Server, params anthropic.MessageNewParams) (*anthropic.Message, error) {
	client := anthropic.NewClient(option.WithBaseURL(s.URL), option.WithAPIKey(modeltest.Key), option.WithMaxRetries(0))
	stream := client.Messages.NewStreaming(ctx, params)
	var m anthropic.Message
	for stream.Next() {
		if err := m.Accumulate(stream.Current()); err != nil {
			return nil, err
		}
	}
	return &m, stream.Err()
}

func TestAnthropicsClientReadsTheStream(t *testing.T) {
	hidden := told
	hidden.Reasoning, hidden.Hidden = "", true
	s := serve(t, modeltest.Anthropic, told.Step(), hidden.Step(), modeltest.Answer{Text: "done", Finish: "max_tokens"}.Step())
	params := anthropicParams()
	m, err := askAnthropic(t.Context(), s, params)
	if err != nil {
		t.Fatal(err)
	}
	got := heard{Finish: string(m.StopReason), Usage: modeltest.Usage{
		Prompt: int(m.Usage.InputTokens + m.Usage.CacheReadInputTokens + m.Usage.CacheCreationInputTokens), Completion: int(m.Usage.OutputTokens),
		Cached: int(m.Usage.CacheReadInputTokens), CacheWrite: int(m.Usage.CacheCreationInputTokens), Reasoning: int(m.Usage.OutputTokensDetails.ThinkingTokens),
	}}
	for _, b := range m.Content {
		switch b.Type {
		case "thinking":
			got.Reasoning, got.Signature = b.Thinking, b.Signature
		case "text":
			got.Text = b.Text
		case "tool_use":
			got.Calls = append(got.Calls, modeltest.Call{ID: b.ID, Tool: b.Name, Args: string(b.Input)})
		}
	}
	if got.Signature == "" {
		t.Error("the thought is not signed")
	}
	want := heard{Text: told.Text, Reasoning: told.Reasoning, Signature: got.Signature, Finish: "tool_use", Calls: told.Calls, Usage: *told.Usage}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	// What the client writes, with the answer in it, is a request the server takes.
	results := anthropic.NewUserMessage(anthropic.NewToolResultBlock("call_a", "a.txt", false), anthropic.NewToolResultBlock("call_b", "no such file", true))
	params.Messages = append(params.Messages, m.ToParam(), results)
	m, err = askAnthropic(t.Context(), s, params)
	if err != nil {
		t.Fatal(err)
	}
	if m.Content[0].Type != "redacted_thinking" || m.Content[0].Data == "" {
		t.Errorf("a hidden thought came as %+v", m.Content[0])
	}
	params.Messages = append(params.Messages[:1:1], m.ToParam(), results, anthropic.NewUserMessage(anthropic.NewTextBlock("Go on.")))
	if m, err = askAnthropic(t.Context(), s, params); err != nil || m.StopReason != anthropic.StopReasonMaxTokens || m.Content[0].Text != "done" {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestAnthropicsClientReadsTheFaults(t *testing.T) {
	w := modeltest.Anthropic
	for status, kind := range map[int]anthropic.ErrorType{400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error", 500: "api_error", 529: "overloaded_error"} {
		for _, step := range []modeltest.Step{modeltest.Refuse(status, nil, w.Fault(status, "it broke", "")), modeltest.Events(w.Begun("half") + w.InStream(status, "it broke", ""))} {
			_, err := askAnthropic(t.Context(), serve(t, w, step), anthropicParams())
			var refused *anthropic.Error
			if !errors.As(err, &refused) || refused.Type() != kind {
				t.Errorf("%d: %v", status, err)
			}
		}
	}
}

func geminiConfig() *genai.GenerateContentConfig {
	return &genai.GenerateContentConfig{
		SystemInstruction: genai.NewContentFromText("Be brief.", genai.RoleUser), MaxOutputTokens: 4096, Temperature: genai.Ptr[float32](0.5),
		Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{
			{Name: "bash", Description: "Runs a command.", Parameters: &genai.Schema{Type: "object", Properties: map[string]*genai.Schema{"command": {Type: "string"}}, Required: []string{"command"}}},
			{Name: "read", ParametersJsonSchema: map[string]any{"type": "object", "additionalProperties": false}},
		}}},
		ThinkingConfig: &genai.ThinkingConfig{IncludeThoughts: true},
	}
}

func askGemini(ctx context.Context, s *modeltest.Server, contents []*genai.Content) ([]*genai.GenerateContentResponse, error) {
	client, err := genai.NewClient(ctx, &genai.ClientConfig{APIKey: modeltest.Key, Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: s.URL}})
	if err != nil {
		return nil, err
	}
	var chunks []*genai.GenerateContentResponse
	for c, err := range client.Models.GenerateContentStream(ctx, "test-model", contents, geminiConfig()) {
		if err != nil {
			return nil, err
		}
		chunks = append(chunks, c)
	}
	return chunks, nil
}

func TestGooglesClientReadsTheStream(t *testing.T) {
	answer := told
	answer.Usage = &modeltest.Usage{Prompt: 100, Completion: 20, Cached: 40, Reasoning: 5}
	s := serve(t, modeltest.Gemini, answer.Step(), modeltest.Answer{Text: "done", Finish: "MAX_TOKENS"}.Step())
	contents := []*genai.Content{genai.NewContentFromText("What is in the folder?", genai.RoleUser)}
	chunks, err := askGemini(t.Context(), s, contents)
	if err != nil {
		t.Fatal(err)
	}
	last := chunks[len(chunks)-1]
	u := last.UsageMetadata
	got := heard{Finish: string(last.Candidates[0].FinishReason), Usage: modeltest.Usage{
		Prompt: int(u.PromptTokenCount), Completion: int(u.CandidatesTokenCount + u.ThoughtsTokenCount), Cached: int(u.CachedContentTokenCount), Reasoning: int(u.ThoughtsTokenCount),
	}}
	said := &genai.Content{Role: genai.RoleModel}
	results := &genai.Content{Role: genai.RoleUser}
	for _, c := range chunks {
		for _, p := range c.Candidates[0].Content.Parts {
			switch {
			case p.FunctionCall != nil:
				got.Signature += string(p.ThoughtSignature)
				command, _ := p.FunctionCall.Args["command"].(string)
				path, _ := p.FunctionCall.Args["path"].(string)
				args := fmt.Sprintf(`{"command":%q}`, command)
				if path != "" {
					args = fmt.Sprintf(`{"path":%q}`, path)
				}
				got.Calls = append(got.Calls, modeltest.Call{ID: p.FunctionCall.ID, Tool: p.FunctionCall.Name, Args: args})
				results.Parts = append(results.Parts, &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: p.FunctionCall.ID, Name: p.FunctionCall.Name, Response: map[string]any{"output": "a.txt"}}})
			case p.Thought:
				got.Reasoning += p.Text
			default:
				got.Text += p.Text
			}
			if p.Text != "" || p.FunctionCall != nil {
				said.Parts = append(said.Parts, p)
			}
		}
	}
	if got.Signature == "" {
		t.Error("the call is not signed")
	}
	want := heard{Text: answer.Text, Reasoning: answer.Reasoning, Signature: got.Signature, Finish: "STOP", Calls: answer.Calls, Usage: *answer.Usage}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	chunks, err = askGemini(t.Context(), s, append(contents, said, results))
	if err != nil || chunks[0].Text() != "done" {
		t.Errorf("%+v, %v", chunks, err)
	}
}

func TestGooglesClientReadsTheFaults(t *testing.T) {
	w := modeltest.Gemini
	contents := []*genai.Content{genai.NewContentFromText("Hi.", genai.RoleUser)}
	for status, word := range map[int]string{400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE"} {
		for _, step := range []modeltest.Step{modeltest.Refuse(status, nil, w.Fault(status, "it broke", "")), modeltest.Events(w.Begun("half") + w.InStream(status, "it broke", ""))} {
			_, err := askGemini(t.Context(), serve(t, w, step), contents)
			var refused genai.APIError
			if !errors.As(err, &refused) || refused.Status != word || refused.Code != status {
				t.Errorf("%d: %v", status, err)
			}
		}
	}
}
