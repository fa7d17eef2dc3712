package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"go.uber.org/goleak"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var test = Provider{Name: "test", BaseURL: "https://api.example.com/v1", KeyVariable: "TEST_KEY", Speaks: "test answer", Wants: "provider test wants baseURL: https://host/v1"}

// words is an Answer of plain words: "end" completes it, "last" is over.
type words struct {
	*Gather
	complete, over, busy bool
}

func newWords(tell func(message.Delta)) Answer { return &words{Gather: NewGather(tell)} }

func (w *words) Event(_ string, data []byte) error {
	switch s := string(data); s {
	case "end":
		w.complete = true
	case "last":
		w.complete, w.over = true, true
	case "think":
		w.busy = true
		w.Piece()
	case "refused":
		return Refused(model.Fault{Message: "overloaded"})
	case "wrong":
		return errors.New("no word of ours")
	default:
		if len(data) > 0 {
			w.busy = false
		}
		w.Text(data)
	}
	return nil
}

func (w *words) Busy() bool { return w.busy }

func (w *words) Whole(data []byte) error {
	w.Text(data)
	w.complete = true
	return nil
}

func (w *words) Complete() bool          { return w.complete }
func (w *words) Over() bool              { return w.over }
func (w *words) Output() *message.Output { return w.Gather.Output(message.FinishStop) }

// answered answers every request with a status and a body.
type answered struct {
	status int
	body   io.Reader
	header http.Header
}

func (a answered) RoundTrip(r *http.Request) (*http.Response, error) {
	h := a.header
	if h == nil {
		h = http.Header{"Content-Type": {"text/event-stream"}}
	}
	return &http.Response{StatusCode: a.status, Header: h, Body: io.NopCloser(a.body), Request: r}, nil
}

func ask(t *testing.T, cfg Config, to http.RoundTripper) (*message.Output, error) {
	t.Helper()
	cfg.Name, cfg.Model, cfg.Transport, cfg.Retry = "m", "x", to, model.Retry{Attempts: 1}
	x, err := New(cfg, test)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	body := Body{[]byte("a"), nil, []byte("bc")}
	send := func(ctx context.Context, b Body) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, x.BaseURL(), b.Reader())
		if err != nil {
			return nil, err
		}
		return x.Pass(r, b, x.Client().Do)
	}
	return x.Ask(t.Context(), message.Request{}, body, send, func(message.Delta) error { return nil }, newWords)
}

func TestAnswersAreReadToTheirEnd(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want reason.Reason
		says string
	}{
		"over":                   {"data: a\n\ndata: last\n\ndata: b\n\n", "", ""},
		"complete, then the end": {"data: a\n\ndata: end\n\n", "", ""},
		"complete, then cut":     {"data: a\n\ndata: end\n\ndata: wro", "", ""},
		"whole":                  {`{"a"}`, "", ""},
		"not complete":           {"data: a\n\n", reason.ProviderUnavailable, "ended before"},
		"cut in an event":        {"data: a\n\ndata: wrong", reason.ProviderUnavailable, "ended before"},
		"refused":                {"data: refused\n\n", reason.ProviderUnavailable, "overloaded"},
		"another language":       {"data: wrong\n\n", reason.ModelError, "no test answer: no word of ours: wrong"},
		"a page":                 {"<html>", reason.ModelError, "a page"},
	} {
		out, err := ask(t, Config{}, answered{200, strings.NewReader(c.body), nil})
		if reason.Of(err) != c.want && err != nil || (c.want == "") != (err == nil) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
			continue
		}
		if err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
		if err == nil && (out.Text == "" || out.Text == "ab" || out.Model != message.ModelRef{Name: "m", Provider: "test", Model: "x"}) {
			t.Errorf("%s: %+v", name, out)
		}
	}
}

func TestErrorsSayHowToGoOnAndNeverTheKey(t *testing.T) {
	key := func(context.Context) (string, error) { return "k-1234567", nil }
	for name, c := range map[string]struct {
		cfg    Config
		status int
		body   string
		hint   string
	}{
		"no key":      {Config{}, 401, "{}", "spec.apiKey: {valueFrom: {env: TEST_KEY}}"},
		"wrong place": {Config{APIKey: key}, 404, "{}", "provider test wants baseURL: https://host/v1"},
		"no answer":   {Config{APIKey: key}, 200, "<p>", "provider test wants baseURL: https://host/v1"},
		"the key":     {Config{APIKey: key}, 400, `{"error":{"message":"key k-1234567 may not"}}`, ""},
	} {
		_, err := ask(t, c.cfg, answered{c.status, strings.NewReader(c.body), nil})
		if err == nil || !strings.Contains(reason.Hint(err), c.hint) || strings.Contains(err.Error(), "k-1234567") {
			t.Errorf("%s: %v; hint %q, want %q", name, err, reason.Hint(err), c.hint)
		}
	}
}

func TestKeysThatCannotBe(t *testing.T) {
	for _, key := range []string{"a b", "a\n", "ä"} {
		_, err := ask(t, Config{APIKey: func(context.Context) (string, error) { return key, nil }}, answered{200, strings.NewReader("{}"), nil})
		if reason.Of(err) != reason.CredentialRejected {
			t.Errorf("%q: %v", key, err)
		}
	}
}

func TestAddresses(t *testing.T) {
	for address, official := range map[string]bool{
		"": true, "https://API.example.com/v1": true, "https://api.example.com/v2": true,
		"http://api.example.com/v1": false, "https://api.example.com.evil.org/v1": false, "https://api.example.com:8443/v1": false,
	} {
		x, err := New(Config{BaseURL: address}, test)
		if err != nil {
			t.Fatalf("%s: %v", address, err)
		}
		if x.Official() != official {
			t.Errorf("%s: official %v", address, x.Official())
		}
		_ = x.Close()
	}
	for _, address := range []string{"ftp://host", "host/v1", "https://", "https://user:secret@host/v1", "://"} {
		if _, err := New(Config{Name: "m", BaseURL: address}, test); err == nil || strings.Contains(err.Error(), "user:secret") && strings.Contains(address, "@") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestBodyIsItsPieces(t *testing.T) {
	b := Body{nil, []byte("ab"), {}, []byte("c"), nil}
	if b.Size() != 3 {
		t.Errorf("size %d", b.Size())
	}
	if err := iotest.TestReader(b.Reader(), []byte("abc")); err != nil {
		t.Error(err)
	}
	if got, err := io.ReadAll(Body{}.Reader()); len(got) > 0 || err != nil {
		t.Errorf("nothing: %q, %v", got, err)
	}
}

func TestAnswersAreBounded(t *testing.T) {
	g := NewGather(func(message.Delta) {})
	for range maxCalls {
		if g.Begin() < 0 {
			t.Fatal("refused too early")
		}
	}
	if at := g.Begin(); at >= 0 || g.Err() == nil {
		t.Errorf("one call more: %d, %v", at, g.Err())
	}
	g = NewGather(func(message.Delta) {})
	piece := make([]byte, 1<<20)
	for range 40 {
		g.Text(piece)
	}
	if g.Err() == nil || g.TextSize() > maxAnswer+len(piece) {
		t.Errorf("%d bytes, %v", g.TextSize(), g.Err())
	}
}

// Halves of a character come in two pieces, and only together they are one.
func TestCharactersThatWereCut(t *testing.T) {
	var told []message.Delta
	g := NewGather(func(d message.Delta) { told = append(told, d) })
	g.Text([]byte("a\xe2\x98"))
	g.Text([]byte("\x83"))
	at := g.Begin()
	g.Calls[at].ID, g.Calls[at].Tool = "", "bash"
	g.Args(at, []byte("{}"))
	out := g.Output(message.FinishStop)
	if out.Text != "a☃" || out.Finish != message.FinishToolCalls || out.Calls[0].ID != "call_1" || len(told) != 3 {
		t.Errorf("%+v, %d pieces", out, len(told))
	}
}
