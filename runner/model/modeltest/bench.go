package modeltest

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
)

// long is 200 KB of text in 2,000 events.
var long = Answer{
	Text:     strings.Repeat("0123456789 some words of text, with a line break at the end of it, 0123456789 and so on and on, 12.\n", 2000),
	TextSize: 100,
}

// Floor is the text of one event, as anybody would read it with encoding/json.
type Floor func(data []byte) string

// decode reads a stream as anybody would with bufio.
func (f Floor) decode(r io.Reader) string {
	var text strings.Builder
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 0, 32<<10), 16<<20)
	for sc.Scan() {
		if data, ok := bytes.CutPrefix(sc.Bytes(), []byte("data: ")); ok {
			text.WriteString(f(data))
		}
	}
	return text.String()
}

// BenchStream reads an answer.
func BenchStream(b *testing.B, wire Wire, open Over, floor Floor) {
	b.Helper()
	body := wire.Stream(long)
	run := func(name string, read func(b *testing.B) string) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if text := read(b); len(text) != len(long.Text) {
					b.Fatalf("%d bytes", len(text))
				}
			}
		})
	}
	p := begin(b, wire, open)
	run("ours", func(b *testing.B) string {
		out, err := p.hear(b, bytes.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		return out.Text
	})
	run("floor", func(*testing.B) string { return floor.decode(bytes.NewReader(body)) })
}

// BenchTurn is a request and its streamed answer over a local connection.
func BenchTurn(b *testing.B, wire Wire, open Open, floor Floor) {
	b.Helper()
	stream := Events(string(wire.Stream(long)))
	server, err := Options{Wire: wire, Unchecked: true, Unrouted: true, Forget: true, Respond: func(Request) Step { return stream }}.Serve()
	if err != nil {
		b.Fatal(err)
	}
	defer server.Close()
	b.Run("ours", func(b *testing.B) {
		c := open(b, Setup{BaseURL: server.URL, Prompt: message.Prompt{System: "s"}})
		for b.Loop() {
			if out, err := c.Next(b.Context(), message.Request{}, func(message.Delta) error { return nil }); err != nil || len(out.Text) != len(long.Text) {
				b.Fatal(err)
			}
		}
	})
	b.Run("floor", func(b *testing.B) {
		client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
		for b.Loop() {
			resp, err := client.Post(server.URL, "application/json", strings.NewReader(`{"model":"x"}`)) //nolint:noctx // the floor
			if err != nil {
				b.Fatal(err)
			}
			if text := floor.decode(resp.Body); len(text) != len(long.Text) {
				b.Fatalf("%d bytes", len(text))
			}
			_ = resp.Body.Close()
		}
	})
}

// BenchAppend adds a turn to a conversation that is already long: the cost must
// not grow with its length.
func BenchAppend(b *testing.B, open Over) {
	b.Helper()
	turn := ToMessage(&message.Output{
		Text: "I look.", Calls: []message.CallRequest{{ID: "call_1", Tool: "bash", Args: `{"command":"ls"}`}},
	}, "m", &message.ToolResult{Text: strings.Repeat("a line of output\n", 60)})
	for name, turns := range map[string]int{"short": 0, "long": 5000} {
		b.Run(name, func(b *testing.B) {
			p := begin(b, nil, open) // nothing is asked
			for n := 0; b.Loop(); n++ {
				if n%1000 == 0 { // or the memory of the machine is measured
					b.StopTimer()
					if err := p.Reset(nil); err != nil {
						b.Fatal(err)
					}
					for range turns {
						p.say(b, turn)
					}
					b.StartTimer()
				}
				p.say(b, turn)
			}
		})
	}
}

// BenchNew opens a conversation.
func BenchNew(b *testing.B, open Over) {
	b.Helper()
	transport := &Played{}
	for b.Loop() {
		open(b, transport)
	}
}
