package gemini

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
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
		if err := c.Append(modeltest.ToMessage(out, "m")); err != nil {
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
