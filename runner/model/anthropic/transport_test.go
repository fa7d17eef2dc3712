package anthropic

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

func quiet(message.Delta) error { return nil }

func fast(cfg exchange.Config) exchange.Config {
	cfg.Name, cfg.Model = "m", "test-model"
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

func serve(t *testing.T, steps ...modeltest.Step) *modeltest.Server {
	t.Helper()
	s, err := modeltest.Options{Wire: modeltest.Anthropic}.Serve(steps...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestOneConnectionForAllTurns(t *testing.T) {
	steps := make([]modeltest.Step, 20)
	for i := range steps {
		steps[i] = modeltest.Answer{Text: "ok", Usage: &modeltest.Usage{Prompt: 1, Completion: 1}}.Step()
	}
	s := serve(t, steps...)
	c, err := New(fast(exchange.Config{BaseURL: s.URL + "/"}), message.Prompt{System: "s"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range steps {
		if _, err := c.Next(t.Context(), message.Request{}, quiet); err != nil {
			t.Fatal(err)
		}
	}
	remote := map[string]bool{}
	for _, r := range s.Requests() {
		remote[r.Remote] = true
		if r.Path != "/v1/messages" || r.Header.Get("Accept-Encoding") != "" || r.Header.Get("Transfer-Encoding") != "" || r.Header.Get("Anthropic-Version") != "2023-06-01" {
			t.Errorf("request %s %v", r.Path, r.Header)
		}
	}
	if len(remote) != 1 {
		t.Errorf("%d connections for %d requests", len(remote), len(steps))
	}
}

// The environment of the SDK must not reach a request: no manifest names it.
func TestEnvironmentOfTheSDKIsIgnored(t *testing.T) {
	for k, v := range map[string]string{
		"ANTHROPIC_API_KEY": "sk-env", "ANTHROPIC_AUTH_TOKEN": "token-env", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1/", "ANTHROPIC_PROFILE": "env",
		"ANTHROPIC_CUSTOM_HEADERS": "X-Env: env", "ANTHROPIC_CONFIG_DIR": t.TempDir(), "ANTHROPIC_WORKSPACE_ID": "env", "ANTHROPIC_ORGANIZATION_ID": "env",
		"ANTHROPIC_WEBHOOK_SIGNING_KEY": "env", "ANTHROPIC_IDENTITY_TOKEN": "env", "ANTHROPIC_FEDERATION_RULE_ID": "env",
	} {
		t.Setenv(k, v)
	}
	s := serve(t, modeltest.Answer{Text: "ok"}.Step())
	if _, err := next(t, exchange.Config{BaseURL: s.URL}); err != nil {
		t.Fatal(err)
	}
	for k, v := range s.Requests()[0].Header {
		if k == "Authorization" || k == "X-Api-Key" || strings.Contains(strings.Join(v, " "), "env") {
			t.Errorf("sent %s: %s", k, v)
		}
	}
}

func TestKeyStandsInItsHeaderOnly(t *testing.T) {
	s := serve(t, modeltest.Answer{Text: "ok"}.Step())
	if _, err := next(t, exchange.Config{BaseURL: s.URL, APIKey: func(context.Context) (string, error) { return "sk-secret", nil }}); err != nil {
		t.Fatal(err)
	}
	r := s.Requests()[0]
	for k, v := range r.Header {
		if has := strings.Contains(strings.Join(v, " "), "sk-secret"); has != (k == "X-Api-Key") {
			t.Errorf("%s: %s", k, v)
		}
	}
	if strings.Contains(r.Path+r.Query+string(r.Body), "sk-secret") {
		t.Error("the key stands in the address or in the body")
	}
}

func TestWrongAddressIsTold(t *testing.T) {
	s := serve(t)
	_, err := next(t, exchange.Config{BaseURL: s.URL + "/v1"})
	if reason.Of(err) != reason.ModelError || !strings.Contains(reason.Hint(err), "without a version") {
		t.Errorf("%v (%s)", err, reason.Hint(err))
	}
	for _, bad := range []string{"api.anthropic.com", "ftp://x", "http://user:pass@host"} {
		if _, err := New(exchange.Config{Name: "m", Model: "x", BaseURL: bad}, message.Prompt{}); reason.Of(err) != reason.ModelError || strings.Contains(err.Error(), "pass") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestAMissingKeyNamesItsVariable(t *testing.T) {
	s := serve(t, modeltest.Refuse(401, nil, modeltest.Anthropic.Fault(401, "x-api-key header is required", "")))
	_, err := next(t, exchange.Config{BaseURL: s.URL})
	if reason.Of(err) != reason.CredentialRejected || !strings.Contains(reason.Hint(err), "ANTHROPIC_API_KEY") {
		t.Errorf("%v (%s)", err, reason.Hint(err))
	}
}

func TestARefusedRedirectKeepsTheKey(t *testing.T) {
	asked := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer elsewhere.Close()
	here := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer here.Close()
	_, err := next(t, exchange.Config{BaseURL: here.URL, APIKey: func(context.Context) (string, error) { return "sk-secret", nil }})
	if reason.Of(err) != reason.ModelError || asked != 0 {
		t.Errorf("%v after %d requests elsewhere", err, asked)
	}
}
