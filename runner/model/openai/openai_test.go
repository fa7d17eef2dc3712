package openai

import (
	"context"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/exchange"
	"agentctl.dev/agentctl/runner/model/modeltest"
)

// opener opens a conversation of one of the two APIs as the suite wants it.
func opener(open opens, parameters string) modeltest.Open {
	return func(t testing.TB, s modeltest.Setup) model.Conversation {
		t.Helper()
		c, err := open(exchange.Config{
			Name: "fast", Model: "test-model", BaseURL: s.BaseURL, Retry: s.Retry, FirstByte: s.FirstByte, Idle: s.Idle,
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

func TestBasics(t *testing.T) {
	modeltest.Basics(t, func(t testing.TB, answers ...modeltest.Answer) model.Conversation {
		t.Helper()
		steps := make([]modeltest.Step, len(answers))
		for i, a := range answers {
			steps[i] = a.Step()
		}
		server, err := modeltest.NewServer(steps...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.Close)
		return opener(New, "")(t, modeltest.Setup{BaseURL: server.URL, APIKey: modeltest.Key})
	})
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
		server, err := modeltest.NewServer(modeltest.Answer{Text: "ok"}.Step(), modeltest.Answer{Text: "ok"}.Step())
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		c, err := New(fast(exchange.Config{BaseURL: server.URL, Parameters: []byte(parameters)}), message.Prompt{System: "s"})
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
