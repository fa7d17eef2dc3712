package event

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
)

var at = time.Date(2026, 3, 4, 5, 6, 7, 8_000_000, time.UTC)

func TestEnvelopeIsOneLineInFixedOrder(t *testing.T) {
	e := Event{
		Seq: 7, Time: at, Run: "r", Message: "m", Part: "p", Call: "c",
		Data: TextDelta{Text: "a<b>\n\u2028\x00\xff"}, Prev: "sha256:00",
	}
	got, err := e.AppendJSON([]byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	want := `x{"seq":7,"time":"2026-03-04T05:06:07.008Z","type":"text.delta","run":"r","message":"m","part":"p","call":"c","data":{"text":"a<b>\n\u2028\u0000\ufffd"},"prev":"sha256:00"}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !json.Valid(got[1:]) {
		t.Error("the line is no JSON")
	}
}

func TestEveryPayloadSurvivesARoundTrip(t *testing.T) {
	for _, p := range Payloads() {
		e := Event{Seq: 1, Time: at, Run: "r", Data: p}
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatalf("%s: %v", p.Type(), err)
		}
		var back Event
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatalf("%s: %v", p.Type(), err)
		}
		if back.Type() != p.Type() {
			t.Errorf("%s came back as %s", p.Type(), back.Type())
		}
		again, err := json.Marshal(back)
		if err != nil || string(again) != string(b) {
			t.Errorf("%s: %s came back as %s (%v)", p.Type(), b, again, err)
		}
	}
}

func TestPayloadTypesAreDistinct(t *testing.T) {
	seen := map[Type]bool{}
	for _, p := range Payloads() {
		if p.Type() == "" || seen[p.Type()] {
			t.Errorf("type %q is empty or stands twice", p.Type())
		}
		seen[p.Type()] = true
	}
}

func TestEveryTypeStandsInTheDocs(t *testing.T) {
	docs, err := os.ReadFile("../../docs/output.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range Payloads() {
		if !strings.Contains(string(docs), "`"+string(p.Type())+"`") {
			t.Errorf("docs/output.md does not tell of %s", p.Type())
		}
	}
}

func TestEveryFieldOfAnEventStandsInTheDocs(t *testing.T) {
	docs, err := os.ReadFile("../../docs/output.md")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, p := range Payloads() {
		row := ""
		for line := range strings.SplitSeq(string(docs), "\n") {
			if cells := strings.Split(line, "|"); len(cells) == 5 && strings.Contains(cells[1], "`"+string(p.Type())+"`") {
				row = cells[3]
			}
		}
		for _, f := range reflect.VisibleFields(reflect.TypeOf(p)) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Anonymous || name == "" || name == "-" || strings.Contains(row, "the same") {
				continue
			}
			checked++
			if !regexp.MustCompile(`\b` + name + `\b`).MatchString(row) {
				t.Errorf("docs/output.md does not tell of %s of %s: it says%s", name, p.Type(), row)
			}
		}
	}
	if checked < 50 {
		t.Errorf("%d fields found: the table is read wrongly", checked)
	}
}

func TestEmbeddedPayloadsAreFlat(t *testing.T) {
	b, err := json.Marshal(Event{Data: ToolError{message.ToolResult{Code: message.CodeDenied, Text: "no"}}})
	if err != nil || !strings.Contains(string(b), `"data":{"text":"no","code":"denied"}`) {
		t.Errorf("got %s, %v", b, err)
	}
}

func TestUnknownTypeIsKept(t *testing.T) {
	in := `{"seq":3,"time":"2026-03-04T05:06:07.008Z","type":"hologram.start","run":"r","data":{"x":[1,{"y":2}]},"prev":"sha256:1"}`
	var e Event
	if err := json.Unmarshal([]byte(in), &e); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in, string(out)); diff != "" {
		t.Errorf("round trip (-want +got):\n%s", diff)
	}
}

func TestWrongPayloadIsAnError(t *testing.T) {
	for _, in := range []string{`{"seq":"x"}`, `{"seq":1,"type":"step.start","data":{"step":"one"}}`, `[]`} {
		var e Event
		if err := json.Unmarshal([]byte(in), &e); err == nil {
			t.Errorf("%s was read as %+v", in, e)
		}
	}
}

func TestIDsAreEscaped(t *testing.T) {
	b, err := json.Marshal(Event{Run: "a\"b", Call: "ü\n", Data: StepStart{1}})
	if err != nil {
		t.Fatal(err)
	}
	var e Event
	if err := json.Unmarshal(b, &e); err != nil || e.Run != "a\"b" || e.Call != "ü\n" {
		t.Errorf("got %+v, %v from %s", e, err, b)
	}
}

func BenchmarkAppendJSON(b *testing.B) {
	e := Event{Seq: 7, Time: at, Run: "hello-01jd", Message: "msg-1", Part: "part-2", Data: TextDelta{Text: strings.Repeat("word ", 20)}, Prev: "sha256:" + strings.Repeat("0", 64)}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if buf, err = e.AppendJSON(buf[:0]); err != nil {
			b.Fatal(err)
		}
	}
}
