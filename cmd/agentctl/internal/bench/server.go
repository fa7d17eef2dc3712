package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxBody bounds a request: the conversation of a long run is some megabytes.
const maxBody = 64 << 20

// server is an OpenAI-compatible endpoint without latency. It asks for one
// command per turn, ends after the last, and takes the time of everything.
type server struct {
	turns int
	http  http.Server
	url   string
	done  chan struct{}

	mu       sync.Mutex
	arrivals []time.Time
	answers  []time.Time
	faults   []string
}

// listen starts a server for one run on a port of its own.
func listen(ctx context.Context, turns int) (*server, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{turns: turns, url: "http://" + l.Addr().String() + "/v1", done: make(chan struct{})}
	s.http = http.Server{Handler: http.HandlerFunc(s.answer), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(l) // always ErrServerClosed, by close below
	}()
	return s, nil
}

func (s *server) close() {
	_ = s.http.Close()
	<-s.done
}

// command is what the model asks for in a turn. The last one also counts the
// lines with what the shell has built in, which proves that all of them ran
// wherever the workspace is.
func command(turn, turns int) string {
	c := fmt.Sprintf("echo %d >> turns.txt", turn)
	if turn == turns {
		c += "; n=0; while read -r _; do n=$((n+1)); done < turns.txt; echo lines=$n"
	}
	return c
}

func (s *server) answer(w http.ResponseWriter, req *http.Request) {
	arrived := time.Now()
	if req.Method != http.MethodPost || !strings.HasSuffix(req.URL.Path, "/chat/completions") {
		http.NotFound(w, req)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	if err != nil {
		s.fault("read request: %v", err)
		return
	}
	s.mu.Lock()
	turn := len(s.arrivals) + 1
	s.arrivals = append(s.arrivals, arrived)
	s.mu.Unlock()
	s.check(turn, body)

	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = w.Write(stream(turn, s.turns))
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
	s.mu.Lock()
	s.answers = append(s.answers, time.Now())
	s.mu.Unlock()
}

// check sees to it that the request carries the result of the last command.
func (s *server) check(turn int, body []byte) {
	switch {
	case !bytes.Contains(body, []byte(`"stream":true`)) && !bytes.Contains(body, []byte(`"stream": true`)):
		s.fault("request %d asks for no stream", turn)
	case turn > s.turns+1:
		s.fault("request %d after the final answer", turn)
	case bytes.Count(body, []byte(`"role":"tool"`)) != turn-1:
		// Counted, not looked up: a program may name the calls itself.
		s.fault("request %d does not carry the results of %d calls", turn, turn-1)
	case turn == s.turns+1 && !bytes.Contains(body, []byte("lines="+strconv.Itoa(s.turns))):
		s.fault("not every command ran: no lines=%d in the last result", s.turns)
	}
}

func (s *server) fault(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

func callID(turn int) string { return "call_" + strconv.Itoa(turn) + "_bench" }

// stream is the whole answer of a turn as server-sent events: arguments in
// fragments, a usage chunk, an end mark.
func stream(turn, turns int) []byte {
	var b bytes.Buffer
	chunk := func(choices, usage string) {
		fmt.Fprintf(&b, `data: {"id":"chatcmpl-%d","object":"chat.completion.chunk","created":1700000000,"model":"bench","choices":%s,"usage":%s}`+"\n\n", turn, choices, usage)
	}
	delta := func(d, finish string) {
		chunk(fmt.Sprintf(`[{"index":0,"delta":%s,"finish_reason":%s}]`, d, finish), "null")
	}
	if turn > turns {
		delta(`{"role":"assistant","content":""}`, "null")
		delta(`{"content":"All commands ran."}`, "null")
		delta(`{}`, `"stop"`)
	} else {
		text := strconv.Quote(fmt.Sprintf(`{"command":%q,"description":"Append a line"}`, command(turn, turns)))
		text = text[1 : len(text)-1]
		// Cut in the middle, but never inside an escape.
		cut := len(text) / 2
		for text[cut-1] == '\\' {
			cut--
		}
		delta(fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":%q,"type":"function","function":{"name":"bash","arguments":""}}]}`, callID(turn)), "null")
		delta(fmt.Sprintf(`{"tool_calls":[{"index":0,"function":{"arguments":"%s"}}]}`, text[:cut]), "null")
		delta(fmt.Sprintf(`{"tool_calls":[{"index":0,"function":{"arguments":"%s"}}]}`, text[cut:]), "null")
		delta(`{}`, `"tool_calls"`)
	}
	chunk("[]", fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":20,"total_tokens":%d}`, 100*turn, 100*turn+20))
	b.WriteString("data: [DONE]\n\n")
	return b.Bytes()
}

// times are what the server saw of a run that has ended.
type times struct {
	first     time.Time
	overheads []time.Duration // end of an answer → next request
}

// result returns the times, or an error that names everything that went wrong.
func (s *server) result() (times, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var t times
	if len(s.faults) > 0 {
		return t, fmt.Errorf("the conversation went wrong: %s", strings.Join(s.faults, "; "))
	}
	if len(s.arrivals) != s.turns+1 {
		return t, fmt.Errorf("%d requests, want %d", len(s.arrivals), s.turns+1)
	}
	t.first = s.arrivals[0]
	for i := range s.turns {
		t.overheads = append(t.overheads, s.arrivals[i+1].Sub(s.answers[i]))
	}
	return t, nil
}
