package message

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// everyPart holds one full part of every type.
func everyPart() []Part {
	code, cost := 3, Cost(104_000_000)
	call := &ToolPart{
		CallID: "c", Tool: "bash", Raw: `{"command":"l\u0073"}`, State: StateCompleted, Input: json.RawMessage(`{"command":"ls"}`),
		Decision: &Decision{
			Action: Redact, Rule: "p/r", Message: "m", Risk: "R2", Args: json.RawMessage(`{}`), Warnings: []string{"w"},
			Facts: json.RawMessage(`[1]`), Hash: "sha256:0",
		},
		Approval: Approved, Progress: "…", Attempt: 2, Start: 1, End: 2, Compacted: 3,
		Result: &ToolResult{
			Text: "a\x1b[0m\u2028<b>&", Output: "o", ExitCode: &code, Code: CodeTool, Blob: "b", Title: "t",
			Metadata: json.RawMessage(`{"n":12345678901234567890}`), DurationMicros: 9, Writes: true,
		},
	}
	parts := []Part{
		{Type: PartText, Text: "wörds \"and\" \\ / \b\f\n\r\t \U0001f642"},
		{Type: PartReasoning, Text: "hm"},
		{Type: PartTool, Tool: call},
		{Type: PartStepStart, Step: &Step{Step: 1, Snapshot: "s"}},
		{Type: PartStepFinish, Step: &Step{Step: 1, Reason: FinishStop, Tokens: &Usage{1, 2, 3, 4, 5}, Cost: &cost}},
		{Type: PartFile, File: &File{Mime: "a/b", Filename: "f", URL: "data:,x", Source: &FileSource{"symbol", "p", "n", 1, 2}}},
		{Type: PartSnapshot, Snapshot: &Snapshot{Hash: "h"}},
		{Type: PartPatch, Patch: &Patch{Hash: "h", Files: []string{"a", "b"}}},
		{Type: PartSubtask, Subtask: &Subtask{"a", "p", "d", &ModelRef{"n", "p", "m", "v"}, "c"}},
		{Type: PartAgent, Agent: &AgentRef{"a", "@a"}},
		{Type: PartRetry, Retry: &Retry{1, 5, "429", "slow down", 1000, "other"}},
		{Type: PartCompaction, Compaction: &Compaction{true, true, "m1", Todos{{"c", TodoPending, "low"}}}},
	}
	for i := range parts {
		p := &parts[i]
		p.ID, p.Start, p.End = fmt.Sprint("p", i), 1772600769000, -1
		p.Synthetic, p.Ignored, p.Metadata = true, true, json.RawMessage(`{"signature":"x"}`)
	}
	return parts
}

func TestEveryPartSurvivesARoundTripAndStandsInTheDocs(t *testing.T) {
	docs, err := os.ReadFile("../../docs/output.md")
	if err != nil {
		t.Fatal(err)
	}
	types := map[PartType]bool{}
	for _, p := range everyPart() {
		types[p.Type] = true
		if !strings.Contains(string(docs), "`"+string(p.Type)+"`") {
			t.Errorf("docs/output.md does not tell of the part %s", p.Type)
		}
		b, err := p.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var direct, through Part
		if err := direct.UnmarshalJSON(b); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(p, direct); diff != "" {
			t.Errorf("%s (-want +got):\n%s", p.Type, diff)
		}
		spaced := bytes.Buffer{}
		if err := json.Indent(&spaced, b, " ", "\t"); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(spaced.Bytes(), &through); err != nil {
			t.Fatal(err)
		}
		if again, err := json.Marshal(through); err != nil || !jsonEqual(t, again, b) {
			t.Errorf("%s through encoding/json: %s, %v, want %s", p.Type, again, err, b)
		}
	}
	if len(types) != 12 {
		t.Errorf("%d types of parts are tested, want all 12", len(types))
	}
}

// A field without a member of its own would be lost without a word.
func TestEveryPayloadOfAPartIsPlain(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(s reflect.Type) {
		if seen[s] {
			return
		}
		seen[s] = true
		if s.NumField() > 64 {
			t.Errorf("%s has more fields than decode can tell apart", s)
		}
		for f := range s.Fields() {
			if f.Anonymous || !f.IsExported() || f.Tag.Get("json") == "" {
				t.Errorf("%s.%s has no member of its own", s, f.Name)
			}
			if f.Type == reflect.TypeFor[Cost]() {
				t.Errorf("%s.%s would be read as a number", s, f.Name)
			}
			if f.Type.Kind() == reflect.Pointer && f.Type.Elem().Kind() == reflect.Struct {
				walk(f.Type.Elem())
			}
		}
	}
	walk(reflect.TypeFor[Part]())
	if len(seen) < 14 {
		t.Errorf("only %d types were seen", len(seen))
	}
}

func TestUnknownPartsSurviveARoundTrip(t *testing.T) {
	for name, c := range map[string]struct{ reason, in string }{
		"future type":    {"a type of tomorrow is handed on", `{"id":"p1","type":"hologram","depth":3,"nested":{"a":[1,{"b":[]}]}}`},
		"known member":   {"tomorrow's type may give our names another shape", `{"id":"p1","type":"hologram","file":7,"text":{"a":1},"start":"soon","tool":null,"synthetic":[]}`},
		"future field":   {"so may a field of tomorrow be on a part of today", `{"id":"p1","type":"text","text":"hi","start":1,"end":2,"mood":"good"}`},
		"other's member": {"a text part may get a file", `{"id":"p1","type":"text","text":"hi","file":7,"tool":"x"}`},
		"deep field":     {"fields inside of a payload survive, too", `{"id":"p1","type":"tool","tool":{"callID":"c","tool":"read","raw":"{}","state":"completed","decision":{"action":"allow","rule":"p/r","why":[1]},"result":{"text":"x","mood":{"a":1}},"colour":"red"},"depth":3}`},
		"deep file":      {"at any depth", `{"id":"p1","type":"file","file":{"mime":"a/b","url":"data:,","source":{"type":"file","column":7}}}`},
		"numbers":        {"numbers are kept as they are written", `{"id":"p1","type":"x","a":1e400,"b":12345678901234567890,"c":1.0,"d":-0,"e":0.10}`},
		"twice":          {"what is not ours is not ours to judge", `{"id":"p1","type":"text","x":1,"x":2}`},
		"strings":        {"strings are kept as they are written", `{"id":"p1","type":"x","a":"\u003c<\/\ud83d\ude42","\u0061b":"é"}`},
		"case":           {"names are compared exactly", `{"id":"p1","type":"text","Text":"a","ID":4}`},
		"fields":         {"there may be a member of that name", `{"id":"p1","type":"text","Fields":1,"-":2,"fields":3}`},
	} {
		t.Run(name, func(t *testing.T) {
			var p Part
			if err := p.UnmarshalJSON([]byte(c.in)); err != nil {
				t.Fatal(err)
			}
			out, err := p.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.in, string(out)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestPartRefusesWhatIsNone(t *testing.T) {
	for in, says := range map[string]string{
		`"text"`:                            "not a JSON object",
		`[]`:                                "not a JSON object",
		``:                                  "not a JSON object",
		`{`:                                 "not a JSON object",
		`{"id"}`:                            "not a JSON object",
		`{"id":"p",}`:                       "not a JSON object",
		`{,"id":"p"}`:                       "not a JSON object",
		`{"id":"p" "type":"text"}`:          "not a JSON object",
		`{"id":"p","type":"text"`:           "not a JSON object",
		`{"id":"p","type":"text"}}`:         "not a JSON object",
		`{"id":"p","type":"text"}{}`:        "not a JSON object",
		`{} x`:                              "not a JSON object",
		`{"id":"p","type":"text","text":"a`: `"text": not a JSON value`,
		`{"id":"p","type":"text","x":[{]}}`: `"x": not a JSON value`,
		`{"id":1}`:                          `"id"`,
		`{"id":"p","type":1}`:               `"type"`,
		`{"id":"p","type":"text","text":7}`: `part "p" (text): "text"`,
		`{"id":"p","type":"text","text":"a` + "\n" + `b"}`:            `part "p" (text): "text"`,
		`{"id":"p","type":"text","text":"\x"}`:                        `part "p" (text): "text"`,
		`{"id":"p","type":"text","text":"\u12"}`:                      `part "p" (text): "text"`,
		`{"id":"p","type":"text","start":1.5}`:                        `part "p" (text): "start"`,
		`{"id":"p","type":"text","start":01}`:                         `part "p" (text): "start"`,
		`{"id":"p","type":"text","start":1e400}`:                      `part "p" (text): "start"`,
		`{"id":"p","type":"text","synthetic":"yes"}`:                  `part "p" (text): "synthetic"`,
		`{"id":"p","type":"text","metadata":{"a"}}`:                   `part "p" (text): "metadata"`,
		`{"id":"p","type":"tool","tool":"bash"}`:                      `part "p" (tool): "tool"`,
		`{"id":"p","type":"tool","tool":{"state":{}}}`:                `part "p" (tool): "tool": "state"`,
		`{"id":"p","type":"tool","tool":{"result":{"exitCode":"x"}}}`: `part "p" (tool): "tool": "result": "exitCode"`,
		`{"id":"p","type":"step-finish","step":{"cost":1.5}}`:         `part "p" (step-finish): "step": "cost"`,
		`{"id":"p","type":"patch","patch":{"files":[1]}}`:             `part "p" (patch): "patch": "files"`,
		`{"id":"p","type":"text","text":"a","text":"b"}`:              `"text": stands twice`,
		`{"id":"p","type":"text","text":"a","t\u0065xt":"b"}`:         `stands twice`,
		`{"id":"p","type":"text","type":"tool"}`:                      `"type": stands twice`,
		`{"id":"p","type":"hologram","x":nil}`:                        `part "p" (hologram): "x"`,
		`{"id":"p","type":"hologram","x":[1,]}`:                       `part "p" (hologram): "x"`,
		`{"id":"p","type":"hologram","x\y":1}`:                        `part "p" (hologram)`,
	} {
		p := Part{ID: "before"}
		err := p.UnmarshalJSON([]byte(in))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: error %v, want one that says %s", in, err, says)
		}
		if p.ID != "before" {
			t.Errorf("%s: an error left %+v", in, p)
		}
	}
}

func TestPartRefusesFieldsThatAreNoObject(t *testing.T) {
	for _, fields := range []string{`x`, `[1]`, `1`, `{"a":}`} {
		p := Part{ID: "p", Type: PartText, Fields: json.RawMessage(fields)}
		if b, err := p.MarshalJSON(); err == nil || !strings.Contains(err.Error(), `part "p" (text)`) {
			t.Errorf("fields %s became %s, %v", fields, b, err)
		}
	}
}

func TestFieldsOfOurOwnCount(t *testing.T) {
	p := Part{ID: "p", Type: PartText, Text: "ours", Fields: json.RawMessage(`{"text":"theirs","id":{"a":1},"mood":1}`)}
	b, err := p.AppendJSON([]byte("x"))
	if want := `x{"id":"p","type":"text","text":"ours","mood":1}`; err != nil || string(b) != want {
		t.Errorf("got %s, %v, want %s", b, err, want)
	}
}

func TestPartWithABrokenValueIsAnError(t *testing.T) {
	p := Part{ID: "p", Type: PartTool, Tool: &ToolPart{Input: json.RawMessage(`{`)}}
	if b, err := p.MarshalJSON(); err == nil {
		t.Errorf("got %s", b)
	}
}

func jsonEqual(t *testing.T, a, b []byte) bool {
	t.Helper()
	return cmp.Equal(value(t, a), value(t, b))
}

func value(t *testing.T, b []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return v
}

// FuzzPart: whatever is taken for a part is JSON, comes back as it was, and
// says the same to encoding/json.
func FuzzPart(f *testing.F) {
	for _, p := range everyPart() {
		b, err := p.MarshalJSON()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for _, s := range []string{
		`{"id":"p","type":"hologram","file":7,"x":[1e400,{"a":"\ud800"}],"x":null}`, `{"type":"text","text":"\u00e9\uD83D\uDE42\ud83d"}`,
		`{"type":"tool","tool":{"state":"error","result":{"exitCode":null,"new":{}}}}`, " {\t} ", `{"":""}`, "{\"type\":\"text\",\"text\":\"\xff\"}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		type plain Part
		var p Part
		var reference plain
		err := p.UnmarshalJSON(in)
		if !json.Valid(in) {
			if err == nil {
				t.Fatalf("%q is no JSON and became %+v", in, p)
			}
			return
		}
		if err != nil {
			return
		}
		out, err := p.MarshalJSON()
		if err != nil {
			t.Fatalf("%s: %v", in, err)
		}
		if !json.Valid(out) {
			t.Fatalf("%s became %s", in, out)
		}
		if p.Type.content() == "" {
			if diff := cmp.Diff(unnamed(t, in), unnamed(t, out)); diff != "" {
				t.Fatalf("%s became %s (-in +out):\n%s", in, out, diff)
			}
		}
		var back Part
		if err := back.UnmarshalJSON(out); err != nil {
			t.Fatalf("%s became %s: %v", in, out, err)
		}
		if again, err := back.MarshalJSON(); err != nil || !bytes.Equal(out, again) {
			t.Fatalf("%s became %s and then %s, %v", in, out, again, err)
		}
		if p.Type.content() != "" && len(p.Fields) == 0 {
			if err := json.Unmarshal(in, &reference); err != nil {
				t.Fatalf("%s was read; encoding/json says %v", in, err)
			}
			if diff := cmp.Diff(Part(reference), p, equalRaw); diff != "" {
				t.Fatalf("%s (-encoding/json +ours):\n%s", in, diff)
			}
		}
	})
}

// unnamed are the members that a part of tomorrow has besides ours, as they are written.
func unnamed(t *testing.T, b []byte) (all []string) {
	t.Helper()
	found, err := members(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range found {
		var name string
		if err := json.Unmarshal(m.name, &name); err != nil {
			t.Fatal(err)
		}
		if name != "id" && name != "type" {
			all = append(all, string(m.name)+":"+string(m.value))
		}
	}
	return all
}

// encoding/json keeps a null where we keep nothing.
var equalRaw = cmp.FilterValues(func(a, b json.RawMessage) bool { return true }, cmp.Comparer(func(a, b json.RawMessage) bool {
	return string(a) == string(b) || string(a) == "null" && b == nil || string(b) == "null" && a == nil
}))
