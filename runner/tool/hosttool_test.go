package tool

import (
	"context"
	"errors"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// question is a host tool as a later version may have it: all of its calls are answered
// by the runner.
func question(answer func(message.ToolCall) (Reply, error)) (Definition, HostTool) {
	d := Definition{Name: "question", Parameters: []byte(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`), Facts: Facts{
		Kind: "builtin", Shipped: "question", Host: true,
	}, Spec: v1alpha1.ToolSpec{Limits: v1alpha1.ToolLimits{OutputBytes: 1000, OutputLines: 10}}}
	return d, HostTool{Tool: "question", Answer: func(_ context.Context, h Host, call message.ToolCall) (*message.ToolResult, error) {
		reply, err := answer(call)
		if err != nil {
			return nil, err
		}
		return h.Result(reply)
	}}
}

func TestAHostToolIsACallLikeAnyOther(t *testing.T) {
	broken := errors.New("nobody can be asked any more")
	for name, c := range map[string]struct {
		reason string
		answer func(message.ToolCall) (Reply, error)
		want   message.ToolResult
		err    error
	}{
		"answered": {"what it says is redacted", func(call message.ToolCall) (Reply, error) {
			return Reply{Output: string(call.Args) + " hunter2"}, nil
		}, message.ToolResult{Text: `{"text":"who?"} ***`}, nil},
		"failed": {"a failure is a result", func(message.ToolCall) (Reply, error) {
			return Reply{Output: "no", Failed: true, Code: message.CodeTimeout}, nil
		}, message.ToolResult{Code: message.CodeTimeout}, nil},
		"broken": {"an error ends the run", func(message.ToolCall) (Reply, error) { return Reply{}, broken }, message.ToolResult{}, broken},
	} {
		d, h := question(c.answer)
		r := registry(t, nil, d)
		r.Serve = func(context.Context, *Definition, Outside) (Server, error) {
			t.Error("a program was asked for")
			return nil, errors.New("there is none")
		}
		r.HostTools = []HostTool{h}
		checked, err := r.Check(message.CallRequest{Tool: "Question", Args: `{"text":"who?"}`})
		if err != nil || checked.Tool != "question" || !checked.Repaired {
			t.Errorf("%s: its calls are checked: %+v, %v", name, checked, err)
		}
		got, err := r.Run(t.Context(), message.ToolCall{ID: "c", Tool: checked.Tool, Args: checked.Args}, func(string) {})
		if !errors.Is(err, c.err) || err == nil && (got.Code != c.want.Code || c.want.Text != "" && got.Text != c.want.Text) {
			t.Errorf("%s (%s): %+v, %v", name, c.reason, got, err)
		}
	}
}

func TestAHostToolHoldsNoProgram(t *testing.T) {
	d, _ := question(nil)
	d.Spec.Isolation.Minimum = v1alpha1.IsolationSandbox
	if all, err := Profiles([]Definition{d}, Place{Workspace: "/srv/files"}); err != nil || len(all) != 0 {
		t.Errorf("profiles %v, %v", all, err)
	}
	r, err := NewRegistry(Options{Tools: []Definition{d}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Run(t.Context(), message.ToolCall{ID: "c", Tool: "question"}, func(string) {}); err == nil {
		t.Error("a host tool that nothing answers has a result")
	}
}
