package openai

import (
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/httpapi"
	"agentctl.dev/agentctl/runner/model/modeltest"
)

var update = flag.Bool("update", false, "write the requests into testdata")

// opens is New or NewResponses.
type opens func(httpapi.Config, message.Prompt) (*Conversation, error)

// opener opens a conversation of one of the two APIs as the suite wants it.
func opener(open opens, parameters string) modeltest.Open {
	return func(t testing.TB, s modeltest.Setup) model.Conversation {
		t.Helper()
		c, err := open(httpapi.Config{
			Name: "fast", Model: "test-model", BaseURL: s.BaseURL, Retry: s.Retry, Patience: model.Patience{FirstByte: s.FirstByte, Idle: s.Idle}, Transport: s.Transport,
			APIKey: func(context.Context) (string, error) { return s.APIKey, nil }, Parameters: []byte(parameters),
		}, s.Prompt)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
}

func TestConformance(t *testing.T) {
	modeltest.Run(t, modeltest.Chat, opener(New, ""))
}

func TestResponsesConformance(t *testing.T) {
	modeltest.Run(t, modeltest.Responses, opener(NewResponses, `{"structuredOutput":true}`))
}

func TestForeignServers(t *testing.T) {
	modeltest.RunForeign(t, modeltest.Chat, opener(New, ""))
	modeltest.RunForeign(t, modeltest.Responses, opener(NewResponses, ""))
}

// overs opens a conversation of one of the two APIs as Over wants it.
func overs(open opens, parameters string) modeltest.Over {
	return func(t testing.TB, transport http.RoundTripper) model.Conversation {
		t.Helper()
		c, err := open(httpapi.Config{
			Name: "fast", Model: "gpt-5-mini", Parameters: []byte(parameters), Transport: transport, Retry: model.Retry{Attempts: 1},
			Blob: func(string) ([]byte, error) { return []byte("content"), nil },
		}, message.Prompt{System: "Be brief.", Tools: bash()})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
}

var overChat, overResponses = overs(New, `{"temperature":0}`), overs(NewResponses, `{"temperature":0}`)

func TestEveryKindOfPartHasOneWireForm(t *testing.T) {
	modeltest.Golden(t, modeltest.Chat, overChat, "testdata/chat.golden", *update)
	modeltest.Golden(t, modeltest.Responses, overResponses, "testdata/responses.golden", *update, thoughtful())
}

func TestAConversationIsTheSameHoweverItCameAbout(t *testing.T) {
	modeltest.Resets(t, modeltest.Chat, overChat)
	modeltest.Resets(t, modeltest.Responses, overResponses)
}

func FuzzArguments(f *testing.F) { modeltest.FuzzArguments(f, modeltest.Chat, overChat) }

func FuzzReplyArguments(f *testing.F) {
	modeltest.FuzzArguments(f, modeltest.Responses, overResponses)
}

func FuzzStream(f *testing.F) {
	modeltest.FuzzStream(f, modeltest.Chat, overChat,
		"data: {\"usage\":{\"prompt_tokens\":NaN}}\r\n\r\ndata: [DONE]\n\n",
		"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"name\":\"a\",\"arguments\":\"{}\"}},{\"index\":7}]},\"finish_reason\":\"stop\"}]}\n\n")
}

func FuzzReplies(f *testing.F) {
	modeltest.FuzzStream(f, modeltest.Responses, overResponses,
		"data: "+textDelta("a")+"\n\ndata: "+itemAdded(1, `{"type":"message","phase":"p"}`)+"\n\ndata: "+textDelta("b")+"\n\ndata: "+completed+"\n\n",
		"data: "+itemDone(0, `{"type":"reasoning","id":"r","content":[{"text":"x"}]}`)+"\n\ndata: "+itemDone(0, `{"type":"function_call","arguments":{"a":1}}`)+"\n\ndata: "+completed+"\n\n",
		`{"object":"response","output":[{"type":"message","content":[{"refusal":"no"}]}]}`,
		"event: error\ndata: {\"type\":\"error\",\"message\":\"no\"}\n\n")
}

// floor is what anybody would read a chunk with.
func floor(data []byte) string {
	var c struct {
		Choices []struct {
			Delta struct{ Content string }
		}
	}
	if string(data) == "[DONE]" || json.Unmarshal(data, &c) != nil || len(c.Choices) == 0 {
		return ""
	}
	return c.Choices[0].Delta.Content
}

// replyFloor is floor over the responses API.
func replyFloor(data []byte) string {
	var e struct{ Type, Delta string }
	if json.Unmarshal(data, &e) != nil || e.Type != "response.output_text.delta" {
		return ""
	}
	return e.Delta
}

func BenchmarkStream(b *testing.B) {
	b.Run("chat", func(b *testing.B) { modeltest.BenchStream(b, modeltest.Chat, overChat, floor) })
	b.Run("responses", func(b *testing.B) { modeltest.BenchStream(b, modeltest.Responses, overResponses, replyFloor) })
}

func BenchmarkTurn(b *testing.B) {
	modeltest.BenchTurn(b, modeltest.Chat, opener(New, ""), floor)
}

func BenchmarkAppend(b *testing.B) {
	b.Run("chat", func(b *testing.B) { modeltest.BenchAppend(b, overChat) })
	b.Run("responses", func(b *testing.B) { modeltest.BenchAppend(b, overResponses) })
}

func BenchmarkNew(b *testing.B) {
	b.Run("chat", func(b *testing.B) { modeltest.BenchNew(b, overChat) })
	b.Run("responses", func(b *testing.B) { modeltest.BenchNew(b, overResponses) })
}

func TestAsideKeepsToTheSmallerLimitUnderItsOwnName(t *testing.T) {
	for parameters, want := range map[string]string{
		`{}`:                          `"max_completion_tokens":100`,
		`{"maxOutputTokens":50}`:      `"max_completion_tokens":50`,
		`{"maxOutputTokens":5000}`:    `"max_completion_tokens":100`,
		`{"extra":{"max_tokens":50}}`: `"max_tokens":50`,
		`{"extra":{"max_tokens":500},"temperature":0}`: `"temperature":0,"max_tokens":100`,
		`{"extra":{"n_predict":-1}}`:                   `"n_predict":100`,
		`{"extra":{"max_tokens":"many"}}`:              `"max_tokens":100`,
	} {
		server := modeltest.Serve(t, modeltest.Chat, modeltest.Answer{Text: "ok"}.Step(), modeltest.Answer{Text: "ok"}.Step())
		c, err := New(fast(httpapi.Config{BaseURL: server.URL, Parameters: []byte(parameters)}), message.Prompt{System: "s"})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for _, most := range []int64{100, 0} {
			if _, err := c.Next(t.Context(), message.Request{Aside: &message.Aside{Text: "x", MaxOutputTokens: most}}, quiet); err != nil {
				t.Fatal(err)
			}
		}
		sent := server.Requests()
		if body := string(sent[0].Body); !strings.Contains(body, want) || strings.Count(body, "max_")+strings.Count(body, "n_predict") != 1 {
			t.Errorf("%s: %s, want %s", parameters, body, want)
		}
		if own := string(c.always.Encode(nil)); !strings.Contains(string(sent[1].Body), own) {
			t.Errorf("%s: without a limit of its own an aside has the model's: %s", parameters, sent[1].Body)
		}
	}
}
