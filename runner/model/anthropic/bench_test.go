package anthropic

import (
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

// longStream is 200 KB of text in 2,000 pieces.
func longStream() []byte {
	return modeltest.Anthropic.Stream(modeltest.Answer{Text: strings.Repeat("0123456789 some words of text, with a line break at the end of it, 0123456789 and so on and on, 12.\n", 2000), TextSize: 100})
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

func floorDecode(r io.Reader) string {
	var text strings.Builder
	br := json.NewDecoder(&dataOnly{r: r})
	for {
		var e struct {
			Delta struct{ Text string }
		}
		if br.Decode(&e) != nil {
			return text.String()
		}
		text.WriteString(e.Delta.Text)
	}
}

// dataOnly leaves the data of a stream of events.
type dataOnly struct {
	r    io.Reader
	rest []byte
	read bool
}

func (d *dataOnly) Read(p []byte) (int, error) {
	if !d.read {
		d.read = true
		all, err := io.ReadAll(d.r)
		if err != nil {
			return 0, err
		}
		for line := range bytes.Lines(all) {
			if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
				d.rest = append(d.rest, data...)
			}
		}
	}
	if len(d.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}

// BenchmarkTurn is a request and its streamed answer over a local connection.
func BenchmarkTurn(b *testing.B) {
	stream := modeltest.Events(string(longStream()))
	server, err := modeltest.Options{Wire: modeltest.Anthropic, Unchecked: true, Forget: true, Respond: func(modeltest.Request) modeltest.Step { return stream }}.Serve()
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
			if out, err := c.Next(b.Context(), message.Request{}, quiet); err != nil || len(out.Text) != 200_000 {
				b.Fatal(err)
			}
		}
	})
	b.Run("floor", func(b *testing.B) {
		client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
		for b.Loop() {
			resp, err := client.Post(server.URL+"/v1/messages", "application/json", strings.NewReader(`{"model":"x"}`)) //nolint:noctx // the floor
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
		b.Run(name, func(b *testing.B) {
			c, err := New(exchange.Config{Name: "m", Model: "x"}, message.Prompt{System: "s"})
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
		})
	}
}

func BenchmarkNew(b *testing.B) {
	prompt := message.Prompt{System: strings.Repeat("instructions ", 200)}
	for range 8 {
		prompt.Tools = append(prompt.Tools, message.ToolSpec{Name: "tool", Description: "does it", Parameters: []byte(`{"type":"object"}`)})
	}
	for b.Loop() {
		if _, err := New(exchange.Config{Name: "m", Model: "x", BaseURL: "http://127.0.0.1:1", Parameters: []byte(`{"temperature":0}`)}, prompt); err != nil {
			b.Fatal(err)
		}
	}
}
