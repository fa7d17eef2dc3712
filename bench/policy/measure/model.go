package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// model is a server in place of a model: it answers each conversation with one call of a
// shell, over the Chat Completions and the Responses API.
type model struct {
	url    string
	server *http.Server
	done   chan error

	mu sync.Mutex
	// command is what the next call runs, output what came back of it.
	command, output string
}

func startModel() (*model, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the scripted model: %w", err)
	}
	m := &model{url: "http://" + l.Addr().String() + "/v1", done: make(chan error, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", m.chat)
	mux.HandleFunc("POST /v1/responses", m.responses)
	m.server = &http.Server{Handler: mux, ReadHeaderTimeout: patience}
	go func() { m.done <- m.server.Serve(l) }()
	return m, nil
}

func (m *model) close() error {
	err := m.server.Close()
	if served := <-m.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// ask sets the command of the next conversation.
func (m *model) ask(command string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.command, m.output = command, ""
}

func (m *model) asked() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.command
}

func (m *model) answered(output string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.output = output
}

// result is what the program reported of the call.
func (m *model) result() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.output
}

// maxRequest bounds a request of a program.
const maxRequest = 16 << 20

func (m *model) chat(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Tools    []any
		Messages []struct{ Role string }
	}
	if !readRequest(w, r, &request) || len(request.Messages) == 0 {
		return
	}
	delta, reason := map[string]any{"role": "assistant", "content": "done"}, "stop"
	// A request without tools is for the title of the conversation.
	if last := request.Messages[len(request.Messages)-1]; last.Role == "user" && len(request.Tools) > 0 {
		args := encoded(map[string]string{"command": m.asked(), "description": "a command"})
		delta = map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{"index": 0, "id": "call", "type": "function", "function": map[string]string{"name": "bash", "arguments": args}}}}
		reason = "tool_calls"
	}
	chunk := func(delta map[string]any, reason any) string {
		return "data: " + encoded(map[string]any{
			"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m",
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": reason}},
		}) + "\n\n"
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, chunk(delta, nil), chunk(map[string]any{}, reason), "data: [DONE]\n\n")
}

func (m *model) responses(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Input []struct {
			Type   string
			Output json.RawMessage
		}
	}
	if !readRequest(w, r, &request) || len(request.Input) == 0 {
		return
	}
	item := map[string]any{"type": "message", "role": "assistant", "id": "m", "content": []any{map[string]string{"type": "output_text", "text": "done"}}}
	if last := request.Input[len(request.Input)-1]; last.Type == "function_call_output" {
		m.answered(string(last.Output))
	} else {
		item = map[string]any{"type": "function_call", "id": "f", "call_id": "call", "name": "exec_command", "arguments": encoded(map[string]string{"cmd": m.asked()})}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range []map[string]any{
		{"type": "response.created", "response": map[string]any{"id": "r"}},
		{"type": "response.output_item.done", "item": item},
		{"type": "response.completed", "response": map[string]any{"id": "r", "usage": map[string]any{"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}}},
	} {
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event["type"], encoded(event))
	}
}

func readRequest(w http.ResponseWriter, r *http.Request, into any) bool {
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(into)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
	return err == nil
}

func encoded(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err.Error() // of texts and maps of them there is none
	}
	return strings.TrimSpace(b.String())
}

// request sends JSON to a server of a program.
func request(ctx context.Context, method, url string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var content io.Reader = http.NoBody
	if body != nil {
		content = strings.NewReader(encoded(body))
	}
	r, err := http.NewRequestWithContext(ctx, method, url, content)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	client := http.Client{Timeout: patience + time.Second}
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxRequest))
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s: %.500s", method, url, resp.Status, text)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}
