package anthropic

import (
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/httpapi"
	"agentctl.dev/agentctl/runner/model/modeltest"
)

var update = flag.Bool("update", false, "write the request into testdata")

func quiet(message.Delta) error { return nil }

func openConversation(t testing.TB, s modeltest.Setup) model.Conversation {
	t.Helper()
	c, err := New(httpapi.Config{
		Name: "careful", Model: "test-model", BaseURL: s.BaseURL, Retry: s.Retry, Patience: model.Patience{FirstByte: s.FirstByte, Idle: s.Idle}, Transport: s.Transport,
		APIKey: func(context.Context) (string, error) { return s.APIKey, nil },
	}, s.Prompt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestConformance(t *testing.T) { modeltest.Run(t, modeltest.Anthropic, openConversation) }

func TestForeignServers(t *testing.T) { modeltest.RunForeign(t, modeltest.Anthropic, openConversation) }

func TestAMissingKeyNamesItsVariable(t *testing.T) {
	s := modeltest.Serve(t, modeltest.Anthropic, modeltest.Refuse(401, nil, modeltest.Anthropic.Fault(401, "x-api-key header is required", "")))
	c, err := New(httpapi.Config{Name: "m", Model: "x", BaseURL: s.URL}, message.Prompt{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Next(t.Context(), message.Request{}, quiet)
	if reason.Of(err) != reason.CredentialRejected || !strings.Contains(reason.Hint(err), "ANTHROPIC_API_KEY") {
		t.Errorf("%v (%s)", err, reason.Hint(err))
	}
}

// over opens a conversation as Over wants it.
func over(t testing.TB, transport http.RoundTripper) model.Conversation {
	t.Helper()
	c, err := New(httpapi.Config{
		Name: "careful", Model: "claude-sonnet-4-5", Parameters: []byte(`{"temperature":0,"stop":"END","user":"u-1"}`), Transport: transport,
		Retry: model.Retry{Attempts: 1}, Blob: func(string) ([]byte, error) { return []byte("\x89PNG\r\n\x1a\n"), nil },
	}, message.Prompt{
		System: "Be brief.", Tools: []message.ToolSpec{
			{Name: "bash", Description: "Runs a command.", Parameters: []byte(`{"type":"object"}`)},
			{Name: "read", Parameters: []byte(`{"properties":{"path":{"type":"string"}},"anyOf":[{"required":["path"]}]}`)},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEveryKindOfPartHasOneWireForm(t *testing.T) {
	modeltest.Golden(t, modeltest.Anthropic, over, "testdata/request.golden", *update)
}

func TestAConversationIsTheSameHoweverItCameAbout(t *testing.T) {
	modeltest.Resets(t, modeltest.Anthropic, over)
}

func FuzzArguments(f *testing.F) { modeltest.FuzzArguments(f, modeltest.Anthropic, over) }

func FuzzStream(f *testing.F) {
	modeltest.FuzzStream(f, modeltest.Anthropic, over,
		"data: {\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"a\"},\"type\":\"content_block_start\"}\n\ndata: {\"type\":\"message_stop\"}\n\n",
		"data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":NaN}}\r\n\r\ndata: [DONE]\n\n",
		`{"type":"message","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"ok"},{"type":"tool_use","id":"a","name":"b","input":{"a":1}}],"stop_reason":null}`)
}

// floor is what anybody would read an event with.
func floor(data []byte) string {
	var e struct {
		Type  string
		Delta struct{ Text string }
	}
	if json.Unmarshal(data, &e) != nil || e.Type != blockDelta {
		return ""
	}
	return e.Delta.Text
}

func BenchmarkStream(b *testing.B) { modeltest.BenchStream(b, modeltest.Anthropic, over, floor) }

func BenchmarkTurn(b *testing.B) {
	modeltest.BenchTurn(b, modeltest.Anthropic, openConversation, floor)
}

func BenchmarkAppend(b *testing.B) { modeltest.BenchAppend(b, over) }

func BenchmarkNew(b *testing.B) { modeltest.BenchNew(b, over) }
