package modeltest_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/anthropic"
	"agentctl.dev/agentctl/runner/model/gemini"
	"agentctl.dev/agentctl/runner/model/httpapi"
	"agentctl.dev/agentctl/runner/model/modeltest"
	"agentctl.dev/agentctl/runner/model/openai"
)

type conversation interface {
	model.Conversation
	Close() error
}

func opened(t testing.TB, c conversation, err error) model.Conversation {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func config(s modeltest.Setup) httpapi.Config {
	return httpapi.Config{
		Name: "m", Model: "test-model", BaseURL: s.BaseURL, Retry: s.Retry, Patience: model.Patience{FirstByte: s.FirstByte, Idle: s.Idle}, Transport: s.Transport,
		APIKey: func(context.Context) (string, error) { return s.APIKey, nil },
		Blob:   func(string) ([]byte, error) { return []byte("content"), nil },
	}
}

func completions(t testing.TB, s modeltest.Setup) model.Conversation {
	t.Helper()
	c, err := openai.New(config(s), s.Prompt)
	return opened(t, c, err)
}

func items(t testing.TB, s modeltest.Setup) model.Conversation {
	t.Helper()
	c, err := openai.NewResponses(config(s), s.Prompt)
	return opened(t, c, err)
}

func messages(t testing.TB, s modeltest.Setup) model.Conversation {
	t.Helper()
	c, err := anthropic.New(config(s), s.Prompt)
	return opened(t, c, err)
}

func contents(t testing.TB, s modeltest.Setup) model.Conversation {
	t.Helper()
	c, err := gemini.New(config(s), s.Prompt)
	return opened(t, c, err)
}

var providers = map[modeltest.Wire]modeltest.Open{
	modeltest.Chat: completions, modeltest.Responses: items, modeltest.Anthropic: messages, modeltest.Gemini: contents,
}

// The suite is tested with the providers; the tests of each have its slow part, which is
// about every byte.
func TestSuite(t *testing.T) {
	for wire, open := range providers {
		t.Run(wire.Name(), func(t *testing.T) {
			t.Parallel()
			modeltest.Talks(t, wire, open)
			modeltest.RunForeign(t, wire, open)
		})
	}
}

const goodRequest = `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`

func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body) // a cut body is looked at as far as it came
	return resp.StatusCode, string(b)
}

func TestServerGivesItsSteps(t *testing.T) {
	s, err := modeltest.NewServer(modeltest.Answer{Text: "one"}.Step())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Add(modeltest.Answer{Text: "two", NoDone: true}.Step())
	chat := s.URL + "/chat/completions"
	for _, want := range []string{`"content":"one"`, `"content":"two"`} {
		if status, body := post(t, chat, goodRequest); status != 200 || !strings.Contains(body, want) {
			t.Errorf("%d %s", status, body)
		}
	}
	if s.Left() != 0 || len(s.Requests()) != 2 || string(s.Requests()[1].Body) != goodRequest || s.Requests()[1].N != 2 {
		t.Errorf("%d left, requests %v", s.Left(), s.Requests())
	}
	if status, _ := post(t, chat, goodRequest); status != 400 {
		t.Errorf("without a step: %d", status)
	}
	if status, _ := post(t, s.URL+"/models", goodRequest); status != 404 {
		t.Errorf("another route: %d", status)
	}
	if status, body := post(t, chat, "{}"); status != 400 || !strings.Contains(body, "model is missing") {
		t.Errorf("a bad request: %d %s", status, body)
	}
}

func TestCloseEndsStalledStreams(t *testing.T) {
	s, err := modeltest.NewServer(modeltest.Answer{Text: "one"}.Step().StallAt(10))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/chat/completions", strings.NewReader(goodRequest))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	s.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil || ctx.Err() != nil || len(b) != 10 {
		t.Errorf("read %q, %v", b, err)
	}
}
