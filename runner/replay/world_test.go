package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/cassette"
	"agentctl.dev/agentctl/runner/loop"
)

// world is the environment of a recorded run: everything in it is made up, and derived
// from one seed.
type world struct {
	t       testing.TB
	answers []turn
	// stopAt is the number of events after which the run is stopped; 0 is never.
	stopAt int
	why    error

	mu     sync.Mutex
	rand   *rand.Rand
	now    time.Time
	ids    int
	events []event.Event
	stop   context.CancelCauseFunc
}

// turn is what the model does when it is asked.
type turn struct {
	out  message.Output
	emit []message.Delta
	err  error
	// block waits for the end of the run in the middle of the answer.
	block bool
}

func newWorld(t testing.TB, seed uint64, answers ...turn) *world {
	t.Helper()
	return &world{t: t, answers: answers, rand: rand.New(rand.NewPCG(seed, 1)), now: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
}

// say is a streamed text; calls are written as "tool {args}".
func (w *world) say(text string, calls ...string) turn {
	t := turn{out: message.Output{Text: text, Finish: message.FinishStop, Usage: message.Usage{Input: 10, Output: 5}, Model: message.ModelRef{Name: "m", Provider: "fake"}}}
	for i, c := range calls {
		tool, args, _ := strings.Cut(c, " ")
		t.out.Calls = append(t.out.Calls, message.CallRequest{ID: fmt.Sprintf("c%d-%d", w.rand.IntN(1<<30), i), Tool: tool, Args: args})
		t.out.Finish = message.FinishToolCalls
	}
	t.emit = w.pieces(&t.out)
	return t
}

// pieces streams an answer in some order; what is left out comes with the answer.
func (w *world) pieces(out *message.Output) (all []message.Delta) {
	type source struct {
		delta message.Delta
		rest  string
	}
	var open []*source
	add := func(d message.Delta, text string) {
		if text != "" && w.rand.IntN(5) > 0 {
			open = append(open, &source{d, text})
		}
	}
	add(message.Delta{Kind: message.DeltaReasoning}, out.Reasoning)
	add(message.Delta{Kind: message.DeltaText}, out.Text)
	for i, c := range out.Calls {
		if i > 0 && len(open) == 0 {
			break
		}
		s := &source{message.Delta{Kind: message.DeltaTool, Index: i, Call: c.ID, Tool: c.Tool}, c.Args}
		if len(all) > 0 || i == 0 {
			all = append(all, s.delta)
		}
		if i > 0 {
			all = append(all, s.delta)
		}
		open = append(open, s)
	}
	for len(open) > 0 {
		i := w.rand.IntN(len(open))
		s := open[i]
		n := min(len(s.rest), 1+w.rand.IntN(40))
		d := s.delta
		d.Text, s.rest = s.rest[:n], s.rest[n:]
		all = append(all, d)
		if s.rest == "" {
			open = append(open[:i], open[i+1:]...)
		}
	}
	return all
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tick()
}

func (w *world) tick() time.Time {
	w.now = w.now.Add(time.Duration(w.rand.IntN(40)) * time.Millisecond)
	return w.now
}

func (w *world) id(kind string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids++
	return fmt.Sprintf("%s-%d", kind, w.ids)
}

// Append implements loop.Journal. As a journal it writes milliseconds and reads
// back what it has written.
func (w *world) Append(e event.Event) (event.Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.Time.IsZero() {
		e.Time = w.tick()
	}
	e.Seq, e.Run = int64(len(w.events)+1), "r-1"
	line, err := e.AppendJSON(nil)
	if err != nil {
		return e, err
	}
	var back event.Event
	if err := back.UnmarshalJSON(line); err != nil {
		return e, err
	}
	w.events = append(w.events, back)
	if w.stopAt > 0 && len(w.events) >= w.stopAt && w.stop != nil {
		w.stop(w.why)
	}
	return back, nil
}

func (w *world) Sync() error { return nil }

func (w *world) PutBlob(b []byte) (string, error) { return (&Journal{}).PutBlob(b) }

// Decide implements loop.Gate by the name of the tool.
func (w *world) Decide(ctx context.Context, c message.ToolCall) (message.Decision, error) {
	d := message.Decision{Action: message.Allow, Rule: "test/all", Risk: "R1", Hash: "sha256:" + c.ID}
	switch {
	case ctx.Err() != nil:
		return d, context.Cause(ctx)
	case strings.HasPrefix(c.Tool, "ask"):
		d.Action, d.Rule, d.Warnings = message.Ask, "test/ask", []string{"careful"}
	case strings.HasPrefix(c.Tool, "deny"):
		d.Action, d.Rule, d.Message = message.Deny, "test/deny", "no"
	case strings.HasPrefix(c.Tool, "redact"):
		d.Action, d.Args = message.Redact, json.RawMessage(`{"x":"***"}`)
	case strings.HasPrefix(c.Tool, "turn") && c.Again:
		d.Action, d.Message = message.Deny, "it has changed"
	case strings.HasPrefix(c.Tool, "fails"):
		return d, errors.New("the rule is broken")
	}
	return d, nil
}

// Review implements loop.Gate.
func (w *world) Review(_ context.Context, c message.ToolCall, r *message.ToolResult) (*message.ToolResult, error) {
	if c.Tool == "withheld" {
		return nil, errors.New("secret")
	}
	return r, nil
}

type person struct{ w *world }

// Ask implements loop.Approver by the name of the tool.
func (p person) Ask(ctx context.Context, q message.Question) (message.Answer, error) {
	switch q.Call.Tool {
	case "ask-forever":
		<-ctx.Done()
		return message.Answer{}, context.Cause(ctx)
	case "ask-nobody":
		return message.Answer{State: message.Unanswered, By: "onAsk: Deny"}, nil
	case "ask-no":
		return message.Answer{State: message.Rejected, By: "jane"}, nil
	case "ask-end":
		return message.Answer{State: message.Rejected, By: "jane", EndRun: true}, nil
	case "ask-better":
		return message.Answer{State: message.Rejected, By: "jane", Reason: "use less"}, nil
	case "ask-broken":
		return message.Answer{}, errors.New("the terminal is gone")
	}
	return message.Answer{State: message.Approved, By: "jane"}, nil
}

type model struct{ w *world }

func (m model) Append(*message.Message) error  { return nil }
func (m model) Reset([]*message.Message) error { return nil }

func (m model) Next(ctx context.Context, req message.Request, emit func(message.Delta) error) (*message.Output, error) {
	w := m.w
	if ctx.Err() != nil {
		return nil, fmt.Errorf("model: %w", context.Cause(ctx))
	}
	if len(w.answers) == 0 {
		return &message.Output{Text: "the end", Finish: message.FinishStop}, nil
	}
	a := w.answers[0]
	w.answers = w.answers[1:]
	for _, d := range a.emit {
		if req.NoTools && d.Kind == message.DeltaTool {
			continue
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("model: %w", context.Cause(ctx))
		}
		if err := emit(d); err != nil {
			return nil, err
		}
	}
	if a.block {
		w.stop(w.why)
		<-ctx.Done()
		return nil, fmt.Errorf("model: %w", context.Cause(ctx))
	}
	if a.err != nil {
		return nil, a.err
	}
	return &a.out, nil
}

type toolbox struct{ w *world }

// Check is a small one: a call is JSON, tools that begin with "x" run alone, "no"
// is unknown, and "coerce" reads arguments otherwise.
func check(req message.CallRequest) (message.Checked, error) {
	tool := strings.ToLower(req.Tool)
	switch {
	case tool == "no":
		return message.Checked{}, &message.CallError{Code: message.CodeUnknownTool, Text: "there is no tool"}
	case !json.Valid([]byte(req.Args)):
		return message.Checked{}, &message.CallError{Code: message.CodeBadJSON, Text: "no JSON"}
	}
	c := message.Checked{Tool: tool, Args: json.RawMessage(req.Args), Signature: tool + req.Args, Exclusive: tool[0] == 'x', Repaired: tool != req.Tool}
	if tool == "coerce" {
		c.Args, c.Coerced = json.RawMessage(`{"n":5}`), true
	}
	return c, nil
}

func (b toolbox) Check(req message.CallRequest) (message.Checked, error) { return check(req) }

func (b toolbox) Run(ctx context.Context, c message.ToolCall, progress func(string)) (*message.ToolResult, error) {
	zero := 0
	switch c.Tool {
	case "stop":
		b.w.stop(b.w.why)
		<-ctx.Done()
		return &message.ToolResult{Code: message.CodeCancelled, Text: "cancelled: " + context.Cause(ctx).Error()}, nil
	case "wait":
		progress("half")
		<-ctx.Done()
		return &message.ToolResult{Code: message.CodeCancelled, Text: "cancelled: " + context.Cause(ctx).Error()}, nil
	case "broken":
		return nil, reason.New(reason.ToolError, "tool %q: start plugin: exec format error", c.Tool).WithHint("look at it")
	case "err":
		return &message.ToolResult{Code: message.CodeTool, Text: "it failed", Output: "it failed"}, nil
	}
	progress("working")
	return &message.ToolResult{Text: "ran " + string(c.Args), Output: "ran " + string(c.Args), ExitCode: &zero, DurationMicros: 7}, nil
}

// parallel is how many calls run at once: room for all where some wait.
func (w *world) parallel() int {
	for _, a := range w.answers {
		for _, c := range a.out.Calls {
			if c.Tool == "wait" || c.Tool == "stop" {
				return 8
			}
		}
	}
	return 1 + w.rand.IntN(3)
}

// live runs the real loop in the world, and returns the recording of that.
func (w *world) live(change ...func(*loop.Config)) *cassette.Cassette {
	w.t.Helper()
	ctx, cancel := context.WithCancelCause(w.t.Context())
	defer cancel(nil)
	w.stop = cancel
	v := &view.Run{}
	cfg := loop.Config{
		Model: model{w}, Gate: w, Approver: person{w}, Toolbox: toolbox{w}, Journal: w, View: v, Now: w.clock, NewID: w.id,
		Limits: loop.Limits{MaxSteps: 50, MaxParallel: w.parallel()}, Guard: loop.DefaultGuard(),
	}
	for _, c := range change {
		c(&cfg)
	}
	started, err := w.Append(event.Event{Message: w.id("msg"), Part: w.id("part"), Data: event.RunStarted{Agent: "a", Prompt: "go"}})
	if err == nil {
		err = v.Apply(started)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	end, err := loop.Run(ctx, cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	w.stop = nil
	if _, err := w.Append(event.Event{Data: finished(end, v)}); err != nil {
		w.t.Fatal(err)
	}
	return w.record()
}

// record puts the events into a cassette and reads it.
func (w *world) record() *cassette.Cassette {
	w.t.Helper()
	c := &cassette.Cassette{Name: "dir/fix.jsonl", Plan: json.RawMessage(`{}`), Header: cassette.Header{Run: "r-1"}, Events: w.events}
	var b bytes.Buffer
	if err := c.Write(&b); err != nil {
		w.t.Fatal(err)
	}
	c, err := cassette.Read(c.Name, &b)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func finished(end loop.End, v *view.Run) event.RunFinished {
	phase := view.Failed
	switch end.Reason {
	case reason.Completed:
		phase = view.Succeeded
	case reason.Cancelled:
		phase = view.Cancelled
	default:
	}
	return event.RunFinished{
		Phase: phase, Reason: string(end.Reason), ExitCode: end.Reason.ExitCode(), Message: end.Message, Hint: end.Hint,
		Output: end.Output, Steps: v.Steps, Tokens: v.Tokens,
	}
}

// again replays a recording through the real loop.
func again(t testing.TB, c *cassette.Cassette, o Options, change ...func(*loop.Config)) (*Player, *view.Run, *Divergence) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	if o.Check == nil {
		o.Check = check
	}
	p, err := New(c, cancel, o)
	if err != nil {
		t.Fatal(err)
	}
	v, err := p.View()
	if err != nil {
		t.Fatal(err)
	}
	cfg := loop.Config{
		Model: p.Model(), Gate: p.Gate(), Approver: p.Approver(), Toolbox: p.Toolbox(), Journal: p.Journal(), View: v, Now: p.Now, NewID: p.NewID,
		Limits: loop.Limits{MaxSteps: 50, MaxParallel: max(1, p.Calls())}, Guard: loop.DefaultGuard(),
	}
	for _, f := range change {
		f(&cfg)
	}
	end, err := loop.Run(ctx, cfg)
	if err != nil && p.Diverged() == nil {
		t.Fatal(err)
	}
	run, d := p.End(finished(end, p.Run()))
	return p, run, d
}
