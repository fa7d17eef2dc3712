package egress

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// eavesdropper is a server that keeps the bytes of each connection and answers
// every request it reads in them.
func eavesdropper(t *testing.T) (addr string, heard func() string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var (
		mu   sync.Mutex
		text strings.Builder
		wg   sync.WaitGroup
	)
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				r := bufio.NewReader(io.TeeReader(conn, writerFunc(func(b []byte) {
					mu.Lock()
					text.Write(b)
					mu.Unlock()
				})))
				for {
					req, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, req.Body)
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nProxy-Authenticate: Basic\r\nProxy-Evil: 1\r\nX-Kept: 1\r\nX-Dropped: 1\r\nConnection: X-Dropped\r\nContent-Length: 2\r\n\r\nok")
				}
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return l.Addr().String(), func() string {
		mu.Lock()
		defer mu.Unlock()
		return text.String()
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(b []byte) (int, error) { f(b); return len(b), nil }

// TestServerReadsTheOneRequestThatWasJudged sends requests that two readers
// read in two ways: a request that passes is written again, with one length and
// the judged host.
func TestServerReadsTheOneRequestThatWasJudged(t *testing.T) {
	const smuggled = "GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n"
	for name, c := range map[string]struct {
		reason, request string
		status          []int
		// heard is a part of what the server gets; never is in no case.
		heard string
		never string
	}{
		"plain": {"as it is", "GET http://api.example.com/a%2Fb?x=%zz;y HTTP/1.1\r\nHost: api.example.com\r\n\r\n", []int{200}, "GET /a%2Fb?x=%zz;y HTTP/1.1\r\nHost: api.example.com\r\n", "User-Agent"},
		"host differs": {
			"the server that was judged is the one that is named", "GET http://api.example.com/ HTTP/1.1\r\nHost: internal.example.com\r\n\r\n",
			[]int{200},
			"Host: api.example.com\r\n", "internal",
		},
		"two hosts": {"nobody knows which counts", "GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\nHost: evil.test\r\n\r\n", []int{400}, "", "GET"},
		"both lengths, CL.TE": {
			"the chunks end the body", "POST http://api.example.com/ HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled,
			[]int{200, 400},
			"", "Content-Length: 6",
		},
		"both lengths, TE.CL": {
			"the chunks end the body", "POST http://api.example.com/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n8\r\nSMUGGLED\r\n0\r\n\r\n",
			[]int{200, 400},
			"", "Content-Length: 3",
		},
		"two encodings":          {"the second hides the first", "POST http://api.example.com/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", []int{400, 501}, "", "POST"},
		"other encoding":         {"unknown framing", "POST http://api.example.com/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", []int{400, 501}, "", "POST"},
		"space before colon":     {"hides a header from one of two readers", "POST http://api.example.com/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n", []int{400}, "", "POST"},
		"two lengths":            {"which one?", "POST http://api.example.com/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", []int{400}, "", "POST"},
		"odd length":             {"+2 is 2 to some", "POST http://api.example.com/ HTTP/1.1\r\nHost: x\r\nContent-Length: +2\r\n\r\nab", []int{400}, "", "POST"},
		"negative length":        {"no length", "POST http://api.example.com/ HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\nab", []int{400}, "", "POST"},
		"folded header":          {"unfolded before it is sent on", "GET http://api.example.com/ HTTP/1.1\r\nHost: x\r\nX-A: 1\r\n Host: evil.test\r\n\r\n", []int{200, 400}, "", "\r\n Host: evil"},
		"bare return":            {"a line end to some", "GET http://api.example.com/ HTTP/1.1\r\nHost: x\r\nX-A: 1\rHost: evil.test\r\n\r\n", []int{400}, "", "GET"},
		"zero byte":              {"an end to some", "GET http://api.example.com/ HTTP/1.1\r\nHost: x\r\nX-A: 1\x00\r\n\r\n", []int{400}, "", "GET"},
		"body over HTTP/1.0":     {"not part of that version", "POST http://api.example.com/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", []int{200, 400, 501}, "", "evil"},
		"chunk extension":        {"dropped", "POST http://api.example.com/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2;a=\"\n\"\r\nab\r\n0\r\n\r\n", []int{200, 400, 502}, "", "a=\""},
		"trailer":                {"only what was announced", "POST http://api.example.com/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nHost: evil.test\r\n\r\n", []int{200, 400, 502}, "", "evil"},
		"origin form":            {"no server is named", "GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n", []int{400}, "", "GET"},
		"asterisk form":          {"no server is named", "OPTIONS * HTTP/1.1\r\nHost: api.example.com\r\n\r\n", []int{400}, "", "OPTIONS"},
		"https in absolute form": {"would have to be read here", "GET https://api.example.com/ HTTP/1.1\r\nHost: x\r\n\r\n", []int{400}, "", "GET"},
		"other scheme":           {"not HTTP", "GET ftp://api.example.com/ HTTP/1.1\r\nHost: x\r\n\r\n", []int{400}, "", "GET"},
		"file":                   {"not HTTP", "GET file:///etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", []int{400}, "", "GET"},
		"opaque":                 {"no server is named", "GET http:api.example.com HTTP/1.1\r\nHost: x\r\n\r\n", []int{400}, "", "GET"},
		"user":                   {"reads like another host", "GET http://api.example.com@evil.test/ HTTP/1.1\r\nHost: x\r\n\r\n", []int{400}, "", "GET"},
		"CONNECT with a length":  {"a tunnel has no body", "CONNECT api.example.com:80 HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", []int{400}, "", "hello"},
		"CONNECT with chunks":    {"a tunnel has no body", "CONNECT api.example.com:80 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", []int{400}, "", "0"},
		"CONNECT with a path":    {"names a server only", "CONNECT /api.example.com:80 HTTP/1.1\r\nHost: api.example.com:80\r\n\r\n", []int{400}, "", "x"},
		"CONNECT with a user":    {"names a server only", "CONNECT a@api.example.com:80 HTTP/1.1\r\nHost: api.example.com:80\r\n\r\n", []int{400}, "", "x"},
		"CONNECT without a port": {"names a server only", "CONNECT api.example.com HTTP/1.1\r\nHost: api.example.com\r\n\r\n", []int{400}, "", "x"},
		"HTTP/2":                 {"not to a proxy", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", []int{400, 505}, "", "PRI"},
		"nothing of the kind":    {"no HTTP", "\x16\x03\x01\x02\x00\x01", []int{0, 400}, "", "\x16"},
		"between client and proxy": {
			"is not for the server", "GET http://api.example.com/ HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic c2VjcmV0\r\nProxy-Connection: keep-alive\r\nProxy-Foo: 1\r\nConnection: X-Hop, close\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nTE: gzip\r\nX-Kept: 1\r\nAccept-Encoding: br\r\n\r\n",
			[]int{200},
			"X-Kept: 1\r\n", "Proxy-",
		},
	} {
		t.Run(name, func(t *testing.T) {
			addr, heard := eavesdropper(t)
			w := newWorld(addr)
			conn, r := raw(t, serve(t, w, Options{Allow: []string{"api.example.com:80"}}), c.request)
			_ = conn.CloseWrite()
			status, body := reply(t, r, strings.ToUpper(c.request[:min(4, len(c.request))]))
			ok := false
			for _, want := range c.status {
				ok = ok || status == want
			}
			if !ok {
				t.Errorf("%s: got %d %q, want one of %v", c.reason, status, body, c.status)
			}
			got := heard()
			if !strings.Contains(got, c.heard) || (c.never != "" && strings.Contains(got, c.never)) {
				t.Errorf("%s: the server got %q; want %q and never %q", c.reason, got, c.heard, c.never)
			}
			if strings.Contains(got, "\nHost: evil.test") || strings.Contains(strings.ToLower(got), "x-forwarded") {
				t.Errorf("%s: the server got %q", c.reason, got)
			}
		})
	}
}

func TestAnswersLoseWhatIsForTheProxy(t *testing.T) {
	addr, _ := eavesdropper(t)
	resp, err := through(t, serve(t, newWorld(addr), Options{Allow: []string{"*:80"}})).Get("http://api.example.com/")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	for _, name := range []string{"Proxy-Authenticate", "Proxy-Evil", "X-Dropped"} {
		if resp.Header.Get(name) != "" {
			t.Errorf("%s reaches the program", name)
		}
	}
	if resp.Header.Get("X-Kept") != "1" {
		t.Error("X-Kept does not reach the program")
	}
}

func TestBodiesAndStreamsPass(t *testing.T) {
	next := make(chan struct{})
	_, addr := server(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		n, _ := io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprintf(w, "%d\n", n)
		_ = http.NewResponseController(w).Flush()
		<-next // the program has read the first line before the second is written
		_, _ = io.WriteString(w, "end")
	})
	c := through(t, serve(t, newWorld(addr), Options{Allow: []string{"*:80"}}))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://api.example.com/", io.LimitReader(zeros{}, 3<<20))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Expect", "100-continue")
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	r := bufio.NewReader(resp.Body)
	if line, err := r.ReadString('\n'); err != nil || line != "3145728\n" {
		t.Errorf("got %q, %v", line, err)
	}
	close(next)
	if rest, err := io.ReadAll(r); err != nil || string(rest) != "end" {
		t.Errorf("got %q, %v", rest, err)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestUpgradeGoesToTheJudgedServer(t *testing.T) {
	_, addr := server(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		line, _ := rw.ReadString('\n')
		_, _ = io.WriteString(conn, line)
	})
	w := newWorld(addr)
	conn, r := raw(t, serve(t, w, Options{Allow: []string{"*:80"}}), "GET http://api.example.com/ HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	if status, _ := reply(t, r, http.MethodHead); status != http.StatusSwitchingProtocols {
		t.Fatalf("got %d", status)
	}
	_, _ = io.WriteString(conn, "over and out\n")
	if got, err := io.ReadAll(r); err != nil || string(got) != "over and out\n" {
		t.Errorf("got %q, %v", got, err)
	}
	_ = conn.Close()
	if e := w.wait(t, 1)[0]; e.Host != "api.example.com" || e.Received < 80 {
		t.Errorf("got %+v", e)
	}
}

func TestServerMayAnswerWhileItListens(t *testing.T) {
	_, addr := server(t, func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		_ = rc.EnableFullDuplex()
		b := make([]byte, 16)
		for {
			n, err := r.Body.Read(b)
			_, _ = w.Write(b[:n])
			_ = rc.Flush()
			if err != nil {
				return
			}
		}
	})
	body, say := io.Pipe()
	// A client waits for its body, whatever has become of the request.
	late := time.AfterFunc(patience, func() { _ = body.CloseWithError(io.ErrUnexpectedEOF) })
	defer late.Stop()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://api.example.com/", body)
	if err != nil {
		t.Fatal(err)
	}
	first := make(chan struct{})
	go func() {
		_, _ = io.WriteString(say, "first")
		<-first // the answer to it has been read
		_, _ = io.WriteString(say, "second")
		_ = say.Close()
	}()
	resp, err := through(t, serve(t, newWorld(addr), Options{Allow: []string{"*:80"}})).Do(req)
	if err != nil {
		close(first)
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b := make([]byte, 5)
	_, err = io.ReadFull(resp.Body, b)
	close(first)
	if err != nil || string(b) != "first" {
		t.Fatalf("got %q, %v", b, err)
	}
	if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != "second" {
		t.Errorf("got %q, %v", rest, err)
	}
}
