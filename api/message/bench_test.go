package message

import (
	"encoding/json"
	"strings"
	"testing"
)

// part4KB is a call with a result, as most of a history is: text with line ends,
// quotes and letters that JSON writes in more than one byte.
func part4KB() Part {
	line := "runner/loop/loop.go:120: the result is \"ready\", größer als zuvor\n"
	return Part{ID: "prt-0001", Type: PartTool, Tool: &ToolPart{
		CallID: "call_1", Tool: "bash", Raw: `{"command":"go test ./..."}`, State: StateCompleted,
		Result: &ToolResult{Output: strings.Repeat(line, 4096/len(line)+1)[:4096]},
	}}
}

func BenchmarkEncodePart4KB(b *testing.B) {
	p := part4KB()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := json.Marshal(p); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodePart4KB(b *testing.B) {
	text, err := json.Marshal(part4KB())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		var p Part
		if err := json.Unmarshal(text, &p); err != nil {
			b.Fatal(err)
		}
	}
}
