package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"agentctl.dev/agentctl/plugins/sdk/toolpb"
)

// ErrNobody is the error of a question that cannot be answered: no person is there, none may be asked, or the
// call has asked too often. The text of the error that wraps it names which.
var ErrNobody = errors.New("nobody answers")

// Message is something that was said in a run.
type Message struct {
	// Role is user, assistant or tool.
	Role string `json:"role"`
	Text string `json:"text"`
}

// Ask puts a question to the person behind the run and returns the answer, or the option
// that was chosen. It waits as long as the context lasts, which counts towards the call's
// time. Without a person, as in a pipeline, the error is ErrNobody at once: a tool must
// work without an answer, or return by Errorf what it would have asked.
//
// A question is not an approval: whether the call may run was decided before it.
func (c *Call) Ask(ctx context.Context, question string, options ...string) (string, error) {
	if c.AskFunc == nil {
		return "", fmt.Errorf("ask %q: %w", question, ErrNobody)
	}
	return c.AskFunc(ctx, question, options)
}

// History returns the newest messages of the run, the oldest of them first: at
// most as many as said, and not more than the run gives away. An error means
// that it gives none.
func (c *Call) History(ctx context.Context, most int) ([]Message, error) {
	if c.HistoryFunc == nil {
		return nil, errors.New("the run gives no history")
	}
	return c.HistoryFunc(ctx, most)
}

// wishes are what a call has asked its caller for and not yet got.
type wishes struct {
	// over is closed when the call has ended.
	over <-chan struct{}

	mu   sync.Mutex
	next uint64
	open map[uint64]chan *toolpb.AnswerRequest
}

// make asks for something and waits for it.
func (w *wishes) make(ctx context.Context, ask *toolpb.Ask, send func(*toolpb.CallEvent) error) (*toolpb.AnswerRequest, error) {
	answer := make(chan *toolpb.AnswerRequest, 1)
	w.mu.Lock()
	w.next++
	ask.Id = w.next
	if w.open == nil {
		w.open = map[uint64]chan *toolpb.AnswerRequest{}
	}
	w.open[ask.Id] = answer
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.open, ask.Id)
	}()
	if err := send(&toolpb.CallEvent{Event: &toolpb.CallEvent_Ask{Ask: ask}}); err != nil {
		return nil, err
	}
	select {
	case a := <-answer:
		return a, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-w.over: // whatever context the tool has asked with
		return nil, errOver
	}
}

// grant passes an answer to the question that waits for it; a second answer is ignored.
func (w *wishes) grant(a *toolpb.AnswerRequest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if waits := w.open[a.GetId()]; waits != nil {
		waits <- a
		delete(w.open, a.GetId())
	}
}

// question is Call.AskFunc of a call that came over the wire.
func (w *wishes) question(ctx context.Context, send func(*toolpb.CallEvent) error, text string, options []string) (string, error) {
	q := &toolpb.Question{Text: valid(text)}
	for _, o := range options {
		q.Options = append(q.Options, valid(o))
	}
	a, err := w.make(ctx, &toolpb.Ask{Wish: &toolpb.Ask_Question{Question: q}}, send)
	switch {
	case err != nil:
		return "", fmt.Errorf("ask %q: %w", text, err)
	case a.GetRefusal() != "":
		return "", fmt.Errorf("ask %q: %w: %s", text, ErrNobody, a.GetRefusal())
	}
	return a.GetText(), nil
}

// history is Call.HistoryFunc of a call that came over the wire.
func (w *wishes) history(ctx context.Context, send func(*toolpb.CallEvent) error, most int) ([]Message, error) {
	wish := &toolpb.HistoryWish{Most: int32(min(max(most, 0), 1<<20))} //nolint:gosec // bounded here
	a, err := w.make(ctx, &toolpb.Ask{Wish: &toolpb.Ask_History{History: wish}}, send)
	switch {
	case err != nil:
		return nil, fmt.Errorf("history of the run: %w", err)
	case a.GetRefusal() != "":
		return nil, fmt.Errorf("history of the run: %s", a.GetRefusal())
	}
	var said []Message
	if err := json.Unmarshal(a.GetHistoryJson(), &said); err != nil {
		return nil, fmt.Errorf("history of the run: %w", err)
	}
	return said, nil
}
