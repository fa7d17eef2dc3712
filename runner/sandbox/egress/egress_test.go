package egress

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// still is a clock that stands, so that records are the same every time.
func still() time.Time { return time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC) }

func TestAllowedServerIsReachedAndRecorded(t *testing.T) {
	_, addr := server(t, hello)
	w := newWorld(addr)
	c := through(t, serve(t, w, Options{Allow: []string{"api.example.com:80"}, Clock: still}))
	if status, body := get(t, c, "http://API.Example.com./x?a=1;b"); status != http.StatusOK || body != "hello" {
		t.Fatalf("got %d %q", status, body)
	}
	c.CloseIdleConnections()
	got := w.wait(t, 1)
	if got[0].Sent < 50 || got[0].Received < 50 {
		t.Errorf("%d bytes sent and %d received cannot be", got[0].Sent, got[0].Received)
	}
	got[0].Sent, got[0].Received = 0, 0
	want := []event.EgressConnection{{
		Tools: []string{"fetch"}, Host: "api.example.com", Port: 80, Address: "93.184.216.34:80", Decision: message.Allow, Rule: "api.example.com:80",
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRefusalNamesTheHostAndTheTool(t *testing.T) {
	w := newWorld("")
	proxy := serve(t, w, Options{Allow: []string{"api.example.com:80"}, Clock: still})
	status, body := get(t, through(t, proxy), "http://evil.test:8080/")
	if want := `NetworkDenied: evil.test:8080 not in spec.network.allow of tool "fetch"`; status != http.StatusForbidden || body != want {
		t.Errorf("got %d %q, want 403 %q", status, body, want)
	}
	_, r := raw(t, proxy, "CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n")
	status, body = reply(t, r, http.MethodConnect)
	if want := `NetworkDenied: evil.test:443 not in spec.network.allow of tool "fetch"`; status != http.StatusForbidden || body != want {
		t.Errorf("got %d %q, want 403 %q", status, body, want)
	}
	want := []event.EgressConnection{
		{Tools: []string{"fetch"}, Host: "evil.test", Port: 8080, Decision: message.Deny, Rule: "not in spec.network.allow"},
		{Tools: []string{"fetch"}, Host: "evil.test", Port: 443, Decision: message.Deny, Rule: "not in spec.network.allow"},
	}
	if diff := cmp.Diff(want, w.wait(t, 2)); diff != "" {
		t.Error(diff)
	}
	if len(w.lookups) != 0 || len(w.dials) != 0 {
		t.Errorf("a name that is not allowed was looked up: %v %v", w.lookups, w.dials)
	}
}

// TestNoSpellingReachesTheHost asks in every way we know for loopback, metadata
// and private addresses, where every public name is allowed and some addresses
// in other forms, too.
func TestNoSpellingReachesTheHost(t *testing.T) {
	w := newWorld("")
	for name, addr := range map[string]string{
		"localhost": "127.0.0.1", "localtest.me": "127.0.0.1", "v6.localtest.me": "::1", "metadata.google.internal": "169.254.169.254", "mapped.test": "::ffff:127.0.0.1",
		"nat64.test": "64:ff9b::7f00:1", "six.test": "2002:7f00:1::1", "teredo.test": "2001:0:7f00:1::1", "corp.test": "10.1.2.3", "cgnat.test": "100.64.1.1",
		"zero.test": "0.0.0.0", "zero6.test": "::", "multi.test": "224.0.0.251", "link.test": "fe80::1", "ula.test": "fd00:ec2::254", "127.0.0.1.nip.test": "127.0.0.1",
	} {
		w.names[name] = [][]string{{addr}}
	}
	proxy := serve(t, w, Options{Allow: []string{"*:80", "*:443", "*:22", "8.8.8.8:80"}})
	var hosts []string
	for name := range w.names {
		if !strings.HasSuffix(name, ".example.com") {
			hosts = append(hosts, name, strings.ToUpper(name)+".")
		}
	}
	hosts = append(hosts,
		"127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "017700000001", "127.0.0.1.", "127.000.000.001", "0", "0.0.0.0", "00000000",
		"[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::127.0.0.1]", "[2002:7f00:1::]", "[fe80::1]", "[fe80::1%25eth0]", "[fe80::1%25lo]",
		"169.254.169.254", "[fd00:ec2::254]", "0xa9fea9fe", "2852039166", "[::ffff:169.254.169.254]", "169.254.43518", "10.0.0.1", "192.168.0.1", "172.16.0.1", "100.64.0.1", "255.255.255.255",
		"①②⑦.⓪.⓪.①", "127。0。0。1", "127%2e0%2e0%2e1", "localhost%00.example.com", "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ", "example.com@127.0.0.1", "127.0.0.1#.example.com", "127.0.0.1\\.example.com", "127.0.0.1?.example.com", "[127.0.0.1]", "[v1.localhost]", "..localhost", "local host", "", ".",
	)
	for _, host := range hosts {
		for _, text := range []string{
			"GET http://" + host + "/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n",
			"GET HTTP://" + host + ":80/latest/meta-data/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n",
			"CONNECT " + host + ":443 HTTP/1.1\r\nHost: api.example.com:443\r\n\r\n",
		} {
			_, r := raw(t, proxy, text)
			status, body := reply(t, r, text[:strings.IndexByte(text, ' ')])
			if status != http.StatusForbidden && status != http.StatusBadRequest {
				t.Errorf("%q: got %d %q", text, status, body)
			}
		}
	}
	if d := w.dialled(); len(d) != 0 {
		t.Errorf("dialled %v", d)
	}
}

func TestNameOfAListedSpecialAddress(t *testing.T) {
	_, addr := server(t, hello)
	for name, c := range map[string]struct {
		reason string
		allow  []string
		url    string
		status int
		want   string
	}{
		"name only": {
			"a name must not lead into the host's network by the choice of whoever answers for it",
			[]string{"db.corp:80"},
			"http://db.corp/",
			403, `NetworkDenied: db.corp:80 resolves to 10.1.2.3, a private address; to reach it, list 10.1.2.3:80 in spec.network.allow of tool "fetch"`,
		},
		"both":         {"name and address are listed", []string{"db.corp:80", "10.1.2.3:80"}, "http://db.corp/", 200, "hello"},
		"network":      {"name and network are listed", []string{"db.corp:80", "10.1.0.0/16:80"}, "http://db.corp/", 200, "hello"},
		"other port":   {"the address is listed for another port", []string{"db.corp:80", "10.1.2.3:81"}, "http://db.corp/", 403, "resolves to 10.1.2.3"},
		"address only": {"an address does not allow its names", []string{"10.1.2.3:80"}, "http://db.corp/", 403, "not in spec.network.allow"},
		"literal":      {"an address is asked for by itself", []string{"10.1.2.3:80"}, "http://10.1.2.3/", 200, "hello"},
		"mapped":       {"it is the same address", []string{"10.1.2.3:80"}, "http://[::ffff:10.1.2.3]/", 200, "hello"},
		"any name":     {"a star holds no special address", []string{"*:80"}, "http://db.corp/", 403, "a private address"},
		"literal beside a star": {
			"a star allows names, not literals", []string{"*:80"}, "http://93.184.216.34/", 403, "not in spec.network.allow",
		},
		"never": {"nothing opens 0.0.0.0", []string{"zero.corp:80", "*:80"}, "http://zero.corp/", 403, "NetworkDenied: zero.corp:80 resolves to 0.0.0.0, the unspecified address"},
		"mixed": {"of several addresses those that may be dialled are", []string{"mixed.corp:80"}, "http://mixed.corp/", 200, "hello"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(addr)
			w.names["db.corp"] = [][]string{{"10.1.2.3"}}
			w.names["zero.corp"] = [][]string{{"0.0.0.0"}}
			w.names["mixed.corp"] = [][]string{{"127.0.0.1", "93.184.216.34"}}
			status, body := get(t, through(t, serve(t, w, Options{Allow: c.allow})), c.url)
			if status != c.status || !strings.Contains(body, c.want) {
				t.Errorf("%s: got %d %q, want %d %q", c.reason, status, body, c.status, c.want)
			}
		})
	}
}

// TestRebindingNameIsDialledWhereItWasChecked: the name answers with a public
// address first and with loopback ever after.
func TestRebindingNameIsDialledWhereItWasChecked(t *testing.T) {
	_, addr := server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close") // so that the next request needs a new socket
		_, _ = io.WriteString(w, "hello")
	})
	w := newWorld(addr)
	w.names["rebind.test"] = [][]string{{"93.184.216.34"}, {"127.0.0.1"}}
	proxy := serve(t, w, Options{Allow: []string{"rebind.test:80"}})
	const request = "GET http://rebind.test/ HTTP/1.1\r\nHost: rebind.test\r\n\r\n"
	conn, r := raw(t, proxy, request)
	if status, body := reply(t, r, http.MethodGet); status != http.StatusOK {
		t.Fatalf("first: got %d %q", status, body)
	}
	_ = conn.Close()
	_, r = raw(t, proxy, request)
	if status, body := reply(t, r, http.MethodGet); status != http.StatusForbidden || !strings.Contains(body, "resolves to 127.0.0.1, a loopback address") {
		t.Errorf("second: got %d %q", status, body)
	}
	if diff := cmp.Diff([]string{"93.184.216.34:80"}, w.dialled()); diff != "" {
		t.Error(diff)
	}
}

func TestEachRequestOfAConnectionIsJudged(t *testing.T) {
	_, addr := server(t, hello)
	w := newWorld(addr)
	proxy := serve(t, w, Options{Allow: []string{"api.example.com:80", "www.example.com:80"}})
	conn, r := raw(t, proxy, "")
	for i, c := range []struct {
		host   string
		status int
	}{{"api.example.com", 200}, {"api.example.com", 200}, {"www.example.com", 200}, {"evil.test", 403}} {
		_, _ = fmt.Fprintf(conn, "GET http://%s/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n", c.host)
		if status, body := reply(t, r, http.MethodGet); status != c.status {
			t.Errorf("request %d to %s: got %d %q, want %d", i, c.host, status, body, c.status)
		}
	}
	if _, err := r.ReadByte(); err != io.EOF {
		t.Errorf("the connection goes on after a refusal: %v", err)
	}
	var got []string
	for _, e := range w.wait(t, 3) {
		got = append(got, fmt.Sprint(e.Host, " ", e.Decision))
	}
	// Requests to one server that follow one another are one record.
	if diff := cmp.Diff([]string{"api.example.com allow", "www.example.com allow", "evil.test deny"}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"93.184.216.34:80", "93.184.216.35:80"}, w.dialled()); diff != "" {
		t.Error(diff)
	}
}

func TestRedirectIsJudgedLikeAnyRequest(t *testing.T) {
	_, addr := server(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/latest/", http.StatusFound)
	})
	w := newWorld(addr)
	status, body := get(t, through(t, serve(t, w, Options{Allow: []string{"*:80"}})), "http://api.example.com/")
	if status != http.StatusForbidden || !strings.Contains(body, "169.254.169.254:80 not in") {
		t.Errorf("got %d %q", status, body)
	}
	if diff := cmp.Diff([]string{"93.184.216.34:80"}, w.dialled()); diff != "" {
		t.Error(diff)
	}
}

func TestTunnelCarriesBothWaysAndHalfCloses(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var served sync.WaitGroup
	defer served.Wait()
	served.Go(func() { // answers when everything has been said
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		said, _ := io.ReadAll(conn)
		_, _ = fmt.Fprintf(conn, "%d bytes, %x", len(said), sha256.Sum256(said))
	})
	w := newWorld(l.Addr().String())
	said := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
	// The first bytes come together with the request, before it is answered.
	conn, r := raw(t, serve(t, w, Options{Allow: []string{"api.example.com:443"}}), "CONNECT api.example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n"+string(said[:100]))
	if status, body := reply(t, r, http.MethodConnect); status != http.StatusOK {
		t.Fatalf("got %d %q", status, body)
	}
	if _, err := conn.Write(said[100:]); err != nil {
		t.Fatal(err)
	}
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	heard, err := io.ReadAll(r)
	if want := fmt.Sprintf("%d bytes, %x", len(said), sha256.Sum256(said)); err != nil || string(heard) != want {
		t.Errorf("got %q, %v, want %q", heard, err, want)
	}
	e := w.wait(t, 1)[0]
	if e.Sent != int64(len(said)) || e.Received != int64(len(heard)) || e.Error != "" || e.Address != "93.184.216.34:443" {
		t.Errorf("got %+v", e)
	}
}

func TestTLSPassesThroughATunnel(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(hello))
	defer s.Close()
	w := newWorld(s.Listener.Addr().String())
	c := through(t, serve(t, w, Options{Allow: []string{"*.example.com:443"}}))
	config := s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.ServerName = "example.com"
	c.Transport.(*http.Transport).TLSClientConfig = config
	if status, body := get(t, c, "https://www.example.com/"); status != http.StatusOK || body != "hello" {
		t.Errorf("got %d %q", status, body)
	}
	c.CloseIdleConnections()
	if e := w.wait(t, 1)[0]; e.Rule != "*.example.com:443" || e.Port != 443 {
		t.Errorf("got %+v", e)
	}
}

func TestFailuresAreToldApart(t *testing.T) {
	w := newWorld("")
	proxy := serve(t, w, Options{Allow: []string{"api.example.com:80", "nowhere.test:80", "slow.test:443"}, Clock: still})
	status, body := get(t, through(t, proxy), "http://api.example.com/")
	if want := "NetworkFailed: api.example.com:80: connect to 93.184.216.34:80: connection refused"; status != http.StatusBadGateway || body != want {
		t.Errorf("got %d %q, want 502 %q", status, body, want)
	}
	status, body = get(t, through(t, proxy), "http://nowhere.test/")
	if want := "NetworkFailed: nowhere.test:80: look up nowhere.test: no such host"; status != http.StatusBadGateway || body != want {
		t.Errorf("got %d %q, want 502 %q", status, body, want)
	}
	for _, e := range w.wait(t, 2) {
		if e.Decision != message.Allow || e.Error == "" {
			t.Errorf("got %+v, want an allowed connection with its error", e)
		}
	}
}

func TestHostsOwnNetworkIsDialled(t *testing.T) {
	_, addr := server(t, hello)
	w := newWorld("")
	var p *Proxy // without Dial and Resolver of a test
	p, err := New(Options{Allow: []string{addr, "localhost:" + addr[strings.LastIndexByte(addr, ':')+1:]}, OnConnection: w.tell})
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- p.Serve(context.Background(), l) }()
	c := through(t, l.Addr().String())
	for _, url := range []string{"http://" + addr, "http://localhost:" + addr[strings.LastIndexByte(addr, ':')+1:]} {
		if status, body := get(t, c, url); status != http.StatusOK || body != "hello" {
			t.Errorf("%s: got %d %q", url, status, body)
		}
	}
	_ = l.Close()
	if err := <-done; err != nil {
		t.Errorf("a closed listener is an error: %v", err)
	}
	if got := w.wait(t, 2); got[1].Address != addr {
		t.Errorf("got %+v", got)
	}
	// What was not checked is not dialled, even by a way around the check.
	if conn, err := p.dialHost(t.Context(), netip.MustParseAddrPort("127.0.0.2:80")); err == nil || !strings.Contains(err.Error(), "127.0.0.2:80 is a loopback address") {
		t.Errorf("got %v, %v", conn, err)
	}
	if _, err := (hostResolver{}).LookupNetIP(t.Context(), "ip", "no.such.invalid"); err == nil {
		t.Error("a name that is none has an address")
	}
}

func TestSocketThatLeadsElsewhereIsNotUsed(t *testing.T) {
	_, addr := server(t, hello)
	w := newWorld(addr)
	lying := func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
		conn, err := w.dial(ctx, to)
		if err != nil {
			return nil, err
		}
		return conn.(posing).TCPConn, nil
	}
	status, body := get(t, through(t, serve(t, w, Options{Allow: []string{"*:80"}, Dial: lying})), "http://api.example.com/")
	if status != http.StatusBadGateway || !strings.Contains(body, "got 127.0.0.1") {
		t.Errorf("got %d %q", status, body)
	}
}

func TestServeReportsABrokenListener(t *testing.T) {
	p, err := New(Options{Tools: []string{"a", "b"}})
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := p.Serve(t.Context(), brokenListener{broken}); !errors.Is(err, broken) || !strings.Contains(err.Error(), `tools "a", "b"`) {
		t.Errorf("got %v", err)
	}
}

type brokenListener struct{ err error }

func (l brokenListener) Accept() (net.Conn, error) { return nil, l.err }
func (brokenListener) Close() error                { return nil }
func (brokenListener) Addr() net.Addr              { return &net.TCPAddr{} }

func TestEndOfServeCutsAndTellsWhatIsOpen(t *testing.T) {
	arrived := make(chan struct{})
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var served sync.WaitGroup
	defer served.Wait()
	served.Go(func() { // says something and waits for ever
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "first")
		_, _ = io.ReadAll(conn)
	})
	w := newWorld(l.Addr().String())
	p, err := New(Options{Allow: []string{"*:443", "*:80"}, Resolver: w, Dial: w.dial, OnConnection: w.tell})
	if err != nil {
		t.Fatal(err)
	}
	pl, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Serve(ctx, pl) }()
	_, r := raw(t, pl.Addr().String(), "CONNECT api.example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n")
	if status, body := reply(t, r, http.MethodConnect); status != http.StatusOK {
		t.Fatalf("got %d %q", status, body)
	}
	b := make([]byte, 5)
	if _, err := io.ReadFull(r, b); err != nil {
		t.Fatal(err)
	}
	_, _ = raw(t, pl.Addr().String(), "GET http://half.a.head/ HT")
	close(arrived)
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("Serve does not end")
	}
	if got := w.wait(t, 1); len(got) != 1 || got[0].Received != 5 {
		t.Errorf("got %+v", got)
	}
}

// TestProgramsShowWhyATunnelIsRefused: Go's client, as many others, shows the
// words of the status line and nothing of the body.
func TestProgramsShowWhyATunnelIsRefused(t *testing.T) {
	c := through(t, serve(t, newWorld(""), Options{Allow: []string{"api.example.com:443"}}))
	for url, want := range map[string]string{
		"https://evil.test/":       `NetworkDenied: evil.test:443 not in spec.network.allow of tool "fetch"`,
		"https://api.example.com/": "NetworkFailed: api.example.com:443: connect to 93.184.216.34:443: connection refused",
	} {
		resp, err := c.Get(url)
		if err == nil {
			_ = resp.Body.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want something with %q", url, err, want)
		}
	}
	if got := phrase("a\r\nb: ü\x00"); got != "a??b: ??" {
		t.Errorf("got %q", got)
	}
}

// TestManyAtOnce: the concurrent requests of many programs are all recorded,
// and none is counted for another program.
func TestManyAtOnce(t *testing.T) {
	_, addr := server(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex() // answers while it listens
		_, _ = io.Copy(w, r.Body)
	})
	w := newWorld(addr)
	proxy := serve(t, w, Options{Allow: []string{"*.example.com:80", "*.example.com:443"}})
	const programs, requests = 24, 10
	var all sync.WaitGroup
	for n := range programs {
		all.Go(func() {
			c := through(t, proxy)
			defer c.CloseIdleConnections()
			said := strings.Repeat(string(rune('a'+n)), 1000+n)
			for i := range requests {
				host := []string{"api", "www"}[i/5] // two servers, one after the other
				resp, err := c.Post("http://"+host+".example.com/", "text/plain", strings.NewReader(said))
				if err != nil {
					t.Error(err)
					return
				}
				heard, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if err != nil || string(heard) != said {
					t.Errorf("program %d heard %.20q…, %v", n, heard, err)
				}
				if resp, err := c.Get("http://evil.test/"); err != nil || resp.StatusCode != http.StatusForbidden {
					t.Errorf("got %v, %v", resp, err)
				} else {
					_ = resp.Body.Close()
				}
			}
		})
	}
	all.Wait()
	allowed, denied := map[string]int64{}, 0
	for _, e := range w.wait(t, programs*(requests+2)) {
		if e.Decision == message.Deny {
			denied++
			continue
		}
		allowed[e.Host] += e.Received
		if e.Error != "" {
			t.Errorf("got %+v", e)
		}
	}
	if least := int64(programs * requests / 2 * 1000); denied != programs*requests || allowed["api.example.com"] < least || allowed["www.example.com"] < least {
		t.Errorf("%d refused, received %v", denied, allowed)
	}
}
