package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model/exchange"
	"agentctl.dev/agentctl/runner/model/modeltest"
)

// longStream is 200 KB of text in 2,000 chunks.
func longStream() []byte {
	return modeltest.Chat.Stream(modeltest.Answer{Text: strings.Repeat("0123456789 some words of text, with a line break at the end of it, 0123456789 and so on and on, 12.\n", 2000), TextSize: 100})
}

// BenchmarkStream decodes an answer; the floor is what anybody would write with
// bufio and encoding/json.
func BenchmarkStream(b *testing.B) {
	body := longStream()
	b.Run("ours", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			out, err := readAnswer(b, bytes.NewReader(body))
			if err != nil {
				b.Fatal(err)
			}
			if len(out.Text) != 200_000 {
				b.Fatalf("%d bytes", len(out.Text))
			}
		}
	})
	b.Run("floor", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			if text := floorDecode(bytes.NewReader(body)); len(text) != 200_000 {
				b.Fatalf("%d bytes", len(text))
			}
		}
	})
}

// BenchmarkReplies is BenchmarkStream over the responses API.
func BenchmarkReplies(b *testing.B) {
	body := modeltest.Responses.Stream(modeltest.Answer{Text: strings.Repeat("0123456789 some words of text, with a line break at the end of it, 0123456789 and so on and on, 12.\n", 2000), TextSize: 100})
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		out, err := readOver(b, NewResponses, bytes.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		if len(out.Text) != 200_000 {
			b.Fatalf("%d bytes", len(out.Text))
		}
	}
}

func floorDecode(r io.Reader) string {
	var text strings.Builder
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 0, 32<<10), 16<<20)
	for sc.Scan() {
		d, ok := bytes.CutPrefix(sc.Bytes(), []byte("data: "))
		if !ok || string(d) == "[DONE]" {
			continue
		}
		var c struct {
			Choices []struct {
				Delta struct{ Content string }
			}
		}
		if json.Unmarshal(d, &c) != nil || len(c.Choices) == 0 {
			continue
		}
		text.WriteString(c.Choices[0].Delta.Content)
	}
	return text.String()
}

// BenchmarkTurn is a request and its streamed answer over a local connection.
func BenchmarkTurn(b *testing.B) {
	stream := modeltest.Events(string(longStream()))
	server, err := modeltest.Options{Unchecked: true, Forget: true, Respond: func(modeltest.Request) modeltest.Step { return stream }}.Serve()
	if err != nil {
		b.Fatal(err)
	}
	defer server.Close()
	b.Run("ours", func(b *testing.B) {
		c, err := New(exchange.Config{Name: "m", Model: "x", BaseURL: server.URL}, message.Prompt{System: "s"})
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		for b.Loop() {
			if out, err := c.Next(b.Context(), message.Request{}, func(message.Delta) error { return nil }); err != nil || len(out.Text) != 200_000 {
				b.Fatal(err)
			}
		}
	})
	b.Run("floor", func(b *testing.B) {
		client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
		for b.Loop() {
			resp, err := client.Post(server.URL+"/chat/completions", "application/json", strings.NewReader(`{"model":"x"}`)) //nolint:noctx // the floor
			if err != nil {
				b.Fatal(err)
			}
			if text := floorDecode(resp.Body); len(text) != 200_000 {
				b.Fatalf("%d bytes", len(text))
			}
			_ = resp.Body.Close()
		}
	})
}

// BenchmarkAppend adds a turn to a conversation that is already long: the cost
// must not grow with its length.
func BenchmarkAppend(b *testing.B) {
	m := &message.Message{Role: message.RoleAssistant, Parts: []message.Part{
		say("I look."), tool("call_1", "bash", `{"command":"ls"}`, &message.ToolResult{Text: strings.Repeat("a line of output\n", 60)}),
	}}
	for name, turns := range map[string]int{"short": 0, "long": 5000} {
		b.Run("chat/"+name, func(b *testing.B) { benchAppend(b, New, m, turns) })
		b.Run("responses/"+name, func(b *testing.B) { benchAppend(b, NewResponses, m, turns) })
	}
}

func benchAppend(b *testing.B, open opens, m *message.Message, turns int) {
	b.Helper()
	c, err := open(exchange.Config{Name: "m", Model: "x"}, message.Prompt{System: "s"})
	if err != nil {
		b.Fatal(err)
	}
	for range turns {
		_ = c.Append(m)
	}
	n := 0
	start := c.history
	for b.Loop() {
		if err := c.Append(m); err != nil {
			b.Fatal(err)
		}
		if n++; n%1000 == 0 {
			c.history = start // or the memory of the machine is measured
		}
	}
}

func BenchmarkNew(b *testing.B) {
	prompt := message.Prompt{System: strings.Repeat("instructions ", 200)}
	for range 8 {
		prompt.Tools = append(prompt.Tools, message.ToolSpec{Name: "tool", Description: "does it", Parameters: []byte(`{"type":"object"}`)})
	}
	for name, open := range map[string]opens{"chat": New, "responses": NewResponses} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := open(exchange.Config{Name: "m", Model: "x", BaseURL: "http://127.0.0.1:1/v1", Parameters: []byte(`{"temperature":0}`)}, prompt); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
