package policy

import (
	"slices"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
)

func TestFieldsAreRedactedHoweverTheyAreWrapped(t *testing.T) {
	e := engine(t, `
rules:
- {name: pins, "on": Result, match: {tools: [read]}, action: redact, redact: {fields: [pin, card.pin]}}`)
	tests := map[string]string{
		"cut list, pretty":           "[\n  {\n    \"id\": 1,\n    \"pin\": \"s3cret\"\n[... 9 lines, 99 bytes left out ...]\n  }\n]",
		"cut list of lists":          "[ [ {\"pin\": \"s3cret\"",
		"a line before":              "got:\n{\"pin\": \"s3cret\"}",
		"a line between":             "{\"a\":1}\nnext\n{\"pin\":\"s3cret\"}",
		"values with commas":         "{\"a\":1},{\"pin\":\"s3cret\"}",
		"server-sent events":         "data: {\"id\":1,\"pin\":\"s3cret\"}\n\ndata: {\"pin\":\"s3cret\"}",
		"JSON in JSON":               `{"body":"{\"pin\":\"s3cret\"}"}`,
		"JSON in JSON behind a line": "log\n{\"body\":\"{\\\"pin\\\":\\\"s3cret\\\"}\"}",
		"an object behind a line":    "x\n{\"pin\":{\"a\":\"s3cret\"}}",
		"no end":                     "x {\"pin\":\"s3cret",
		"escaped quote":              `x "pin":"a\"s3cret"`,
		"a scalar first":             "1\n{\"pin\":\"s3cret\"}",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			out, err := e.Review(t.Context(), call("read", map[string]any{"path": "x"}), &message.ToolResult{Text: text, Output: text})
			if err != nil || strings.Contains(out.Text+out.Output, "s3cret") {
				t.Errorf("got %+v, %v", out, err)
			}
		})
	}
	plain := "pin down the bug\n\"other\": \"value\", [1, 2]"
	if out, err := e.Review(t.Context(), call("read", map[string]any{"path": "x"}), &message.ToolResult{Text: plain}); err != nil || out.Text != plain {
		t.Errorf("a text without the field: got %+v, %v", out, err)
	}
}

func TestRedactedResultHidesItsFullText(t *testing.T) {
	e := engine(t, `
rules:
- {name: keys, "on": Result, match: {tools: [bash]}, action: redact, redact: {secrets: true}}`)
	const blob = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for name, output := range map[string]string{
		"credential in what is shown": "api_key=abcdef123456",
		"credential only in the rest": "harmless",
	} {
		t.Run(name, func(t *testing.T) {
			text := output + "\n[3 lines, 90 bytes left out; read the rest with path \"blob:" + blob + "\"]"
			out, err := e.Review(t.Context(), bash("env"), &message.ToolResult{Text: text, Output: output, Blob: blob})
			if err != nil || out.Blob != "" || strings.Contains(out.Text, blob) || strings.Contains(out.Text, "abcdef1") || !strings.Contains(out.Text, "a rule withholds the rest") {
				t.Errorf("got %+v, %v", out, err)
			}
		})
	}
}

func TestArgumentsThatDifferOnlyByCaseAreDenied(t *testing.T) {
	e := engine(t, `
permissions:
- {permission: "*", pattern: "*", action: allow}`)
	for name, args := range map[string]map[string]any{
		"upper case":                {"path": "a", "Content": "b"},
		"long s":                    {"path": "a", "oldString": "x", "newString": "y", "old\u017ftring": "z"},
		"Kelvin sign":               {"k": 1, "\u212a": 2},
		"inside of an argument":     {"options": map[string]any{"to": "a", "To": "b"}},
		"inside of a list":          {"options": []any{map[string]any{"s": 1, "\u017f": 2}}},
		"declared, by another case": {"Path": "a"},
	} {
		t.Run(name, func(t *testing.T) {
			tool := "free"
			if _, ok := args["path"]; ok || args["Path"] != nil {
				tool = "edit"
			}
			if name == "upper case" {
				tool = "write"
			}
			if d := decide(t, e, call(tool, args)); d.Action != message.Deny {
				t.Errorf("got %+v", d)
			}
		})
	}
}

// A record is a part of the result like its text.
func TestARecordIsRedactedWithItsResult(t *testing.T) {
	for redact, want := range map[string][]string{
		"{secrets: true}":  {"env", "api_key=" + redacted},
		"{fields: [argv]}": nil,
	} {
		e := engine(t, `
rules:
- {name: keys, "on": Result, match: {tools: [bash]}, action: redact, redact: `+redact+`}`)
		record := &message.Record{
			Programs: []message.Execution{{Path: "/bin/env", Argv: []string{"env", "api_key=abcdef123456"}}}, Changes: []message.RecordedChange{{Op: "write", Path: "/w/x"}}, Omitted: 1,
		}
		out, err := e.Review(t.Context(), bash("env"), &message.ToolResult{Text: "x", Record: record})
		if err != nil || out.Record == nil || len(out.Record.Programs) != 1 {
			t.Fatalf("%s: %+v, %v", redact, out, err)
		}
		if got := out.Record.Programs[0].Argv; !slices.Equal(got, want) {
			t.Errorf("%s: arguments %q, want %q", redact, got, want)
		}
		if got := out.Record.Changes; len(got) != 1 || got[0] != record.Changes[0] || out.Record.Omitted != 1 {
			t.Errorf("%s: the rest is %+v", redact, out.Record)
		}
		if record.Programs[0].Argv[1] != "api_key=abcdef123456" {
			t.Errorf("%s: the record of others was changed", redact)
		}
	}
}
