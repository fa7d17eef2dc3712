package event_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/internal/schema"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
)

var update = flag.Bool("update", false, "write the published schema anew")

const id = "https://agentctl.dev/schemas/v1alpha1/event.schema.json"

// publish derives the schema: one branch per type of event.
func publish(t *testing.T) []byte {
	t.Helper()
	source, err := schema.ReadSource(".", "../message", "../reason")
	if err != nil {
		t.Fatal(err)
	}
	source.Enum("event.RunFinished.phase", "Succeeded", "Failed", "Cancelled", "Suspended")
	var reasons []any
	for _, i := range reason.All() {
		if i.ExitCode >= 0 {
			reasons = append(reasons, string(i.Reason))
		}
	}
	source.Enum("event.RunFinished.reason", reasons...)
	source.Enum("event.RunStarted.isolation", "None", "Sandbox", "Container")
	source.Enum("event.Workspace.strategy", "Copy", "InPlace", "Empty")
	source.Enum("event.FileChange.change", "added", "modified", "deleted")
	root := &jsonschema.Schema{Description: "One line of a journal. The type says which data it holds; a reader should skip types it does not know."}
	for _, p := range event.Payloads() {
		root.OneOf = append(root.OneOf, branch(t, source, p))
	}
	text, err := schema.Document("agentctl event", id, root)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func branch(t *testing.T, source *schema.Source, p event.Payload) *jsonschema.Schema {
	t.Helper()
	data, err := source.Of(reflect.TypeOf(p))
	if err != nil {
		t.Fatal(err)
	}
	description := data.Description
	data.Description = ""
	text := func(doc string) *jsonschema.Schema { return &jsonschema.Schema{Type: "string", Description: doc} }
	typ := any(string(p.Type()))
	first := 1.0
	return &jsonschema.Schema{
		Title: string(p.Type()), Description: description, Type: "object",
		Properties: map[string]*jsonschema.Schema{
			"seq":     {Type: "integer", Minimum: &first, Description: "Counts the events of a run from 1 without gaps."},
			"time":    {Type: "string", Format: "date-time", Description: "UTC with milliseconds."},
			"type":    {Const: &typ},
			"run":     text("The run the event belongs to."),
			"message": text("The message the event speaks of."),
			"part":    text("The part of the message."),
			"call":    text("The tool call."),
			"data":    data,
			"prev":    {Type: "string", Pattern: "^sha256:[0-9a-f]{64}$", Description: "Hash of the line before; absent on the first."},
		},
		PropertyOrder:        []string{"seq", "time", "type", "run", "message", "part", "call", "data", "prev"},
		Required:             []string{"seq", "time", "type", "run", "data"},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
}

func TestPublishedSchemaIsFresh(t *testing.T) {
	want := publish(t)
	if *update {
		if err := os.WriteFile("event.schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(want), string(event.JSONSchema)); diff != "" {
		t.Errorf("event.schema.json is stale, run go generate (-want +got):\n%s", diff)
	}
}

func TestPublishedSchemaJudgesEvents(t *testing.T) {
	at, code, usd := time.Unix(0, 0), 3, message.Cost(10_000_000_000)
	result := message.ToolResult{Text: "t", Output: "o", ExitCode: &code, Metadata: json.RawMessage(`{"a":1}`)}
	head := event.Event{Seq: 1, Time: at, Run: "r"}
	with := func(p event.Payload) event.Event { e := head; e.Data = p; return e }
	good := []event.Event{
		with(event.RunStarted{
			Agent: "a", Model: message.ModelRef{Name: "m", Provider: "scripted"}, Prompt: "p", Inputs: json.RawMessage(`{"x":"y"}`),
			Workspace: event.Workspace{Source: "/a", Dir: "/b", Strategy: "Copy"}, Isolation: "None", Version: "v",
		}),
		with(event.RunFinished{Phase: "Succeeded", Reason: "Completed", Cost: &usd}),
		with(event.RunFinished{Phase: "Failed", Reason: "Denied", ExitCode: 3, Message: "m", Hint: "h"}),
		with(event.StepFinish{Step: 1, Finish: message.FinishToolCalls}),
		with(event.ModelRetry{Retry: message.Retry{Attempt: 1, Attempts: 5, Class: "429"}}),
		with(event.PolicyDecision{Decision: message.Decision{Action: message.Deny, Rule: "p/r", Risk: "R1"}}),
		with(event.ApprovalDecided{Answer: message.Answer{State: message.Unanswered, By: "onAsk"}}),
		with(event.ToolCall{Tool: "bash", Args: json.RawMessage(`{}`)}),
		with(event.ToolResult{ToolResult: result}),
		with(event.ToolError{ToolResult: message.ToolResult{Text: "no", Code: message.CodeDenied}}),
		with(event.WorkspacePatch{Files: []event.FileChange{{Path: "a", Change: "added"}}}),
		with(event.EgressConnection{Tools: []string{"fetch"}, Host: "example.com", Port: 443, Decision: message.Deny, Rule: "not in spec.network.allow"}),
		with(event.TextStart{}),
	}
	resolved := resolve(t)
	for _, e := range good {
		if err := resolved.Validate(decode(t, e)); err != nil {
			t.Errorf("%s: %v", e.Type(), err)
		}
	}
	for reason, e := range map[string]event.Event{
		"a phase that does not exist":  with(event.RunFinished{Phase: "Done", Reason: "Completed"}),
		"a reason that does not exist": with(event.RunFinished{Phase: "Failed", Reason: "BadLuck"}),
		"an action that is none":       with(event.PolicyDecision{Decision: message.Decision{Action: "maybe", Rule: "p/r"}}),
		"an event without a number":    {Time: at, Run: "r", Data: event.TextStart{}},
		"a type that is not known":     with(event.Unknown{Of: "from.tomorrow", Raw: json.RawMessage(`{}`)}),
	} {
		if resolved.Validate(decode(t, e)) == nil {
			t.Errorf("%s passes", reason)
		}
	}
}

func resolve(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(event.JSONSchema, &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

func decode(t *testing.T, e event.Event) any {
	t.Helper()
	line, err := e.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.NewDecoder(bytes.NewReader(line)).Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
