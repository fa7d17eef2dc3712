package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"agentctl.dev/agentctl/plugins/sdk/toolpb"
)

// deafGrace is how long a function may continue after its deadline before the output so
// far is sent without it.
const deafGrace = 500 * time.Millisecond

// server answers for the tools of a program.
type server struct {
	toolpb.UnimplementedToolServer
	tools    map[string]*Tool
	describe *toolpb.DescribeResponse

	mu      sync.Mutex
	running map[uint64]*flight
}

// flight is a call that a tool has not let go of.
type flight struct {
	cancel context.CancelFunc
	over   chan struct{}
	wishes wishes
}

// newServer checks tools and makes their server.
func newServer(tools []Tool) (*server, error) {
	infos, err := describe(tools)
	if err != nil {
		return nil, err
	}
	return describedServer(tools, infos)
}

// describedServer makes the server of tools that infos describe.
func describedServer(tools []Tool, infos []toolInfo) (*server, error) {
	m, err := index(tools)
	if err != nil {
		return nil, err
	}
	s := &server{tools: m, describe: &toolpb.DescribeResponse{}, running: map[uint64]*flight{}}
	for _, i := range infos {
		s.describe.Tools = append(s.describe.Tools, &toolpb.ToolInfo{Name: i.Name, Description: i.Description, ParametersJson: i.Parameters})
	}
	return s, nil
}

// Describe implements the service.
func (s *server) Describe(context.Context, *toolpb.DescribeRequest) (*toolpb.DescribeResponse, error) {
	return s.describe, nil
}

// Cancel implements the service.
func (s *server) Cancel(ctx context.Context, req *toolpb.CancelRequest) (*toolpb.CancelResponse, error) {
	s.mu.Lock()
	f := s.running[req.GetTicket()]
	s.mu.Unlock()
	if f == nil {
		return &toolpb.CancelResponse{}, nil
	}
	f.cancel()
	select {
	case <-f.over:
		return &toolpb.CancelResponse{}, nil
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

// Answer implements the service.
func (s *server) Answer(_ context.Context, req *toolpb.AnswerRequest) (*toolpb.AnswerResponse, error) {
	s.mu.Lock()
	f := s.running[req.GetTicket()]
	s.mu.Unlock()
	if f != nil {
		f.wishes.grant(req)
	}
	return &toolpb.AnswerResponse{}, nil
}

// Recall implements the service. A memory that fails is one that is lost: the
// tools do without.
func (s *server) Recall(ctx context.Context, req *toolpb.RecallRequest) (*toolpb.RecallResponse, error) {
	for _, a := range req.GetAnswers() {
		if err := ctx.Err(); err != nil {
			return nil, status.FromContextError(err).Err()
		}
		if t := s.tools[a.GetTool()]; t != nil && t.recall != nil {
			t.remember(Past{Run: req.GetRun(), Workspace: req.GetWorkspace(), Metadata: a.GetMetadataJson()})
		}
	}
	return &toolpb.RecallResponse{}, nil
}

func (t *Tool) remember(past Past) {
	defer func() {
		if p := recover(); p != nil {
			slog.Error("tool panicked in its memory", "tool", t.name, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	t.recall(past)
}

// takeOff registers a call under its ticket; land ends it.
func (s *server) takeOff(ctx context.Context, ticket uint64) (inner context.Context, f *flight, land func()) {
	inner, cancel := context.WithCancel(ctx)
	f = &flight{cancel: cancel, over: make(chan struct{}), wishes: wishes{over: inner.Done()}}
	if ticket != 0 {
		s.mu.Lock()
		s.running[ticket] = f
		s.mu.Unlock()
	}
	return inner, f, func() {
		cancel()
		close(f.over)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.running[ticket] == f {
			delete(s.running, ticket)
		}
	}
}

// lastGrace is how long the calls of a program that ends may take to end: what
// they have started is asked first, then killed.
const lastGrace = 4 * time.Second

// endAll cancels every call and waits until all have let go.
func (s *server) endAll() {
	s.mu.Lock()
	flights := slices.Collect(maps.Values(s.running))
	s.mu.Unlock()
	for _, f := range flights {
		f.cancel()
	}
	limit := time.NewTimer(lastGrace)
	defer limit.Stop()
	for _, f := range flights {
		select {
		case <-f.over:
		case <-limit.C:
			return
		}
	}
}

// Call implements the service.
func (s *server) Call(req *toolpb.CallRequest, stream grpc.ServerStreamingServer[toolpb.CallEvent]) error {
	sink := &sender{stream: stream}
	t := s.tools[req.GetTool()]
	if t == nil {
		return sink.result(&Result{Text: fmt.Sprintf("this program serves no tool %q", req.GetTool()), IsError: true, Code: CodeUnknownTool}, 0)
	}
	ctx := stream.Context()
	if ms := req.GetDeadlineMs(); ms > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
		defer cancel()
	}
	call := newCall(req)
	call.out.sink, call.progress.sink, call.inform.sink = sink.output, sink.progress, sink.progress
	res, err := s.await(ctx, t, call, req, sink)
	sink.close()
	call.progress.close()
	call.inform.close()
	if err != nil {
		call.out.close()
		return status.Errorf(codes.Internal, "tool %q: %v", t.name, err)
	}
	if len(res.Text) > toolpb.MaxChunk || !call.out.fits(len(res.Text), call.limit()) {
		call.out.write([]byte(res.Text), call.limit())
		res.Text = ""
	}
	return sink.result(res, call.out.close())
}

func newCall(req *toolpb.CallRequest) *Call {
	return &Call{
		ID: req.GetCallId(), Run: req.GetRun(), Agent: req.GetAgent(), Session: req.GetSession(), Message: req.GetMessage(),
		Workspace: req.GetWorkspace(), Key: req.GetIdempotencyKey(), MaxOutput: req.GetMaxOutputBytes(), Hidden: req.GetHidden(),
		Outside: outside(req.GetOutside()), Variables: variables(req.GetVariables()),
		Binding: binding(req.GetBinding()), RecordPrograms: req.GetRecordPrograms(),
	}
}

// await runs the tool and waits for it, but not much longer than its context lasts: a
// function that ignores its context must not hold back the output so far. Such a function
// continues in its goroutine; the caller kills the program if it does not end either.
func (s *server) await(ctx context.Context, t *Tool, call *Call, req *toolpb.CallRequest, sink *sender) (*Result, error) {
	type outcome struct {
		res *Result
		err error
	}
	done := make(chan outcome, 1)
	start := time.Now()
	ctx, f, land := s.takeOff(ctx, req.GetTicket())
	if req.GetTicket() != 0 { // an answer could not find its way without
		call.AskFunc = func(ctx context.Context, question string, options []string) (string, error) {
			return f.wishes.question(ctx, sink.ask, question, options)
		}
		call.HistoryFunc = func(ctx context.Context, most int) ([]Message, error) {
			return f.wishes.history(ctx, sink.ask, most)
		}
	}
	go func() {
		defer land()
		res, err := t.run(ctx, call, req.GetArgsJson())
		done <- outcome{res, err}
	}()
	select {
	case o := <-done:
		return o.res, o.err
	case <-ctx.Done():
	}
	late := time.NewTimer(deafGrace)
	defer late.Stop()
	select {
	case o := <-done:
		return o.res, o.err
	case <-late.C:
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &Result{Text: fmt.Sprintf("timed out after %s", time.Since(start).Round(time.Millisecond)), IsError: true, Code: CodeTimeout}, nil
	}
	return &Result{Text: "cancelled", IsError: true, Code: CodeCancelled}, nil
}

// sender writes events of one call, one at a time: a gRPC stream has one writer.
type sender struct {
	mu     sync.Mutex
	stream grpc.ServerStreamingServer[toolpb.CallEvent]
	closed bool
}

// errOver is what a function gets that asks after its call has been answered.
var errOver = errors.New("the call is over")

// ask sends a wish, unless the call has been answered: only the result may come then.
func (s *sender) ask(e *toolpb.CallEvent) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errOver
	}
	return s.stream.Send(e)
}

func (s *sender) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// send ignores errors: the only one is that the caller left, which the context reports
// too.
func (s *sender) send(e *toolpb.CallEvent) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stream.Send(e)
}

func (s *sender) output(chunk []byte) {
	_ = s.send(&toolpb.CallEvent{Event: &toolpb.CallEvent_Output{Output: &toolpb.Output{Chunk: chunk}}})
}

func (s *sender) progress(event *toolpb.Progress) {
	_ = s.send(&toolpb.CallEvent{Event: &toolpb.CallEvent_Progress{Progress: event}})
}

func (s *sender) result(r *Result, dropped int64) error {
	p := &toolpb.Result{
		Text: valid(r.Text), IsError: r.IsError, Code: valid(r.Code), Signal: valid(r.Signal), Title: valid(r.Title),
		MetadataJson: encode(r.Metadata), Writes: r.Writes, DroppedBytes: dropped,
	}
	if r.ExitCode != nil {
		code := int32(*r.ExitCode) //nolint:gosec // an exit code of the kernel has 8 bits
		p.ExitCode = &code
	}
	p.Parts, p.Variables, p.Record = parts(r.Parts), supplied(r.Variables), r.Record.message()
	size := 0
	for _, a := range r.Attachments {
		if size += len(a.Data); size > attachedLimit {
			slog.Error("attachments of a result dropped", "from", a.Name, "limit", attachedLimit)
			break
		}
		p.Attachments = append(p.Attachments, &toolpb.Attachment{Name: valid(a.Name), Type: valid(a.Type), Data: a.Data})
	}
	return s.send(&toolpb.CallEvent{Event: &toolpb.CallEvent_Result{Result: p}})
}

// valid makes s acceptable to a proto3 string.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// encode turns metadata into JSON. Losing it must not lose the result, so a mistake is only logged.
func encode(v any) []byte {
	if v == nil {
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		slog.Error("metadata of a result dropped", "error", err)
		return nil
	}
	if len(b) > toolpb.MaxMetadata {
		slog.Error("metadata of a result dropped", "bytes", len(b), "limit", toolpb.MaxMetadata)
		return nil
	}
	return b
}

// parts are those that a caller takes.
func parts(all []Part) (sent []*toolpb.Part) {
	size := 0
	for _, part := range all {
		b, err := json.Marshal(part.Data)
		if size += len(b); err != nil || len(b) > toolpb.MaxPart || size > toolpb.MaxAllParts || len(sent) == toolpb.MaxParts {
			slog.Error("part of a result dropped", "type", part.Type, "bytes", len(b), "error", err)
			continue
		}
		sent = append(sent, &toolpb.Part{Type: valid(part.Type), DataJson: b})
	}
	return sent
}
