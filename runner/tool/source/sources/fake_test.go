package sources_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/tool/source/sources"
)

// fake is a source as a later version may have it: a server that is reached once, and
// describes several functions.
type fake struct{ started, closed bool }

func (f *fake) kind() tool.Kind {
	return tool.Kind{
		Name: "agent",
		Facts: func(*v1alpha1.ToolSpec) (tool.Facts, error) {
			return tool.Facts{Function: "echo", Describes: true}, nil
		},
		Open: func(*tool.Pool) tool.Source { return f },
	}
}

func (f *fake) Start(context.Context, *tool.Definition) { f.started = true }

func (f *fake) Describe(context.Context, *tool.Definition) ([]tool.Function, error) {
	schema := []byte(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`)
	return []tool.Function{{Name: "echo", Description: "says it again", Parameters: schema}, {Name: "shout", Parameters: schema}}, nil
}

func (f *fake) Serve(context.Context, *tool.Definition, tool.Outside) (tool.Server, error) {
	return f, nil
}

func (f *fake) Call(_ context.Context, req host.CallRequest, progress func(string)) (tool.Reply, error) {
	progress("half")
	return tool.Reply{Output: req.Tool + " " + string(req.Args)}, nil
}

func (f *fake) Close() error {
	f.closed = true
	return nil
}

// A source that is added is one implementation and one entry of the list: everything
// from the manifest to the result of a call reads its facts.
func TestAnotherSourceIsOneEntryOfTheList(t *testing.T) {
	f := &fake{}
	kinds := append(slices.DeleteFunc(sources.All(), func(k tool.Kind) bool { return k.Name == "agent" }), f.kind())
	d, err := kinds.Define(&v1alpha1.Tool{Spec: v1alpha1.ToolSpec{
		CallName: "server", Source: v1alpha1.ToolSource{Agent: &v1alpha1.Reference{Name: "x"}}, Isolation: v1alpha1.Isolation{Minimum: v1alpha1.IsolationNone},
	}})
	if err != nil || !d.Startable || d.Kind != "agent" {
		t.Fatalf("%+v, %v", d.Facts, err)
	}
	d.Spec.Limits = v1alpha1.ToolLimits{OutputBytes: 1000, OutputLines: 10}
	d.Spec.Limits.Timeout.Duration = time.Minute
	pool := tool.NewPool(tool.PoolOptions{Site: tool.NewSite(tool.SiteOptions{Kinds: kinds})})
	if err := pool.Describe(t.Context(), &d); err != nil || d.Description != "says it again" {
		t.Fatalf("%+v, %v", d, err)
	}
	found, err := pool.Functions(t.Context(), &d)
	if err != nil || len(found) != 2 {
		t.Errorf("its functions are %v, %v", found, err)
	}
	pool.Start(t.Context(), []tool.Definition{d})
	toolbox, err := tool.NewRegistry(tool.Options{
		Tools: []tool.Definition{d}, Serve: pool.Serve, Now: time.Now,
		Workspace: func(context.Context) (string, error) { return t.TempDir(), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	checked, err := toolbox.Check(message.CallRequest{Tool: "server", Args: `{"text":"hi"}`})
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	result, err := toolbox.Run(t.Context(), message.ToolCall{ID: "c", Tool: checked.Tool, Args: checked.Args}, func(text string) { seen = append(seen, text) })
	if err != nil || !strings.HasPrefix(result.Text, `echo {"text":"hi"}`) || strings.Join(seen, "") != "half" {
		t.Errorf("%+v, %v, progress %v", result, err, seen)
	}
	if err := pool.Close(); err != nil {
		t.Error(err)
	}
	if err := pool.Release(); err != nil || !f.started || !f.closed {
		t.Errorf("started %t, closed %t: %v", f.started, f.closed, err)
	}
}

// A kind that this version does not start is refused before anything runs.
func TestAKindThatIsNotStartedIsRefused(t *testing.T) {
	kinds := tool.Kinds{{Name: "mcp", Facts: func(*v1alpha1.ToolSpec) (tool.Facts, error) { return tool.Facts{}, nil }}}
	d, err := kinds.Define(&v1alpha1.Tool{Spec: v1alpha1.ToolSpec{CallName: "x", Source: v1alpha1.ToolSource{MCP: &v1alpha1.MCPSource{}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := tool.Unsupported(&d); err == nil || !strings.Contains(err.Error(), "source.mcp") {
		t.Errorf("the error is %v", err)
	}
	if _, err := tool.NewPool(tool.PoolOptions{Site: tool.NewSite(tool.SiteOptions{Kinds: kinds})}).Serve(t.Context(), &d, tool.Outside{}); err == nil {
		t.Error("it has a server")
	}
}
