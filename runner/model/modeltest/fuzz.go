package modeltest

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
)

// pieces hands out n bytes at a time, as a network does.
type pieces struct {
	r io.Reader
	n int
}

func (p *pieces) Read(b []byte) (int, error) { return p.r.Read(b[:min(len(b), p.n)]) }

// FuzzArguments splits what a model writes at every place and by every layer:
// the arguments over events, the events over reads. It arrives as it was written.
func FuzzArguments(f *testing.F, wire Wire, open Over) {
	f.Helper()
	for _, args := range []string{"", "{}", `{"command":"ls -la \"ü\" | head\n"}`, `{"cut": `, "not JSON", "\x00\x1f", "☃😀\u2028", `{"a":{"b":[1,2,{"c":null}]}}`, `{"a":1}{"a":2}`, `{"a":"}]}"}`} {
		f.Add(args, "read", 1, 1)
		f.Add(args, "", 3, 7)
	}
	f.Fuzz(func(t *testing.T, args, tool string, size, network int) {
		whole := wire.traits().whole
		// Bytes that are not text are not JSON, although encoding/json accepts them.
		if len(args) > 4096 || len(tool) > 64 || whole && !(utf8.ValidString(args) && isObject([]byte(args))) {
			return
		}
		size, network = 1+(size&0x3f), 1+(network&0x1ff)
		if tool == "" {
			tool = "bash"
		}
		other := Call{ID: "call_b", Tool: "read", Args: `{"path":"a"}`}
		stream := wire.Stream(Answer{Text: "I call.", TextSize: size, ArgsSize: size, Calls: []Call{{ID: "call_a", Tool: tool, Args: args}, other}})
		if args == "" {
			args = "{}" // as some write it
		}
		want := &message.Output{
			Text: "I call.", Finish: message.FinishToolCalls, Uncounted: true,
			// Invalid text was replaced when the server wrote its JSON.
			Calls: []message.CallRequest{{ID: "call_a", Tool: throughJSON(t, tool), Args: throughJSON(t, args)}, {ID: other.ID, Tool: other.Tool, Args: other.Args}},
		}
		for name, r := range map[string]io.Reader{
			"pieces": &pieces{bytes.NewReader(stream), network}, "bytes": iotest.OneByteReader(bytes.NewReader(stream)), "with the end": iotest.DataErrReader(bytes.NewReader(stream)),
		} {
			got, err := begin(t, wire, open).hear(t, r)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			bare(got)
			if got.Calls[0].Args == "" {
				got.Calls[0].Args = "{}"
			}
			if whole {
				want, got = respelled(want), respelled(got)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("%s: events of %d, reads of %d (-want +got):\n%s", name, size, network, d)
			}
		}
	})
}

// throughJSON is a text after a way through JSON. A server that cuts arguments never
// cuts inside what the encoder takes for a character.
func throughJSON(t testing.TB, s string) (out string) {
	t.Helper()
	if err := json.Unmarshal(encode(s), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// FuzzStream reads any bytes as an answer: however they arrive, they come to the
// same, a whole answer has an end, and what comes of it can be sent back.
func FuzzStream(f *testing.F, wire Wire, open Over, seeds ...string) {
	f.Helper()
	stream := wire.Stream(Answer{
		Text: "ok", Reasoning: "hm", Calls: []Call{{ID: "call_a", Tool: "bash", Args: `{"command":"ls"}`}, {ID: "call_b", Tool: "read", Args: `{"path":"a"}`}},
		Usage: &Usage{Prompt: 3, Completion: 4},
	})
	f.Add(stream, 5)
	f.Add(stream[:len(stream)/2], 1)
	f.Add(wire.Stream(Answer{Text: "ok", Hidden: true}), 7)
	f.Add([]byte(": ping\n\nevent: error\ndata: {\"message\":\"no\"}\n\n"), 2)
	for _, s := range seeds {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, stream []byte, network int) {
		if len(stream) > 1<<16 {
			return
		}
		p := begin(t, wire, open)
		want, err := p.hear(t, bytes.NewReader(stream))
		got, err2 := p.hear(t, &pieces{bytes.NewReader(stream), 1 + (network & 0xff)})
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
		p.say(t, ToMessage(want, "m2"))
		if body := p.request(t); !json.Valid([]byte(body)) {
			t.Fatalf("%q: it cannot be sent back: %s", stream, body)
		}
	})
}
