package conformance_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"agentctl.dev/agentctl/plugins/host/conformance"
	"agentctl.dev/agentctl/plugins/sdk/toolpb"
	"agentctl.dev/agentctl/plugins/sdktest"
)

// foreign is a tool of a program that go-plugin serves, and not the SDK.
type foreign struct {
	plugin.NetRPCUnsupportedPlugin
	bare
}

func serveGoPlugin() {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: plugin.HandshakeConfig{ProtocolVersion: toolpb.Version, MagicCookieKey: toolpb.CookieKey, MagicCookieValue: toolpb.CookieValue},
		Plugins:         plugin.PluginSet{"tool": &foreign{}},
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(opts, grpc.MaxRecvMsgSize(toolpb.MaxMessage))...)
		},
		Logger: hclog.NewNullLogger(),
	})
}

func (f *foreign) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	toolpb.RegisterToolServer(s, f)
	return nil
}

func (f *foreign) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, nil
}

func (f *foreign) Call(req *toolpb.CallRequest, s grpc.ServerStreamingServer[toolpb.CallEvent]) error {
	res := &toolpb.Result{Text: "done"}
	var args map[string]any
	switch {
	case req.GetTool() != "t":
		res = &toolpb.Result{IsError: true, Code: "unknown_tool", Text: "there is only t"}
	case json.Unmarshal(req.GetArgsJson(), &args) != nil || args == nil || len(args) > 0:
		res = &toolpb.Result{IsError: true, Code: "invalid_args", Text: "t takes no arguments"}
	}
	return s.Send(&toolpb.CallEvent{Event: &toolpb.CallEvent_Result{Result: res}})
}

// Programs that were made without our SDK, or with an older one, use go-plugin's own Serve.
func TestAProgramThatGoPluginServesIsATool(t *testing.T) {
	t.Parallel()
	env := []string{"PATH=/usr/bin:/bin"}
	r := conformance.Run(t.Context(), conformance.Options{
		Name: "test", Launch: sdktest.Launch([]string{exe(t), "goplugin"}, env, "/"), Env: env, Workspace: "/w", Parallel: 16,
		Good: []conformance.Sample{{Tool: "t", Args: json.RawMessage(`{}`)}},
	})
	if r.Failed != 0 {
		t.Errorf("%d checks failed", r.Failed)
	}
	checks := byName(r)
	for _, name := range []string{"handshake", "schema", "unknown tool", "call of t", "shutdown"} {
		if c := checks[name]; c.Outcome != conformance.Passed {
			t.Errorf("%s: %s %s", name, c.Outcome, c.Problem)
		}
	}
	for _, c := range r.Checks {
		if c.Outcome == conformance.Failed {
			t.Errorf("%s: %s", c.Name, c.Problem)
		}
	}
}
