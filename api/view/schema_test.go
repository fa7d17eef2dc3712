package view_test

import (
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/internal/schema"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
)

var update = flag.Bool("update", false, "write the published schema anew")

const id = "https://agentctl.dev/schemas/v1alpha1/result.schema.json"

func publish(t *testing.T) []byte {
	t.Helper()
	source, err := schema.ReadSource(".", "../event", "../message", "../reason")
	if err != nil {
		t.Fatal(err)
	}
	source.Enum("view.Result.phase", view.Succeeded, view.Failed, view.Cancelled, view.Suspended)
	var reasons []any
	for _, i := range reason.All() {
		if i.ExitCode >= 0 {
			reasons = append(reasons, string(i.Reason))
		}
	}
	source.Enum("view.Result.reason", reasons...)
	source.Enum("view.CallResult.decision", source.Constants("message.Action")...)
	source.Enum("view.CallResult.approval", source.Constants("message.ApprovalState")...)
	source.Enum("view.CallResult.state", source.Constants("message.ToolState")...)
	source.Enum("view.CallResult.error", source.Constants("message.ErrorCode")...)
	source.Enum("event.FileChange.change", "added", "modified", "deleted")
	s, err := source.Of(reflect.TypeFor[view.Result]())
	if err != nil {
		t.Fatal(err)
	}
	for _, member := range s.Properties {
		if member.Items != nil { // a list is there even when it is empty
			member.Type, member.Types = "array", nil
		}
	}
	text, err := schema.Document("agentctl result", id, s)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestPublishedSchemaIsFresh(t *testing.T) {
	want := publish(t)
	if *update {
		if err := os.WriteFile("result.schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(want), string(view.ResultSchema)); diff != "" {
		t.Errorf("result.schema.json is stale, run go generate (-want +got):\n%s", diff)
	}
}

func TestPublishedSchemaJudgesResults(t *testing.T) {
	var s jsonschema.Schema
	if err := json.Unmarshal(view.ResultSchema, &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	run := view.Run{
		ID: "r", Phase: view.Succeeded,
		Finished: &event.RunFinished{Phase: view.Succeeded, Reason: "Completed", Output: "done"},
		Changes:  event.WorkspacePatch{Files: []event.FileChange{{Path: "a", Change: "deleted"}}},
	}
	deny, word := "deny", "perhaps"
	call := view.CallResult{ID: "c", Tool: "bash", Args: json.RawMessage(`{}`), State: "error", Decision: &deny}
	cases := map[string]struct {
		reason string
		change func(*view.Result)
		valid  bool
	}{
		"plain":    {"a run without calls", func(*view.Result) {}, true},
		"call":     {"null stands where nothing is known", func(r *view.Result) { r.ToolCalls = []view.CallResult{call} }, true},
		"phase":    {"a result is told at the end only", func(r *view.Result) { r.Phase = view.Running }, false},
		"reason":   {"reasons are a closed list", func(r *view.Result) { r.Reason = "Accepted" }, false},
		"decision": {"decisions are a closed list", func(r *view.Result) { c := call; c.Decision = &word; r.ToolCalls = []view.CallResult{c} }, false},
		"list":     {"lists are never null", func(r *view.Result) { r.ToolCalls = nil }, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			result := run.Result("/journal")
			c.change(&result)
			text, err := json.Marshal(result)
			if err != nil {
				t.Fatal(err)
			}
			var v any
			if err := json.Unmarshal(text, &v); err != nil {
				t.Fatal(err)
			}
			if err := resolved.Validate(v); (err == nil) != c.valid {
				t.Errorf("%s: valid = %v, want %v: %v", c.reason, err == nil, c.valid, err)
			}
		})
	}
}
