package egress

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
)

// proxied starts a proxy on the host's network that allows the server and sets
// no limits that a benchmark could meet, and
// returns its address.
func proxied(b *testing.B, allow string) string {
	b.Helper()
	p, err := New(Options{Allow: []string{allow}, Limits: Limits{Bytes: 1 << 50, TotalBytes: 1 << 50, Total: 1 << 30}})
	if err != nil {
		b.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Serve(ctx, l) }()
	b.Cleanup(func() { cancel(); <-done })
	return l.Addr().String()
}

// ways are the direct one, which is the floor, and the one through the proxy.
func ways(b *testing.B, addr string) map[string]*http.Transport {
	b.Helper()
	proxy := &url.URL{Scheme: "http", Host: proxied(b, addr)}
	return map[string]*http.Transport{"direct": {}, "proxied": {Proxy: http.ProxyURL(proxy)}}
}

func fetch(b *testing.B, c *http.Client, url string) {
	b.Helper()
	resp, err := c.Get(url)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		b.Fatal(resp.Status, err)
	}
	_ = resp.Body.Close()
}

// BenchmarkGet measures a GET on a new connection.
func BenchmarkGet(b *testing.B) {
	_, addr := server(b, hello)
	for name, tr := range ways(b, addr) {
		b.Run(name, func(b *testing.B) {
			tr.DisableKeepAlives = true
			for b.Loop() {
				fetch(b, &http.Client{Transport: tr}, "http://"+addr)
			}
		})
	}
}

// BenchmarkKeptAlive measures a GET on a connection that is open already.
func BenchmarkKeptAlive(b *testing.B) {
	_, addr := server(b, hello)
	for name, tr := range ways(b, addr) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				fetch(b, &http.Client{Transport: tr}, "http://"+addr)
			}
			tr.CloseIdleConnections()
		})
	}
}

// BenchmarkBody64MB measures the throughput of plain HTTP.
func BenchmarkBody64MB(b *testing.B) {
	chunk := make([]byte, 1<<20)
	_, addr := server(b, func(w http.ResponseWriter, _ *http.Request) {
		for range 64 {
			_, _ = w.Write(chunk)
		}
	})
	for name, tr := range ways(b, addr) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(64 << 20)
			for b.Loop() {
				fetch(b, &http.Client{Transport: tr}, "http://"+addr)
			}
			tr.CloseIdleConnections()
		})
	}
}

// BenchmarkTunnel64MB measures the throughput of a tunnel, with connecting.
func BenchmarkTunnel64MB(b *testing.B) {
	l, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	chunk := make([]byte, 1<<20)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				for range 64 {
					_, _ = conn.Write(chunk)
				}
				_ = conn.Close()
			}()
		}
	}()
	proxy := proxied(b, l.Addr().String())
	for name, text := range map[string]string{"direct": "", "proxied": "CONNECT " + l.Addr().String() + " HTTP/1.1\r\nHost: x\r\n\r\n"} {
		b.Run(name, func(b *testing.B) {
			to := proxy
			if text == "" {
				to = l.Addr().String()
			}
			b.SetBytes(64 << 20)
			for b.Loop() {
				conn, err := net.Dial("tcp", to)
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.WriteString(conn, text)
				if n, err := io.Copy(io.Discard, conn); n < 64<<20 {
					b.Fatal(n, err)
				}
				_ = conn.Close()
			}
		})
	}
}

// BenchmarkDecision measures what each request pays for its judgement.
func BenchmarkDecision(b *testing.B) {
	entries := []string{"*.example.com:443"}
	for range 255 {
		entries = append(entries, "some.other.host.example.org:443")
	}
	allow, err := ParseAllow(append(entries[1:], entries[0]))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		t, err := ParseTarget("api.example.com:443", 0)
		if err != nil {
			b.Fatal(err)
		}
		if _, ok := allow.Find(t); !ok {
			b.Fatal("not found")
		}
	}
}
