package conformance_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"google.golang.org/grpc"

	"agentctl.dev/agentctl/plugins/sdk/toolpb"
)

// bare is the shortest server that shakes hands.
type bare struct{ toolpb.UnimplementedToolServer }

func serveBare() {
	path := filepath.Join(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	s := grpc.NewServer()
	toolpb.RegisterToolServer(s, bare{})
	fmt.Printf("1|1|unix|%s|grpc\n", path)
	_ = s.Serve(l)
}

func (bare) Describe(context.Context, *toolpb.DescribeRequest) (*toolpb.DescribeResponse, error) {
	return &toolpb.DescribeResponse{Tools: []*toolpb.ToolInfo{{Name: "t", Description: "d", ParametersJson: []byte(`{"type":"object"}`)}}}, nil
}

func (bare) Call(_ *toolpb.CallRequest, s grpc.ServerStreamingServer[toolpb.CallEvent]) error {
	return s.Send(&toolpb.CallEvent{Event: &toolpb.CallEvent_Result{Result: &toolpb.Result{Text: "done"}}})
}
