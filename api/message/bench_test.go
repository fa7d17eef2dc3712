package message

import (
	"encoding/json"
	"strings"
	"testing"
)

// parts4KB are a text and a call with its result of about 4 KB as JSON: lines
// with ends, quotes and letters that take more than one byte.
func parts4KB() []Part {
	const line = "runner/loop/loop.go:120: the result is \"ready\", größer als zuvor\n"
	text := strings.Repeat(line, 4096/len(line)+1)
	input := json.RawMessage(`{"path":"runner/loop/loop.go","content":"` + strings.Repeat(`\tpackage loop\n`, 25) + `"}`)
	return []Part{
		{ID: "part-01kaj4x0g1m8t6", Type: PartText, Text: text[:3800], Start: 1772600769000, End: 1772600769001},
		{ID: "part-01kaj4x0g1m8t6", Type: PartTool, Start: 1772600769000, End: 1772600769001, Tool: &ToolPart{
			CallID: "call-1", Tool: "write", Raw: string(input), Input: input, State: StateCompleted, Attempt: 1, Start: 1772600769000, End: 1772600769001,
			Decision: &Decision{Action: Allow, Rule: "default/byRisk", Risk: "R1"},
			Result:   &ToolResult{Text: text[:1350], Output: text[:1300], ExitCode: new(int), DurationMicros: 1200},
		}},
	}
}

func BenchmarkPart(b *testing.B) {
	for _, p := range parts4KB() {
		encoded, err := p.AppendJSON(nil)
		if err != nil {
			b.Fatal(err)
		}
		if n := len(encoded); n < 4000 || n > 4200 {
			b.Fatalf("the %s part has %d bytes", p.Type, n)
		}
		b.Run("encode/"+string(p.Type), func(b *testing.B) {
			b.SetBytes(int64(len(encoded)))
			b.ReportAllocs()
			var buf []byte
			for b.Loop() {
				if buf, err = p.AppendJSON(buf[:0]); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("decode/"+string(p.Type), func(b *testing.B) {
			b.SetBytes(int64(len(encoded)))
			b.ReportAllocs()
			for b.Loop() {
				var back Part
				if err := back.UnmarshalJSON(encoded); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
