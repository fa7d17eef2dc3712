package embedded

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// shortHeaders is how long the shared server waits for the head of a request.
const shortHeaders = 5 * time.Second

const runsPath = "/apis/agentctl.dev/v1alpha1/namespaces/default/runs"

// caller sends the given requests to a server.
type caller struct {
	t      testing.TB
	server *Server
	http   *http.Client
}

func newCaller(t testing.TB, s *Server) *caller {
	t.Helper()
	h, err := rest.HTTPClientFor(&rest.Config{Host: s.URL(), TLSClientConfig: s.Loopback().TLSClientConfig})
	if err != nil {
		t.Fatal(err)
	}
	h.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	h.Timeout = patient
	return &caller{t, s, h}
}

// do sends a request and returns the code and the body of the answer.
func (c *caller) do(method, path, token string, body io.Reader, change func(*http.Request)) (int, string) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.server.URL()+path, body)
	if err != nil {
		c.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	req.Header.Set("Content-Type", "application/json")
	if change != nil {
		change(req)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// token makes an identity of a role.
func token(t testing.TB, s *Server, name string, role Role, runs ...string) string {
	t.Helper()
	text, err := s.Tokens().Create(t.Context(), Identity{Name: name, Role: role, Runs: runs})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func TestHostileRequestsAreRefused(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	admin := token(t, s, "hostile-admin", RoleAdmin)
	old := token(t, s, "hostile-old", RoleAdmin)
	if _, err := s.Tokens().Rotate(t.Context(), "hostile-old", ""); err != nil {
		t.Fatal(err)
	}
	huge := func() io.Reader { return bytes.NewReader(bytes.Repeat([]byte("x"), 4<<20)) }
	object := func(text string) io.Reader { return strings.NewReader(text) }
	run := `{"apiVersion": "agentctl.dev/v1alpha1", "kind": "Run", "metadata": {"name": "hostile"}, "spec": {"agentRef": {"name": "a"}}}`
	for name, c := range map[string]struct {
		method, path, token string
		body                io.Reader
		change              func(*http.Request)
		code                int
	}{
		"no token":                       {"GET", runsPath, "", nil, nil, 401},
		"no token, readiness":            {"GET", "/readyz", "", nil, nil, 401},
		"a wrong token":                  {"GET", runsPath, newToken(), nil, nil, 401},
		"a token that was rotated":       {"GET", runsPath, old, nil, nil, 401},
		"the hash of a token":            {"GET", runsPath, hash(admin), nil, nil, 401},
		"a token with something behind":  {"GET", runsPath, admin + "x", nil, nil, 401},
		"basic authentication":           {"GET", runsPath, "", nil, func(r *http.Request) { r.SetBasicAuth("hostile-admin", admin) }, 401},
		"a token in the address":         {"GET", runsPath + "?access_token=" + admin, "", nil, nil, 401},
		"a token as a cookie":            {"GET", runsPath, "", nil, header("Cookie", "token="+admin), 401},
		"a front proxy's word":           {"GET", runsPath, "", nil, header("X-Remote-User", "hostile-admin"), 401},
		"another host":                   {"GET", runsPath, admin, nil, func(r *http.Request) { r.Host = "evil.example" }, 403},
		"another host with our port":     {"GET", runsPath, admin, nil, func(r *http.Request) { r.Host = "evil.example:" + s.port() }, 403},
		"our host with another port":     {"GET", runsPath, admin, nil, func(r *http.Request) { r.Host = "127.0.0.1:1" }, 403},
		"another origin":                 {"POST", runsPath, admin, object(run), header("Origin", "https://evil.example"), 403},
		"our origin without TLS":         {"POST", runsPath, admin, object(run), header("Origin", "http://127.0.0.1:"+s.port()), 403},
		"the null origin":                {"POST", runsPath, admin, object(run), header("Origin", "null"), 403},
		"two origins":                    {"POST", runsPath, admin, object(run), func(r *http.Request) { r.Header["Origin"] = []string{s.URL(), "null"} }, 403},
		"a fetch across sites":           {"GET", runsPath, admin, nil, header("Sec-Fetch-Site", "cross-site"), 403},
		"a preflight":                    {"OPTIONS", runsPath, "", nil, header("Origin", "https://evil.example"), 403},
		"a preflight without origin":     {"OPTIONS", runsPath, "", nil, nil, 401},
		"a simple form":                  {"POST", runsPath, admin, object("a=b"), header("Content-Type", "application/x-www-form-urlencoded"), 415},
		"plain text":                     {"POST", runsPath, admin, object(run), header("Content-Type", "text/plain"), 415},
		"a body too large":               {"POST", runsPath, admin, huge(), nil, 413},
		"an object too large":            {"POST", runsPath, admin, object(strings.Replace(run, `{"agentRef"`, `{"prompt": "`+strings.Repeat("x", 2<<20)+`", "agentRef"`, 1)), nil, 422},
		"no JSON":                        {"POST", runsPath, admin, object("{{{"), nil, 400},
		"deep JSON":                      {"POST", runsPath, admin, object(strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat("}", 20000)), nil, 400},
		"another kind":                   {"POST", runsPath, admin, object(strings.Replace(run, `"Run"`, `"Agent"`, 1)), nil, 422},
		"another namespace":              {"POST", runsPath, admin, object(strings.Replace(run, `"name": "hostile"`, `"name": "hostile", "namespace": "other"`, 1)), nil, 400},
		"a path upwards":                 {"GET", "/apis/agentctl.dev/v1alpha1/namespaces/default/runs/..%2f..%2f..%2fetc%2fpasswd", admin, nil, nil, 403},
		"dots as a name":                 {"GET", runsPath + "/%2e%2e", admin, nil, nil, 403},
		"dots as a namespace":            {"GET", "/apis/agentctl.dev/v1alpha1/namespaces/%2e%2e/runs/x", admin, nil, nil, 403},
		"a zero in a name":               {"GET", runsPath + "/a%00b", admin, nil, nil, 404},
		"an upgrade":                     {"GET", runsPath, "", nil, func(r *http.Request) { r.Header.Set("Connection", "Upgrade"); r.Header.Set("Upgrade", "websocket") }, 401},
		"an upgrade from another origin": {"GET", runsPath + "?watch=1", admin, nil, header("Origin", "https://evil.example"), 403},
		"impersonation":                  {"GET", runsPath, admin, nil, header("Impersonate-User", "system:apiserver"), 403},
		"impersonation of a group":       {"GET", runsPath, admin, nil, header("Impersonate-Group", "system:masters"), 403},
		"impersonation, lower case":      {"GET", runsPath, admin, nil, header("impersonate-extra-scopes", "all"), 403},
		"profiles":                       {"GET", "/debug/pprof/", admin, nil, nil, 403},
		"metrics, no token":              {"GET", "/metrics", "", nil, nil, 401},
		"log level":                      {"PUT", "/debug/flags/v", admin, object("9"), nil, 403},
		"logs":                           {"GET", "/logs/", admin, nil, nil, 403},
		"the index":                      {"GET", "/", admin, nil, nil, 403},
		"core kinds":                     {"GET", "/api/v1/secrets", admin, nil, nil, 403},
		"a write to a path":              {"POST", "/readyz", admin, nil, nil, 403},
		"an unknown method":              {"BREW", runsPath, admin, nil, nil, 403},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, body := newCaller(t, s).do(c.method, c.path, c.token, c.body, c.change)
			if code != c.code {
				t.Errorf("got %d, want %d: %.200s", code, c.code, body)
			}
		})
	}
	t.Cleanup(func() {
		if code, body := newCaller(t, s).doAfter("GET", runsPath+"/hostile", admin); code != 404 {
			t.Errorf("one of them made an object: %d %s", code, body)
		}
	})
}

// doAfter is do for the end of a test, when its context is over.
func (c *caller) doAfter(method, path, token string) (int, string) {
	req, err := http.NewRequest(method, c.server.URL()+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := c.http.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, string(text)
}

func TestOnlyTLSIsServed(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	resp, err := http.Get("http://127.0.0.1:" + s.port() + "/readyz")
	if err == nil {
		resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("plain HTTP got %s", resp.Status)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.Loopback().CAData)
	for name, c := range map[string]*tls.Config{
		"an old version":    {RootCAs: pool, MaxVersion: tls.VersionTLS12},
		"no trust in it":    {},
		"another's name":    {RootCAs: pool, ServerName: "evil.example"},
		"a system's roots?": {ServerName: "localhost"},
	} {
		conn, err := tls.Dial("tcp", "127.0.0.1:"+s.port(), c)
		if err == nil {
			conn.Close()
			t.Errorf("%s: connected", name)
		}
	}
	conn, err := tls.Dial("tcp", "127.0.0.1:"+s.port(), &tls.Config{RootCAs: pool, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if state := conn.ConnectionState(); state.Version != tls.VersionTLS13 || state.NegotiatedProtocol != "h2" {
		t.Errorf("version %x, protocol %s", state.Version, state.NegotiatedProtocol)
	}
}

// TestListensOnLoopbackOnly asks the system who listens.
func TestListensOnLoopbackOnly(t *testing.T) {
	s := sharedServer(t)
	for _, l := range listeners(t) {
		if !l.IP.IsLoopback() {
			t.Errorf("listens on %s", l)
		}
		if port := s.listener.Addr().(*net.TCPAddr).Port; l.Port != port {
			t.Errorf("listens on port %d beside %d", l.Port, port)
		}
	}
}

func TestLargeHeadsAreRefused(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	conn, err := tls.Dial("tcp", "127.0.0.1:"+s.port(), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // nothing is said that matters
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patient)); err != nil {
		t.Fatal(err)
	}
	// The server may close before it has read all: only its answer counts.
	_, _ = io.WriteString(conn, "GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Padding: "+strings.Repeat("x", 2*maxHeader)+"\r\n\r\n")
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.Contains(line, " 431 ") {
		t.Errorf("got %q, %v", line, err)
	}
}

func TestSlowHeadersAreCutOff(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	for _, begin := range []string{"", "GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "} {
		conn, err := tls.Dial("tcp", "127.0.0.1:"+s.port(), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // nothing is said that matters
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(10 * shortHeaders)); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte(begin)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, bufio.NewReader(conn)); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("after %q the connection was kept", begin)
		}
	}
	// Nor may the handshake take its time.
	conn, err := net.Dial("tcp", "127.0.0.1:"+s.port())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * shortHeaders)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("a connection without a handshake was kept")
	}
}
