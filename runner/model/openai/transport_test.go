package openai

import (
	"bufio"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/httpapi"
)

func quiet(message.Delta) error { return nil }

func fast(cfg httpapi.Config) httpapi.Config {
	cfg.Name, cfg.Model = "m", "test-model"
	cfg.Retry = model.Retry{Attempts: 2, Sleep: func(context.Context, time.Duration) error { return nil }}
	return cfg
}

func next(t *testing.T, cfg httpapi.Config) (*message.Output, error) {
	t.Helper()
	return nextOver(t, New, cfg)
}

func nextOver(t *testing.T, open opens, cfg httpapi.Config) (*message.Output, error) {
	t.Helper()
	c, err := open(fast(cfg), message.Prompt{System: "s"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return c.Next(ctx, message.Request{}, quiet)
}

func TestServersThatCannotBeReached(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed at once
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + l.Addr().String() + "/v1"
	_ = l.Close()
	ssh, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed by the test
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			c, err := ssh.Accept()
			if err != nil {
				return
			}
			// The whole request first: an answer before its end would be a race.
			if req, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				_, _ = io.Copy(io.Discard, req.Body)
			}
			_, _ = c.Write([]byte("SSH-2.0-OpenSSH_9.9\r\n\x00\x01\x02\r\n"))
			_ = c.Close()
		}
	}()
	defer func() { _ = ssh.Close(); <-served }()
	tls := httptest.NewUnstartedServer(http.NotFoundHandler())
	tls.Config.ErrorLog = log.New(io.Discard, "", 0)
	tls.StartTLS()
	defer tls.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	cases := map[string]struct {
		url  string
		want reason.Reason
		says string
	}{
		"refused":        {closed, reason.ProviderUnavailable, "refused"},
		"no http":        {"http://" + ssh.Addr().String() + "/v1", reason.ModelError, "HTTP"},
		"unknown ca":     {tls.URL + "/v1", reason.ProviderUnavailable, "SSL_CERT_FILE"},
		"tls to no tls":  {strings.Replace(plain.URL, "http://", "https://", 1) + "/v1", reason.ModelError, "http://"},
		"http to tls":    {strings.Replace(tls.URL, "https://", "http://", 1) + "/v1", reason.ModelError, "400"},
		"wrong route":    {plain.URL, reason.ModelError, "/v1"},
		"unknown domain": {"http://no-such-host.invalid/v1", reason.ProviderUnavailable, ""},
	}
	for name, c := range cases {
		_, err := next(t, httpapi.Config{BaseURL: c.url})
		if err == nil || reason.Of(err) != c.want || !strings.Contains(err.Error()+reason.Hint(err), c.says) {
			t.Errorf("%s: %v (%s), reason %s", name, err, reason.Hint(err), reason.Of(err))
		}
	}
}

// A proxy is used where the environment names one; the loopback is exempt, so
// the test looks at the transport.
func TestTransportHonoursProxies(t *testing.T) {
	tr := httpapi.NewTransport()
	if tr.Proxy == nil || !tr.DisableCompression || !tr.ForceAttemptHTTP2 || tr.DisableKeepAlives {
		t.Errorf("transport %+v", tr)
	}
}

// Each API has its own path, behind the path of the base URL, and the key is in
// one header only.
func TestPathsAndKeys(t *testing.T) {
	var seen *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r
		w.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	for base, want := range map[string]string{"": "", "/": "", "/v1": "/v1", "/v1/": "/v1", "/responses": "/responses", "/a%2Fb/v1/": "/a%2Fb/v1"} {
		for path, open := range map[string]opens{"/chat/completions": New, "/responses": NewResponses} {
			_, _ = nextOver(t, open, httpapi.Config{BaseURL: server.URL + base, APIKey: func(context.Context) (string, error) { return "sk-secret", nil }})
			if got := seen.URL.EscapedPath(); got != want+path || seen.URL.RawQuery != "" {
				t.Errorf("base %q: sent to %s?%s, want %s", base, got, seen.URL.RawQuery, want+path)
			}
			for name, values := range seen.Header {
				if strings.Contains(strings.Join(values, " "), "sk-secret") != (name == "Authorization") {
					t.Errorf("base %q: %s: %q", base, name, values)
				}
			}
		}
	}
}

func TestRefusalsThatAnotherSettingMends(t *testing.T) {
	const only = `{"error":{"message":"This model is only supported in v1/responses and not in v1/chat/completions.","type":"invalid_request_error","param":"model","code":null}}`
	for name, c := range map[string]struct {
		reason string
		open   opens
		status int
		body   string
		hint   string
	}{
		"chat, other model":     {"OpenAI says so itself", New, 404, only, "spec.api: responses"},
		"chat, 400":             {"with another status as well", New, 400, `{"error":{"message":"Function tools with reasoning_effort are not supported for this model in /v1/chat/completions. Please use /v1/responses instead."}}`, "spec.api: responses"},
		"chat, no model":        {"any other 404 is about the address or the model", New, 404, `{"error":{"message":"The model x does not exist","code":"model_not_found"}}`, "is spec.baseURL right"},
		"responses, no route":   {"few of the servers that imitate OpenAI have both", NewResponses, 404, "404 page not found", "spec.api: chat"},
		"responses, method":     {"some have the path for something else", NewResponses, 405, "", "spec.api: chat"},
		"responses, 400":        {"and some say so", NewResponses, 400, `{"error":{"message":"use /v1/chat/completions for this model"}}`, "spec.api: chat"},
		"responses, thoughts":   {"a model that does not think cannot be asked for it", NewResponses, 400, `{"error":{"message":"Encrypted content is not supported with this model.","type":"invalid_request_error","param":"include","code":null}}`, "encryptedReasoning: false"},
		"chat, schema":          {"older models are held to no schema", New, 400, `{"error":{"message":"Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."}}`, "structuredOutput: false"},
		"responses, wrong word": {"any other refusal is what it says", NewResponses, 400, `{"error":{"message":"no such parameter"}}`, ""},
		"responses, busy":       {"a crowd is no reason to change the API", NewResponses, 503, `{"error":{"message":"chat/completions is overloaded"}}`, ""},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.body))
		}))
		_, err := nextOver(t, c.open, httpapi.Config{BaseURL: server.URL + "/v1"})
		if hint := reason.Hint(err); !strings.Contains(hint, c.hint) || c.hint == "" && strings.Contains(hint, "spec.api") {
			t.Errorf("%s: the hint is %q, want %q: %s", name, hint, c.hint, c.reason)
		}
		server.Close()
	}
}
