package mcpserver_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agentctl.dev/agentctl/runner/mcpserver"
)

const patience = time.Minute

func TestMain(m *testing.M) {
	// A read that was given up ends with the program.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("agentctl.dev/agentctl/runner/mcpserver.(*reader).Read.func1"),
		goleak.IgnoreTopFunction("internal/poll.runtime_pollWait"))
}

// slow lasts until it is cancelled, and reports both.
func slow(began, ended chan<- struct{}) mcpserver.Tool {
	return mcpserver.Tool{Name: "slow", Call: func(ctx context.Context, _ mcpserver.Call) (*mcpserver.Result, error) {
		began <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return nil, context.Cause(ctx)
	}}
}

var echo = mcpserver.Tool{Name: "echo", Call: func(_ context.Context, c mcpserver.Call) (*mcpserver.Result, error) {
	return &mcpserver.Result{Text: []string{string(c.Args)}}, nil
}}

func newServer(t *testing.T, tools ...mcpserver.Tool) *mcpserver.Server {
	t.Helper()
	s, err := mcpserver.New(mcpserver.Options{Name: "test", Version: "1", Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// stdio serves one client; the error of the server comes when it has ended.
func stdio(t *testing.T, s *mcpserver.Server) (to *io.PipeWriter, from *bufio.Scanner, ended <-chan error) {
	t.Helper()
	in, to := io.Pipe()
	out, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := s.Stdio(t.Context(), in, w)
		_ = w.Close()
		_ = in.Close()
		done <- err
	}()
	from = bufio.NewScanner(out)
	from.Buffer(nil, 64<<20)
	send(t, to, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	if !from.Scan() {
		t.Fatal("no answer to initialize")
	}
	send(t, to, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return to, from, done
}

func send(t *testing.T, to io.Writer, line string) {
	t.Helper()
	if _, err := io.WriteString(to, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

func within[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("%s: nothing happened within %s", what, patience)
		panic("unreachable")
	}
}

func TestAClosedConnectionEndsItsCalls(t *testing.T) {
	began, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	to, from, done := stdio(t, newServer(t, slow(began, ended)))
	send(t, to, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow","arguments":{}}}`)
	within(t, "the call begins", began)
	_ = to.Close()
	go drain(from) // the server may still answer
	within(t, "the call ends", ended)
	if err := within(t, "the server ends", done); err != nil {
		t.Errorf("a client that leaves is no error: %v", err)
	}
}

// drain reads lines until there are none.
func drain(from *bufio.Scanner) {
	for from.Scan() {
	}
}

func TestTheLastCallsAreAnswered(t *testing.T) {
	to, from, done := stdio(t, newServer(t, echo))
	go func() {
		_, _ = io.WriteString(to, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"a":1}}}`+"\n")
		_ = to.Close()
	}()
	if !from.Scan() || !strings.Contains(from.Text(), `{\"a\":1}`) {
		t.Errorf("the answer to the last request is %q", from.Text())
	}
	within(t, "the server ends", done)
}

func TestACancelledCallEndsAndItsNeighbourDoesNot(t *testing.T) {
	began, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	to, from, done := stdio(t, newServer(t, slow(began, ended), echo))
	send(t, to, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow","arguments":{}}}`)
	within(t, "the call begins", began)
	send(t, to, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	within(t, "the call ends", ended)
	send(t, to, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"b":2}}}`)
	for from.Scan() {
		if strings.Contains(from.Text(), `{\"b\":2}`) {
			break
		}
	}
	_ = to.Close()
	go drain(from) // the server may still answer
	within(t, "the server ends", done)
}

func TestAMessageBeyondTheLimitEndsTheConnection(t *testing.T) {
	to, from, done := stdio(t, newServer(t, echo))
	go drain(from)
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	_, err := io.WriteString(to, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"a":"`)
	sent := 0
	for ; err == nil && sent < 100; sent++ {
		_, err = to.Write(chunk)
	}
	if sent >= 100 {
		t.Error("100 MiB were read as one message")
	}
	within(t, "the server ends", done)
}

func TestOnlyWhatIsDeclaredIsServed(t *testing.T) {
	to, from, done := stdio(t, newServer(t, echo))
	for method, want := range map[string]string{
		"tools/list": `"name":"echo"`, "ping": `"result"`,
		"prompts/list": "method not found", "resources/list": "method not found", "resources/templates/list": "method not found",
		"logging/setLevel": "method not found", "completion/complete": "method not found",
	} {
		params := map[string]string{"logging/setLevel": `{"level":"debug"}`, "completion/complete": `{"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"a","value":"b"}}`}[method]
		if params == "" {
			params = "{}"
		}
		send(t, to, fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":%q,"params":%s}`, method, params))
		if !from.Scan() || !strings.Contains(from.Text(), want) {
			t.Errorf("%s: %s, want %s", method, from.Text(), want)
		}
	}
	_ = to.Close()
	within(t, "the server ends", done)
}

func TestToolsThatCannotBeOffered(t *testing.T) {
	for name, c := range map[string]struct {
		tools []mcpserver.Tool
		want  string
	}{
		"twice":             {[]mcpserver.Tool{echo, echo}, "two tools are called"},
		"a schema of texts": {[]mcpserver.Tool{{Name: "a", Input: json.RawMessage(`{"type":"string"}`)}}, `must have type "object"`},
		"no schema at all":  {[]mcpserver.Tool{{Name: "a", Input: json.RawMessage(`7`)}}, "not a JSON object"},
	} {
		if _, err := mcpserver.New(mcpserver.Options{Name: "x", Tools: c.tools}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

const token = "0123456789abcdef"

// listen serves over HTTP and returns the address.
func listen(t *testing.T, s *mcpserver.Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // returns at once
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.HTTP(ctx, l, mcpserver.HTTPOptions{Token: token, Hosts: []string{"tools.example"}}) }()
	t.Cleanup(func() {
		cancel()
		if err := within(t, "the server ends", done); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return "http://" + l.Addr().String()
}

// post sends a request; change prepares it.
func post(ctx context.Context, url, body string, change func(*http.Request)) (int, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Authorization", "Bearer "+token)
	change(r)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`

func TestWhoReachesTheServerOverHTTP(t *testing.T) {
	url := listen(t, newServer(t, echo))
	for name, c := range map[string]struct {
		reason string
		change func(*http.Request)
		want   int
	}{
		"a client with the token": {"that is what it is for", func(*http.Request) {}, 200},
		"another name of ours":    {"--host names it", func(r *http.Request) { r.Host = "tools.example:1" }, 200},
		"localhost":               {"the usual name", func(r *http.Request) { r.Host = "localhost:1" }, 200},
		"no token":                {"every program of the machine could come", func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		"a wrong token":           {"a guess", func(r *http.Request) { r.Header.Set("Authorization", "Bearer x"+token[1:]) }, 401},
		"half a token":            {"a prefix is no token", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token[:8]) }, 401},
		"another scheme":          {"not a bearer token", func(r *http.Request) { r.Header.Set("Authorization", "Basic "+token) }, 401},
		"a rebound name":          {"a page let its own name lead here", func(r *http.Request) { r.Host = "evil.example" }, 403},
		"a name that looks alike": {"not ours", func(r *http.Request) { r.Host = "localhost.evil.example" }, 403},
		"a page of another site":  {"it would use the browser of the user", func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, 403},
		"a page of a file":        {"no origin that is ours", func(r *http.Request) { r.Header.Set("Origin", "null") }, 403},
		"another path":            {"nothing is there", func(r *http.Request) { r.URL.Path = "/" }, 404},
		"a large body": {"a request is bounded", func(r *http.Request) {
			big := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":"` + strings.Repeat("x", 9<<20) + `"}}}`
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(big)), int64(len(big))
		}, 413},
		"no JSON": {"a mistake", func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(strings.NewReader("{")), 1 }, 400},
	} {
		code, text, err := post(t.Context(), url+mcpserver.Path, list, c.change)
		if err != nil || code != c.want {
			t.Errorf("%s (%s): %d %.200s, %v; want %d", name, c.reason, code, text, err, c.want)
		}
	}
}

func TestARequestThatIsGivenUpEndsItsCall(t *testing.T) {
	for version, meta := range map[string]string{
		"2025-06-18": ``,
		"2026-07-28": `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}},`,
	} {
		t.Run(version, func(t *testing.T) {
			began, ended := make(chan struct{}, 1), make(chan struct{}, 1)
			url := listen(t, newServer(t, slow(began, ended)))
			ctx, cancel := context.WithCancel(t.Context())
			gone := make(chan error, 1)
			go func() {
				code, text, err := post(ctx, url+mcpserver.Path, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{%s"name":"slow","arguments":{}}}`, meta), func(r *http.Request) {
					r.Header.Set("MCP-Protocol-Version", version)
					r.Header.Set("Mcp-Method", "tools/call")
					r.Header.Set("Mcp-Name", "slow")
				})
				if err == nil {
					err = fmt.Errorf("it was answered: %d %s", code, text)
					began <- struct{}{}
				}
				gone <- err
			}()
			within(t, "the call begins", began)
			cancel()
			within(t, "the call ends", ended)
			if err := <-gone; ctx.Err() == nil {
				t.Error(err)
			}
		})
	}
}

func TestAnAnswerCountsForItsQuestionOnce(t *testing.T) {
	asks := func(name string) mcpserver.Tool {
		return mcpserver.Tool{Name: name, Confirms: true, Call: func(ctx context.Context, c mcpserver.Call) (*mcpserver.Result, error) {
			got, err := c.Confirm(ctx, "may "+name+" run?")
			if err != nil {
				return nil, err
			}
			return &mcpserver.Result{Text: []string{fmt.Sprintf("%s %t", name, got.Approved)}}, nil
		}}
	}
	s := newServer(t, asks("one"), asks("two"))
	url := listen(t, s)
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}`
	call := func(tool, more string) string {
		t.Helper()
		_, text, err := post(t.Context(), url+mcpserver.Path, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{%s,"name":%q,"arguments":{}%s}}`, meta, tool, more), func(r *http.Request) {
			r.Header.Set("MCP-Protocol-Version", "2026-07-28")
			r.Header.Set("Mcp-Method", "tools/call")
			r.Header.Set("Mcp-Name", tool)
		})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	state := func(text string) string {
		t.Helper()
		_, rest, ok := strings.Cut(text, `"requestState":"`)
		word, _, _ := strings.Cut(rest, `"`)
		if !ok || !strings.Contains(text, "input_required") {
			t.Fatalf("no question: %s", text)
		}
		return word
	}
	answer := func(state, action string) string {
		return fmt.Sprintf(`,"requestState":%q,"inputResponses":{"approval":{"action":%q}}`, state, action)
	}
	first := state(call("one", ""))
	if got := call("two", answer(first, "accept")); !strings.Contains(got, "no call waits") {
		t.Errorf("the answer to one tool was taken for another: %s", got)
	}
	if got := call("one", answer("GUESSED", "accept")); !strings.Contains(got, "no call waits") {
		t.Errorf("a guessed state was taken: %s", got)
	}
	if got := call("one", answer(first, "accept")); !strings.Contains(got, "one true") {
		t.Errorf("an accepted call: %s", got)
	}
	if got := call("one", answer(first, "accept")); !strings.Contains(got, "no call waits") {
		t.Errorf("an answer was taken twice: %s", got)
	}
	if got := call("one", answer(state(call("one", "")), "decline")); !strings.Contains(got, "one false") {
		t.Errorf("a declined call: %s", got)
	}
	if got := call("one", `,"requestState":"`+state(call("one", ""))+`"`); !strings.Contains(got, `answered \"cancel\"`) {
		t.Errorf("no answer counts as one: %s", got)
	}
	state(call("two", "")) // the server ends although nobody answers
}
