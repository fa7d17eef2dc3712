package diagnose

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"agentctl.dev/agentctl/api/message"
)

const (
	// maxStarts is the first start of a server, and two more after it ended by itself.
	maxStarts = 3
	// startTime bounds the start of a server, also beyond the time of the check that
	// began it.
	startTime = time.Minute
	// stopTime is how long a server has to end when it is asked to.
	stopTime = 500 * time.Millisecond
	// settle is how long a server that pushes its findings must say nothing new about the
	// changed files, before they are taken.
	settle = 250 * time.Millisecond
	// mostDocuments bounds the files a server says something of, mostOfOne what it says of
	// one, and maxURI how it names one.
	mostDocuments, mostOfOne = 2000, 1000
	maxURI                   = 4 << 10
	// maxSpoken bounds, in bytes, what is kept of all that a server says.
	maxSpoken = 16 << 20
)

// server is a language server that runs.
type server struct {
	root    string
	process Process
	conn    *jsonrpc2.Conn
	errs    *capped
	// ready is closed when it has answered the first request, or failed with err.
	ready chan struct{}
	err   error
	// pulls: it is asked for its findings; otherwise it pushes them.
	pulls bool
	// versions are those of the open files, by their path in the workspace.
	versions map[string]int

	// text shortens what the server says, without secrets.
	text func(said string, most int) string

	mu sync.Mutex
	// said are the newest findings of a file by its URI, spoken their size; heard counts
	// what was said.
	said   map[string]diagnostics
	spoken int
	heard  map[string]int
	// excess is set once it has said more than is kept.
	excess bool
	// news receives a token after each of them.
	news chan struct{}
}

// ask tells the server of a check which files have changed, and returns what it finds.
func (c *Checker) ask(ctx context.Context, k *check, root string, argv, files []string) ([]message.Finding, error) {
	s, err := c.serverOf(ctx, k, root, argv)
	if err != nil {
		return nil, err
	}
	found, err := s.findings(ctx, k.Language, files)
	if errors.Is(err, jsonrpc2.ErrClosed) { // the connection ends its calls just before it says so
		<-s.conn.DisconnectNotify()
	}
	select {
	case <-s.conn.DisconnectNotify():
		k.server = nil
		return nil, s.gone()
	default:
	}
	return found, err
}

// serverOf returns the server once it is ready. A start may take longer than the check
// that began it: the next one finds it ready.
func (c *Checker) serverOf(ctx context.Context, k *check, root string, argv []string) (*server, error) {
	if k.server == nil {
		if k.starts == maxStarts {
			return nil, fmt.Errorf("its server ended %d times, and is not started again", maxStarts)
		}
		k.starts++
		k.server = &server{
			root: root, ready: make(chan struct{}), versions: map[string]int{}, text: c.text,
			said: map[string]diagnostics{}, heard: map[string]int{}, news: make(chan struct{}, 1),
		}
		s := k.server
		c.begun.Go(func() { c.serve(s, k.Name, argv) })
	}
	s := k.server
	select {
	case <-s.ready:
	case <-ctx.Done():
		return nil, errStarting
	}
	if s.err != nil {
		k.server = nil
		return nil, s.err
	}
	return s, nil
}

// serve starts a server and ends it with the checker.
func (c *Checker) serve(s *server, name string, argv []string) {
	start, cancel := context.WithTimeout(c.ctx, startTime)
	defer cancel()
	in := newOutbox()
	outR, outW := io.Pipe()
	s.errs = &capped{}
	p, err := c.o.Start(start, name, Program{Argv: argv, Stdin: in, Stdout: outW, Stderr: s.errs})
	if err != nil {
		s.err = fmt.Errorf("start its server: %w", err)
		close(s.ready)
		return
	}
	s.process = p
	c.begun.Go(func() {
		<-p.Done()
		_ = outW.Close()
		_ = in.Close()
	})
	s.conn = jsonrpc2.NewConn(context.WithoutCancel(c.ctx), jsonrpc2.NewBufferedStream(pipes{outR, in}, framed{}), jsonrpc2.HandlerWithError(s.handle),
		jsonrpc2.SetLogger(silent{}))
	if err := s.initialize(start); err != nil {
		if errors.Is(err, jsonrpc2.ErrClosed) {
			err = s.gone()
		}
		s.err = fmt.Errorf("begin to talk with its server: %w", err)
	}
	close(s.ready)
	if s.err == nil {
		select {
		case <-c.ctx.Done():
			s.leave()
		case <-p.Done():
		case <-s.conn.DisconnectNotify():
		}
	}
	p.Kill(killGrace)
	<-p.Done()
	_ = s.conn.Close()
}

// leave asks the server to end.
func (s *server) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	if s.conn.Call(ctx, "shutdown", nil, nil) == nil && s.conn.Notify(ctx, "exit", nil) == nil {
		select {
		case <-s.process.Done():
		case <-ctx.Done():
		}
	}
}

// gone is the error of a server whose connection is closed: it ended, said too much, or
// wrote what is not the protocol.
func (s *server) gone() error {
	if s.exceeds() {
		return errExcess
	}
	late := time.NewTimer(stopTime)
	defer late.Stop()
	select {
	case <-s.process.Done():
	case <-late.C:
		return errFrame
	}
	code, signal := s.process.End()
	how := fmt.Sprintf("exit code %d", code)
	if signal != "" {
		how = "the signal " + signal
	}
	if said := strings.TrimSpace(lastOf(s.errs.String(), maxMessage)); said != "" {
		how += ", and wrote: " + said
	}
	return errors.New("its server ended with " + how)
}

// initialize agrees with the server on what both can do.
func (s *server) initialize(ctx context.Context) error {
	var answer struct {
		Capabilities struct {
			DiagnosticProvider json.RawMessage `json:"diagnosticProvider"`
		} `json:"capabilities"`
	}
	yes := map[string]any{}
	params := map[string]any{
		"processId": nil, "rootUri": s.uri("."), "rootPath": s.root,
		"clientInfo":       map[string]any{"name": "agentctl"},
		"workspaceFolders": []any{map[string]any{"uri": s.uri("."), "name": filepath.Base(s.root)}},
		"capabilities": map[string]any{
			"workspace": map[string]any{"workspaceFolders": true, "configuration": true},
			"textDocument": map[string]any{
				"publishDiagnostics": map[string]any{"versionSupport": true},
				"synchronization":    map[string]any{"didSave": true},
				"diagnostic":         yes,
			},
		},
	}
	if err := s.conn.Call(ctx, "initialize", params, &answer); err != nil {
		return err
	}
	p := string(answer.Capabilities.DiagnosticProvider)
	s.pulls = p != "" && p != "null" && p != "false"
	if err := s.conn.Notify(ctx, "initialized", struct{}{}); err != nil {
		return err
	}
	// Some servers, pyright among them, look at nothing before they have settings.
	return s.conn.Notify(ctx, "workspace/didChangeConfiguration", map[string]any{"settings": struct{}{}})
}

// findings tells the server how the files are now and collects what it says.
func (s *server) findings(ctx context.Context, language string, files []string) ([]message.Finding, error) {
	before := s.counts()
	var open []string
	for _, f := range files {
		text, there, err := readText(s.root, f)
		if err != nil {
			return nil, err
		}
		if err := s.tell(ctx, language, f, text, there); err != nil {
			return nil, fmt.Errorf("tell its server of %s: %w", f, err)
		}
		if there {
			open = append(open, f)
		}
	}
	if s.pulls {
		return s.pull(ctx, open)
	}
	if err := s.await(ctx, open, before); err != nil {
		return nil, err
	}
	return s.pushed(open, before), nil
}

// tell opens, changes or closes a file.
func (s *server) tell(ctx context.Context, language, file, text string, there bool) error {
	uri, version := s.uri(file), s.versions[file]
	id := map[string]any{"uri": uri}
	const created, changed, deleted = 1, 2, 3
	kind := changed
	var err error
	switch {
	case !there && version > 0:
		delete(s.versions, file)
		kind, err = deleted, s.conn.Notify(ctx, "textDocument/didClose", map[string]any{"textDocument": id})
	case !there:
		kind = deleted
	case version == 0:
		s.versions[file] = 1
		if language == "" {
			language = languageOf(file)
		}
		kind, err = created, s.conn.Notify(ctx, "textDocument/didOpen", map[string]any{
			"textDocument": map[string]any{"uri": uri, "languageId": language, "version": 1, "text": text},
		})
	default:
		s.versions[file] = version + 1
		err = s.conn.Notify(ctx, "textDocument/didChange", map[string]any{
			"textDocument": map[string]any{"uri": uri, "version": version + 1}, "contentChanges": []any{map[string]any{"text": text}},
		})
	}
	if err != nil {
		return err
	}
	if err := s.conn.Notify(ctx, "workspace/didChangeWatchedFiles", map[string]any{"changes": []any{map[string]any{"uri": uri, "type": kind}}}); err != nil || !there {
		return err
	}
	return s.conn.Notify(ctx, "textDocument/didSave", map[string]any{"textDocument": id})
}

// languageOf is the language of a file by its ending.
func languageOf(file string) string {
	ext := strings.TrimPrefix(path.Ext(file), ".")
	if known, ok := languages[ext]; ok {
		return known
	}
	return ext
}

// languages are those that the protocol names otherwise than by the ending of their files.
var languages = map[string]string{
	"bash": "shellscript", "cc": "cpp", "cs": "csharp", "h": "c", "hpp": "cpp", "js": "javascript", "jsx": "javascriptreact", "kt": "kotlin",
	"md": "markdown", "mjs": "javascript", "py": "python", "rb": "ruby", "rs": "rust", "sh": "shellscript", "ts": "typescript",
	"tsx": "typescriptreact", "yml": "yaml",
}

// pull asks the server for the findings of files.
func (s *server) pull(ctx context.Context, files []string) ([]message.Finding, error) {
	var all []message.Finding
	size := 0
	for _, f := range files {
		var report struct {
			Items diagnostics `json:"items"`
		}
		if err := s.conn.Call(ctx, "textDocument/diagnostic", map[string]any{"textDocument": map[string]any{"uri": s.uri(f)}}, &report); err != nil {
			return nil, fmt.Errorf("ask its server about %s: %w", f, err)
		}
		report.Items.shorten(s.text)
		if size += report.Items.size(); size > maxSpoken {
			s.end(s.conn)
			return nil, errExcess
		}
		for _, d := range report.Items {
			all = append(all, d.finding(f))
		}
	}
	return all, nil
}

// counts are how often something was said of each file.
func (s *server) counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.heard)
}

// await waits until the server has said something of each file since before, and then
// nothing new for a moment.
func (s *server) await(ctx context.Context, files []string, before map[string]int) error {
	quiet := time.NewTimer(settle)
	defer quiet.Stop()
	for {
		all := true
		now := s.counts()
		for _, f := range files {
			all = all && now[s.uri(f)] > before[s.uri(f)]
		}
		quiet.Reset(settle)
		var still <-chan time.Time
		if all {
			still = quiet.C
		}
		select {
		case <-s.news:
		case <-still:
			return nil
		case <-s.conn.DisconnectNotify():
			return s.gone()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// pushed are the findings of files, and of others of which the server has spoken since
// before: a change of one file may break another.
func (s *server) pushed(files []string, before map[string]int) []message.Finding {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []message.Finding
	add := func(uri, file string) {
		for _, d := range s.said[uri] {
			all = append(all, d.finding(file))
		}
	}
	asked := map[string]bool{}
	for _, f := range files {
		asked[s.uri(f)] = true
		add(s.uri(f), f)
	}
	for uri, n := range s.heard {
		if file, ok := s.file(uri); ok && !asked[uri] && n > before[uri] {
			add(uri, file)
		}
	}
	return all
}

func (s *server) uri(file string) string {
	return (&url.URL{Scheme: "file", Path: path.Join(s.root, file)}).String()
}

// file is the path in the workspace of a URI.
func (s *server) file(uri string) (string, bool) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" {
		return "", false
	}
	rel, err := filepath.Rel(s.root, u.Path)
	return rel, err == nil && filepath.IsLocal(rel) && rel != "."
}

// handle answers what the server says and asks. It is given nothing but the settings it
// has by default, and may change nothing.
func (s *server) handle(_ context.Context, conn *jsonrpc2.Conn, req *jsonrpc2.Request) (any, error) {
	switch req.Method {
	case "textDocument/publishDiagnostics":
		var said struct {
			URI         string
			Diagnostics diagnostics
		}
		if req.Params != nil && json.Unmarshal(*req.Params, &said) == nil && !s.hear(said.URI, said.Diagnostics) {
			s.end(conn)
		}
	case "workspace/configuration":
		var asked struct{ Items []json.RawMessage }
		if req.Params != nil {
			_ = json.Unmarshal(*req.Params, &asked)
		}
		return make([]any, min(len(asked.Items), mostOfOne)), nil
	case "workspace/applyEdit":
		return map[string]any{"applied": false, "failureReason": "a check changes no files"}, nil
	case "client/registerCapability", "client/unregisterCapability", "window/workDoneProgress/create", "window/showMessageRequest", "workspace/diagnostic/refresh":
	case "workspace/workspaceFolders":
		return []any{map[string]any{"uri": s.uri("."), "name": filepath.Base(s.root)}}, nil
	default:
		if !req.Notif {
			return nil, &jsonrpc2.Error{Code: jsonrpc2.CodeMethodNotFound, Message: "this client only collects diagnostics"}
		}
	}
	return nil, nil //nolint:nilnil // the answer is null
}

// hear keeps what a server says of a file of the workspace. False: it has said too much.
func (s *server) hear(uri string, found diagnostics) bool {
	if _, ok := s.file(uri); !ok || len(uri) > maxURI {
		return true
	}
	found.shorten(s.text)
	s.mu.Lock()
	defer s.mu.Unlock()
	before, known := s.said[uri]
	if s.excess || !known && len(s.said) == mostDocuments {
		return true
	}
	if !known {
		s.spoken += len(uri)
	}
	if s.spoken += found.size() - before.size(); s.spoken > maxSpoken {
		clear(s.said)
		s.excess = true
		return false
	}
	s.said[uri] = found
	s.heard[uri]++
	select {
	case s.news <- struct{}{}:
	default:
	}
	return true
}

var errExcess = fmt.Errorf("its server was stopped: it says more than %d MiB of the files", maxSpoken>>20)

func (s *server) exceeds() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.excess
}

// end stops a server that says too much: serve kills it once the connection is closed.
func (s *server) end(conn *jsonrpc2.Conn) {
	s.mu.Lock()
	s.excess = true
	s.mu.Unlock()
	_ = conn.Close()
}
