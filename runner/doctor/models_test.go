package doctor

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/runner/keys"
)

// TestServersOfModels: only what lists models as OpenAI does is one.
func TestServersOfModels(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter)
		ok     bool
		why    string
	}{
		"models":      {say(200, `{"object":"list","data":[{"id":"a"},{"id":"b"},{"id":""},{"id":"c"},{"id":"d"},{"id":"e"}]}`), true, " has a, b, c and 2 more"},
		"none":        {say(200, `{"object":"list","data":[]}`), false, "has no models"},
		"another":     {say(404, `not found`), false, "lists no models: it answers 404 Not Found"},
		"a page":      {say(200, `<html>`), false, "not a list in JSON"},
		"endless":     {say(200, `{"data":[`+strings.Repeat(`{"id":"a"},`, 200_000)), false, "not a list in JSON"},
		"redirecting": {func(w http.ResponseWriter) { w.Header().Set("Location", "http://192.0.2.1/"); w.WriteHeader(302) }, false, "it answers 302 Found"},
		"many":        {say(200, `{"data":[{"id":"a"}`+strings.Repeat(`,{"id":"b"}`, 500)+`]}`), true, " and 97 more"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/v1/models" {
					t.Errorf("asked for %s", r.URL.Path)
				}
				c.answer(w)
			}))
			defer srv.Close()
			m := server{"x", srv.URL + "/v1", "x serve"}.ask(t.Context())
			if m.OK != c.ok || !strings.Contains(m.Why, c.why) {
				t.Errorf("ok %t, why %q; want %t, %q", m.OK, m.Why, c.ok, c.why)
			}
			if c.ok && m.Hint != `a Model with spec {provider: openai, model: "a", baseURL: `+srv.URL+`/v1} asks it` {
				t.Errorf("hint %q", m.Hint)
			}
		})
	}
}

func say(status int, body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// TestAServerThatIsNotThere: what does not run has the command that starts it, and what
// never answers is left.
func TestAServerThatIsNotThere(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if m := (server{"x", srv.URL, "x serve"}).ask(ctx); m.OK || !strings.Contains(m.Why, "deadline exceeded") {
		t.Errorf("a server that hangs: %+v", m)
	}
	srv.Close()
	if m := (server{"x", srv.URL, "x serve"}).ask(t.Context()); m.OK || m.Why != "nothing listens at "+srv.URL || m.Hint != "x serve" {
		t.Errorf("a server that is gone: %+v", m)
	}
}

func TestWhereOllamaListens(t *testing.T) {
	for set, want := range map[string]string{
		"": "127.0.0.1:11434", "0.0.0.0": "127.0.0.1:11434", "0.0.0.0:9": "127.0.0.1:9", ":9": "127.0.0.1:9", "http://box:9/": "box:9", "box": "box:11434", "[::1]:9": "[::1]:9", "::": "127.0.0.1:11434",
	} {
		if got := ollamaHost(set); got != want {
			t.Errorf("OLLAMA_HOST=%q: %s, want %s", set, got, want)
		}
	}
}

// TestKeysOfProviders: a key is found in the environment and among the stored ones, and its
// value is nowhere.
func TestKeysOfProviders(t *testing.T) {
	state := t.TempDir()
	for _, name := range []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"} {
		t.Setenv(name, "")
	}
	if err := os.Unsetenv("GEMINI_API_KEY"); err != nil { // Setenv puts it back
		t.Fatal(err)
	}
	t.Setenv("OPENAI_API_KEY", "canary-in-the-environment")
	if err := keys.Set(state, "GEMINI_API_KEY", []byte("canary-that-is-stored")); err != nil {
		t.Fatal(err)
	}
	found := modelSources(t.Context(), state, nil)
	for _, m := range found {
		if strings.Contains(m.Why+m.Hint, "canary") {
			t.Errorf("a value is shown: %+v", m)
		}
	}
	for name, want := range map[string]string{"openai": "OPENAI_API_KEY is set in the environment", "gemini": "GEMINI_API_KEY is stored", "anthropic": "ANTHROPIC_API_KEY is set in the environment, but empty"} {
		at := slices.IndexFunc(found, func(m ModelSource) bool { return m.Name == name })
		if at < 0 || found[at].OK == (name == "anthropic") || !strings.HasPrefix(found[at].Why, want) {
			t.Errorf("%s: %+v", name, found)
		}
	}
}
