package gemini

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model/exchange"
	"agentctl.dev/agentctl/runner/model/modeltest"
)

// FuzzChunk reads any bytes as a chunk, and holds the text of it against
// encoding/json.
func FuzzChunk(f *testing.F) {
	for _, s := range []string{
		chunk(`{"text":"aä\n"},{"functionCall":{"id":"a","name":"n","args":{"x":[1,{"y":null}]}},"thoughtSignature":"AA=="}`), chunk(`{"text":"x","thought":true}`),
		finished("STOP"), `{"usageMetadata":{"promptTokenCount":1.0e1,"x":-0.5E-3}}`, `{"error":{"message":"m","details":[{"retryDelay":"3s"}]}}`,
		`{"promptFeedback":{"blockReason":"SAFETY"}}`, `{"a":[true,false,null,{"b":"\ud800"}]}`, ` { } `, `[DONE]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		a := newAnswer(func(message.Delta) {}).(*answer)
		if a.Event("", in) != nil || string(bytes.TrimSpace(in)) == "[DONE]" {
			return
		}
		if !json.Valid(in) && !bytes.Contains(in, []byte("NaN")) && !bytes.Contains(in, []byte("Infinity")) {
			t.Fatalf("accepted invalid JSON %q", in)
		}
		out := a.Output()
		for _, c := range out.Calls {
			if !json.Valid([]byte(c.Args)) || c.Args[0] != '{' {
				t.Fatalf("%q: arguments %q are no object", in, c.Args)
			}
		}
		// What came goes back, whatever it was.
		c := open(t, strict, message.Prompt{})
		out.Model = c.Self()
		if err := c.Append(modelMessage(out)); err != nil {
			t.Fatal(err)
		}
		if got := request(c, c.end); !json.Valid([]byte(got)) {
			t.Fatalf("%q: no JSON: %s", in, got)
		}
		var want struct {
			Candidates []struct {
				Content struct{ Parts []map[string]any }
			}
		}
		if json.Unmarshal(in, &want) != nil || len(want.Candidates) != 1 || len(want.Candidates[0].Content.Parts) != 1 || len(want.Candidates[0].Content.Parts[0]) != 1 || bytes.ContainsAny(in, `\`) {
			return
		}
		// Names that differ in case, or stand twice, are read in another way.
		once := bytes.Equal(in, bytes.ToLower(in)) && bytes.Count(in, []byte("candidates")) == 1 && bytes.Count(in, []byte("content")) == 1 && bytes.Count(in, []byte("parts")) == 1
		if s, ok := want.Candidates[0].Content.Parts[0]["text"].(string); ok && once && bytes.Count(in, []byte(`"text"`)) == 1 && strings.ToValidUTF8(s, "\uFFFD") != out.Text {
			t.Fatalf("%q: text %q, want %q", in, out.Text, s)
		}
	})
}

// FuzzCut takes any metadata: the text is never changed by it.
func FuzzCut(f *testing.F) {
	f.Add("Hello ☃", []byte(`{"signatures":[{"thoughtSignature":"AA==","from":6,"to":9}]}`))
	f.Add("a", []byte(`{"signatures":[{"thoughtSignature":"AA==","from":-1,"to":9}]}`))
	f.Add("a", []byte(`{"signatures":[{"from":0,"to":1},{"thoughtSignature":"A","from":1,"to":0}]}`))
	f.Add("", []byte(`[`))
	f.Fuzz(func(t *testing.T, text string, metadata []byte) {
		var all strings.Builder
		for _, p := range cut(text, metadata) {
			if p.text == "" && p.signature == "" {
				t.Error("a piece that says nothing")
			}
			all.WriteString(p.text)
		}
		if all.String() != text {
			t.Errorf("%q became %q", text, all.String())
		}
	})
}

// FuzzArguments sends what a model writes through the wire and back into a
// request: it arrives as it was written.
func FuzzArguments(f *testing.F) {
	for _, args := range []string{"{}", `{"command":"ls -la \"ü\" | head\n"}`, `{"a":{"b":[1,2,{"c":null}]}}`, `{"a":"}]}"}`} {
		f.Add(args, "read", 7)
	}
	f.Fuzz(func(t *testing.T, args, name string, size int) {
		var object map[string]any
		// Bytes that are no text are no JSON either, whatever encoding/json says.
		if len(args) > 4096 || len(name) > 64 || !utf8.ValidString(args) || json.Unmarshal([]byte(args), &object) != nil || object == nil {
			return
		}
		stream := modeltest.Gemini.Stream(modeltest.Answer{Text: "I call.", TextSize: 1 + size&0x3f, Calls: []modeltest.Call{{ID: "a", Tool: name, Args: args}, {ID: "b", Tool: "read", Args: "{}"}}})
		a := newAnswer(func(message.Delta) {})
		for event := range bytes.SplitSeq(bytes.TrimSpace(stream), []byte("\n\n")) {
			if err := a.Event("", bytes.TrimPrefix(event, []byte("data: "))); err != nil {
				t.Fatalf("%q: %v", event, err)
			}
		}
		out := a.Output()
		if out.Text != "I call." || len(out.Calls) != 2 {
			t.Fatalf("%+v", out)
		}
		var got map[string]any
		if err := json.Unmarshal([]byte(out.Calls[0].Args), &got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(object, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	})
}

// FuzzStream reads any bytes as an answer over a connection: it is one that is
// complete, or an error with a reason.
func FuzzStream(f *testing.F) {
	whole := modeltest.Gemini.Stream(modeltest.Answer{Text: "ok", Reasoning: "hm", Calls: []modeltest.Call{{ID: "a", Tool: "bash", Args: `{"command":"ls"}`}}, Usage: &modeltest.Usage{Prompt: 3, Completion: 4}})
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte("data: {\"usageMetadata\":{\"promptTokenCount\":NaN}}\r\n\r\ndata: [DONE]\n\n"))
	f.Add([]byte(": ping\n\nevent: error\ndata: {\"message\":\"no\"}\n\n"))
	f.Add([]byte("[" + chunk(`{"text":"a"}`) + "," + finished("STOP") + "]"))
	f.Add([]byte("[]"))
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }))
	f.Cleanup(server.Close)
	f.Fuzz(func(t *testing.T, stream []byte) {
		if len(stream) > 1<<16 {
			return
		}
		body = stream
		out, err := next(t, exchange.Config{BaseURL: server.URL})
		if (out == nil) == (err == nil) {
			t.Fatalf("%q: %+v, %v", stream, out, err)
		}
		if err == nil && (out.Finish == "" || len(out.Calls) > 0 && out.Finish == message.FinishStop) {
			t.Fatalf("%q: an answer without an end: %+v", stream, out)
		}
	})
}
