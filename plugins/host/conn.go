package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"agentctl.dev/agentctl/plugins/sdk/toolpb"
)

// Bounds of a description.
const (
	maxTools       = 256
	maxDescription = 16 << 10
	maxParameters  = 256 << 10
)

// callable reports whether a model can be offered a tool of this name: 1 to 64 letters,
// digits, _ and -.
func callable(name string) bool {
	strange := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	}
	return len(name) >= 1 && len(name) <= 64 && !strings.ContainsFunc(name, strange)
}

// connect dials the socket. The connection is made by the first RPC, which is
// Describe, and never again: without the socket's file a second dial fails, and
// that is the end of the program. So gRPC must not let it fall asleep either.
func (p *Plugin) connect(addr string, maxMessage int) error {
	conn, err := grpc.NewClient("passthrough:///plugin",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", addr)
		}),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		// Fixed windows: gRPC otherwise measures the path by a ping and its answer
		// with every message, which on a local socket costs more than the call.
		grpc.WithInitialWindowSize(toolpb.Window),
		grpc.WithInitialConnWindowSize(toolpb.Window),
		grpc.WithIdleTimeout(0),
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableRetry(),
	)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	p.conn, p.client = conn, toolpb.NewToolClient(conn)
	return nil
}

// describe asks what the program serves and refuses what no model could be offered.
func (p *Plugin) describe(ctx context.Context) ([]ToolInfo, error) {
	resp, err := p.client.Describe(ctx, &toolpb.DescribeRequest{})
	if err != nil {
		return nil, err
	}
	if n := len(resp.GetTools()); n == 0 || n > maxTools {
		return nil, broken("it describes %d tools; 1 to %d are possible", n, maxTools)
	}
	seen := map[string]bool{}
	tools := make([]ToolInfo, 0, len(resp.GetTools()))
	for _, t := range resp.GetTools() {
		var object map[string]json.RawMessage
		switch {
		case !callable(t.GetName()):
			return nil, broken("it describes a tool named %q, which is not one of [A-Za-z0-9_-]{1,64}", excerpt(t.GetName()))
		case seen[t.GetName()]:
			return nil, broken("it describes two tools named %q", t.GetName())
		case len(t.GetDescription()) > maxDescription:
			return nil, broken("tool %q: its description is over %d bytes", t.GetName(), maxDescription)
		case len(t.GetParametersJson()) > maxParameters:
			return nil, broken("tool %q: its schema is over %d bytes", t.GetName(), maxParameters)
		case json.Unmarshal(t.GetParametersJson(), &object) != nil || object == nil:
			return nil, broken("tool %q: its schema is not a JSON object", t.GetName())
		}
		seen[t.GetName()] = true
		tools = append(tools, ToolInfo{Name: t.GetName(), Description: t.GetDescription(), Parameters: t.GetParametersJson()})
	}
	return tools, nil
}

// broken is a breach of the protocol.
func broken(format string, args ...any) *Error {
	return &Error{Kind: KindProtocol, Err: fmt.Errorf(format, args...)}
}

var errClosed = errors.New("it has been closed")
