package egress

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// scene is a listener that hands out one connection in memory, and a server that
// keeps what it hears.
type scene struct {
	once  sync.Once
	conn  net.Conn
	done  chan struct{}
	mu    sync.Mutex
	dials []netip.AddrPort
	heard [][]byte
	wg    sync.WaitGroup
}

func (s *scene) Accept() (net.Conn, error) {
	var conn net.Conn
	s.once.Do(func() { conn = s.conn })
	if conn != nil {
		return conn, nil
	}
	<-s.done
	return nil, net.ErrClosed
}

func (s *scene) Close() error   { return nil }
func (s *scene) Addr() net.Addr { return &net.TCPAddr{} }

func (s *scene) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	switch host {
	case "in.test":
		return []netip.Addr{netip.MustParseAddr("10.0.0.1")}, nil
	case "me.test":
		return []netip.Addr{netip.MustParseAddr("::ffff:127.0.0.1")}, nil
	}
	return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
}

func (s *scene) dial(_ context.Context, to netip.AddrPort) (net.Conn, error) {
	ours, theirs := net.Pipe()
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.dials)
	s.dials, s.heard = append(s.dials, to), append(s.heard, nil)
	s.wg.Go(func() {
		defer theirs.Close()
		r := bufio.NewReader(io.TeeReader(theirs, writerFunc(func(b []byte) {
			s.mu.Lock()
			s.heard[n] = append(s.heard[n], b...)
			s.mu.Unlock()
		})))
		for {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, req.Body)
			if _, err := io.WriteString(theirs, "HTTP/1.1 204 No Content\r\n\r\n"); err != nil {
				return
			}
		}
	})
	return ours, nil
}

// FuzzProxyRequest sends arbitrary bytes to a proxy that allows few servers. It
// must end, dial nothing but those servers, and what a server of plain HTTP
// hears must be requests to that server.
func FuzzProxyRequest(f *testing.F) {
	for _, seed := range []string{
		"GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n",
		"GET http://API.test./a?b HTTP/1.1\r\nHost: evil.test\r\n\r\nGET http://evil.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n",
		"POST http://api.test:80/ HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET http://in.test/ HTTP/1.1\r\n\r\n",
		"GET http://me.test/ HTTP/1.1\r\n\r\n", "GET http://in.test/ HTTP/1.0\r\n\r\n", "GET http://127.1/ HTTP/1.1\r\nHost: x\r\n\r\n", "GET http://[::ffff:7f00:1]/ HTTP/1.1\r\nHost: x\r\n\r\n",
		"CONNECT api.test:443 HTTP/1.1\r\nHost: x\r\n\r\n\x16\x03\x01", "CONNECT [::1]:443 HTTP/1.1\r\nHost: x\r\n\r\n", "CONNECT api.test:80 HTTP/1.1\r\nContent-Length: 2\r\n\r\nab",
		"GET http://api.test/ HTTP/1.1\r\nHost: x\r\nX: 1\r\n Host: evil.test\r\n\r\n", "GET http://api.test@evil.test/ HTTP/1.1\r\nHost: x\r\n\r\n", "GET http://169.254.169.254/ HTTP/1.1\r\nHost: api.test\r\n\r\n",
		"GET http://api.test/ HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", "GET / HTTP/1.1\r\nHost: api.test\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: api.test\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	allowed := []string{"93.184.216.34:80", "93.184.216.34:443", "10.9.9.9:80"}
	f.Fuzz(func(t *testing.T, input []byte) {
		if len(input) > 8<<10 {
			return
		}
		client, proxied := net.Pipe()
		s := &scene{conn: proxied, done: make(chan struct{})}
		p, err := New(Options{
			Allow: []string{"api.test:80", "api.test:443", "in.test:80", "me.test:80", "10.9.9.9:80"}, Resolver: s, Dial: s.dial,
			Limits: Limits{Header: time.Second, Idle: time.Second, Dial: time.Second},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		served := make(chan error, 1)
		go func() { served <- p.Serve(ctx, s) }()
		var answers sync.WaitGroup
		answers.Go(func() { _, _ = io.Copy(io.Discard, client) })
		_, _ = client.Write(input)
		_ = client.Close()
		cancel()
		close(s.done)
		select {
		case err := <-served:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(patience):
			t.Fatalf("Serve does not end after %q", input)
		}
		answers.Wait()
		s.wg.Wait()
		tunnels := bytes.Contains(input, []byte("CONNECT")) || bytes.Contains(bytes.ToLower(input), []byte("upgrade"))
		for i, to := range s.dials {
			if !slices.Contains(allowed, to.String()) {
				t.Errorf("dialled %s after %q", to, input)
			}
			if !tunnels {
				mustHear(t, s.heard[i], to, input)
			}
		}
	})
}

func mustHear(t *testing.T, heard []byte, to netip.AddrPort, input []byte) {
	t.Helper()
	r := bufio.NewReader(bytes.NewReader(heard))
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return // the rest was cut
		}
		if req.Host != "api.test" && req.Host != "in.test" && req.Host != "10.9.9.9" || strings.Contains(req.RequestURI, "://") && req.URL.IsAbs() {
			t.Errorf("%s heard a request to %q (%s) after %q", to, req.Host, req.RequestURI, input)
		}
		_, _ = io.Copy(io.Discard, req.Body)
	}
}

// FuzzPattern: what is read is written so that it reads the same, and allows
// what it names.
func FuzzPattern(f *testing.F) {
	for _, seed := range []string{"api.github.com:443", "*.example.com:443", "*:80", "10.0.0.0/8:22", "[fd00::/8]:1", "[::1]:80", "127.1:80", "a..b:1", "[fe80::1%0]:1", "A.B.:65535"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, entry string) {
		p, err := ParsePattern(entry)
		if err != nil {
			return
		}
		again, err := ParsePattern(p.String())
		if err != nil || again != p {
			t.Errorf("%q is written as %q, which reads as %v, %v", entry, p, again, err)
		}
		target, err := ParseTarget(entry, 0)
		if err == nil && !p.Match(target) {
			t.Errorf("%q does not allow %s", entry, target)
		}
	})
}
