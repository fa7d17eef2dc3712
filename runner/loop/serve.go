package loop

import (
	"context"
	"errors"
	"slices"
	"sync"

	"agentctl.dev/agentctl/api/message"
)

// served is a run whose calls clients make. Each answer of the Model is a step of its
// own, which is judged at once; its calls then wait only for what their tools demand.
type served struct {
	*loop
	queue *queue
	steps sync.WaitGroup

	// end is how the run ends because of a call; endOnce keeps the first.
	end     *End
	endOnce sync.Once
}

// errEnded stops what runs when a call has ended the run.
var errEnded = errors.New("the run has ended")

// serve makes the calls of clients until none can come any more.
func (l *loop) serve(ctx context.Context) (End, error) {
	s := &served{loop: l, queue: newQueue(l.Limits.MaxParallel, l.Clients)}
	end, err := s.answer(ctx)
	if err != nil {
		l.cancel(err) // what ends the run ends its calls
	}
	s.steps.Wait()
	if s.end != nil {
		return *s.end, nil
	}
	return end, err
}

func (s *served) answer(ctx context.Context) (End, error) {
	if err := s.recallServed(ctx); err != nil {
		return End{}, err
	}
	for {
		out, err := s.ask(ctx, false)
		if err != nil {
			return End{}, err
		}
		if len(out.Calls) > 0 {
			if err := s.step(ctx, out); err != nil {
				return End{}, err
			}
			continue
		}
		s.steps.Wait()
		if ctx.Err() != nil {
			return End{}, context.Cause(ctx)
		}
		if end, err := s.handleAnswer(ctx, out, false); end != nil || err != nil {
			return deref(end), err
		}
	}
}

// step judges the calls of one answer, in their order. They go on by themselves.
func (s *served) step(ctx context.Context, out *message.Output) error {
	m, number := s.current, s.View.Steps
	var calls sync.WaitGroup
	defer s.finish(&calls, m, number, out)
	for place, req := range out.Calls {
		since := s.queue.moment()
		c, end, err := s.judge(ctx, req, place)
		if err != nil {
			return err
		}
		if end != nil {
			s.stop(end)
		}
		if !c.done {
			s.begin(ctx, &calls, c, since)
		}
	}
	return s.synced(nil)
}

// begin lets a call go on beside the others. Its turn is behind those that were judged
// before it, unless a person is asked first. Since is when its judgement began.
func (s *served) begin(ctx context.Context, calls *sync.WaitGroup, c *call, since moment) {
	asks := c.decision.Action == message.Ask && !c.approved
	c.waited = c.waited || asks || since.busy
	if !asks {
		s.queue.enter(c)
	}
	calls.Go(func() {
		end, err := s.perform(ctx, c, turns{s.queue, since})
		s.queue.quit(c)
		switch {
		case end != nil:
			s.stop(end)
		case err == nil:
			return
		case errors.Is(err, errGone):
			err = s.fail(c, message.CodeCancelled, "not run: "+errGone.Error())
		case ctx.Err() == nil:
			s.cancel(err) // what ends the run ends its other calls too
		}
		if err != nil && !c.done {
			// Whatever stopped the run, every call gets an end that can be recorded.
			_ = s.abandon([]*call{c}, message.CodeCancelled, "cancelled before it ran")
		}
	})
}

// finish closes the step when its calls have ended.
func (s *served) finish(calls *sync.WaitGroup, m *message.Message, number int, out *message.Output) {
	s.steps.Go(func() {
		calls.Wait()
		s.finishStepOf(m, number, out)
		s.syncSoon()
	})
}

// stop ends the run.
func (s *served) stop(end *End) {
	s.endOnce.Do(func() {
		s.end = end
		s.cancel(errEnded)
	})
}

// recallServed ends the calls of an earlier process. No client waits for them, so only
// those are made that have begun and may be repeated: what they have started, such as a
// run below this one, comes to its end.
func (s *served) recallServed(ctx context.Context) error {
	for _, m := range slices.Clone(s.View.Messages) {
		if m.Role != message.RoleAssistant || m.Error != "" || m.Open() {
			continue
		}
		if s.current = m; len(m.Calls()) == 0 {
			continue
		}
		out, number := answerOf(m), s.View.Step(m.Calls()[0].CallID) // before calls change them
		var calls sync.WaitGroup
		err := s.recallStep(ctx, m, &calls)
		s.finish(&calls, m, number, out)
		if err != nil {
			return err
		}
		s.steps.Wait() // a resumed run has no clients: nothing else waits
	}
	return nil
}

func (s *served) recallStep(ctx context.Context, m *message.Message, calls *sync.WaitGroup) error {
	for _, p := range m.Calls() {
		c := &call{ToolCall: message.ToolCall{ID: p.CallID, Message: m.ID, Tool: p.Tool, Args: p.Input}, seen: unseen}
		var err error
		switch p.State {
		case message.StateCompleted, message.StateError:
		case message.StatePending:
			err = s.fail(c, message.CodeCancelled, "not run: the process that served it has ended before")
		case message.StateRunning:
			err = s.recallRunning(ctx, p, c, calls)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *served) recallRunning(ctx context.Context, p *message.ToolPart, c *call, calls *sync.WaitGroup) error {
	checked, err := s.Toolbox.Check(message.CallRequest{ID: p.CallID, Tool: p.Tool, Args: string(p.Input)})
	if err != nil || !checked.Repeatable {
		return s.unknown(ctx, c, p)
	}
	again, _, err := s.resumeCall(ctx, p) // asks nobody about a call that may be repeated
	if err == nil && !again.done {
		s.begin(ctx, calls, again, s.queue.moment())
	}
	return err
}
