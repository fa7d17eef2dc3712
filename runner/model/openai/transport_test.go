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

func TestOneConnectionForAllTurns(t *testing.T) {
	steps := make([]modeltest.Step, 20)
	for i := range steps {
		steps[i] = modeltest.Answer{Text: "ok", Usage: &modeltest.Usage{Prompt: 1, Completion: 1}}.Step()
	}
	s, err := modeltest.NewServer(steps...)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
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
		if r.Path != "/v1/chat/completions" || r.Header.Get("Accept-Encoding") != "" || r.Header.Get("Transfer-Encoding") != "" {
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
		"OPENAI_API_KEY": "sk-env", "OPENAI_ADMIN_KEY": "sk-admin", "OPENAI_BASE_URL": "http://127.0.0.1:1/", "OPENAI_ORG_ID": "org-env",
		"OPENAI_PROJECT_ID": "proj-env", "OPENAI_CUSTOM_HEADERS": "X-Env: env",
	} {
		t.Setenv(k, v)
	}
	s, err := modeltest.NewServer(modeltest.Answer{Text: "ok"}.Step())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := next(t, exchange.Config{BaseURL: s.URL}); err != nil {
		t.Fatal(err)
	}
	for k, v := range s.Requests()[0].Header {
		if k == "Authorization" || strings.Contains(strings.Join(v, " "), "env") || strings.Contains(strings.Join(v, " "), "admin") {
			t.Errorf("sent %s: %s", k, v)
		}
	}
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
		_, err := next(t, exchange.Config{BaseURL: c.url})
		if err == nil || reason.Of(err) != c.want || !strings.Contains(err.Error()+reason.Hint(err), c.says) {
			t.Errorf("%s: %v (%s), reason %s", name, err, reason.Hint(err), reason.Of(err))
		}
	}
}

// A proxy is used where the environment names one; the loopback is exempt, so
// the test looks at the transport.
func TestTransportHonoursProxies(t *testing.T) {
	tr := exchange.NewTransport()
	if tr.Proxy == nil || !tr.DisableCompression || !tr.ForceAttemptHTTP2 || tr.DisableKeepAlives {
		t.Errorf("transport %+v", tr)
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
