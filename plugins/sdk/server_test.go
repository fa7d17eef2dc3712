package sdk

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"agentctl.dev/agentctl/plugins/sdk/toolpb"
)

var past = time.Unix(0, 0)

// recorder is a stream that keeps what is sent.
type recorder struct {
	ctx    context.Context
	events []*toolpb.CallEvent
}

func (r *recorder) Send(e *toolpb.CallEvent) error {
	if o := e.GetOutput(); o != nil { // the sender may use its buffer again
		o.Chunk = bytes.Clone(o.GetChunk())
	}
	r.events = append(r.events, e)
	return nil
}

func (r *recorder) Context() context.Context     { return r.ctx }
func (r *recorder) SetHeader(metadata.MD) error  { return nil }
func (r *recorder) SendHeader(metadata.MD) error { return nil }
func (r *recorder) SetTrailer(metadata.MD)       {}
func (r *recorder) SendMsg(any) error            { return nil }
func (r *recorder) RecvMsg(any) error            { return nil }

// text is the whole text of the call, and its result, which must come last.
func (r *recorder) text(t *testing.T) (string, *toolpb.Result) {
	t.Helper()
	var b strings.Builder
	for i, e := range r.events {
		if o := e.GetOutput(); o != nil {
			if len(o.GetChunk()) > toolpb.MaxChunk || len(o.GetChunk()) == 0 {
				t.Errorf("chunk of %d bytes", len(o.GetChunk()))
			}
			b.Write(o.GetChunk())
		}
		if res := e.GetResult(); res != nil {
			if i != len(r.events)-1 {
				t.Errorf("the result is event %d of %d", i, len(r.events))
			}
			return b.String() + res.GetText(), res
		}
	}
	t.Fatalf("no result in %v", r.events)
	return "", nil
}

func serve(t *testing.T, req *toolpb.CallRequest, f func(context.Context, *Call, struct{}) (*Result, error)) (*recorder, error) {
	t.Helper()
	s, err := newServer([]Tool{New("t", "d", f)})
	if err != nil {
		t.Fatal(err)
	}
	if req.Tool == "" {
		req.Tool = "t"
	}
	req.ArgsJson = []byte(`{}`)
	r := &recorder{ctx: t.Context()}
	return r, s.Call(req, r)
}

func TestLargeTextsAreSentInPieces(t *testing.T) {
	for name, c := range map[string]struct {
		output, text int
		limit        int64
		want         int
		dropped      int64
	}{
		"small":               {output: 10, text: 10, want: 20},
		"large output":        {output: 100 << 10, text: 3, want: 100<<10 + 3},
		"large text":          {text: 100 << 10, want: 100 << 10},
		"output over limit":   {output: 50, text: 10, limit: 20, want: 20, dropped: 40},
		"text over limit":     {text: 100 << 10, limit: 20, want: 20, dropped: 100<<10 - 20},
		"more than the bound": {output: 11 << 20, limit: 1 << 40, want: 10 << 20, dropped: 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := serve(t, &toolpb.CallRequest{MaxOutputBytes: c.limit}, func(_ context.Context, call *Call, _ struct{}) (*Result, error) {
				_, _ = io.Copy(call.Output(), strings.NewReader(strings.Repeat("o", c.output)))
				return &Result{Text: strings.Repeat("t", c.text)}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			text, res := r.text(t)
			if len(text) != c.want || res.GetDroppedBytes() != c.dropped {
				t.Errorf("%d bytes, %d dropped, want %d and %d", len(text), res.GetDroppedBytes(), c.want, c.dropped)
			}
		})
	}
}

func TestADeafFunctionDoesNotHoldBackItsOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		start := time.Now()
		r, err := serve(t, &toolpb.CallRequest{DeadlineMs: 1000}, func(_ context.Context, call *Call, _ struct{}) (*Result, error) {
			_, _ = io.WriteString(call.Output(), "so far\n")
			<-release
			_, _ = io.WriteString(call.Output(), "too late")
			call.Progress("too late")
			return nil, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d != time.Second+deafGrace {
			t.Errorf("answered after %v", d)
		}
		close(release)
		synctest.Wait()
		text, res := r.text(t)
		if res.GetCode() != CodeTimeout || !res.GetIsError() || !strings.HasPrefix(text, "so far\ntimed out after") {
			t.Errorf("text %q, result %v", text, res)
		}
	})
}

func TestCancelWaitsForTheFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s, err := newServer([]Tool{New("t", "d", func(ctx context.Context, _ *Call, _ struct{}) (*Result, error) {
			<-ctx.Done()
			<-release
			return nil, ctx.Err()
		})})
		if err != nil {
			t.Fatal(err)
		}
		r := &recorder{ctx: t.Context()}
		over := make(chan error, 1)
		go func() { over <- s.Call(&toolpb.CallRequest{Tool: "t", ArgsJson: []byte(`{}`), Ticket: 7}, r) }()
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Cancel(short, &toolpb.CancelRequest{Ticket: 7}); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("cancel = %v, want it to wait while the function is at work", err)
		}
		close(release)
		if err := <-over; err != nil {
			t.Fatal(err)
		}
		if _, res := r.text(t); res.GetCode() != CodeCancelled {
			t.Errorf("result = %v, want cancelled", res)
		}
		for _, ticket := range []uint64{7, 8, 0} {
			if _, err := s.Cancel(t.Context(), &toolpb.CancelRequest{Ticket: ticket}); err != nil {
				t.Errorf("cancel of a call that is over: %v", err)
			}
		}
		if len(s.running) != 0 {
			t.Errorf("%d calls are remembered", len(s.running))
		}
	})
}

func TestProgressIsThinnedButEndsWithTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := serve(t, &toolpb.CallRequest{}, func(_ context.Context, call *Call, _ struct{}) (*Result, error) {
			for i := range 100 { // every 5 ms for half a second
				call.Progress(strings.Repeat("é", 3000) + string(rune('A'+i%26)))
				time.Sleep(5 * time.Millisecond)
			}
			call.Progress("newest")
			time.Sleep(time.Second)
			return nil, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range r.events {
			if p := e.GetProgress(); p != nil {
				got = append(got, p.GetText())
			}
		}
		if len(got) < 5 || len(got) > 7 || got[len(got)-1] != "newest" {
			t.Errorf("%d progress events, last %.10q, want about 6 and newest", len(got), got[len(got)-1])
		}
		if len(got[0]) > toolpb.MaxProgress || !strings.HasSuffix(got[0], "éA") || strings.ContainsRune(got[0], '\uFFFD') {
			t.Errorf("progress of %d bytes, %.10q", len(got[0]), got[0])
		}
	})
}

func TestResultsAreMadeFitForTheWire(t *testing.T) {
	code := 3
	r, err := serve(t, &toolpb.CallRequest{}, func(context.Context, *Call, struct{}) (*Result, error) {
		return &Result{Text: "a\xff", Title: "b\xff", ExitCode: &code, Signal: "killed", Writes: true, Metadata: map[string]int{"n": 1}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	_, res := r.text(t)
	if res.GetText() != "a\uFFFD" || res.GetTitle() != "b\uFFFD" || res.GetExitCode() != 3 || string(res.GetMetadataJson()) != `{"n":1}` || !res.GetWrites() || res.GetSignal() != "killed" {
		t.Errorf("result = %v", res)
	}
	if got := encode(strings.Repeat("x", 2<<20)); got != nil {
		t.Errorf("metadata of %d bytes was kept", len(got))
	}
	if got := encode(make(chan int)); got != nil {
		t.Errorf("metadata = %q", got)
	}
}

func TestInfrastructureIsAStatus(t *testing.T) {
	r, err := serve(t, &toolpb.CallRequest{}, func(context.Context, *Call, struct{}) (*Result, error) {
		return nil, errors.New("no such host")
	})
	if status.Code(err) != codes.Internal || !strings.Contains(err.Error(), `tool "t": no such host`) || len(r.events) != 0 {
		t.Errorf("error = %v, events %v", err, r.events)
	}
	r, err = serve(t, &toolpb.CallRequest{Tool: "other"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if text, res := r.text(t); res.GetCode() != CodeUnknownTool || !strings.Contains(text, `"other"`) {
		t.Errorf("text %q, result %v", text, res)
	}
}

func TestDescribeServesEveryTool(t *testing.T) {
	s, err := newServer([]Tool{New("a", "A.", greet), New("b", "B.", greet)})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.Describe(t.Context(), nil)
	if err != nil || len(resp.GetTools()) != 2 || resp.GetTools()[1].GetName() != "b" || resp.GetTools()[1].GetDescription() != "B." {
		t.Errorf("describe = %v, %v", resp, err)
	}
}

func TestTheHandshakeIsHiddenAndTheProgramEndsAlone(t *testing.T) {
	t.Setenv(toolpb.CookieKey, toolpb.CookieValue)
	t.Setenv("PLUGIN_UNIX_SOCKET_DIR", "/tmp/x")
	t.Setenv("DECLARED", "yes")
	s, err := newServer([]Tool{New("a", "A.", greet)})
	if err != nil {
		t.Fatal(err)
	}
	g := &process{server: s}
	server := g.newGRPC()
	defer server.Stop()
	if err := g.register(server); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{toolpb.CookieKey: "", "PLUGIN_UNIX_SOCKET_DIR": "", "DECLARED": "yes"} {
		if got := os.Getenv(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	ctx := g.TagConn(t.Context(), nil)
	g.HandleConn(ctx, &stats.ConnBegin{})
	g.HandleRPC(g.TagRPC(ctx, nil), nil)
	g.HandleConn(ctx, &stats.ConnBegin{})
	g.HandleConn(ctx, &stats.ConnEnd{})
	if g.timer.Stop() {
		t.Error("it is about to end although a caller is connected")
	}
	g.HandleConn(ctx, &stats.ConnEnd{})
	if !g.timer.Stop() {
		t.Error("it stays although its last caller has gone")
	}
	var _ grpc.ServiceRegistrar = server
}

func TestASocketFitsIntoTheFolderThatACallerChooses(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		path := socketPath("/dir")
		if len(path) > len("/dir/plugin4294967295") || seen[path] {
			t.Errorf("the path %s is too long, or not new", path)
		}
		seen[path] = true
	}
}

// An unanswered question ends with the call, not with the context that the tool has
// passed, and none is sent after the result.
func TestAQuestionDoesNotOutliveItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		after := make(chan error, 2)
		r, err := serve(t, &toolpb.CallRequest{Ticket: 1, DeadlineMs: 1000}, func(ctx context.Context, call *Call, _ struct{}) (*Result, error) {
			_, err := call.Ask(context.WithoutCancel(ctx), "?")
			after <- err
			<-time.After(time.Minute)
			_, err = call.History(context.WithoutCancel(ctx), 1)
			after <- err
			return nil, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, res := r.text(t); res.GetCode() != CodeTimeout {
			t.Errorf("result = %v", res)
		}
		for range 2 {
			if err := <-after; !errors.Is(err, errOver) {
				t.Errorf("error = %v, want %v", err, errOver)
			}
		}
		if n := len(r.events); n != 2 || r.events[0].GetAsk().GetQuestion() == nil {
			t.Errorf("%d events: %v, want a question and a result", n, r.events)
		}
	})
}

func TestAnAnswerNobodyWaitsForGoesNowhere(t *testing.T) {
	s, err := newServer([]Tool{New("t", "d", func(context.Context, *Call, struct{}) (*Result, error) { return nil, nil })})
	if err != nil {
		t.Fatal(err)
	}
	_, f, land := s.takeOff(t.Context(), 7)
	defer land()
	for _, req := range []*toolpb.AnswerRequest{{}, {Ticket: 7, Id: 1}, {Ticket: 7, Id: 1}, {Ticket: 8}} {
		if _, err := s.Answer(t.Context(), req); err != nil {
			t.Errorf("answer %v: %v", req, err)
		}
	}
	if len(f.wishes.open) != 0 {
		t.Errorf("open wishes: %v", f.wishes.open)
	}
}
