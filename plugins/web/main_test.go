package web

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agentctl.dev/agentctl/plugins/sdk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a server behind a proxy as the sandbox has one: every name leads to the server,
// those that are denied are refused in the proxy's words.
type site struct {
	set *set

	mu     sync.Mutex
	asked  []string
	denied map[string]string
}

// request notes what the proxy was asked for.
func (s *site) request(what string) (denial string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, what)
	for host, text := range s.denied {
		if strings.Contains(what, host) {
			return text
		}
	}
	return ""
}

func (s *site) requests() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.asked, "\n")
}

// serve starts a server of pages for https://example.com and http://example.com:8080.
func serve(t testing.TB, pages http.HandlerFunc) *site {
	t.Helper()
	s := &site{denied: map[string]string{}}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" && r.Header.Get("X-Robots") == "" {
			if _, own := s.denied["own robots"]; !own {
				http.NotFound(w, r)
				return
			}
		}
		pages(w, r)
	})
	secure := httptest.NewTLSServer(handler)
	t.Cleanup(secure.Close)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			if denial := s.request(r.URL.String()); denial != "" {
				w.WriteHeader(http.StatusForbidden)
				_, _ = io.WriteString(w, denial+"\n")
				return
			}
			handler.ServeHTTP(w, r)
			return
		}
		denial := s.request(r.Host)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		if denial != "" {
			_, _ = io.WriteString(conn, "HTTP/1.1 403 "+denial+"\r\nContent-Length: 0\r\n\r\n")
			return
		}
		up, err := net.Dial("tcp", secure.Listener.Addr().String()) //nolint:noctx // a test's own server
		if err != nil {
			t.Error(err)
			return
		}
		defer up.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		var both sync.WaitGroup
		both.Go(func() { _, _ = io.Copy(up, conn); _ = up.(*net.TCPConn).CloseWrite() }) //nolint:forcetypeassert // of net.Dial
		_, _ = io.Copy(conn, up)
		_ = conn.Close()
		both.Wait()
	}))
	t.Cleanup(proxy.Close)
	s.set = newSet(func(name string) string {
		if name == "HTTPS_PROXY" {
			return proxy.URL
		}
		return ""
	})
	s.set.roots = secure.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs //nolint:forcetypeassert // of httptest
	return s
}

// fetch calls the tool as a run does.
func (s *site) fetch(t testing.TB, in fetchIn) *sdk.Result {
	t.Helper()
	args, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	res, err := sdk.New("webfetch", aboutFetch, s.set.fetch, sdk.Schema(json.RawMessage(fetchSchema))).Run(t.Context(), &sdk.Call{Run: "r"}, args)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// text answers every request with a content of a type.
func text(mediaType, content string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", mediaType)
		_, _ = io.WriteString(w, content)
	}
}

func mustParse(t testing.TB, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// soon is a limit for what must end by itself.
const soon = 300 * time.Millisecond
