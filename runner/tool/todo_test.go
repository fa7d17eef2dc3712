package tool

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
)

// called checks and runs a call as the loop does.
func called(t *testing.T, r *Registry, tool, args string) (*message.ToolResult, error) {
	t.Helper()
	checked, err := r.Check(message.CallRequest{Tool: tool, Args: args})
	if err != nil {
		return nil, err
	}
	return r.Run(t.Context(), message.ToolCall{ID: "c1", Tool: checked.Tool, Args: checked.Args}, func(string) {})
}

func TestATodoListIsReplacedAsAWhole(t *testing.T) {
	var kept message.Todos
	r := registry(t, nil, shipped(t, "todowrite"), shipped(t, "todoread"))
	r.Todos = func() message.Todos { return kept }
	for _, c := range []struct {
		reason, args, text string
		list               message.Todos
	}{
		{
			"a list", `{"todos":[{"content":"parse","status":"in_progress","priority":"high"},{"content":"hunter2","status":"pending"}]}`,
			"1. [in_progress] parse (high)\n2. [pending] ***",
			message.Todos{{Content: "parse", Status: message.TodoInProgress, Priority: "high"}, {Content: "hunter2", Status: message.TodoPending}},
		},
		{"another one", `{"todos":[{"content":"test","status":"completed"}]}`, "1. [completed] test", message.Todos{{Content: "test", Status: message.TodoCompleted}}},
		{"none", `{"todos":[]}`, "(the todo list is empty)", message.Todos{}},
	} {
		got, err := called(t, r, "todowrite", c.args)
		if err != nil || got.Failed() || got.Text != c.text || got.Todos == nil {
			t.Fatalf("%s: %+v, %v", c.reason, got, err)
		}
		if d := cmp.Diff(c.list, got.Todos); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.reason, d)
		}
		kept = got.Todos
		if read, err := called(t, r, "todoread", `{}`); err != nil || read.Text != c.text || read.Todos != nil {
			t.Errorf("%s: read %+v, %v", c.reason, read, err)
		}
	}
}

func TestATodoListThatIsWrongChangesNothing(t *testing.T) {
	r := registry(t, nil, shipped(t, "todowrite"))
	for name, c := range map[string]struct{ args, want string }{
		"two at a time": {`{"todos":[{"content":"a","status":"in_progress"},{"content":"b","status":"pending"},{"content":"c","status":"in_progress"}]}`, "entries 1, 3 are in_progress: at most one may be"},
		"blank":         {`{"todos":[{"content":" ","status":"pending"}]}`, "entry 1 has no content"},
	} {
		got, err := called(t, r, "todowrite", c.args)
		if err != nil || got.Code != message.CodeTool || got.Todos != nil || !strings.Contains(got.Text, c.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for name, args := range map[string]string{
		"status":   `{"todos":[{"content":"a","status":"done"}]}`,
		"priority": `{"todos":[{"content":"a","status":"pending","priority":"urgent"}]}`,
		"unknown":  `{"todos":[],"merge":true}`,
		"missing":  `{}`,
		"too many": `{"todos":[` + strings.TrimSuffix(strings.Repeat(`{"content":"a","status":"pending"},`, 101), ",") + `]}`,
		"too long": `{"todos":[{"content":"` + strings.Repeat("x", 501) + `","status":"pending"}]}`,
	} {
		if _, err := called(t, r, "todowrite", args); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
