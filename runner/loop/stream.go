package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// Pieces of an answer are gathered for this long, or until there is this much
// of them, before they become an event: a person cannot see more, and a journal
// line a token would cost more than the answer.
const (
	gatherTime  = 30 * time.Millisecond
	gatherBytes = 2048
)

// stream turns the deltas of one answer into events. The first piece of a part
// is emitted at once.
type stream struct {
	loop    *loop
	message string
	started time.Time
	first   time.Time // when the first piece came
	noTools bool      // calls are dropped: none were offered

	text, reasoning *openPart
	calls           []*openPart
	// stuck is set when the answer was stopped because it repeats itself. The
	// answer is kept: the text was written, and its tokens were paid.
	stuck error
}

// openPart is a part that is still being written.
type openPart struct {
	part, call string
	pending    strings.Builder
	whole      strings.Builder // what was written so far, for an answer that is stopped
	told       time.Time
	repeat     *repeat
	// delta makes an event of the pending text.
	delta func(text string) event.Payload
}

// ask begins a step: it sends one request and records the answer as the current
// message.
func (l *loop) ask(ctx context.Context, closing bool) (*message.Output, error) {
	if err := l.record(event.Event{Data: event.StepStart{Step: l.View.Steps + 1}}); err != nil {
		return nil, err
	}
	return l.request(ctx, closing)
}

func (l *loop) request(ctx context.Context, closing bool) (*message.Output, error) {
	s := &stream{loop: l, message: l.NewID("msg"), started: l.Now(), noTools: closing}
	if err := l.record(event.Event{Message: s.message, Part: l.NewID("part"), Data: event.ModelRequest{
		Step: l.View.Steps, Messages: len(l.View.Messages), NoTools: closing,
	}}); err != nil {
		return nil, err
	}
	l.current = l.View.Message()
	if b := l.Limits.Budget; b != nil {
		defer b.Settle()
	}
	out, err := l.Model.Next(ctx, message.Request{ID: s.message, NoTools: closing}, s.emit)
	if err != nil {
		return nil, s.failed(ctx, err)
	}
	if closing {
		out.Calls = nil
	}
	if err := s.finish(out); err != nil {
		return nil, err
	}
	l.estimate.saw(out.Usage)
	l.said(out.Text)
	return out, l.synced(nil)
}

// failed closes the open parts when the request failed, and returns why the run
// ends. A run that was stopped keeps the text so far, and so does an answer
// that repeats itself; after an error of the provider the text is void.
func (s *stream) failed(ctx context.Context, err error) error {
	for _, c := range s.calls {
		if err := s.tell(c.part, c.call, event.ToolError{ToolResult: message.ToolResult{
			Code: message.CodeCancelled, Text: "cancelled while the model was writing it",
		}}); err != nil {
			return err
		}
	}
	if ctx.Err() == nil && s.stuck == nil {
		return err
	}
	out := &message.Output{Finish: message.FinishUnknown, Uncounted: true, Model: s.loop.View.Started.Model}
	for _, p := range []struct {
		open *openPart
		kind partKind
		text *string
	}{{s.reasoning, reasoningPart, &out.Reasoning}, {s.text, textPart, &out.Text}} {
		if p.open == nil {
			continue
		}
		*p.text = p.open.whole.String()
		if failed := s.whole(&p.open, p.kind, *p.text, nil); failed != nil {
			return errors.Join(err, failed)
		}
	}
	if s.text != nil {
		s.loop.said(out.Text)
	}
	if s.stuck == nil {
		return err
	}
	for _, c := range s.calls {
		out.Calls = append(out.Calls, message.CallRequest{ID: c.call, Args: c.whole.String()})
	}
	return errors.Join(s.stuck, s.respond(out))
}

func (s *stream) emit(d message.Delta) error {
	if s.first.IsZero() {
		s.first = s.loop.Now()
	}
	switch d.Kind {
	case message.DeltaText:
		return s.piece(&s.text, textPart, d.Text)
	case message.DeltaReasoning:
		return s.piece(&s.reasoning, reasoningPart, d.Text)
	case message.DeltaTool:
		if s.noTools {
			return nil
		}
		return s.callPiece(d)
	case message.DeltaRetry:
		s.text, s.reasoning, s.calls, s.first = nil, nil, nil, time.Time{}
		return s.tell(s.loop.NewID("part"), "", event.ModelRetry{Retry: *d.Retry})
	}
	return fmt.Errorf("unknown piece of an answer: %q", d.Kind)
}

func (s *stream) tell(part, call string, p event.Payload) error {
	return s.loop.record(event.Event{Message: s.message, Part: part, Call: call, Data: p})
}

// partKind is how a text or reasoning part is emitted.
type partKind struct {
	start event.Payload
	delta func(text string) event.Payload
	end   func(text string, metadata json.RawMessage) event.Payload
}

var (
	textPart = partKind{
		event.TextStart{},
		func(text string) event.Payload { return event.TextDelta{Text: text} },
		func(text string, metadata json.RawMessage) event.Payload {
			return event.TextEnd{Text: text, Metadata: metadata}
		},
	}
	reasoningPart = partKind{
		event.ReasoningStart{},
		func(text string) event.Payload { return event.ReasoningDelta{Text: text} },
		func(text string, metadata json.RawMessage) event.Payload {
			return event.ReasoningEnd{Text: text, Metadata: metadata}
		},
	}
)

// piece adds to a text or reasoning part, and opens it if needed.
func (s *stream) piece(p **openPart, kind partKind, text string) error {
	if err := s.openText(p, kind); err != nil {
		return err
	}
	return s.gather(*p, text)
}

func (s *stream) openText(p **openPart, kind partKind) error {
	if *p != nil {
		return nil
	}
	*p = &openPart{part: s.loop.NewID("part"), delta: kind.delta, repeat: s.watch(1)}
	return s.tell((*p).part, "", kind.start)
}

func (s *stream) callPiece(d message.Delta) error {
	if d.Index < 0 || d.Index > len(s.calls) {
		return fmt.Errorf("tool call %d of the answer comes before call %d", d.Index, len(s.calls))
	}
	if d.Index == len(s.calls) {
		if err := s.openCall(d.Call, d.Tool); err != nil {
			return err
		}
	}
	return s.gather(s.calls[d.Index], d.Text)
}

// maxCallID is more than any id has. Tools receive it, and every event of a
// call repeats it.
const maxCallID = 512

// openCall begins a tool call. An id that the run has seen is replaced, because
// the model's ids need not be unique and the run's are. An invalid id is
// replaced, too.
func (s *stream) openCall(id, tool string) error {
	if fresh, why := s.rename(id); fresh != "" {
		if why != "" {
			if err := s.tell("", "", event.Warning{Message: why}); err != nil {
				return err
			}
		}
		id = fresh
	}
	p := &openPart{
		part: s.loop.NewID("part"), call: id,
		delta: func(text string) event.Payload { return event.ToolInputDelta{Text: text} }, repeat: s.watch(argumentsFactor),
	}
	s.calls = append(s.calls, p)
	return s.tell(p.part, id, event.ToolInputStart{Tool: tool})
}

// rename returns a new id for a call that cannot keep the model's, and the
// warning about it; no warning where the model gave no id.
func (s *stream) rename(id string) (fresh, why string) {
	taken := slices.ContainsFunc(s.calls, func(c *openPart) bool { return c.call == id })
	switch {
	case id == "":
		return s.loop.NewID("call"), ""
	case len(id) > maxCallID:
		fresh = s.loop.NewID("call")
		return fresh, fmt.Sprintf("the model gave a call an id of %d bytes; it is %s", len(id), fresh)
	case taken || s.loop.View.Call(id) != nil:
		fresh = s.loop.NewID("call")
		return fresh, fmt.Sprintf("the model gave two calls the id %q; the second one is %s", id, fresh)
	}
	return "", ""
}

// watch returns what stops a part that repeats itself; factor raises the limit.
func (s *stream) watch(factor int) *repeat {
	return newRepeat(factor*s.loop.Guard.RepeatedText, s.loop.Limits.ReserveOutput)
}

// gather emits a piece, or keeps it until there is more.
func (s *stream) gather(p *openPart, text string) error {
	p.whole.WriteString(text)
	if p.repeat.grown(p.whole.String()) {
		s.stuck = p.repeat.stuck()
		p.pending.WriteString(text)
		return errors.Join(s.flush(p), s.stuck)
	}
	p.pending.WriteString(text)
	now := s.loop.Now()
	if !p.told.IsZero() && now.Sub(p.told) < gatherTime && p.pending.Len() < gatherBytes {
		return nil
	}
	p.told = now
	return s.flush(p)
}

// flush emits what is pending: the pieces of a part make up the whole.
func (s *stream) flush(p *openPart) error {
	if p.pending.Len() == 0 {
		return nil
	}
	text := p.pending.String()
	p.pending.Reset()
	return s.tell(p.part, p.call, p.delta(text))
}

// finish closes the parts with the whole of what the model returned: the
// pieces were for watchers, the answer is what counts.
func (s *stream) finish(out *message.Output) error {
	if out.Reasoning != "" || len(out.ReasoningMetadata) > 0 {
		if err := s.whole(&s.reasoning, reasoningPart, out.Reasoning, out.ReasoningMetadata); err != nil {
			return err
		}
	}
	if out.Text != "" {
		if err := s.whole(&s.text, textPart, out.Text, out.TextMetadata); err != nil {
			return err
		}
	}
	for i := range out.Calls {
		c := &out.Calls[i]
		if i >= len(s.calls) {
			if err := s.openCall(c.ID, c.Tool); err != nil {
				return err
			}
			// The fold reads the arguments from the pieces.
			s.calls[i].pending.WriteString(c.Args)
		}
		c.ID = s.calls[i].call
		if err := s.flush(s.calls[i]); err != nil {
			return err
		}
		if len(c.Metadata) > 0 {
			if err := s.tell(s.calls[i].part, c.ID, event.ToolInputDelta{Metadata: c.Metadata}); err != nil {
				return err
			}
		}
	}
	for _, w := range out.Warnings {
		if err := s.tell("", "", event.Warning{Message: w}); err != nil {
			return err
		}
	}
	return s.respond(out)
}

// respond completes the answer.
func (s *stream) respond(out *message.Output) error {
	l := s.loop
	answer := event.ModelResponse{
		Model: out.Model, Finish: out.Finish, Tokens: out.Usage,
		Estimate: l.guess(l.estimate.next(), out), DurationMs: l.Now().Sub(s.started).Milliseconds(),
	}
	if answer.Estimate == nil {
		answer.Cost = l.Limits.cost(out.Model, out.Usage)
	}
	if !s.first.IsZero() {
		answer.FirstByteMs = s.first.Sub(s.started).Milliseconds()
	}
	warn := answer.Estimate != nil && !l.View.Uncounted
	if err := s.tell("", "", answer); err != nil || !warn {
		return err
	}
	return l.record(event.Event{Data: event.Warning{Message: uncounted}})
}

func (s *stream) whole(p **openPart, kind partKind, text string, metadata json.RawMessage) error {
	if err := s.openText(p, kind); err != nil {
		return err
	}
	if err := s.flush(*p); err != nil {
		return err
	}
	return s.tell((*p).part, "", kind.end(text, metadata))
}
