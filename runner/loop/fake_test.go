package loop

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
)

// world is everything outside the loop, recorded: what was asked, in which
// order, and what was durable when.
type world struct {
	t *testing.T

	mu     sync.Mutex
	log    []string // model, sync and tool in the order they happened
	events []event.Event
	synced int // events that are durable

	answers  []answer
	appended []*message.Message
	resets   int
	requests []message.Request

	decide  func(message.ToolCall) (message.Decision, error)
	review  func(message.ToolCall, *message.ToolResult) (*message.ToolResult, error)
	ask     func(context.Context, message.Question) (message.Answer, error)
	run     func(context.Context, message.ToolCall) (*message.ToolResult, error)
	failing error // the journal's
}

// answer is one scripted answer of the model.
type answer struct {
	out   message.Output
	err   error
	emit  []message.Delta
	block bool // until the context ends
}

func say(text string) answer {
	return answer{out: message.Output{Text: text, Finish: message.FinishStop}}
}

// calls builds an answer of calls written as "tool {args}".
func calls(list ...string) answer {
	out := message.Output{Finish: message.FinishToolCalls}
	for i, c := range list {
		tool, args, _ := strings.Cut(c, " ")
		out.Calls = append(out.Calls, message.CallRequest{ID: fmt.Sprintf("c%d-%s", i, tool), Tool: tool, Args: args})
	}
	return answer{out: out}
}

func newWorld(t *testing.T, answers ...answer) *world {
	t.Helper()
	return &world{
		t: t, answers: answers,
		decide: func(message.ToolCall) (message.Decision, error) {
			return message.Decision{Action: message.Allow, Rule: "test/all"}, nil
		},
		review: func(_ message.ToolCall, r *message.ToolResult) (*message.ToolResult, error) { return r, nil },
		ask: func(context.Context, message.Question) (message.Answer, error) {
			return message.Answer{State: message.Unanswered, By: "onAsk: Deny"}, nil
		},
		run: func(_ context.Context, c message.ToolCall) (*message.ToolResult, error) {
			return &message.ToolResult{Text: "ran " + c.Tool, Output: "ran " + c.Tool}, nil
		},
	}
}

// start runs the loop over the world.
func (w *world) start(ctx context.Context, change ...func(*Config)) End {
	w.t.Helper()
	cfg := w.config()
	for _, c := range change {
		c(&cfg)
	}
	end, err := Run(ctx, cfg)
	if err != nil {
		w.t.Fatalf("the journal failed: %v", err)
	}
	return end
}

func (w *world) config() Config {
	n := 10 * len(w.events) // ids are unique over a resume, too
	var now time.Time
	var mu sync.Mutex
	v := &view.Run{}
	cfg := Config{
		Model: model{w}, Gate: w, Approver: approver{w}, Toolbox: toolbox{w}, Journal: journal{w}, View: v,
		Limits: Limits{MaxSteps: 50, MaxParallel: 4},
		Guard:  DefaultGuard(),
		Now: func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			now = now.Add(time.Millisecond)
			return now
		},
		NewID: func(kind string) string {
			mu.Lock()
			defer mu.Unlock()
			n++
			return fmt.Sprintf("%s%d", kind, n)
		},
	}
	started := event.Event{Message: "user", Part: "prompt", Data: event.RunStarted{Agent: "a", Prompt: "do it"}}
	started.Run = "r"
	started, err := journal{w}.Append(started)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := v.Apply(started); err != nil {
		w.t.Fatal(err)
	}
	return cfg
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

type model struct{ w *world }

func (m model) Append(msg *message.Message) error {
	m.w.appended = append(m.w.appended, msg)
	return nil
}

func (m model) Reset(history []*message.Message) error {
	m.w.resets++
	m.w.appended = history
	return nil
}

func (m model) Next(ctx context.Context, req message.Request, emit func(message.Delta) error) (*message.Output, error) {
	w := m.w
	w.requests = append(w.requests, req)
	w.note("model")
	if len(w.answers) == 0 {
		return &message.Output{Finish: message.FinishStop}, nil
	}
	a := w.answers[0]
	w.answers = w.answers[1:]
	for _, d := range a.emit {
		if err := emit(d); err != nil {
			return nil, err
		}
	}
	if a.block {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if a.err != nil {
		return nil, a.err
	}
	out := a.out
	return &out, nil
}

func (w *world) Decide(_ context.Context, c message.ToolCall) (message.Decision, error) {
	return w.decide(c)
}

func (w *world) Review(_ context.Context, c message.ToolCall, r *message.ToolResult) (*message.ToolResult, error) {
	return w.review(c, r)
}

type approver struct{ w *world }

func (a approver) Ask(ctx context.Context, q message.Question) (message.Answer, error) {
	return a.w.ask(ctx, q)
}

type toolbox struct{ w *world }

func (b toolbox) Check(req message.CallRequest) (message.Checked, error) {
	tool := strings.ToLower(req.Tool)
	if tool == "none" {
		return message.Checked{}, &message.CallError{Code: message.CodeUnknownTool, Text: "there is no tool"}
	}
	args := req.Args
	if args == "" {
		args = "{}"
	}
	if !json.Valid([]byte(args)) {
		return message.Checked{}, &message.CallError{Code: message.CodeBadJSON, Text: "no JSON"}
	}
	return message.Checked{
		Tool: tool, Args: json.RawMessage(args), Signature: tool + args,
		Exclusive: tool == "alone", Repeatable: tool == "again", Repaired: tool != req.Tool,
	}, nil
}

func (b toolbox) Run(ctx context.Context, c message.ToolCall, _ func(string)) (*message.ToolResult, error) {
	b.w.note("run %s", c.ID)
	return b.w.run(ctx, c)
}

type journal struct{ w *world }

func (j journal) Append(e event.Event) (event.Event, error) {
	w := j.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failing != nil {
		return e, w.failing
	}
	e.Seq, e.Run = int64(len(w.events)+1), "r"
	w.events = append(w.events, e)
	return e, nil
}

func (j journal) PutBlob(b []byte) (string, error) {
	return fmt.Sprintf("sha256:%x", sha256.Sum256(b)), j.w.failing
}

func (j journal) Sync() error {
	w := j.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.synced = len(w.events)
	w.log = append(w.log, "sync")
	return w.failing
}

var errDisk = errors.New("disk full")
