package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/tool"
)

// link is one open connection to a server.
type link struct {
	source *source
	// name is the call name of the Tool.
	name string
	// remote is set for a server at a URL, where a request may fail and the next may not.
	remote  bool
	session *mcp.ClientSession
	// ask puts a question to a person; nil: there is none.
	person func(ctx context.Context, call string, q host.Question) (string, error)
	// stop ends what is behind the connection, once the session is closed; fate says how
	// it ended by itself, nil while it runs.
	stop func()
	fate func() error

	// stale is set when the server says that its functions have changed.
	stale atomic.Bool
	once  sync.Once
	over  chan struct{}

	mu sync.Mutex
	// seen are the functions as the server describes them, by name; nil: it was not asked.
	seen map[string]tool.Function
	// same are the call names whose description was compared.
	same map[string]bool
	// running are the calls that wait for an answer, by their progress token.
	running map[string]*running
}

// running is a call that waits for its answer.
type running struct {
	call     string
	progress func(string)
	inform   func(title string, metadata json.RawMessage)
	told     int
}

// connect speaks the protocol over a transport.
func (s *source) connect(ctx context.Context, name string, t mcp.Transport, fate func() error, stop func()) (*link, error) {
	l := &link{
		source: s, name: name, person: s.pool.Options().Ask, fate: fate, stop: stop, over: make(chan struct{}),
		same: map[string]bool{}, running: map[string]*running{},
	}
	options := &mcp.ClientOptions{
		// Roots are offered unless the capabilities are set; sampling is refused by having
		// no handler.
		Capabilities:                &mcp.ClientCapabilities{},
		Logger:                      slog.New(slog.DiscardHandler),
		ToolListChangedHandler:      func(context.Context, *mcp.ToolListChangedRequest) { l.stale.Store(true) },
		ProgressNotificationHandler: l.progress,
		ElicitationHandler:          l.elicit,
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "agentctl", Version: "1"}, options)
	client.AddReceivingMiddleware(refuseRoots)
	session, err := client.Connect(ctx, t, nil)
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, context.DeadlineExceeded) {
			err = errors.New("it did not answer in time")
		} else if cause != nil {
			err = cause
		} else if gone := fate(); gone != nil {
			err = gone
		}
		stop()
		if known, ok := errors.AsType[*reason.Error](err); ok && (known.Reason == reason.CredentialRejected || known.Reason == reason.CredentialMissing) {
			return nil, known
		}
		return nil, reason.New(reason.ToolError, "tool %q: connect to its MCP server: %w", name, err).
			WithHint("agentctl mcp test shows what the server does")
	}
	l.session = session
	go func() { // ends with the session, which close ends
		_ = session.Wait()
		close(l.over)
	}()
	return l, nil
}

// refuseRoots refuses what the library would answer with an empty list: a server must not
// take that for consent to look anywhere.
func refuseRoots(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method == "roots/list" {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this client has no roots"}
		}
		return next(ctx, method, req)
	}
}

// gone is why the connection is not open any more; nil while it is.
func (l *link) gone() error {
	select {
	case <-l.over:
	default:
		return nil
	}
	if err := l.fate(); err != nil {
		return err
	}
	return errEnded
}

// broken reports whether a call failed because the connection ended, and not because the
// server refused it. The end may be noticed a moment later.
func (l *link) broken(err error) bool {
	if refused := (*jsonrpc.Error)(nil); errors.As(err, &refused) || l.remote {
		return l.gone() != nil
	}
	late := time.NewTimer(fateTime)
	defer late.Stop()
	select {
	case <-l.over:
		return true
	case <-late.C:
		return false
	}
}

// fateTime is how long the end of a server may be noticed after that of its connection.
const fateTime = time.Second

// closeTime bounds the goodbye to a server.
const closeTime = 500 * time.Millisecond

// close ends the connection and what is behind it.
func (l *link) close() {
	l.once.Do(func() {
		done := make(chan struct{})
		go func() { // ends when the transport is closed, which stop does at the latest
			defer close(done)
			_ = l.session.Close()
		}()
		late := time.NewTimer(closeTime)
		defer late.Stop()
		select {
		case <-done:
		case <-late.C:
		}
		l.stop()
		<-done
		<-l.over
	})
}

// ask sends a call and returns its result.
func (l *link) ask(ctx context.Context, req host.CallRequest, progress func(string)) (*mcp.CallToolResult, error) {
	if err := l.gone(); err != nil {
		return nil, err
	}
	token := req.Key + "/" + req.ID
	l.mu.Lock()
	l.running[token] = &running{call: req.ID, progress: progress, inform: req.Inform}
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.running, token)
		l.mu.Unlock()
	}()
	params := &mcp.CallToolParams{Name: req.Tool, Arguments: req.Args}
	params.SetProgressToken(token)
	return l.session.CallTool(context.WithValue(ctx, callKey{}, req.ID), params)
}

// callKey is the key of the id of a call in its context.
type callKey struct{}

// Bounds of what one call reports as progress.
const (
	maxTold     = 200
	maxProgress = 2 << 10
)

// progress hands on what a server reports about a running call.
func (l *link) progress(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
	token, _ := req.Params.ProgressToken.(string)
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.running[token]
	if r == nil || r.told == maxTold {
		return
	}
	r.told++
	if r.inform != nil {
		r.inform(informed(req.Params))
	}
	text := cleanLines(req.Params.Message)
	text = strings.ToValidUTF8(text[:min(len(text), maxProgress)], "")
	if of := req.Params.Total; of > 0 {
		text = strings.TrimSpace(fmt.Sprintf("%g of %g %s", req.Params.Progress, of, text))
	} else if text == "" {
		text = fmt.Sprintf("%g", req.Params.Progress)
	}
	r.progress(text + "\n")
}

// informed is progress as data.
func informed(p *mcp.ProgressNotificationParams) (title string, metadata json.RawMessage) {
	data := struct {
		Progress float64 `json:"progress"`
		Total    float64 `json:"total,omitempty"`
	}{p.Progress, p.Total}
	b, err := json.Marshal(data)
	if err != nil { // a number that JSON does not have
		b = nil
	}
	title = cleanLines(p.Message)
	return strings.ToValidUTF8(title[:min(len(title), maxTitle)], ""), b
}

// maxTitle bounds the title of progress.
const maxTitle = 200

// only is the one call that waits for an answer; "" if there are none or several.
func (l *link) only() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.running) != 1 {
		return ""
	}
	for _, r := range l.running {
		return r.call
	}
	return ""
}

// maxFrame bounds one message of a server.
const maxFrame = 16 << 20

// frames fails on a message that is longer than maxFrame, and remembers that it did.
type frames struct {
	io.ReadCloser
	read   int
	tooBig atomic.Bool
}

var errTooBig = fmt.Errorf("an answer of the server is longer than %d MiB", maxFrame>>20)

// Read implements io.Reader.
func (f *frames) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	if end := bytes.LastIndexByte(p[:n], '\n'); end >= 0 {
		f.read = n - end - 1
	} else if f.read += n; f.read > maxFrame {
		f.tooBig.Store(true)
		return 0, errTooBig
	}
	return n, err
}
