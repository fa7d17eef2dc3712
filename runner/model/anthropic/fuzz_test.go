package anthropic

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/exchange"
	"agentctl.dev/agentctl/runner/model/modeltest"
)

// pieces hands out n bytes at a time, as a network does.
type pieces struct {
	r io.Reader
	n int
}

func (p *pieces) Read(b []byte) (int, error) { return p.r.Read(b[:min(len(b), p.n)]) }

// roundTrip answers every request with a body.
type roundTrip struct{ body io.Reader }

func (r roundTrip) RoundTrip(req *http.Request) (*http.Response, error) {
	h := http.Header{"Content-Type": {"text/event-stream"}}
	return &http.Response{StatusCode: http.StatusOK, Header: h, Body: io.NopCloser(r.body), Request: req}, nil
}

func readAnswer(t testing.TB, r io.Reader) (*message.Output, error) {
	t.Helper()
	c, err := New(exchange.Config{Name: "m", Model: "x", Transport: roundTrip{r}, Retry: model.Retry{Attempts: 1}}, message.Prompt{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.Next(t.Context(), message.Request{}, func(message.Delta) error { return nil })
	if err == nil {
		out.Model = message.ModelRef{}
	}
	return out, err
}

// FuzzArguments splits what a model writes at every place and by every layer:
// the arguments over events, the events over reads. It arrives as it was written.
func FuzzArguments(f *testing.F) {
	for _, args := range []string{"{}", `{"command":"ls -la \"ü\" | head\n"}`, `{"cut": `, "not JSON", "\x00\x1f", "☃😀\u2028", `{"a":{"b":[1,2,{"c":null}]}}`, `{"a":1}{"a":2}`} {
		f.Add(args, "read", 1, 1)
		f.Add(args, "", 3, 7)
	}
	f.Fuzz(func(t *testing.T, args, tool string, size, network int) {
		if args == "" || len(args) > 4096 || len(tool) > 64 {
			return
		}
		size, network = 1+(size&0x3f), 1+(network&0x1ff)
		if tool == "" {
			tool = "bash"
		}
		a := modeltest.Answer{
			Text: "I call.", TextSize: size, ArgsSize: size,
			Calls: []modeltest.Call{{ID: "call_a", Tool: tool, Args: args}, {ID: "call_b", Tool: "read", Args: `{"path":"a"}`}},
		}
		want := &message.Output{
			Text: "I call.", Finish: message.FinishToolCalls, Uncounted: true,
			// What is no text was replaced when the server wrote its JSON.
			Calls: []message.CallRequest{{ID: "call_a", Tool: throughJSON(t, tool), Args: throughJSON(t, args)}, {ID: "call_b", Tool: "read", Args: `{"path":"a"}`}},
		}
		stream := modeltest.Anthropic.Stream(a)
		for name, r := range map[string]io.Reader{
			"pieces": &pieces{bytes.NewReader(stream), network}, "bytes": iotest.OneByteReader(bytes.NewReader(stream)), "with the end": iotest.DataErrReader(bytes.NewReader(stream)),
		} {
			got, err := readAnswer(t, r)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("%s: events of %d, reads of %d (-want +got):\n%s", name, size, network, d)
			}
		}
	})
}

// throughJSON is a text after a way through JSON. A server that cuts arguments never
// cuts inside what the encoder takes for a character.
func throughJSON(t *testing.T, s string) string {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var out string
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// FuzzStream reads any bytes as an answer: however they arrive, they come to the
// same, a whole answer has an end, and what comes of it can be sent back.
func FuzzStream(f *testing.F) {
	whole := modeltest.Anthropic.Stream(modeltest.Answer{
		Text: "ok", Reasoning: "hm", Calls: []modeltest.Call{{ID: "call_a", Tool: "bash", Args: `{"command":"ls"}`}, {ID: "call_b", Tool: "read", Args: `{"path":"a"}`}},
		Usage: &modeltest.Usage{Prompt: 3, Completion: 4},
	})
	f.Add(whole, 5)
	f.Add(whole[:len(whole)/2], 1)
	f.Add(modeltest.Anthropic.Stream(modeltest.Answer{Text: "ok", Hidden: true}), 7)
	f.Add([]byte("data: {\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"a\"},\"type\":\"content_block_start\"}\n\ndata: {\"type\":\"message_stop\"}\n\n"), 3)
	f.Add([]byte("data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":NaN}}\r\n\r\ndata: [DONE]\n\n"), 3)
	f.Add([]byte(": ping\n\nevent: error\ndata: {\"message\":\"no\"}\n\n"), 2)
	f.Add([]byte(`{"type":"message","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"ok"},{"type":"tool_use","id":"a","name":"b","input":{"a":1}}],"stop_reason":null}`), 9)
	f.Fuzz(func(t *testing.T, stream []byte, network int) {
		if len(stream) > 1<<16 {
			return
		}
		want, err := readAnswer(t, bytes.NewReader(stream))
		got, err2 := readAnswer(t, &pieces{bytes.NewReader(stream), 1 + (network & 0xff)})
		if (err == nil) != (err2 == nil) {
			t.Fatalf("%q: %v at once, %v in pieces", stream, err, err2)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%q: at once and in pieces differ (-once +pieces):\n%s", stream, d)
		}
		if err != nil {
			return
		}
		if want.Finish == "" || len(want.Calls) > 0 && want.Finish == message.FinishStop {
			t.Fatalf("%q: an answer without an end: %+v", stream, want)
		}
		c := conversation(t)
		want.Model = c.Self()
		if err := c.Append(modeltest.ToMessage(want, "m2", nil)); err != nil {
			t.Fatal(err)
		}
		if body := request(c); !json.Valid(body) {
			t.Fatalf("%q: it cannot be sent back: %s", stream, body)
		}
	})
}
