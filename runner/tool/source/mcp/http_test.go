package mcp

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/tool"
)

// remote is a bed with a server at a URL, which demands a header.
func remote(t *testing.T, h http.Handler) *bed {
	t.Helper()
	at := httptest.NewServer(h)
	t.Cleanup(at.Close)
	source := &v1alpha1.MCPSource{HTTP: &v1alpha1.MCPHTTP{URL: at.URL + "/mcp", Headers: []v1alpha1.Header{{Name: "X-Key"}}}}
	return newBedOf(t, "", source, func(o *tool.PoolOptions) { o.Secrets = map[string]map[string]string{"s": {"X-Key": "secret"}} })
}

func good() http.Handler {
	s := goodServer()
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
}

func TestAServerAtAURLIsCalled(t *testing.T) {
	var without atomic.Int32
	inner := good()
	b := remote(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != "secret" {
			without.Add(1)
		}
		inner.ServeHTTP(w, r)
	}))
	if r := b.answer("echo", `{"text":"hi"}`); r.Failed || r.Output != `{"text":"hi"} in ` {
		t.Errorf("%+v", r)
	}
	if r := b.answer("fail", `{}`); !r.Failed {
		t.Errorf("%+v", r)
	}
	if n := without.Load(); n > 0 {
		t.Errorf("%d requests without the header", n)
	}
	if b.def.Remote == "" {
		t.Error("it counts as a program of this host")
	}
}

// A server that redirects elsewhere gets neither the header nor the arguments sent there.
func TestARedirectToAnotherHostIsRefused(t *testing.T) {
	var reached atomic.Int32
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(thief.Close)
	b := remote(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, thief.URL+"/mcp", http.StatusTemporaryRedirect)
	}))
	if _, err := b.pool.Several(t.Context(), &b.def, ""); err == nil || !strings.Contains(err.Error(), "which spec.source.mcp.http.url does not name") {
		t.Errorf("the error is %v", err)
	}
	if n := reached.Load(); n > 0 {
		t.Errorf("the other host got %d requests", n)
	}
}

func TestAnAnswerWithoutEndIsNotRead(t *testing.T) {
	var sent atomic.Int64
	inner := good()
	b := remote(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(body), `"tools/call"`) {
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			inner.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		chunk := []byte(strings.Repeat("x", 1<<20))
		for range 100 {
			n, err := w.Write(chunk)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	}))
	r, err := b.call(t.Context(), b.function("echo"), `{}`, nil)
	if err == nil && !r.Failed {
		t.Errorf("%.100s", r.Output)
	}
	if sent.Load() > 60<<20 {
		t.Errorf("%d MB were taken", sent.Load()>>20)
	}
}

func TestAServerThatRefusesIsReported(t *testing.T) {
	b := remote(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) }))
	if _, err := b.pool.Several(t.Context(), &b.def, ""); err == nil || !strings.Contains(err.Error(), "Unauthorized") {
		t.Errorf("the error is %v", err)
	}
}
