package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agentctl.dev/agentctl/api/event"
)

// patience ends what hangs. Nothing here is slow when it takes less: machines are
// busy.
const patience = time.Minute

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is an internet of fixed names, whose public addresses all lead to one
// test server, and the memory of what was asked of it.
type world struct {
	mu      sync.Mutex
	names   map[string][][]string // the answers to one lookup after another; the last stays
	server  string                // host:port of the test server, "" for none
	lookups []string
	dials   []string
	records []event.EgressConnection
	told    chan struct{}
}

func newWorld(server string) *world {
	return &world{server: server, told: make(chan struct{}, 1024), names: map[string][][]string{
		"api.example.com": {{"93.184.216.34"}},
		"www.example.com": {{"93.184.216.35"}},
	}}
}

func (w *world) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lookups = append(w.lookups, host)
	answers := w.names[host]
	if len(answers) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, Server: "10.9.9.9:53", IsNotFound: true}
	}
	if len(answers) > 1 {
		w.names[host] = answers[1:]
	}
	var addrs []netip.Addr
	for _, a := range answers[0] {
		addrs = append(addrs, netip.MustParseAddr(a))
	}
	return addrs, nil
}

// posing is a socket to the test server that claims to lead elsewhere.
type posing struct {
	*net.TCPConn
	to netip.AddrPort
}

func (p posing) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(p.to) }

func (w *world) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	w.mu.Lock()
	w.dials = append(w.dials, to.String())
	server := w.server
	w.mu.Unlock()
	if server == "" {
		return nil, errors.New("connection refused")
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", server)
	if err != nil {
		return nil, err
	}
	return posing{conn.(*net.TCPConn), to}, nil
}

func (w *world) tell(e event.EgressConnection) {
	w.mu.Lock()
	w.records = append(w.records, e)
	w.mu.Unlock()
	w.told <- struct{}{}
}

// wait returns the records when there are n of them.
func (w *world) wait(t testing.TB, n int) []event.EgressConnection {
	t.Helper()
	late := time.After(patience)
	for {
		w.mu.Lock()
		records := append([]event.EgressConnection(nil), w.records...)
		w.mu.Unlock()
		if len(records) >= n {
			return records
		}
		select {
		case <-w.told:
		case <-late:
			t.Fatalf("got %d records, want %d: %+v", len(records), n, records)
		}
	}
}

func (w *world) dialled() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.dials...)
}

// serve starts a proxy in the world and returns its address.
func serve(t testing.TB, w *world, o Options) string {
	t.Helper()
	o.Tools = []string{"fetch"}
	o.OnConnection = w.tell
	if o.Resolver == nil {
		o.Resolver = w
	}
	if o.Dial == nil {
		o.Dial = w.dial
	}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return l.Addr().String()
}

// through returns an HTTP client whose only way out is the proxy.
func through(t testing.TB, proxy string) *http.Client {
	t.Helper()
	tr := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: proxy})}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: patience}
}

func server(t testing.TB, h http.HandlerFunc) (*httptest.Server, string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s, s.Listener.Addr().String()
}

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }

// get returns the status and the body of a GET.
func get(t testing.TB, c *http.Client, target string) (int, string) {
	t.Helper()
	resp, err := c.Get(target)
	if err != nil {
		t.Fatalf("GET %s: %v", target, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("GET %s: %v", target, err)
	}
	return resp.StatusCode, strings.TrimSpace(string(b))
}

// raw sends bytes to the proxy and returns the connection and a reader of the answers.
func raw(t testing.TB, proxy, text string) (*net.TCPConn, *bufio.Reader) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", proxy)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn), bufio.NewReader(conn)
}

// reply reads one answer.
func reply(t testing.TB, r *bufio.Reader, method string) (int, string) {
	t.Helper()
	resp, err := http.ReadResponse(r, &http.Request{Method: method})
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	if method == http.MethodConnect && resp.StatusCode == http.StatusOK {
		return resp.StatusCode, ""
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp.StatusCode, fmt.Sprintf("%s (%v)", b, err)
	}
	return resp.StatusCode, strings.TrimSpace(string(b))
}
