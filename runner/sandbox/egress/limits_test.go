package egress

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestConnectionIsCutAtItsBytes(t *testing.T) {
	_, addr := server(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1<<20)) })
	w := newWorld(addr)
	proxy := serve(t, w, Options{Allow: []string{"*:80", "*:443"}, Limits: Limits{Bytes: 100_000}})
	resp, err := through(t, proxy).Get("http://api.example.com/")
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if err == nil || n > 200_000 {
		t.Errorf("%d bytes came, %v", n, err)
	}
	_, r := raw(t, proxy, "CONNECT api.example.com:443 HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if status, _ := reply(t, r, http.MethodConnect); status != http.StatusOK {
		t.Fatalf("got %d", status)
	}
	if n, _ := io.Copy(io.Discard, r); n > 200_000 {
		t.Errorf("%d bytes came", n)
	}
	for _, e := range w.wait(t, 2) {
		if !strings.Contains(e.Error, "cut: more than 100000 bytes over one connection") {
			t.Errorf("got %+v", e)
		}
	}
}

func TestNetworkIsCutAtItsBytes(t *testing.T) {
	_, addr := server(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 50_000)) })
	w := newWorld(addr)
	proxy := serve(t, w, Options{Allow: []string{"*:80"}, Limits: Limits{TotalBytes: 75_000}})
	for range 3 {
		if resp, err := through(t, proxy).Get("http://api.example.com/"); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	}
	c := through(t, proxy)
	c.CloseIdleConnections()
	cut := 0
	for _, e := range w.wait(t, 2) {
		if strings.Contains(e.Error, "over one network") {
			cut++
		}
	}
	if cut == 0 {
		t.Errorf("nothing was cut: %+v", w.wait(t, 2))
	}
}

// A client that asks another server with each request has a record of each.
func TestConnectionsOfOneClientAreCounted(t *testing.T) {
	_, addr := server(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("x")) })
	w := newWorld(addr)
	proxy := serve(t, w, Options{Allow: []string{"*:80"}, Limits: Limits{Total: 3}})
	client := through(t, proxy)
	last := 0
	for i := range 5 {
		last, _ = get(t, client, fmt.Sprintf("http://%s.example.com/", []string{"api", "www"}[i%2]))
		if last == http.StatusServiceUnavailable {
			break
		}
	}
	if last != http.StatusServiceUnavailable {
		t.Errorf("got %d after the limit", last)
	}
	if got := len(w.wait(t, 4)); got != 4 {
		t.Errorf("%d records, want one of each connection and one of the limit", got)
	}
}

func TestConnectionsAreCounted(t *testing.T) {
	w := newWorld("")
	proxy := serve(t, w, Options{Allow: []string{"*:80"}, Limits: Limits{Connections: 2, Total: 3}})
	a, _ := raw(t, proxy, "GET ")
	_, _ = raw(t, proxy, "GET ")
	_, r := raw(t, proxy, "")
	if status, body := reply(t, r, http.MethodGet); status != http.StatusServiceUnavailable || !strings.Contains(body, `tool "fetch" has 2 connections open`) {
		t.Errorf("got %d %q", status, body)
	}
	_ = a.Close()
	for end := time.Now().Add(patience); time.Now().Before(end); { // until the proxy has seen that there is room again
		_, r = raw(t, proxy, "GET http://nowhere.test/ HTTP/1.1\r\nHost: x\r\n\r\n")
		if status, _ := reply(t, r, http.MethodGet); status == http.StatusBadGateway {
			break
		}
	}
	for range 2 {
		var status int
		var body string
		for end := time.Now().Add(patience); time.Now().Before(end); { // until it has seen the end of the one before
			_, r = raw(t, proxy, "")
			if status, body = reply(t, r, http.MethodGet); !strings.Contains(body, "2 connections open") {
				break
			}
		}
		if status != http.StatusServiceUnavailable || !strings.Contains(body, "used up its limit of 3 connections") {
			t.Errorf("got %d %q", status, body)
		}
	}
	told := 0
	for _, e := range w.wait(t, 2) {
		if e.Rule == "limit of 3 connections" {
			told++
		}
	}
	if told != 1 {
		t.Errorf("the limit is recorded %d times, want once", told)
	}
}

func TestSlowHeadIsCut(t *testing.T) {
	w := newWorld("")
	_, r := raw(t, serve(t, w, Options{Allow: []string{"*:80"}, Limits: Limits{Header: 50 * time.Millisecond}}), "GET http://api.example.com/ HTTP/1.1\r\nX: ")
	if _, err := io.ReadAll(r); err != nil {
		t.Errorf("not closed: %v", err)
	}
}

func TestSilenceIsCut(t *testing.T) {
	release := make(chan struct{})
	_, addr := server(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	w := newWorld(addr)
	proxy := serve(t, w, Options{Allow: []string{"*:80", "*:443"}, Limits: Limits{Idle: time.Second}})
	var ended sync.WaitGroup
	for _, text := range []string{
		"GET http://api.example.com/ HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST http://api.example.com/ HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf a bo",
		"CONNECT api.example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		_, r := raw(t, proxy, text)
		ended.Go(func() { _, _ = io.ReadAll(r) })
	}
	ended.Wait()
	for _, e := range w.wait(t, 3) {
		if e.Error != "cut: nothing sent or received for 1s" {
			t.Errorf("got %+v", e)
		}
	}
}

func TestLargeHeadsAreRefused(t *testing.T) {
	_, addr := server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X", strings.Repeat("x", 2*maxHead))
	})
	w := newWorld(addr)
	proxy := serve(t, w, Options{Allow: []string{"*:80"}})
	_, r := raw(t, proxy, "GET http://api.example.com/ HTTP/1.1\r\nX: "+strings.Repeat("x", maxHead+8192)+"\r\n\r\n")
	if status, _ := reply(t, r, http.MethodGet); status != http.StatusRequestHeaderFieldsTooLarge && status != 0 {
		t.Errorf("request: got %d", status)
	}
	if status, body := get(t, through(t, proxy), "http://api.example.com/"); status != http.StatusBadGateway {
		t.Errorf("answer: got %d %q", status, body)
	}
}

func TestMissingLimitsAreTheDefaults(t *testing.T) {
	if got := (Limits{}).orDefault(); got != DefaultLimits() {
		t.Errorf("got %+v", got)
	}
	if got := fmt.Sprint(Limits{Total: 1, Idle: -1}.orDefault()); got != fmt.Sprint(func() Limits { l := DefaultLimits(); l.Total = 1; return l }()) {
		t.Errorf("got %s", got)
	}
}
