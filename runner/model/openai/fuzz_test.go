package openai

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
	return readOver(t, New, r)
}

// opens is New or NewResponses.
type opens func(exchange.Config, message.Prompt) (*Conversation, error)

func readOver(t testing.TB, open opens, r io.Reader) (*message.Output, error) {
	t.Helper()
	c, err := open(exchange.Config{Name: "m", Model: "x", Transport: roundTrip{r}, Retry: model.Retry{Attempts: 1}}, message.Prompt{})
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
// the arguments over chunks, the chunks over reads. It arrives as it was written.
func FuzzArguments(f *testing.F) {
	for _, args := range []string{"", "{}", `{"command":"ls -la \"ü\" | head\n"}`, `{"cut": `, "not JSON", "\x00\x1f", "☃😀\u2028", `{"a":{"b":[1,2,{"c":null}]}}`, `{"a":1}{"a":2}`} {
		f.Add(args, "read", 1, 1)
		f.Add(args, "", 3, 7)
	}
	f.Fuzz(func(t *testing.T, args, tool string, size, network int) {
		if len(args) > 4096 || len(tool) > 64 {
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
		stream := modeltest.Chat.Stream(a)
		for name, r := range map[string]io.Reader{
			"pieces": &pieces{bytes.NewReader(stream), network}, "bytes": iotest.OneByteReader(bytes.NewReader(stream)), "with the end": iotest.DataErrReader(bytes.NewReader(stream)),
		} {
			got, err := readAnswer(t, r)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("%s: chunks of %d, reads of %d (-want +got):\n%s", name, size, network, d)
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

// FuzzStream reads any bytes as an answer: however they arrive, they come to
// the same, and a stream that was cut is never a whole answer with half a call.
func FuzzStream(f *testing.F) {
	whole := modeltest.Chat.Stream(modeltest.Answer{
		Text: "ok", Reasoning: "hm", Calls: []modeltest.Call{{ID: "call_a", Tool: "bash", Args: `{"command":"ls"}`}, {ID: "call_b", Tool: "read", Args: `{"path":"a"}`}},
		Usage: &modeltest.Usage{Prompt: 3, Completion: 4},
	})
	f.Add(whole, 5)
	f.Add(whole[:len(whole)/2], 1)
	f.Add([]byte("data: {\"usage\":{\"prompt_tokens\":NaN}}\r\n\r\ndata: [DONE]\n\n"), 3)
	f.Add([]byte(": ping\n\nevent: error\ndata: {\"message\":\"no\"}\n\n"), 2)
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"name\":\"a\",\"arguments\":\"{}\"}},{\"index\":7}]},\"finish_reason\":\"stop\"}]}\n\n"), 9)
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
		if err == nil && (want.Finish == "" || len(want.Calls) > 0 && want.Finish == message.FinishStop) {
			t.Fatalf("%q: an answer without an end: %+v", stream, want)
		}
	})
}

// FuzzReplies is FuzzStream over the responses API. What an answer wants back is
// JSON, and the messages it lists make up its text.
func FuzzReplies(f *testing.F) {
	whole := modeltest.Responses.Stream(modeltest.Answer{
		Text: "ok", Reasoning: "hm", Calls: []modeltest.Call{{ID: "call_a", Tool: "bash", Args: `{"command":"ls"}`}, {ID: "call_b", Tool: "read", Args: `{"path":"a"}`}},
		Usage: &modeltest.Usage{Prompt: 3, Completion: 4},
	})
	f.Add(whole, 5)
	f.Add(whole[:len(whole)/2], 1)
	f.Add([]byte("data: "+textDelta("a")+"\n\ndata: "+itemAdded(1, `{"type":"message","phase":"p"}`)+"\n\ndata: "+textDelta("b")+"\n\ndata: "+completed+"\n\n"), 3)
	f.Add([]byte("data: "+itemDone(0, `{"type":"reasoning","id":"r","content":[{"text":"x"}]}`)+"\n\ndata: "+itemDone(0, `{"type":"function_call","arguments":{"a":1}}`)+"\n\ndata: "+completed+"\n\n"), 3)
	f.Add([]byte(`{"object":"response","output":[{"type":"message","content":[{"refusal":"no"}]}]}`), 2)
	f.Add([]byte("event: error\ndata: {\"type\":\"error\",\"message\":\"no\"}\n\n"), 2)
	f.Fuzz(func(t *testing.T, stream []byte, network int) {
		if len(stream) > 1<<16 {
			return
		}
		want, err := readOver(t, NewResponses, bytes.NewReader(stream))
		got, err2 := readOver(t, NewResponses, &pieces{bytes.NewReader(stream), 1 + (network & 0xff)})
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
		m := modeltest.ToMessage(want, "m")
		m.Model = &message.ModelRef{Name: "m", Provider: "openai", Model: "x"}
		c, err := NewResponses(exchange.Config{Name: "m", Model: "x"}, message.Prompt{})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Append(m); err != nil || !json.Valid(append(c.history, c.noTool...)) {
			t.Fatalf("%q: %v, and back as %q", stream, err, c.history)
		}
	})
}
