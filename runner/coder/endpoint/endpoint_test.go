package endpoint

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/coder"
	"agentctl.dev/agentctl/runner/model/modeltest"
)

// served is an endpoint in front of a model server.
type served struct {
	url   string
	model *modeltest.Server

	mu       sync.Mutex
	used     []Use
	reserved []int64
	settled  int

	e *Endpoint
	// stop ends the endpoint, and waits for its requests.
	stop func()
}

func serve(t *testing.T, api coder.API, refuse string, steps ...modeltest.Step) *served {
	t.Helper()
	wires := map[coder.API]modeltest.Wire{coder.Chat: modeltest.Chat, coder.Responses: modeltest.Responses, coder.Messages: modeltest.Anthropic}
	model, err := modeltest.Options{Wire: wires[api], Unchecked: true}.Serve(steps...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(model.Close)
	s := &served{model: model}
	s.front(t, api, refuse, model.URL)
	return s
}

// front begins an endpoint in front of the server at an address.
func (s *served) front(t *testing.T, api coder.API, refuse, address string) {
	t.Helper()
	e := New(Options{
		API: api, Model: "the-model", BaseURL: address, Token: "tok", Output: 100, Transport: http.DefaultTransport,
		Key: func(context.Context) (string, error) { return "sk-real", nil },
		Price: func(u message.Usage) (message.Cost, message.Cost, bool) {
			return message.Cost(u.Total()), message.Cost(2 * u.Total()), true
		},
		Reserve: func(tokens int64, cost *message.Cost) string {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.reserved = append(s.reserved, tokens)
			if cost == nil || int64(*cost) != 2*tokens {
				return fmt.Sprintf("cost %v of %d tokens", cost, tokens)
			}
			return refuse
		},
		Settle: func() { s.mu.Lock(); defer s.mu.Unlock(); s.settled++ },
		Used:   func(u Use) { s.mu.Lock(); defer s.mu.Unlock(); s.used = append(s.used, u) },
	})
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.url = "http://" + l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Serve(ctx, l) }()
	s.e, s.stop = e, sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		e.Close()
	})
	t.Cleanup(s.stop)
}

// before begins an endpoint in front of a server that answers as a function does.
func before(t *testing.T, api coder.API, answer http.HandlerFunc) *served {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	s := &served{}
	s.front(t, api, "", server.URL)
	return s
}

func (s *served) ask(t *testing.T, method, path, token, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(path, "messages") {
		req.Header.Set("X-Api-Key", token)
		req.Header.Set("Anthropic-Version", "2023-06-01")
	} else {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestARequestIsForwardedWithTheKeyAndCounted(t *testing.T) {
	for _, api := range []coder.API{coder.Chat, coder.Responses, coder.Messages} {
		s := serve(t, api, "", modeltest.Answer{Text: "hello", Usage: &modeltest.Usage{Prompt: 100, Completion: 20, Cached: 30}}.Step())
		status, text := s.ask(t, "POST", string(api), "tok", `{"model":"gpt-dear","stream":true,"max_tokens":50,"service_tier":"priority","speed":"fast"}`)
		if status != 200 || !strings.Contains(text, "hello") {
			t.Fatalf("%s: %d %s", api, status, text)
		}
		sent := s.model.Requests()
		if len(sent) != 1 {
			t.Fatalf("%s: %d requests", api, len(sent))
		}
		body := string(sent[0].Body)
		if !strings.Contains(body, `"model":"the-model"`) || strings.Contains(body, "priority") || strings.Contains(body, "fast") {
			t.Errorf("%s: the server was sent %s", api, body)
		}
		if key := sent[0].Header.Get("X-Api-Key") + sent[0].Header.Get("Authorization"); key != "sk-real" && key != "Bearer sk-real" {
			t.Errorf("%s: the server was shown %q", api, key)
		}
		if len(s.used) != 1 || s.used[0].Estimated || s.used[0].Tokens.Total() != 120 || s.used[0].Tokens.CacheRead != 30 || *s.used[0].Cost != 120 {
			t.Errorf("%s: used %+v", api, s.used)
		}
		if len(s.reserved) != 1 || s.reserved[0] < 50 || s.settled != 1 {
			t.Errorf("%s: reserved %v, settled %d", api, s.reserved, s.settled)
		}
	}
}

// A cost that is not counted is not zero: it is estimated, and too high rather than too low.
func TestAnAnswerThatIsNotCountedIsEstimated(t *testing.T) {
	s := serve(t, coder.Chat, "", modeltest.Answer{Text: strings.Repeat("hello ", 100)}.Step())
	if status, _ := s.ask(t, "POST", "/v1/chat/completions", "tok", `{"messages":[]}`); status != 200 {
		t.Fatal(status)
	}
	if len(s.used) != 1 || !s.used[0].Estimated || s.used[0].Tokens.Output < 200 || s.used[0].Tokens.Input < 1 || int64(*s.used[0].Cost) != 2*s.used[0].Tokens.Total() {
		t.Errorf("%+v", s.used)
	}
}

func TestARefusalOfTheServerCostsNothing(t *testing.T) {
	s := serve(t, coder.Chat, "", modeltest.Refuse(429, nil, `{"error":{"message":"later"}}`))
	if status, text := s.ask(t, "POST", "/v1/chat/completions", "tok", `{}`); status != 429 || !strings.Contains(text, "later") {
		t.Errorf("%d %s", status, text)
	}
	if len(s.used) != 0 || s.settled != 1 {
		t.Errorf("used %+v, settled %d", s.used, s.settled)
	}
}

func TestABudgetWithoutRoomSendsNothing(t *testing.T) {
	s := serve(t, coder.Messages, "limits.maxCost of a run above is 1.00 USD")
	status, text := s.ask(t, "POST", "/v1/messages", "tok", `{"max_tokens":10}`)
	if status != 400 || !strings.Contains(text, "limits.maxCost") || len(s.model.Requests()) != 0 {
		t.Errorf("%d %s, %d requests", status, text, len(s.model.Requests()))
	}
}

func TestNothingElseIsServed(t *testing.T) {
	s := serve(t, coder.Chat, "")
	for _, c := range []struct {
		method, path, token, body string
		status                    int
		reason                    string
	}{
		{"POST", "/v1/chat/completions", "other", `{}`, 401, "another token"},
		{"POST", "/v1/chat/completions", "", `{}`, 401, "no token"},
		{"POST", "/v1/responses", "tok", `{}`, 404, "another API"},
		{"POST", "/v1/files", "tok", `{}`, 404, "another address of the server"},
		{"GET", "/v1/chat/completions", "tok", ``, 404, "another method"},
		{"POST", "/v1/chat/completions", "tok", `[1]`, 400, "no object"},
		{"POST", "/v1/chat/completions", "tok", `null`, 400, "null"},
		{"GET", "/v1/models", "tok", ``, 200, "the list of models is ours"},
	} {
		if status, text := s.ask(t, c.method, c.path, c.token, c.body); status != c.status {
			t.Errorf("%s %s (%s): %d %s", c.method, c.path, c.reason, status, text)
		}
	}
	if n := len(s.model.Requests()); n != 0 {
		t.Errorf("%d requests reached the server", n)
	}
	for _, head := range []string{"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n", "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\nAuthorization: Bearer tok\r\n\r\n"} {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, head)
		answer := make([]byte, 12)
		if _, err := io.ReadFull(c, answer); err != nil || string(answer) != "HTTP/1.1 403" {
			t.Errorf("%q: %s, %v", head, answer, err)
		}
		_ = c.Close()
	}
}

// Requests that run at the same time are reserved together.
func TestRequestsInFlightAreReservedTogether(t *testing.T) {
	s := serve(t, coder.Chat, "")
	e := New(Options{
		Output: 100, Price: nil, Settle: func() { s.settled++ },
		Reserve: func(tokens int64, _ *message.Cost) string { s.reserved = append(s.reserved, tokens); return "" },
	})
	first, why := e.reserve(message.Usage{Output: 100})
	second, other := e.reserve(message.Usage{Output: 50})
	if why != "" || other != "" {
		t.Fatal(why, other)
	}
	first()
	second()
	if fmt.Sprint(s.reserved) != "[100 150 50]" || s.settled != 1 {
		t.Errorf("reserved %v, settled %d", s.reserved, s.settled)
	}
}

// A program in a sandbox cannot have the server of its model reach others for it, make several
// answers of one, or an answer that nobody counts.
func TestWhatTheServerWouldDoForAProgramIsLeftOut(t *testing.T) {
	for api, tools := range map[coder.API]string{
		coder.Chat:      `{"type":"function","function":{"name":"mine"}},{"type":"web_search"},{"function":{"name":"x"}}`,
		coder.Responses: `{"type":"function","name":"mine"},{"type":"mcp","server_url":"https://evil.example"},{"type":"web_search"},{"type":"function","type":"code_interpreter"}`,
		coder.Messages:  `{"name":"mine"},{"type":"bash_20250124","name":"bash"},{"type":"web_fetch_20250910","name":"f"},{"type":"mcp_toolset"}`,
	} {
		s := serve(t, api, "", modeltest.Answer{Text: "hello"}.Step())
		body := `{"tools":[` + tools + `],"n":100,"background":true,"models":["dear"],"mcp_servers":[{"url":"https://evil.example"}],"web_search_options":{}}`
		if status, text := s.ask(t, "POST", string(api), "tok", body); status != 200 {
			t.Fatalf("%s: %d %s", api, status, text)
		}
		sent := string(s.model.Requests()[0].Body)
		if !strings.Contains(sent, "mine") || api == coder.Messages && !strings.Contains(sent, "bash_20250124") {
			t.Errorf("%s: a tool of the program is missing: %s", api, sent)
		}
		for _, other := range []string{"web_", "mcp", "evil", "code_interpreter", `"n"`, "background", "dear"} {
			if strings.Contains(sent, other) {
				t.Errorf("%s: the server was sent %s: %s", api, other, sent)
			}
		}
	}
	s := serve(t, coder.Chat, "", modeltest.Answer{Text: "hello"}.Step())
	for body, want := range map[string]int{
		`{"tools":{"type":"function"}}`: 400, `{"tools":[{"type":["function"]}]}`: 400, `{"tools":[null]}`: 400,
		`{"tools":[{"type":"web_search"}],"tool_choice":"required"}`: 200,
	} {
		if status, text := s.ask(t, "POST", string(coder.Chat), "tok", body); status != want {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
	if sent := string(s.model.Requests()[0].Body); strings.Contains(sent, "tool") {
		t.Errorf("of no tool there is %s", sent)
	}
}

// The room that is reserved is that of the largest limit: a server may read any of them.
func TestASmallLimitDoesNotHideALargeOne(t *testing.T) {
	s := serve(t, coder.Chat, "", modeltest.Answer{Text: "hello"}.Step())
	s.ask(t, "POST", string(coder.Chat), "tok", `{"max_tokens":5000,"max_completion_tokens":10,"max_output_tokens":1}`)
	if len(s.reserved) != 1 || s.reserved[0] < 5000 {
		t.Errorf("reserved %v", s.reserved)
	}
}

// The errors of some servers repeat the key that they were shown.
func TestAnErrorOfTheServerHasNoKey(t *testing.T) {
	s := before(t, coder.Chat, func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "wrong header: "+r.Header.Get("Authorization"), http.StatusUnauthorized)
	})
	if status, text := s.ask(t, "POST", string(coder.Chat), "tok", `{}`); status != 401 || strings.Contains(text, "sk-real") || !strings.Contains(text, "wrong header") {
		t.Errorf("%d %s", status, text)
	}
}

// Numbers that are none of tokens do not give the budget anything back.
func TestNumbersThatAreNone(t *testing.T) {
	s := before(t, coder.Chat, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"usage":{"prompt_tokens":-5,"completion_tokens":-9000000000000000000,"prompt_tokens_details":{"cached_tokens":-100}}}`)
	})
	s.ask(t, "POST", string(coder.Chat), "tok", `{}`)
	s.ask(t, "POST", string(coder.Chat), "tok", `{}`)
	for _, u := range s.used {
		if u.Tokens != (message.Usage{}) {
			t.Errorf("used %+v", u)
		}
	}
	if len(s.used) != 2 {
		t.Errorf("used %+v", s.used)
	}
	c := counter{api: coder.Responses}
	c.read([]byte(`{"usage":{"input_tokens":9000000000000000000,"output_tokens":9000000000000000000}}`))
	if got := c.usage.Total(); got != 2*mostTokens {
		t.Errorf("a sum that is too large is %d", got)
	}
}

// A program that goes away before the count has used what was made for it all the same.
func TestAnAnswerThatIsCutIsCounted(t *testing.T) {
	for _, c := range []struct {
		what, begin string
		output      int64
	}{
		{"nothing was answered", "", 700},
		{"a stream, and only its beginning was counted", `data: {"type":"message_start","message":{"usage":{"input_tokens":50,"output_tokens":1}}}` + "\n\n" + strings.Repeat("data: {}\n\n", 100), 300},
	} {
		gone, asked := make(chan struct{}), make(chan struct{})
		s := before(t, coder.Messages, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if c.begin != "" {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, c.begin)
				_ = http.NewResponseController(w).Flush()
			}
			close(asked)
			<-r.Context().Done()
			close(gone)
		})
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		body := `{"max_tokens":700,"stream":true}`
		_, _ = fmt.Fprintf(conn, "POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-Api-Key: tok\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		<-asked
		if c.begin != "" {
			if _, err := io.ReadFull(conn, make([]byte, len(c.begin))); err != nil {
				t.Fatal(err)
			}
		}
		_ = conn.Close()
		<-gone
		s.stop()
		if len(s.used) != 1 || !s.used[0].Estimated || s.used[0].Tokens.Output < c.output || s.settled != 1 {
			t.Errorf("%s: used %+v, settled %d", c.what, s.used, s.settled)
		}
	}
}

// More requests than are served at once wait, and none of their bodies is read.
func TestRequestsWaitForThoseBefore(t *testing.T) {
	var asked atomic.Int32
	release := make(chan struct{})
	full := make(chan struct{})
	s := before(t, coder.Chat, func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == mostAtOnce {
			close(full)
		}
		<-release
		_, _ = io.WriteString(w, `{}`)
	})
	var all sync.WaitGroup
	for range mostAtOnce {
		all.Go(func() { s.ask(t, "POST", string(coder.Chat), "tok", `{}`) })
	}
	<-full
	ctx, cancel := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, "POST", string(coder.Chat), unread{t})
	r.Header.Set("Authorization", "Bearer tok")
	cancel()
	s.e.ServeHTTP(httptest.NewRecorder(), r)
	close(release)
	all.Wait()
	if n := asked.Load(); n != mostAtOnce {
		t.Errorf("%d requests were forwarded", n)
	}
}

// unread is a body that nobody may read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body of a request that waits is read")
	return 0, io.EOF
}

// What a request in flight has used is counted when the program has ended, and no other is taken.
func TestTheEndWaitsForRequests(t *testing.T) {
	asked := make(chan struct{})
	s := before(t, coder.Chat, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(asked)
		<-r.Context().Done()
	})
	var all sync.WaitGroup
	all.Go(func() { s.ask(t, "POST", string(coder.Chat), "tok", `{"max_tokens":700}`) })
	<-asked
	s.e.Close()
	s.mu.Lock()
	if len(s.used) != 1 || s.used[0].Tokens.Output != 700 || s.settled != 1 {
		t.Errorf("used %+v, settled %d", s.used, s.settled)
	}
	s.mu.Unlock()
	if status, text := s.ask(t, "POST", string(coder.Chat), "tok", `{}`); status != http.StatusServiceUnavailable {
		t.Errorf("a late request: %d %s", status, text)
	}
	all.Wait()
}

// A program that opens connections without end takes no more files of agentctl than it may.
func TestConnectionsAreBounded(t *testing.T) {
	s := serve(t, coder.Chat, "")
	dial := func() net.Conn {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	answered := func(c net.Conn) bool {
		_, _ = io.WriteString(c, "GET /v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer tok\r\n\r\n")
		n, _ := io.ReadFull(c, make([]byte, 12))
		return n == 12
	}
	var open []net.Conn
	for range mostOpen {
		open = append(open, dial())
	}
	if !answered(open[mostOpen-1]) {
		t.Fatal("the last one is not served")
	}
	if c := dial(); answered(c) {
		t.Error("one more is served")
	}
	for _, c := range open {
		_ = c.Close()
	}
	for deadline := time.Now().Add(30 * time.Second); !answered(dial()); {
		if time.Now().After(deadline) {
			t.Fatal("none is served when the others are closed")
		}
	}
}
