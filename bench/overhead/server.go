package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// maxBody bounds a request: the conversation of a long run is some megabytes.
const maxBody = 64 << 20

// endpoint is a web server on a port of its own.
type endpoint struct {
	http http.Server
	url  string
	done chan struct{}
}

func (e *endpoint) listen(ctx context.Context, h http.HandlerFunc) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	e.url = "http://" + l.Addr().String() + "/v1"
	e.done = make(chan struct{})
	e.http = http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(e.done)
		_ = e.http.Serve(l) // always ErrServerClosed, by close below
	}()
	return nil
}

func (e *endpoint) close() {
	_ = e.http.Close()
	<-e.done
}

// server is an OpenAI-compatible endpoint without latency that leads one talk
// and takes the time of everything.
type server struct {
	endpoint
	talk talk

	mu     sync.Mutex
	turns  []turn
	faults []string
}

// turn is when a request arrived and when its answer began and ended.
type turn struct{ arrived, begun, answered time.Time }

// listen starts a server for one run.
func listen(ctx context.Context, t talk) (*server, error) {
	s := &server{talk: t}
	return s, s.endpoint.listen(ctx, s.answer)
}

func (s *server) answer(w http.ResponseWriter, req *http.Request) {
	arrived := time.Now()
	if !asksModel(req) {
		http.NotFound(w, req)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	if err != nil {
		s.fault(fmt.Sprintf("read request: %v", err))
		return
	}
	s.mu.Lock()
	s.turns = append(s.turns, turn{arrived: arrived})
	n := len(s.turns)
	s.mu.Unlock()
	if p := s.talk.problem(n, body); p != "" {
		s.fault(p)
	}
	pieces := s.talk.answer(n)
	begun := time.Now()
	send(w, pieces)
	s.mu.Lock()
	s.turns[n-1].begun, s.turns[n-1].answered = begun, time.Now()
	s.mu.Unlock()
}

func asksModel(req *http.Request) bool {
	return req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/chat/completions")
}

// send writes every piece through to the network, as a model's server does.
func send(w http.ResponseWriter, pieces [][]byte) {
	w.Header().Set("Content-Type", "text/event-stream")
	f, _ := w.(http.Flusher)
	for _, p := range pieces {
		_, _ = w.Write(p) // a client that has gone is noticed by its own end
		if f != nil {
			f.Flush()
		}
	}
}

func (s *server) fault(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, text)
}

// times are what the server saw of a run that has ended.
type times struct {
	first     time.Time
	overheads []time.Duration // end of an answer → next request
	spans     []time.Duration // begin of an answer → next request
}

// result returns the times, or an error that names everything that went wrong.
func (s *server) result() (times, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var t times
	if len(s.faults) > 0 {
		return t, fmt.Errorf("the conversation went wrong: %s", strings.Join(s.faults, "; "))
	}
	if len(s.turns) != s.talk.turns+1 {
		return t, fmt.Errorf("%d requests, want %d", len(s.turns), s.talk.turns+1)
	}
	t.first = s.turns[0].arrived
	for i := range s.talk.turns {
		t.overheads = append(t.overheads, s.turns[i+1].arrived.Sub(s.turns[i].answered))
		t.spans = append(t.spans, s.turns[i+1].arrived.Sub(s.turns[i].begun))
	}
	return t, nil
}
