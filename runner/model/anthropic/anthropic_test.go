package anthropic

import (
	"context"
	"testing"

	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/exchange"
	"agentctl.dev/agentctl/runner/model/modeltest"
)

func openConversation(t testing.TB, s modeltest.Setup) model.Conversation {
	t.Helper()
	c, err := New(exchange.Config{
		Name: "careful", Model: "test-model", BaseURL: s.BaseURL, Retry: s.Retry, FirstByte: s.FirstByte, Idle: s.Idle,
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

func TestBasics(t *testing.T) {
	modeltest.Basics(t, func(t testing.TB, answers ...modeltest.Answer) model.Conversation {
		t.Helper()
		steps := make([]modeltest.Step, len(answers))
		for i, a := range answers {
			steps[i] = a.Step()
		}
		server, err := modeltest.Options{Wire: modeltest.Anthropic}.Serve(steps...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.Close)
		return openConversation(t, modeltest.Setup{BaseURL: server.URL, APIKey: modeltest.Key})
	})
}
