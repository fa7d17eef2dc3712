package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"

	"agentctl.dev/agentctl/plugins/sdk/toolpb"
)

// CallRequest is one call of a tool.
type CallRequest struct {
	Tool string
	// Args is a JSON object that satisfies the tool's schema.
	Args json.RawMessage
	// ID of the call; Run, Agent, Session and Message identify the caller.
	ID, Run, Agent, Session, Message string
	// Workspace is the root of the run's files as the program sees them.
	Workspace string
	// Hidden are files, relative to the workspace, that a search must leave out.
	Hidden []string
	// Outside are files and folders outside the workspace that the call may use.
	Outside []OutsidePath
	// Variables are secrets that results of other tools have supplied for this call.
	Variables []Variable
	// Binding bounds what the call may do besides reading; nil: its isolation alone does.
	Binding *Binding
	// RecordPrograms asks for what the call executes in the record of its result. A call
	// with a binding is recorded whole without being asked.
	RecordPrograms bool
	// Key is the idempotency key.
	Key string
	// Timeout of the call; 0 is no timeout. After it, the call is an error result with
	// code timeout and the output so far.
	Timeout time.Duration
	// MaxOutput bounds the text; 0 and more than 10 MiB are 10 MiB.
	MaxOutput int64
	// Ask puts a question of the call to a person and returns the answer: one of the
	// options, if there are any. The tool receives its error as the reason why there is no
	// answer. Its context ends with the call. The caller records the question and its
	// answer. Nil: no person can be asked.
	Ask func(ctx context.Context, q Question) (string, error)
	// History returns what has been said in the run, at most the newest of that
	// number unless it is 0, the oldest of them first. Nil: the run gives none.
	History func(ctx context.Context, most int) ([]Message, error)
	// Inform is called with what the call says of itself while it runs: a title, and a JSON
	// object or nil. Nil: nobody looks. It must not block.
	Inform func(title string, metadata json.RawMessage)
}

// OutsidePath is a file or folder outside the workspace that a call may use: as
// its arguments name it, and where it is.
type OutsidePath struct {
	Name, Path string
	Writable   bool
}

// Event is something a call shows before its result: exactly one of the two.
type Event struct {
	// Progress is the newest output, for watchers.
	Progress string
	// Output is a piece of the result's text. It may end inside a character, and is valid
	// only during the callback.
	Output []byte
}

// CallResult is what a call came to.
type CallResult struct {
	// Text is what the tool wrote and then said, at most MaxOutput bytes.
	Text string
	// ExitCode and Signal of the program behind the call, where there is one.
	ExitCode *int
	Signal   string
	// Title is a short line for people; it is not cleaned for a terminal.
	Title string
	// Metadata is JSON for programs, or nil.
	Metadata json.RawMessage
	// Parts are data for other programs, as the tool names them.
	Parts []Part
	// Variables are secrets for later calls, as the tool sends them: neither names nor
	// values have been checked.
	Variables []Variable
	// Writes is true if the call may have changed files.
	Writes bool
	// IsError is true if the call failed in a way the model should read; Code is the kind
	// of failure.
	IsError bool
	Code    string
	// Dropped counts the bytes of text above MaxOutput.
	Dropped int64
	// Attachments are files for the model to look at, at most 16. The caller checks their
	// content.
	Attachments []Attachment
	// Record is what the call did, as its program claims; nil where it claims nothing.
	Record *Record
}

// Attachment is a file that a call returned. Name and Type are a program's text.
type Attachment struct {
	Name, Type string
	Data       []byte
}

// maxAttachments is more than a caller keeps, so that it can say how many there were.
const maxAttachments = 16

const (
	// hardOutput bounds a call's text whatever the caller allows.
	hardOutput = 10 << 20
	// lateAnswer is how long after its timeout a call may still answer: the SDK
	// needs half a second for a function that does not listen.
	lateAnswer = 3 * time.Second
	maxTitle   = 1 << 10
)

// Codes that the host itself gives.
const (
	codeTool      = "tool"
	codeTimeout   = "timeout"
	codeCancelled = "cancelled"
)

// Call runs a tool and hands its events to on, one at a time, before it
// returns. on must not block: a cancel waits for it.
//
//	result   error       when
//	non-nil  nil         the tool answered, well or badly, or its time ran out; also
//	                     when it had done its work as the context ended
//	non-nil  ctx's       the context ended: what there was of the output, with code
//	                     cancelled, at most 0.75 s later; the tool has 2 s to let go
//	nil      ctx's       the context had ended before
//	nil      *Error      the tool could not be asked, or its program broke
func (p *Plugin) Call(ctx context.Context, req CallRequest, on func(Event)) (*CallResult, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	// The RPC is independent of the caller's context: when that ends we return at once,
	// but the tool is first asked to stop and then cut off.
	rpc, cut := context.WithCancel(context.WithoutCancel(ctx))
	ticket, f, ok := p.calls.open(cut)
	if !ok {
		cut()
		return nil, &Error{Kind: KindClosed, Plugin: p.name, Err: errClosed}
	}
	r := newReception(req, on)
	defer r.limit.close()
	defer r.informs.close()
	asking, enough := context.WithCancel(ctx)
	defer enough() // who is asked for a call that is over is let go
	w := &wisher{plugin: p, req: &req, ticket: ticket}
	r.wish = func(a *toolpb.Ask) { w.grant(asking, a) }
	go func() { // sending, too, may block on a program that does not read
		defer close(f.over)
		stream, err := p.client.Call(rpc, req.wire(ticket), grpc.ForceCodecV2(p.codec))
		if err != nil {
			r.err = err
			return
		}
		r.receive(stream)
	}()
	var late <-chan time.Time
	if req.Timeout > 0 {
		t := time.NewTimer(req.Timeout + lateAnswer)
		defer t.Stop()
		late = t.C
	}
	select {
	case <-f.over:
		return p.landed(r, req, ticket)
	case <-late:
		r.mute()
		p.calls.letGo(ticket, p)
		return r.timedOut(req.Timeout), nil
	case <-ctx.Done():
		r.mute()
		p.calls.letGo(ticket, p)
		return p.cancelled(r, f, context.Cause(ctx))
	}
}

const (
	// asIs is how long after a cancel a result still counts as a success: the tool had
	// finished before it received the cancel.
	asIs = 250 * time.Millisecond
	// letGoWait is how long after a cancel the output so far is awaited: the SDK
	// needs half a second for a function that does not listen.
	letGoWait = 750 * time.Millisecond
)

// waits are how long a cancelled call is waited for.
type waits struct{ asIs, letGo time.Duration }

// cancelled settles a call that was asked to let go.
func (p *Plugin) cancelled(r *reception, f *flight, cause error) (*CallResult, error) {
	began := time.Now()
	late := time.NewTimer(p.waits.letGo)
	defer late.Stop()
	select {
	case <-f.over:
	case <-late.C:
		return r.stopped(), cause
	}
	if r.err != nil {
		return r.stopped(), cause
	}
	if r.res.Code != codeCancelled && time.Since(began) <= p.waits.asIs {
		return r.res, nil
	}
	res := *r.res
	res.IsError, res.Code, res.Writes = true, codeCancelled, true // what it did is unknown
	res.Text = r.whole(res.Text)
	return &res, cause
}

// landed settles a call whose stream has ended.
func (p *Plugin) landed(r *reception, req CallRequest, ticket uint64) (*CallResult, error) {
	if r.err != nil {
		p.calls.close(ticket)
		if p.calls.isRefused() {
			return nil, &Error{Kind: KindClosed, Plugin: p.name, Err: errClosed}
		}
		if e, ok := errors.AsType[*Error](r.err); ok { // it broke the rules; what else it does is unknown
			e.Plugin, e.Stderr = p.name, p.stderr.lines()
			p.guard.kill("it broke the protocol")
			return nil, e
		}
		e := p.callError(req.Tool, r.err)
		if e.Kind == KindCrashed {
			p.guard.kill("its connection was lost") // whatever is left of it
		}
		return nil, e
	}
	if r.res.Code == codeTimeout || r.res.Code == codeCancelled {
		p.calls.letGo(ticket, p) // the answer came, but the function may still run
	} else {
		p.calls.close(ticket)
	}
	return r.res, nil
}

func (r CallRequest) wire(ticket uint64) *toolpb.CallRequest {
	return &toolpb.CallRequest{
		Tool: r.Tool, ArgsJson: r.Args, CallId: r.ID, Run: r.Run, Agent: r.Agent, Session: r.Session, Message: r.Message,
		Workspace: r.Workspace, DeadlineMs: millis(r.Timeout), MaxOutputBytes: r.limit(), IdempotencyKey: r.Key, Ticket: ticket, Hidden: r.Hidden, Outside: r.outside(),
		Variables: given(r.Variables), Binding: r.Binding.message(), RecordPrograms: r.RecordPrograms,
	}
}

// millis rounds up: a timeout below a millisecond must not become none.
func millis(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return (d + time.Millisecond - 1).Milliseconds()
}

func (r CallRequest) outside() []*toolpb.OutsidePath {
	var paths []*toolpb.OutsidePath
	for _, p := range r.Outside {
		paths = append(paths, &toolpb.OutsidePath{Name: p.Name, Path: p.Path, Writable: p.Writable})
	}
	return paths
}

func (r CallRequest) limit() int64 {
	if r.MaxOutput > 0 && r.MaxOutput < hardOutput {
		return r.MaxOutput
	}
	return hardOutput
}

// reception collects what a call sends.
type reception struct {
	// wish is called with the requests of the call; it must not block.
	wish func(*toolpb.Ask)

	mu   sync.Mutex
	on   func(Event)
	text keeper
	// progress is the newest: what a call that is cut off may have to show of
	// its output.
	progress string
	// limit bounds how much progress is shown, informs how much of its metadata.
	limit, informs *throttle

	res *CallResult
	err error
}

func newReception(req CallRequest, on func(Event)) *reception {
	if on == nil {
		on = func(Event) {}
	}
	r := &reception{text: keeper{limit: int(req.limit())}, on: on, wish: func(*toolpb.Ask) {}}
	r.limit, r.informs = newThrottle(r.report), informing(req.Inform)
	return r
}

// receive reads to the end of the stream: any number of events, one result,
// nothing after it.
func (r *reception) receive(stream grpc.ServerStreamingClient[toolpb.CallEvent]) {
	var f frame
	for {
		err := stream.RecvMsg(&f)
		switch {
		case errors.Is(err, io.EOF) && r.res == nil:
			r.err = broken("the call ended without a result")
			return
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			r.res, r.err = nil, err
			return
		case r.res != nil:
			r.res, r.err = nil, broken("it sent more after the result of a call")
			return
		}
		if f.output {
			r.add(f.chunk)
			f.free()
			continue
		}
		switch e := f.event.GetEvent().(type) {
		case *toolpb.CallEvent_Progress:
			r.progressed(e.Progress)
		case *toolpb.CallEvent_Output: // with something in it that we do not know
			r.add(e.Output.GetChunk())
		case *toolpb.CallEvent_Ask:
			r.wish(e.Ask)
		case *toolpb.CallEvent_Result:
			r.add([]byte(e.Result.GetText()))
			r.res = r.result(e.Result)
		}
	}
}

// add keeps as much of a chunk as the limit allows and counts the rest.
func (r *reception) add(chunk []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if chunk = r.text.add(chunk); len(chunk) == 0 {
		return
	}
	if r.on != nil {
		r.on(Event{Output: chunk})
	}
}

func (r *reception) show(progress string) {
	r.mu.Lock()
	r.progress = progress
	r.mu.Unlock()
	r.limit.show(progress)
}

// report shows watchers a text at once: the question to a person, and progress if there is
// room.
func (r *reception) report(progress string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.on != nil {
		r.on(Event{Progress: progress})
	}
}

// mute ends the callbacks: the caller has returned or is about to.
func (r *reception) mute() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on = nil
}

func (r *reception) result(w *toolpb.Result) *CallResult {
	res := &CallResult{
		Text: r.text.string(), Signal: excerpt(w.GetSignal()), Title: head(w.GetTitle(), maxTitle),
		Writes: w.GetWrites(), IsError: w.GetIsError(), Code: excerpt(w.GetCode()), Dropped: r.text.dropped + max(w.GetDroppedBytes(), 0),
	}
	if res.IsError && res.Code == "" {
		res.Code = codeTool
	}
	if w.ExitCode != nil {
		code := int(w.GetExitCode())
		res.ExitCode = &code
	}
	for _, a := range w.GetAttachments()[:min(len(w.GetAttachments()), maxAttachments)] {
		res.Attachments = append(res.Attachments, Attachment{Name: excerpt(a.GetName()), Type: excerpt(a.GetType()), Data: a.GetData()})
	}
	res.Parts, res.Variables, res.Record = parts(w.GetParts()), variables(w.GetVariables()), record(w.GetRecord())
	if m := w.GetMetadataJson(); len(m) > 0 && len(m) <= toolpb.MaxMetadata && json.Valid(m) {
		res.Metadata = m
	}
	return res
}

// timedOut makes the result of a call that did not even answer that its time is up.
func (r *reception) timedOut(after time.Duration) *CallResult {
	res := r.soFar(codeTimeout)
	res.Text = joined(res.Text, fmt.Sprintf("timed out after %s", after))
	return res
}

// stopped makes the result of a call that was cancelled and did not answer.
func (r *reception) stopped() *CallResult { return r.soFar(codeCancelled) }

// soFar is the output so far: the text, or what watchers were shown. The effects of the
// call are unknown.
func (r *reception) soFar(code string) *CallResult {
	r.mu.Lock()
	text, dropped := r.text.string(), r.text.dropped
	r.mu.Unlock()
	return &CallResult{Text: r.whole(text), IsError: true, Code: code, Dropped: dropped, Writes: true}
}

// whole puts the newest progress before a text that does not hold it.
func (r *reception) whole(text string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if strings.Contains(text, r.progress) {
		return text
	}
	return joined(r.progress, text)
}

// joined puts a remark on a line of its own below a text.
func joined(text, remark string) string {
	if text != "" && remark != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + remark
}

// tail returns the last n bytes of s, from the start of a character on.
func tail(s string, n int) string {
	if len(s) > n {
		s = s[len(s)-n:]
	}
	return strings.ToValidUTF8(s, "")
}

// head returns the first n bytes of s, to the end of a character.
func head(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "")
}
