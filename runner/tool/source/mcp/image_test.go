package mcp

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/tool"
)

// images stands for containerd: it notes what it is asked to start.
type images struct {
	tool.Images
	started []tool.Definition
	begun   bool
}

func (i *images) Begin(context.Context, []tool.Definition) { i.begun = true }

func (i *images) Speak(_ context.Context, d *tool.Definition, _ tool.Streams) (tool.Running, error) {
	i.started = append(i.started, *d)
	return nil, errors.New("no containers here")
}

func (i *images) More(d *tool.Definition, beyond tool.Outside) *tool.Definition {
	one := *d
	one.Description = beyond.Paths[0].Real
	return &one
}

// isolation makes the images those of a site.
type isolation struct{ *images }

func (isolation) Require(context.Context, *tool.Definition) error { return nil }
func (i isolation) Source(*tool.Pool) tool.Source                 { return i.images }
func (isolation) Close() error                                    { return nil }

func serverInImage(t *testing.T, kinds tool.Kinds) (*tool.Pool, tool.Definition) {
	t.Helper()
	d, err := kinds.Define(&v1alpha1.Tool{Spec: v1alpha1.ToolSpec{
		CallName: "s", WorkspaceAccess: v1alpha1.AccessReadWrite, Network: v1alpha1.Network{Mode: v1alpha1.NetworkHost},
		Isolation: v1alpha1.Isolation{Minimum: v1alpha1.IsolationSandbox, Mounts: []v1alpha1.Mount{{Path: "/data"}}},
		Source:    v1alpha1.ToolSource{MCP: &v1alpha1.MCPSource{Container: &v1alpha1.MCPContainer{Image: "oci:/x@sha256:12", Command: []string{"/s"}, RuntimeClass: "r"}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return tool.NewPool(tool.PoolOptions{Site: tool.NewSite(tool.SiteOptions{Kinds: kinds})}), d
}

// A server is asked what it serves before anything has decided what it may see.
func TestAServerInAnImageIsContainedByWhatContainsImages(t *testing.T) {
	at := &images{}
	pool, d := serverInImage(t, tool.Kinds{Kind(), {Name: "container", Level: v1alpha1.IsolationContainer, Isolate: func(*tool.Site) tool.Isolation { return isolation{at} }}})
	if !d.Contained() || d.Command != nil {
		t.Fatalf("level %q, command %v", d.Level, d.Command)
	}
	_, _ = pool.Functions(t.Context(), &d)
	_, _ = pool.Serve(t.Context(), &d, tool.Outside{})
	server, err := pool.Serve(t.Context(), &d, tool.Outside{Paths: []message.OutsidePath{{Real: "/beyond"}}})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = server.Call(t.Context(), host.CallRequest{}, func(string) {})
	pool.Begin(t.Context(), []tool.Definition{d})
	if len(at.started) != 3 || !at.begun {
		t.Fatalf("%d were started, begun is %v", len(at.started), at.begun)
	}
	for i, one := range at.started {
		c := one.Spec.Source.Container
		if c == nil || one.Spec.Source.MCP != nil || c.Image != "oci:/x@sha256:12" || !slices.Equal(c.Command, []string{"/s"}) || c.RuntimeClass != "r" {
			t.Errorf("start %d: %+v", i, one.Spec.Source)
		}
	}
	asked, calls, beyond := at.started[0].Spec, at.started[1].Spec, at.started[2]
	if asked.WorkspaceAccess != v1alpha1.AccessNone || asked.Network.Mode != v1alpha1.NetworkNone || len(asked.Isolation.Mounts) > 0 {
		t.Errorf("to be asked it is shown %+v", asked)
	}
	if calls.WorkspaceAccess != v1alpha1.AccessReadWrite || calls.Network.Mode != v1alpha1.NetworkHost || len(calls.Isolation.Mounts) != 1 {
		t.Errorf("for calls it is shown %+v", calls)
	}
	if beyond.Description != "/beyond" {
		t.Errorf("for a path outside it is shown %+v", beyond)
	}
	if d.Spec.WorkspaceAccess != v1alpha1.AccessReadWrite || d.Spec.Source.Container != nil {
		t.Error("the definition has been changed")
	}
}

func TestAServerInAnImageNeedsWhatContainsImages(t *testing.T) {
	pool, d := serverInImage(t, tool.Kinds{Kind()})
	_, err := pool.Functions(t.Context(), &d)
	if reason.Of(err) != reason.IsolationUnavailable || !strings.Contains(err.Error(), "programs of images cannot be started here") {
		t.Error(err)
	}
}
