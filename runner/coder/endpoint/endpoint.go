// Package endpoint is the model server that a coding agent of others sees: it forwards requests to the real one with its key, counts them, and refuses those that a budget has no room for.
package endpoint

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/coder"
)

// Options are what an Endpoint needs. All but Price are required.
type Options struct {
	// API is the wire format of the program and of the server.
	API coder.API
	// Model is the name of the model at the server, whatever the program asks for.
	Model string
	// BaseURL of the server, as spec.baseURL has it.
	BaseURL string
	// Key returns the key; "" sends none.
	Key func(ctx context.Context) (string, error)
	// Token is what the program has to show.
	Token string
	// Output is the most tokens of an answer, where a request does not say it.
	Output int64
	// Price is what tokens cost, and the most that they can; false is not known. Optional.
	Price func(u message.Usage) (cost, most message.Cost, known bool)
	// Reserve asks the budget for the room that all requests in flight may need; "" is
	// granted, otherwise why not. Settle gives it back.
	Reserve func(tokens int64, cost *message.Cost) string
	Settle  func()
	// Used is called with what an answer has used, and for one whose server has not counted,
	// with an estimate.
	Used func(Use)
	// Transport reaches the server.
	Transport http.RoundTripper
}

// Use is what one answer has used.
type Use struct {
	Tokens    message.Usage
	Estimated bool
	// Cost is nil where the price is not known.
	Cost *message.Cost
}

// Endpoint serves one program. Its methods are called by several goroutines.
type Endpoint struct {
	o Options
	// slots are taken by the requests that are being served.
	slots chan struct{}
	// done ends the requests that are in flight, which flights counts.
	done    chan struct{}
	flights sync.WaitGroup

	mu sync.Mutex
	// closed: no request is taken any more.
	closed bool
	// flying are the tokens and the cost that requests in flight may need.
	flying     int64
	flyingCost message.Cost
	requests   int
	refused    string
}

// New returns an Endpoint.
func New(o Options) *Endpoint {
	return &Endpoint{o: o, slots: make(chan struct{}, mostAtOnce), done: make(chan struct{})}
}

// Close ends the requests that are in flight, and waits until what they have used is counted.
func (e *Endpoint) Close() {
	e.mu.Lock()
	if !e.closed {
		e.closed = true
		close(e.done)
	}
	e.mu.Unlock()
	ended := make(chan struct{})
	go func() { e.flights.Wait(); close(ended) }() // ends with the last request
	late := time.NewTimer(endTime)
	defer late.Stop()
	select {
	case <-ended:
	case <-late.C: // its program reads nothing, and holds on
	}
}

// enter takes a request; false: it came too late.
func (e *Endpoint) enter() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.flights.Add(1)
	return true
}

// Bounds of a request, of how many are served at once while others wait, of what is read of an
// error, and of connections.
const (
	mostRequest = 32 << 20
	headTime    = 30 * time.Second
	endTime     = 5 * time.Second
	mostAtOnce  = 16
	mostError   = 1 << 20
	mostOpen    = 128
	idleTime    = time.Minute
)

// Serve serves a listener until ctx ends. Close waits for the requests.
func (e *Endpoint) Serve(ctx context.Context, l net.Listener) error {
	s := &http.Server{
		Handler: e, ReadHeaderTimeout: headTime, IdleTimeout: idleTime, BaseContext: func(net.Listener) context.Context { return ctx }, MaxHeaderBytes: 64 << 10,
		ErrorLog:                     log.New(io.Discard, "", 0), // its lines are caused by the program
		DisableGeneralOptionsHandler: true,
	}
	stopped := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-ctx.Done():
		case <-stopped:
		}
		_ = s.Close() // cuts what is still open
	})
	err := s.Serve(&listener{Listener: l, open: make(chan struct{}, mostOpen)})
	close(stopped)
	wg.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Requests are those that were forwarded.
func (e *Endpoint) Requests() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.requests
}

// Refused is why the newest request was refused by the budget; "" if it was not.
func (e *Endpoint) Refused() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.refused
}

// ServeHTTP implements http.Handler.
func (e *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect || r.URL.IsAbs() && !loopback(r.URL.Host):
		refuse(w, http.StatusForbidden, "no server but the model can be reached from here")
	case !e.admits(r):
		refuse(w, http.StatusUnauthorized, "the token of this call is missing")
	case r.Method == http.MethodGet && r.URL.Path == "/v1/models":
		answer(w, map[string]any{"object": "list", "data": []any{map[string]string{"id": e.o.Model, "object": "model", "type": "model"}}})
	case r.Method == http.MethodPost && r.URL.Path == string(e.o.API):
		e.forward(w, r)
	default:
		refuse(w, http.StatusNotFound, r.Method+" "+coder.Clip(r.URL.Path, 100)+" is not served here")
	}
}

// loopback reports whether a host is this server: a program that takes it for a proxy, too,
// asks for it in absolute form.
func loopback(host string) bool {
	name, _, err := net.SplitHostPort(host)
	ip := net.ParseIP(name)
	return err == nil && ip != nil && ip.IsLoopback()
}

// admits reports whether a request shows the token of the call.
func (e *Endpoint) admits(r *http.Request) bool {
	shown := r.Header.Get("X-Api-Key")
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		shown = bearer
	}
	return subtle.ConstantTimeCompare([]byte(shown), []byte(e.o.Token)) == 1
}

// forward sends a request to the server and its answer to the program.
func (e *Endpoint) forward(w http.ResponseWriter, r *http.Request) {
	if !e.enter() {
		refuse(w, http.StatusServiceUnavailable, "the call has ended")
		return
	}
	defer e.flights.Done()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go func() { // ends with the request
		select {
		case <-e.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	r = r.WithContext(ctx)
	select {
	case e.slots <- struct{}{}:
		defer func() { <-e.slots }()
	case <-r.Context().Done():
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostRequest))
	if err != nil {
		refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("read the request: %v", err))
		return
	}
	body, output, err := e.rewrite(body)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	estimate := message.Usage{Input: tokens(len(body)), Output: output}
	release, why := e.reserve(estimate)
	if why != "" {
		refuse(w, http.StatusBadRequest, why)
		return
	}
	defer release()
	resp, key, sent, err := e.ask(r, body)
	if err != nil {
		if sent { // it may have been answered
			e.used(&counter{cut: true}, estimate)
		}
		refuse(w, http.StatusBadGateway, "the model server could not be reached")
		return
	}
	defer func() { _ = resp.Body.Close() }() // it was read, or the program has gone
	for _, name := range []string{"Content-Type", "Retry-After", "X-Request-Id", "Request-Id"} {
		if v := resp.Header.Get(name); v != "" {
			w.Header().Set(name, v)
		}
	}
	w.WriteHeader(resp.StatusCode)
	if resp.StatusCode >= 300 {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, mostError)) // what came counts
		_, _ = w.Write(without(text, key))                          // the program may have gone
		return
	}
	count := &counter{api: e.o.API, stream: strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")}
	pass(w, resp.Body, count)
	e.used(count, estimate)
}

// without is what a server says of an error, without the key that it was shown.
func without(text []byte, key string) []byte {
	if key == "" {
		return text
	}
	return bytes.ReplaceAll(text, []byte(key), []byte("[the key]"))
}

// ask sends the request with the key of the model, and says whether all of it was sent.
func (e *Endpoint) ask(r *http.Request, body []byte) (resp *http.Response, key string, sent bool, err error) {
	path := string(e.o.API)
	if e.o.API != coder.Messages { // whose base URL has no version
		path = strings.TrimPrefix(path, "/v1")
	}
	var wrote atomic.Bool
	ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{WroteRequest: func(i httptrace.WroteRequestInfo) { wrote.Store(i.Err == nil) }})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(e.o.BaseURL, "/")+path, bytes.NewReader(body))
	if err != nil {
		return nil, "", false, err
	}
	key, err = e.o.Key(r.Context())
	if err != nil {
		return nil, "", false, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", r.Header.Get("Accept"))
	for _, name := range []string{"Anthropic-Version", "Anthropic-Beta"} {
		if v := r.Header.Get(name); v != "" {
			req.Header.Set(name, v)
		}
	}
	switch {
	case key == "":
	case e.o.API == coder.Messages:
		req.Header.Set("X-Api-Key", key)
	default:
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err = e.o.Transport.RoundTrip(req)
	return resp, key, wrote.Load(), err
}

// tokens is a cautious estimate of the tokens of so many bytes.
func tokens(bytes int) int64 { return int64(bytes)/3 + 1 }

// pass sends an answer on as it comes.
func pass(w http.ResponseWriter, from io.Reader, count *counter) {
	flush := http.NewResponseController(w)
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			count.add(buffer[:n])
			if _, gone := w.Write(buffer[:n]); gone != nil {
				count.end()
				count.cut = true
				return
			}
			_ = flush.Flush() // an error is one of the next write, too
		}
		if err != nil {
			count.end()
			count.cut = !errors.Is(err, io.EOF)
			return
		}
	}
}

// refuse answers with an error in the form of all wire formats.
func refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"type": "error", "error": map[string]any{"type": "invalid_request_error", "code": "refused_by_agentctl", "message": text},
	}) // the program may have gone
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the program may have gone
}
