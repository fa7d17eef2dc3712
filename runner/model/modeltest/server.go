package modeltest

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// maxRequest bounds what the server reads of one request.
const maxRequest = 256 << 20

// Request is a request the server was sent.
type Request struct {
	// N counts the requests from 1.
	N int
	// Method, Path, Query, Header and Body as they came.
	Method, Path, Query string
	Header              http.Header
	Body                []byte
	// Remote is the client's address: one for each connection.
	Remote string
	// Time at which the whole request was there.
	Time time.Time
}

// Options change how a server behaves.
type Options struct {
	// Wire that the server speaks. Default: Chat.
	Wire Wire
	// Respond answers instead of the steps.
	Respond func(Request) Step
	// Unchecked leaves out the check that the request is one the real API would
	// take, which reads the whole history: for measurements.
	Unchecked bool
	// Unrouted answers at every address, as a gateway may.
	Unrouted bool
	// Forget keeps no requests: for long measurements.
	Forget bool
	// Address to listen on. Default: a free port of the loopback.
	Address string
}

// Server speaks a wire format on a local port. Each request uses up one step; a
// request without a step is answered 400, which no client repeats.
type Server struct {
	// URL is the base URL as a provider of the wire format takes it.
	URL string

	opts   Options
	http   *http.Server
	served chan struct{}

	mu       sync.Mutex
	steps    []Step
	requests []Request
	count    int
}

// NewServer starts a server of the chat completions API that gives the steps in
// order. Close must be called.
func NewServer(steps ...Step) (*Server, error) { return Options{}.Serve(steps...) }

// Serve starts a server with options.
func (o Options) Serve(steps ...Step) (*Server, error) {
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	if o.Wire == nil {
		o.Wire = Chat
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("start the model server: %w", err)
	}
	s := &Server{URL: "http://" + l.Addr().String() + o.Wire.Base(), opts: o, steps: steps, served: make(chan struct{})}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(s.served)
		_ = s.http.Serve(l) // ends with ErrServerClosed
	}()
	return s, nil
}

// Close ends every connection, stalled ones too, and waits.
func (s *Server) Close() {
	_ = s.http.Close() // nothing is left to be done about a listener
	<-s.served
}

// Add adds steps behind those that are left.
func (s *Server) Add(steps ...Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, steps...)
}

// restart puts steps in place of those that are left, and forgets the requests.
func (s *Server) restart(steps ...Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps, s.requests = steps, nil
}

// Requests returns what was sent so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Left returns how many steps were not used.
func (s *Server) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.steps)
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		return // the client left, or sent more than anybody may
	}
	req := Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Header: r.Header, Body: body, Remote: r.RemoteAddr, Time: time.Now()}
	step := s.take(&req)
	if status, err := s.refuses(req); err != nil {
		step = Refuse(status, nil, s.opts.Wire.Fault(status, err.Error(), ""))
	}
	step.write(w, r, s.opts.Wire)
}

// refuses returns why the API would not accept a request.
func (s *Server) refuses(req Request) (int, error) {
	if !s.opts.Unrouted {
		if status, err := s.opts.Wire.Route(req); err != nil {
			return status, err
		}
	}
	if s.opts.Unchecked {
		return 0, nil
	}
	return http.StatusBadRequest, s.opts.Wire.Check(req.Body)
}

func (s *Server) take(req *Request) Step {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	req.N = s.count
	if !s.opts.Forget {
		s.requests = append(s.requests, *req)
	}
	if s.opts.Respond != nil {
		return s.opts.Respond(*req)
	}
	if len(s.steps) == 0 {
		return Refuse(http.StatusBadRequest, nil, s.opts.Wire.Fault(http.StatusBadRequest, "the server has no step left", ""))
	}
	step := s.steps[0]
	s.steps = s.steps[1:]
	return step
}

// Step is how the server answers one request. The zero value is an empty 200.
type Step struct {
	Status int
	Header http.Header
	Body   []byte

	answer *Answer // instead of a body
	end    end
	at     int
	pieces int
	// again is sent over and over while the step is stalled.
	again string
}

// keepAlive is the time between two keep-alives of a step that is stalled.
const keepAlive = 20 * time.Millisecond

type end int

const (
	whole end = iota
	aborted
	ended
	stalled
	dripping
)

// CutAt breaks the connection behind n bytes of the body.
func (s Step) CutAt(n int) Step { s.end, s.at = aborted, n; return s }

// EndAt ends the body behind n bytes as if that were all.
func (s Step) EndAt(n int) Step { s.end, s.at = ended, n; return s }

// StallAt sends n bytes of the body and then nothing until the client leaves.
// With 0 not even the header is sent.
func (s Step) StallAt(n int) Step { s.end, s.at = stalled, n; return s }

// StallWith sends n bytes of the body, and then what keeps the connection open,
// over and over, until the client leaves.
func (s Step) StallWith(n int, again string) Step {
	s.end, s.at, s.again = stalled, n, again
	return s
}

// DripHeader is a response whose header never ends: a line of it comes now and
// then, until the client leaves.
func DripHeader() Step { return Step{end: dripping} }

// Pieces flushes after every n bytes, so that the client reads them apart.
func (s Step) Pieces(n int) Step { s.pieces = n; return s }

func (s Step) write(w http.ResponseWriter, r *http.Request, wire Wire) {
	if s.end == dripping {
		drip(w)
		return
	}
	body := s.Body
	if s.answer != nil {
		body = wire.Stream(*s.answer)
	}
	if s.end != whole {
		body = body[:min(s.at, len(body))]
	}
	if s.end == stalled && s.at == 0 && s.again == "" {
		<-r.Context().Done()
		return
	}
	maps.Copy(w.Header(), s.Header)
	if s.Status != 0 {
		w.WriteHeader(s.Status)
	}
	flush := http.NewResponseController(w).Flush
	n := len(body)
	if s.pieces > 0 {
		n = s.pieces
	}
	for len(body) > 0 {
		k := min(n, len(body))
		if _, err := w.Write(body[:k]); err != nil {
			return
		}
		body = body[k:]
		if len(body) > 0 || s.end != whole {
			_ = flush() // a client that left is noticed by the next write
		}
	}
	switch s.end {
	case aborted:
		_ = flush() // as above
		panic(http.ErrAbortHandler)
	case stalled:
		_ = flush() // as above
		s.stay(w, r)
	case whole, ended, dripping:
	}
}

// stay keeps the connection open until the client leaves.
func (s Step) stay(w http.ResponseWriter, r *http.Request) {
	if s.again == "" {
		<-r.Context().Done()
		return
	}
	every := time.NewTicker(keepAlive)
	defer every.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-every.C:
			if _, err := io.WriteString(w, s.again); err != nil || http.NewResponseController(w).Flush() != nil {
				return
			}
		}
	}
}

// drip writes a header without an end to the bare connection, which net/http
// would not do.
func drip(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // the client has left
	}
	defer conn.Close()
	every := time.NewTicker(keepAlive)
	defer every.Stop()
	line := "HTTP/1.1 200 OK\r\n"
	for {
		if _, err := io.WriteString(conn, line); err != nil {
			return // the client has left
		}
		line = "X-Wait: a\r\n"
		<-every.C
	}
}

// Refuse is an answer with a status and a body.
func Refuse(status int, header http.Header, body string) Step {
	h := http.Header{"Content-Type": {"application/json"}}
	for k, v := range header {
		h[http.CanonicalHeaderKey(k)] = v
	}
	return Step{Status: status, Header: h, Body: []byte(body)}
}

// Page is a 200 with HTML, as a login page or a wrong address gives.
func Page() Step {
	return Step{Header: http.Header{"Content-Type": {"text/html"}}, Body: []byte("<!DOCTYPE html><html><title>Sign in</title></html>")}
}

// Events is a 200 with a body of events as given.
func Events(body string) Step { return Step{Header: eventStream(), Body: []byte(body)} }

func eventStream() http.Header { return http.Header{"Content-Type": {"text/event-stream"}} }

// LongLine is a stream with an event of more than n bytes.
func LongLine(n int) Step { return Answer{Text: strings.Repeat("x", n), TextSize: n}.Step() }
