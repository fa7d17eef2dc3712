package endpoint

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/coder"
	"agentctl.dev/agentctl/runner/model/modeltest"
)

// served is an endpoint in front of a model server.
type served struct {
	url   string
	model *modeltest.Server

	mu       sync.Mutex
	used     []Use
	reserved []int64
	settled  int
}

func serve(t *testing.T, api coder.API, refuse string, steps ...modeltest.Step) *served {
	t.Helper()
	wires := map[coder.API]modeltest.Wire{coder.Chat: modeltest.Chat, coder.Responses: modeltest.Responses, coder.Messages: modeltest.Anthropic}
	model, err := modeltest.Options{Wire: wires[api], Unchecked: true}.Serve(steps...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(model.Close)
	s := &served{model: model}
	e := New(Options{
		API: api, Model: "the-model", BaseURL: model.URL, Token: "tok", Output: 100, Transport: http.DefaultTransport,
		Key: func(context.Context) (string, error) { return "sk-real", nil },
		Price: func(u message.Usage) (message.Cost, message.Cost, bool) {
			return message.Cost(u.Total()), message.Cost(2 * u.Total()), true
		},
		Reserve: func(tokens int64, cost *message.Cost) string {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.reserved = append(s.reserved, tokens)
			if cost == nil || int64(*cost) != 2*tokens {
				return fmt.Sprintf("cost %v of %d tokens", cost, tokens)
			}
			return refuse
		},
		Settle: func() { s.mu.Lock(); defer s.mu.Unlock(); s.settled++ },
		Used:   func(u Use) { s.mu.Lock(); defer s.mu.Unlock(); s.used = append(s.used, u) },
	})
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.url = "http://" + l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *served) ask(t *testing.T, method, path, token, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(path, "messages") {
		req.Header.Set("X-Api-Key", token)
		req.Header.Set("Anthropic-Version", "2023-06-01")
	} else {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestARequestIsForwardedWithTheKeyAndCounted(t *testing.T) {
	for _, api := range []coder.API{coder.Chat, coder.Responses, coder.Messages} {
		s := serve(t, api, "", modeltest.Answer{Text: "hello", Usage: &modeltest.Usage{Prompt: 100, Completion: 20, Cached: 30}}.Step())
		status, text := s.ask(t, "POST", string(api), "tok", `{"model":"gpt-dear","stream":true,"max_tokens":50,"service_tier":"priority","speed":"fast"}`)
		if status != 200 || !strings.Contains(text, "hello") {
			t.Fatalf("%s: %d %s", api, status, text)
		}
		sent := s.model.Requests()
		if len(sent) != 1 {
			t.Fatalf("%s: %d requests", api, len(sent))
		}
		body := string(sent[0].Body)
		if !strings.Contains(body, `"model":"the-model"`) || strings.Contains(body, "priority") || strings.Contains(body, "fast") {
			t.Errorf("%s: the server was sent %s", api, body)
		}
		if key := sent[0].Header.Get("X-Api-Key") + sent[0].Header.Get("Authorization"); key != "sk-real" && key != "Bearer sk-real" {
			t.Errorf("%s: the server was shown %q", api, key)
		}
		if len(s.used) != 1 || s.used[0].Estimated || s.used[0].Tokens.Total() != 120 || s.used[0].Tokens.CacheRead != 30 || *s.used[0].Cost != 120 {
			t.Errorf("%s: used %+v", api, s.used)
		}
		if len(s.reserved) != 1 || s.reserved[0] < 50 || s.settled != 1 {
			t.Errorf("%s: reserved %v, settled %d", api, s.reserved, s.settled)
		}
	}
}

// A cost that is not counted is not zero: it is estimated, and too high rather than too low.
func TestAnAnswerThatIsNotCountedIsEstimated(t *testing.T) {
	s := serve(t, coder.Chat, "", modeltest.Answer{Text: strings.Repeat("hello ", 100)}.Step())
	if status, _ := s.ask(t, "POST", "/v1/chat/completions", "tok", `{"messages":[]}`); status != 200 {
		t.Fatal(status)
	}
	if len(s.used) != 1 || !s.used[0].Estimated || s.used[0].Tokens.Output < 200 || s.used[0].Tokens.Input < 1 || int64(*s.used[0].Cost) != 2*s.used[0].Tokens.Total() {
		t.Errorf("%+v", s.used)
	}
}

func TestARefusalOfTheServerCostsNothing(t *testing.T) {
	s := serve(t, coder.Chat, "", modeltest.Refuse(429, nil, `{"error":{"message":"later"}}`))
	if status, text := s.ask(t, "POST", "/v1/chat/completions", "tok", `{}`); status != 429 || !strings.Contains(text, "later") {
		t.Errorf("%d %s", status, text)
	}
	if len(s.used) != 0 || s.settled != 1 {
		t.Errorf("used %+v, settled %d", s.used, s.settled)
	}
}

func TestABudgetWithoutRoomSendsNothing(t *testing.T) {
	s := serve(t, coder.Messages, "limits.maxCost of a run above is 1.00 USD")
	status, text := s.ask(t, "POST", "/v1/messages", "tok", `{"max_tokens":10}`)
	if status != 400 || !strings.Contains(text, "limits.maxCost") || len(s.model.Requests()) != 0 {
		t.Errorf("%d %s, %d requests", status, text, len(s.model.Requests()))
	}
}

func TestNothingElseIsServed(t *testing.T) {
	s := serve(t, coder.Chat, "")
	for _, c := range []struct {
		method, path, token, body string
		status                    int
		reason                    string
	}{
		{"POST", "/v1/chat/completions", "other", `{}`, 401, "another token"},
		{"POST", "/v1/chat/completions", "", `{}`, 401, "no token"},
		{"POST", "/v1/responses", "tok", `{}`, 404, "another API"},
		{"POST", "/v1/files", "tok", `{}`, 404, "another address of the server"},
		{"GET", "/v1/chat/completions", "tok", ``, 404, "another method"},
		{"POST", "/v1/chat/completions", "tok", `[1]`, 400, "no object"},
		{"POST", "/v1/chat/completions", "tok", `null`, 400, "null"},
		{"GET", "/v1/models", "tok", ``, 200, "the list of models is ours"},
	} {
		if status, text := s.ask(t, c.method, c.path, c.token, c.body); status != c.status {
			t.Errorf("%s %s (%s): %d %s", c.method, c.path, c.reason, status, text)
		}
	}
	if n := len(s.model.Requests()); n != 0 {
		t.Errorf("%d requests reached the server", n)
	}
	for _, head := range []string{"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n", "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\nAuthorization: Bearer tok\r\n\r\n"} {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, head)
		answer := make([]byte, 12)
		if _, err := io.ReadFull(c, answer); err != nil || string(answer) != "HTTP/1.1 403" {
			t.Errorf("%q: %s, %v", head, answer, err)
		}
		_ = c.Close()
	}
}

// Requests that run at the same time are reserved together.
func TestRequestsInFlightAreReservedTogether(t *testing.T) {
	s := serve(t, coder.Chat, "")
	e := New(Options{
		Output: 100, Price: nil, Settle: func() { s.settled++ },
		Reserve: func(tokens int64, _ *message.Cost) string { s.reserved = append(s.reserved, tokens); return "" },
	})
	first, why := e.reserve(message.Usage{Output: 100})
	second, other := e.reserve(message.Usage{Output: 50})
	if why != "" || other != "" {
		t.Fatal(why, other)
	}
	first()
	second()
	if fmt.Sprint(s.reserved) != "[100 150 50]" || s.settled != 1 {
		t.Errorf("reserved %v, settled %d", s.reserved, s.settled)
	}
}
