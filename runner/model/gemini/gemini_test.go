package gemini

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

func openConversation(t testing.TB, s modeltest.Setup) model.Conversation {
	t.Helper()
	c, err := New(httpapi.Config{
		Name: "third", Model: "gemini-test", BaseURL: s.BaseURL, Retry: s.Retry, Patience: model.Patience{FirstByte: s.FirstByte, Idle: s.Idle}, Transport: s.Transport,
		APIKey: func(context.Context) (string, error) { return s.APIKey, nil },
	}, s.Prompt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestConformance(t *testing.T) { modeltest.Run(t, modeltest.Gemini, openConversation) }

func TestForeignServers(t *testing.T) { modeltest.RunForeign(t, modeltest.Gemini, openConversation) }

// over opens a conversation as Over wants it.
func over(t testing.TB, transport http.RoundTripper) model.Conversation {
	t.Helper()
	c, err := New(httpapi.Config{
		Name: "third", Model: strict, Parameters: []byte(`{"temperature":0}`), Transport: transport, Retry: model.Retry{Attempts: 1},
		Blob: func(string) ([]byte, error) { return []byte("content"), nil },
	}, message.Prompt{
		System: "Be brief.", Tools: []message.ToolSpec{{Name: "bash", Description: "Runs a command.", Parameters: []byte(`{"type":"object"}`)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEveryKindOfPartHasOneWireForm(t *testing.T) {
	modeltest.Golden(t, modeltest.Gemini, over, "testdata/request.golden", *update)
}

func TestAConversationIsTheSameHoweverItCameAbout(t *testing.T) {
	modeltest.Resets(t, modeltest.Gemini, over)
}

func TestAMissingKeyNamesItsVariable(t *testing.T) {
	s := modeltest.Serve(t, modeltest.Gemini, modeltest.Refuse(403, nil, ""))
	c, err := New(httpapi.Config{Name: "m", Model: "x", BaseURL: s.URL}, message.Prompt{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Append(&message.Message{Role: message.RoleUser, Parts: []message.Part{say("hi")}}); err != nil {
		t.Fatal(err)
	}
	_, err = c.Next(t.Context(), message.Request{}, quiet)
	if reason.Of(err) != reason.CredentialRejected || !strings.Contains(reason.Hint(err), "GEMINI_API_KEY") {
		t.Errorf("%v (%s)", err, reason.Hint(err))
	}
}

func FuzzArguments(f *testing.F) { modeltest.FuzzArguments(f, modeltest.Gemini, over) }

func FuzzStream(f *testing.F) {
	modeltest.FuzzStream(f, modeltest.Gemini, over,
		"data: {\"usageMetadata\":{\"promptTokenCount\":NaN}}\r\n\r\ndata: [DONE]\n\n",
		"["+chunk(`{"text":"a"}`)+","+finished("STOP")+"]", "[]")
}

// floor is what anybody would read a chunk with.
func floor(data []byte) string {
	var c struct {
		Candidates []struct {
			Content struct{ Parts []struct{ Text string } }
		}
	}
	if json.Unmarshal(data, &c) != nil || len(c.Candidates) == 0 || len(c.Candidates[0].Content.Parts) == 0 {
		return ""
	}
	return c.Candidates[0].Content.Parts[0].Text
}

func BenchmarkStream(b *testing.B) { modeltest.BenchStream(b, modeltest.Gemini, over, floor) }

func BenchmarkTurn(b *testing.B) {
	modeltest.BenchTurn(b, modeltest.Gemini, openConversation, floor)
}

func BenchmarkAppend(b *testing.B) { modeltest.BenchAppend(b, over) }

func BenchmarkNew(b *testing.B) { modeltest.BenchNew(b, over) }
