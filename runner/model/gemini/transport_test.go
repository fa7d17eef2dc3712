package gemini

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/exchange"
	"agentctl.dev/agentctl/runner/model/modeltest"
)

const testKey = "AIzaSy-secret"

func key(context.Context) (string, error) { return testKey, nil }

func fast(cfg exchange.Config) exchange.Config {
	cfg.Name, cfg.Model = "m", "gemini-test"
	cfg.Retry = model.Retry{Attempts: 2, Sleep: func(context.Context, time.Duration) error { return nil }}
	return cfg
}

func next(t *testing.T, cfg exchange.Config) (*message.Output, error) {
	t.Helper()
	c, err := New(fast(cfg), message.Prompt{System: "s"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	return c.Next(ctx, message.Request{}, quiet)
}

func TestOneConnectionForAllTurns(t *testing.T) {
	steps := make([]modeltest.Step, 20)
	for i := range steps {
		steps[i] = modeltest.Answer{Text: "ok", Usage: &modeltest.Usage{Prompt: 1, Completion: 1}}.Step()
	}
	s, err := modeltest.Options{Wire: modeltest.Gemini}.Serve(steps...)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := New(fast(exchange.Config{BaseURL: s.URL + "/", APIKey: key}), message.Prompt{System: "s"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Append(&message.Message{Role: message.RoleUser, Parts: []message.Part{say("hi")}}); err != nil {
		t.Fatal(err)
	}
	for range steps {
		if _, err := c.Next(t.Context(), message.Request{}, quiet); err != nil {
			t.Fatal(err)
		}
	}
	remote := map[string]bool{}
	for _, r := range s.Requests() {
		remote[r.Remote] = true
		if r.Path != "/v1beta/models/gemini-test:streamGenerateContent" || r.Query != "alt=sse" || r.Header.Get("Accept-Encoding") != "" || r.Header.Get("Transfer-Encoding") != "" || r.Header.Get("Content-Length") == "" {
			t.Errorf("request %s?%s %v", r.Path, r.Query, r.Header)
		}
	}
	if len(remote) != 1 {
		t.Errorf("%d connections for %d requests", len(remote), len(steps))
	}
}

// The key stands in one header, and nothing of it in what people and logs read.
func TestTheKeyStandsInOnePlace(t *testing.T) {
	var seen *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":{"code":400,"message":"bad ` + testKey + `","status":"INVALID_ARGUMENT"}}`))
	}))
	defer server.Close()
	_, err := next(t, exchange.Config{BaseURL: server.URL, APIKey: key})
	if err == nil || strings.Contains(err.Error()+reason.Hint(err), testKey) || !strings.Contains(err.Error(), "bad ***") {
		t.Errorf("error %v (%s)", err, reason.Hint(err))
	}
	for name, values := range seen.Header {
		if holds := strings.Contains(strings.Join(values, " "), testKey); holds != (name == "X-Goog-Api-Key") {
			t.Errorf("header %s: %q", name, values)
		}
	}
	if strings.Contains(seen.URL.String(), testKey) {
		t.Errorf("address %s", seen.URL)
	}
}

// The environment of the SDK must not reach a request: no manifest names it.
func TestEnvironmentOfTheSDKIsIgnored(t *testing.T) {
	for k, v := range map[string]string{
		"GEMINI_API_KEY": "AIza-env", "GOOGLE_API_KEY": "AIza-env", "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:1/", "GOOGLE_GENAI_USE_VERTEXAI": "true",
		"GOOGLE_CLOUD_PROJECT": "env-project", "GOOGLE_APPLICATION_CREDENTIALS": "/env.json",
	} {
		t.Setenv(k, v)
	}
	var seen *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r
		_, _ = w.Write(modeltest.Gemini.Stream(modeltest.Answer{Text: "ok"}))
	}))
	defer server.Close()
	if _, err := next(t, exchange.Config{BaseURL: server.URL}); err != nil {
		t.Fatal(err)
	}
	for k, v := range seen.Header {
		if k == "X-Goog-Api-Key" || k == "Authorization" || strings.Contains(strings.Join(v, " "), "env") {
			t.Errorf("sent %s: %s", k, v)
		}
	}
}

func TestARefusedRedirectKeepsTheKey(t *testing.T) {
	asked := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer elsewhere.Close()
	here := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer here.Close()
	_, err := next(t, exchange.Config{BaseURL: here.URL, APIKey: key})
	if reason.Of(err) != reason.ModelError || asked != 0 || !strings.Contains(err.Error(), elsewhere.URL) {
		t.Errorf("%v after %d requests elsewhere", err, asked)
	}
}

func TestAWrongAddressIsTold(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	_, err := next(t, exchange.Config{BaseURL: server.URL + "/v1beta"})
	if reason.Of(err) != reason.ModelError || !strings.Contains(reason.Hint(err), provider.Wants) || strings.Contains(reason.Hint(err), "openai") {
		t.Errorf("%v (%s)", err, reason.Hint(err))
	}
	// A key that is missing is told with the name people keep it under.
	denied := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer denied.Close()
	_, err = next(t, exchange.Config{BaseURL: denied.URL})
	if reason.Of(err) != reason.CredentialRejected || !strings.Contains(reason.Hint(err), "GEMINI_API_KEY") {
		t.Errorf("%v (%s)", err, reason.Hint(err))
	}
}
