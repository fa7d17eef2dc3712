package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
)

// clients make the calls of a run that a test serves.
type clients struct {
	calls chan answer // closed: no more clients

	mu    sync.Mutex
	given map[string]func() // of the calls that can be given up
}

// Within implements Clients.
func (c *clients) Within(ctx context.Context, call string) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.given[call] = cancel
	return ctx, cancel
}

func (c *clients) giveUp(call string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.given[call]()
}

// Next returns what the clients have called.
func (c *clients) Next(ctx context.Context, _ message.Request, _ func(message.Delta) error) (*message.Output, error) {
	select {
	case a, more := <-c.calls:
		if !more {
			a = say("no client any more")
		}
		return &a.out, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (*clients) Append(*message.Message) error  { return nil }
func (*clients) Reset([]*message.Message) error { return nil }

// session is a served run in progress. It belongs to the bubble of a test.
type session struct {
	*world
	*clients
	n         int
	cancelRun func()
	gate      map[string]chan struct{} // calls end when theirs is closed
	end       chan End
}

// serving begins a run that clients call. Calls of the tool hold end when the test
// releases them, or when they are cancelled.
func serving(t *testing.T, w *world, change ...func(*Config)) *session {
	t.Helper()
	s := &session{world: w, clients: &clients{calls: make(chan answer), given: map[string]func(){}}, gate: map[string]chan struct{}{}, end: make(chan End, 1)}
	ran := w.run
	w.run = func(ctx context.Context, c message.ToolCall) (*message.ToolResult, error) {
		if strings.Contains(string(c.Args), "free") {
			return ran(ctx, c)
		}
		select {
		case <-s.held(c.ID):
			return ran(ctx, c)
		case <-ctx.Done():
			return &message.ToolResult{Code: message.CodeCancelled, Text: context.Cause(ctx).Error()}, nil
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.cancelRun = cancel
	go func() {
		s.end <- w.start(ctx, append([]func(*Config){func(cfg *Config) {
			cfg.Model, cfg.Clients, cfg.Guard, cfg.Limits.MaxSteps = s, s, Guard{}, 0
		}}, change...)...)
	}()
	return s
}

func (s *session) held(call string) chan struct{} {
	s.clients.mu.Lock()
	defer s.clients.mu.Unlock()
	if s.gate[call] == nil {
		s.gate[call] = make(chan struct{})
	}
	return s.gate[call]
}

func (s *session) release(call string) {
	close(s.held(call))
	synctest.Wait()
}

// call makes calls, written as "tool {args}", and returns their ids when nothing moves
// any more.
func (s *session) call(list ...string) (ids []string) {
	a := calls(list...)
	for i := range a.out.Calls {
		s.n++
		a.out.Calls[i].ID = fmt.Sprintf("%s-%d", a.out.Calls[i].Tool, s.n)
		ids = append(ids, a.out.Calls[i].ID)
	}
	s.clients.calls <- a
	synctest.Wait()
	return ids
}

// close lets the run end.
func (s *session) close() End {
	close(s.clients.calls)
	return <-s.end
}

// began and ended are the calls that were begun, and those with a result, in order.
func (s *session) began() []string { return s.of(event.TypeToolCall) }
func (s *session) ended() []string { return s.of(event.TypeToolResult, event.TypeToolError) }

func (s *session) of(types ...event.Type) (ids []string) {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	for _, e := range s.events {
		if slices.Contains(types, e.Type()) {
			ids = append(ids, e.Call)
		}
	}
	return ids
}

// result is the recorded result of a call.
func (s *session) result(call string) message.ToolResult {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	for _, e := range s.events {
		if e.Call != call {
			continue
		}
		switch d := e.Data.(type) {
		case event.ToolResult:
			return d.ToolResult
		case event.ToolError:
			return d.ToolResult
		}
	}
	return message.ToolResult{}
}

func (s *session) expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestACallOfAClientWaitsForNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serving(t, newWorld(t))
		s.call("read {}", "list {}")
		s.call("grep {}")
		s.expect(t, "begun", slices.Sorted(slices.Values(s.began())), "grep-3", "list-2", "read-1")
		s.release("grep-3")
		s.expect(t, "the newest has ended", s.ended(), "grep-3")
		s.release("list-2")
		s.release("read-1")
		if end := s.close(); end.Reason != reason.Completed {
			t.Errorf("the run ended as %+v", end)
		}
		if n := len(s.of(event.TypeStepFinish)); n != 3 {
			t.Errorf("%d steps are finished, want those of both answers and the last", n)
		}
	})
}

// An exclusive call never overlaps another, and the order of the clients is kept.
func TestAnExclusiveCallOfAClientRunsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serving(t, newWorld(t))
		s.call("read {}")
		s.call("alone {}")
		s.call("list {}")
		s.expect(t, "begun", s.began(), "read-1")
		s.release("read-1")
		s.expect(t, "begun", s.began(), "read-1", "alone-2")
		s.release("alone-2")
		s.expect(t, "begun", s.began(), "read-1", "alone-2", "list-3")
		s.release("list-3")
		s.close()
	})
}

func TestTheCallsOfClientsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serving(t, newWorld(t), func(cfg *Config) { cfg.Limits.MaxParallel = 2 })
		s.call("a {}")
		s.call("b {}")
		s.call("c {}")
		s.expect(t, "begun", s.began(), "a-1", "b-2")
		s.release("b-2")
		s.expect(t, "begun", s.began(), "a-1", "b-2", "c-3")
		s.release("a-1")
		s.release("c-3")
		s.close()
	})
}

// asking is a world in which calls of the tool ask wait for an answer.
func asking(t *testing.T) (*world, chan message.Answer) {
	t.Helper()
	w, answered := newWorld(t), make(chan message.Answer)
	w.decide = func(c message.ToolCall) (message.Decision, error) {
		if c.Tool == "ask" || c.Tool == "alone" {
			return message.Decision{Action: message.Ask, Rule: "test/ask", Hash: "h"}, nil
		}
		return message.Decision{Action: message.Allow, Rule: "test/all"}, nil
	}
	w.ask = func(ctx context.Context, _ message.Question) (message.Answer, error) {
		select {
		case a := <-answered:
			return a, nil
		case <-ctx.Done():
			return message.Answer{}, context.Cause(ctx)
		}
	}
	return w, answered
}

// A question without an answer holds no place, not even that of an exclusive call.
func TestAQuestionHoldsBackNoOtherCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, answered := asking(t)
		s := serving(t, w, func(cfg *Config) { cfg.Limits.MaxParallel = 1 })
		s.call("alone {}")
		s.call(`read {"free":1}`)
		s.call(`read {"free":2}`)
		s.expect(t, "ended", s.ended(), "read-2", "read-3")
		answered <- message.Answer{State: message.Approved, By: "jane"}
		synctest.Wait()
		s.expect(t, "begun", s.began(), "read-2", "read-3", "alone-1")
		s.release("alone-1")
		s.close()
	})
}

func TestACallThatIsGivenUpEndsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serving(t, newWorld(t), func(cfg *Config) { cfg.Limits.MaxParallel = 1 })
		s.call("read {}")
		s.call("list {}")
		s.call("grep {}")
		s.giveUp("list-2")
		synctest.Wait()
		if got := s.result("list-2"); got.Code != message.CodeCancelled || !strings.Contains(got.Text, "not run") {
			t.Errorf("the call that was given up before its turn: %+v", got)
		}
		s.release("read-1")
		s.expect(t, "begun", s.began(), "read-1", "grep-3")
		s.release("grep-3")
		if end := s.close(); end.Reason != reason.Completed {
			t.Errorf("the run ended as %+v", end)
		}
	})
}

// Its client has cancelled the call: it was not refused, and later answers do not count.
func TestACallThatIsGivenUpWhileAPersonIsAskedIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, answered := asking(t)
		s := serving(t, w)
		s.call("alone {}")
		s.giveUp("alone-1")
		synctest.Wait()
		if got := s.result("alone-1"); got.Code != message.CodeCancelled || !strings.Contains(got.Text, "no longer waits") {
			t.Errorf("the call that was given up: %+v", got)
		}
		select {
		case answered <- message.Answer{State: message.Approved, By: "jane"}:
			t.Error("the question is still open")
		default:
		}
		s.call(`read {"free":1}`)
		s.expect(t, "ended", s.ended(), "alone-1", "read-2")
		if end := s.close(); end.Reason != reason.Completed {
			t.Errorf("the run ended as %+v", end)
		}
	})
}

// What was judged while another call ran is judged again before it runs: the other may have
// changed a file that it names.
func TestACallThatWaitedForItsTurnIsJudgedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, again, changed := newWorld(t), []string(nil), false
		w.decide = func(c message.ToolCall) (message.Decision, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if c.Again {
				again = append(again, c.ID)
			}
			if changed {
				return message.Decision{Action: message.Deny, Rule: "test/link"}, nil
			}
			return message.Decision{Action: message.Allow, Rule: "test/all"}, nil
		}
		s := serving(t, w)
		s.call(`read {"free":1}`)
		s.call("alone {}")
		s.call("list {}")
		w.mu.Lock()
		changed = true
		w.mu.Unlock()
		s.release("alone-2")
		s.expect(t, "judged again", again, "list-3")
		s.expect(t, "begun", s.began(), "read-1", "alone-2")
		if got := s.result("list-3"); got.Code != message.CodeDenied {
			t.Errorf("a call whose file has changed: %+v", got)
		}
		s.close()
	})
}

func TestAPersonEndsTheServedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, answered := asking(t)
		s := serving(t, w)
		s.call("read {}")
		s.call("ask {}")
		answered <- message.Answer{State: message.Rejected, By: "jane", EndRun: true}
		if end := <-s.end; end.Reason != reason.Denied {
			t.Errorf("the run ended as %+v", end)
		}
		if got := s.result("read-1"); got.Code != message.CodeCancelled {
			t.Errorf("a call that ran: %+v", got)
		}
	})
}

func TestACancelledServedRunEndsEveryCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := asking(t)
		s := serving(t, w, func(cfg *Config) { cfg.Limits.MaxParallel = 1 })
		s.call("read {}")
		s.call("list {}")
		s.call("ask {}")
		s.clients.calls <- answer{err: reason.New(reason.Cancelled, "stopped")}
		if end := <-s.end; end.Reason != reason.Cancelled || end.Message != "stopped" {
			t.Errorf("the run ended as %+v", end)
		}
		for _, call := range []string{"read-1", "list-2", "ask-3"} {
			if got := s.result(call); got.Code != message.CodeCancelled {
				t.Errorf("%s: %+v", call, got)
			}
		}
	})
}

func TestABrokenJournalEndsTheServedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := newWorld(t), &clients{calls: make(chan answer), given: map[string]func(){}}
		w.run = func(ctx context.Context, _ message.ToolCall) (*message.ToolResult, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		cfg := w.config()
		cfg.Model, cfg.Clients, cfg.Guard, cfg.Limits.MaxSteps = c, c, Guard{}, 0
		failed := make(chan error, 1)
		go func() {
			_, err := Run(t.Context(), cfg)
			failed <- err
		}()
		c.calls <- calls("read {}")
		synctest.Wait()
		w.mu.Lock()
		w.failing = errDisk
		w.mu.Unlock()
		c.calls <- calls("list {}")
		if err := <-failed; !errors.Is(err, errDisk) {
			t.Errorf("got %v", err)
		}
	})
}

// A call that a crash has cut off has no client any more: what may be repeated comes to its
// end, nothing else is made, and nobody is asked.
func TestAResumedServedRunEndsWhatWasInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := asking(t)
		s := serving(t, w)
		s.call("read {}")
		s.call("again {}")
		s.call("ask {}")
		w.mu.Lock()
		crashed := slices.Clone(w.events)
		w.mu.Unlock()

		after, v := w.resumed(crashed)
		after.run = func(_ context.Context, c message.ToolCall) (*message.ToolResult, error) {
			return &message.ToolResult{Text: "ran " + c.Tool}, nil
		}
		after.ask = func(context.Context, message.Question) (message.Answer, error) {
			t.Error("a person is asked")
			return message.Answer{}, errors.New("no")
		}
		none := &clients{calls: make(chan answer), given: map[string]func(){}}
		close(none.calls)
		end := after.start(t.Context(), func(cfg *Config) {
			cfg.View, cfg.Model, cfg.Clients, cfg.Guard, cfg.Limits.MaxSteps = v, none, none, Guard{}, 0
		})
		if end.Reason != reason.Completed {
			t.Errorf("the run ended as %+v", end)
		}
		for call, code := range map[string]message.ErrorCode{"read-1": message.CodeUnknown, "again-2": "", "ask-3": message.CodeCancelled} {
			if got := (&session{world: after}).result(call); got.Code != code || got.Text == "" {
				t.Errorf("%s: %+v, want the code %q", call, got, code)
			}
		}
		if n := len((&session{world: after}).of(event.TypeStepFinish)); n != 4 {
			t.Errorf("%d steps are finished, want 4", n)
		}
		s.cancelRun()
		<-s.end
	})
}
