package host_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"agentctl.dev/agentctl/plugins/sdk"
	"agentctl.dev/agentctl/plugins/sdk/toolpb"
	"agentctl.dev/agentctl/plugins/sdktest"
)

// TestMain makes the test's own binary the programs under test.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == "serve-fixtures":
		sdk.Serve(sdktest.Fixtures()...)
	case len(os.Args) > 2 && os.Args[1] == "serve-rogue":
		serveRogue(os.Args[2])
	default:
		goleak.VerifyTestMain(m)
	}
}

// rogue is a server that breaks one rule of the protocol.
type rogue struct {
	toolpb.UnimplementedToolServer
	how       string
	cancelled chan struct{}
}

func serveRogue(how string) {
	path := filepath.Join(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	s := grpc.NewServer()
	if how != "no service" {
		toolpb.RegisterToolServer(s, rogue{how: how, cancelled: make(chan struct{})})
	}
	fmt.Printf("1|1|unix|%s|grpc\n", path)
	_ = s.Serve(l)
}

func (r rogue) Describe(ctx context.Context, _ *toolpb.DescribeRequest) (*toolpb.DescribeResponse, error) {
	tool := &toolpb.ToolInfo{Name: "t", Description: "d", ParametersJson: []byte(`{"type":"object"}`)}
	tools := []*toolpb.ToolInfo{tool}
	switch r.how {
	case "no tools":
		tools = nil
	case "too many tools":
		tools = make([]*toolpb.ToolInfo, 300)
	case "bad name":
		tool.Name = "../x\x1b[0m"
	case "same name":
		tools = append(tools, tool)
	case "long description":
		tool.Description = strings.Repeat("d", 20<<10)
	case "long schema":
		tool.ParametersJson = []byte(`{"a":"` + strings.Repeat("d", 300<<10) + `"}`)
	case "schema is a list":
		tool.ParametersJson = []byte(`[]`)
	case "schema is null":
		tool.ParametersJson = []byte(`null`)
	case "silent describe":
		select {} // not even when its time is up
	case "huge describe":
		tool.ParametersJson = make([]byte, 70<<20)
	}
	return &toolpb.DescribeResponse{Tools: tools}, nil
}

func manyAttachments() (all []*toolpb.Attachment) {
	for range 1000 {
		all = append(all, &toolpb.Attachment{Name: "\x1b[2J" + strings.Repeat("n", 9000), Type: "image/\x00png", Data: []byte("x")})
	}
	return append([]*toolpb.Attachment{nil}, all...)
}

func (r rogue) Call(_ *toolpb.CallRequest, s grpc.ServerStreamingServer[toolpb.CallEvent]) error {
	result := func(res *toolpb.Result) *toolpb.CallEvent {
		return &toolpb.CallEvent{Event: &toolpb.CallEvent_Result{Result: res}}
	}
	switch r.how {
	case "no result":
		return nil
	case "two results":
		_ = s.Send(result(&toolpb.Result{}))
		return s.Send(result(&toolpb.Result{}))
	case "output after the result":
		_ = s.Send(result(&toolpb.Result{}))
		return s.Send(&toolpb.CallEvent{Event: &toolpb.CallEvent_Output{Output: &toolpb.Output{Chunk: []byte("x")}}})
	case "empty events":
		_ = s.Send(&toolpb.CallEvent{})
		_ = s.Send(&toolpb.CallEvent{Event: &toolpb.CallEvent_Output{}})
		_ = s.Send(&toolpb.CallEvent{Event: &toolpb.CallEvent_Progress{}})
		return s.Send(&toolpb.CallEvent{Event: &toolpb.CallEvent_Result{}})
	case "huge result":
		return s.Send(result(&toolpb.Result{Text: strings.Repeat("x", 70<<20)}))
	case "hostile result":
		return s.Send(result(&toolpb.Result{
			Text: strings.Repeat("é", 8<<20), IsError: true, Title: strings.Repeat("t", 5000), MetadataJson: []byte("{"), DroppedBytes: -5, Signal: "\x1b[2Jx",
			Attachments: manyAttachments(),
		}))
	case "200 MB":
		chunk := []byte(strings.Repeat("0123456789abcde\n", 2<<10))
		for range 200 << 20 / len(chunk) {
			_ = s.Send(&toolpb.CallEvent{Event: &toolpb.CallEvent_Output{Output: &toolpb.Output{Chunk: chunk}}})
		}
	case "progress":
		text := strings.Repeat("p", toolpb.MaxProgress)
		for range 20_000 {
			_ = s.Send(&toolpb.CallEvent{Event: &toolpb.CallEvent_Progress{Progress: &toolpb.Progress{Text: text}}})
		}
	case "strange wishes":
		wish := func(a *toolpb.Ask) { _ = s.Send(&toolpb.CallEvent{Event: &toolpb.CallEvent_Ask{Ask: a}}) }
		_ = s.Send(&toolpb.CallEvent{Event: &toolpb.CallEvent_Ask{}})
		wish(&toolpb.Ask{})
		wish(&toolpb.Ask{Wish: &toolpb.Ask_Question{}})
		wish(&toolpb.Ask{Wish: &toolpb.Ask_History{}})
		for id := range 10_000 {
			wish(&toolpb.Ask{Id: uint64(id), Wish: &toolpb.Ask_Question{Question: &toolpb.Question{Text: "again?"}}})
		}
	case "endless output":
		for s.Send(&toolpb.CallEvent{Event: &toolpb.CallEvent_Output{Output: &toolpb.Output{Chunk: make([]byte, 256<<10)}}}) == nil {
		}
		return nil
	case "status":
		return status.Error(codes.FailedPrecondition, "set\x1b[31m TOKEN")
	case "odd status":
		return status.Error(codes.PermissionDenied, "no")
	case "half, then never", "never", "never, no cancel":
		_ = s.Send(&toolpb.CallEvent{Event: &toolpb.CallEvent_Progress{Progress: &toolpb.Progress{Text: "half"}}})
		<-time.After(time.Hour)
	case "ends as it is cancelled", "ends late":
		_ = s.Send(&toolpb.CallEvent{Event: &toolpb.CallEvent_Progress{Progress: &toolpb.Progress{Text: "half"}}})
		<-r.cancelled
		if r.how == "ends late" {
			<-time.After(350 * time.Millisecond)
		}
		return s.Send(result(&toolpb.Result{Text: "half and all"}))
	}
	return s.Send(result(&toolpb.Result{Text: "fine"}))
}

func (r rogue) Cancel(ctx context.Context, req *toolpb.CancelRequest) (*toolpb.CancelResponse, error) {
	switch r.how {
	case "never":
		<-ctx.Done()
	case "ends as it is cancelled", "ends late":
		close(r.cancelled)
		return &toolpb.CancelResponse{}, nil
	}
	return r.UnimplementedToolServer.Cancel(ctx, req)
}
