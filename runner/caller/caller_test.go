package caller_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/caller"
	"agentctl.dev/agentctl/runner/loop"
)

// records is a journal that accepts everything.
type records struct{ loop.Journal }

func (records) Append(e event.Event) (event.Event, error) { return e, nil }

// tools is a toolbox whose calls last until they are cancelled.
type tools struct{ loop.Toolbox }

func (tools) Run(ctx context.Context, _ message.ToolCall, _ func(string)) (*message.ToolResult, error) {
	<-ctx.Done()
	return &message.ToolResult{Code: message.CodeCancelled, Text: context.Cause(ctx).Error()}, nil
}

// answers is an approver that always gives the same answer, after a time.
type answers struct {
	message.Answer
	after time.Duration
}

func (a answers) Ask(ctx context.Context, _ message.Question) (message.Answer, error) {
	select {
	case <-ctx.Done():
		return message.Answer{}, context.Cause(ctx)
	case <-time.After(a.after):
		return a.Answer, nil
	}
}

// served is a run whose calls a Caller makes.
type served struct {
	*caller.Caller
	model loop.Model
	cfg   loop.Config
}

func serve(approver loop.Approver) *served {
	n := 0
	newID := func(kind string) string { n++; return fmt.Sprintf("%s-%d", kind, n) }
	s := &served{Caller: caller.New(), cfg: loop.Config{Journal: records{}, Toolbox: tools{}, Approver: approver, Now: time.Now}}
	s.model = s.Model(message.ModelRef{Name: "client", Provider: "mcp"}, newID)
	s.Connect(&s.cfg)
	return s
}

// next returns the next answer: the tools it calls.
func (s *served) next(t *testing.T) *message.Output {
	t.Helper()
	out, err := s.model.Next(t.Context(), message.Request{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// finish records the result of a call.
func (s *served) finish(t *testing.T, id, text string) {
	t.Helper()
	if _, err := s.cfg.Journal.Append(event.Event{Call: id, Data: event.ToolResult{ToolResult: message.ToolResult{Text: text}}}); err != nil {
		t.Fatal(err)
	}
}

type outcome struct {
	text string
	err  error
}

// begin makes a call.
func (s *served) begin(ctx context.Context, r caller.Request) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		got, err := s.Call(ctx, r)
		if err != nil {
			done <- outcome{err: err}
			return
		}
		done <- outcome{text: got.Result.Text}
	}()
	return done
}

func TestEachResultFindsItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(nil)
		one := s.begin(t.Context(), caller.Request{Client: "a", Tool: "read", Args: `{"n":1}`})
		synctest.Wait()
		two := s.begin(t.Context(), caller.Request{Client: "a", Tool: "list", Args: `{"n":2}`})
		synctest.Wait()
		other := s.begin(t.Context(), caller.Request{Client: "b\x1b[2J", Tool: "bash"})
		synctest.Wait()

		var ids []string
		for i, tool := range []string{"read", "list", "bash"} {
			out := s.next(t)
			if len(out.Calls) != 1 || out.Calls[0].Tool != tool || strings.ContainsRune(out.Model.Model, 0x1b) {
				t.Fatalf("answer %d is %+v: each call is one, in their order", i, out)
			}
			ids = append(ids, out.Calls[0].ID)
		}
		for i, c := range []struct {
			client <-chan outcome
			want   string
		}{{one, "first"}, {two, "second"}, {other, "third"}} {
			s.finish(t, ids[i], c.want)
			if diff := cmp.Diff(c.want, (<-c.client).text); diff != "" {
				t.Error(diff)
			}
		}
	})
}

func TestAWithdrawnCallIsNeverMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(nil)
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := s.begin(ctx, caller.Request{Tool: "bash"})
		synctest.Wait()
		cancel(errors.New("closed"))
		if got := <-gone; got.err == nil {
			t.Errorf("a withdrawn call has the result %q", got.text)
		}
		s.Close()
		if out := s.next(t); len(out.Calls) != 0 || out.Text == "" {
			t.Errorf("the run still makes the call: %+v", out)
		}
	})
}

func TestAClientThatIsGoneEndsItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(nil)
		ctx, cancel := context.WithCancel(t.Context())
		gone := s.begin(ctx, caller.Request{Tool: "bash"})
		synctest.Wait()
		id := s.next(t).Calls[0].ID
		ended := make(chan string, 1)
		go func() {
			r, err := s.cfg.Toolbox.Run(t.Context(), message.ToolCall{ID: id}, nil)
			if err != nil {
				ended <- err.Error()
				return
			}
			ended <- r.Text
		}()
		synctest.Wait()
		cancel()
		if got := <-ended; !strings.Contains(got, "no longer waits") {
			t.Errorf("the call ended with %q", got)
		}
		<-gone
	})
}

func TestAnEndedRunAnswersEveryClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(nil)
		taken := s.begin(t.Context(), caller.Request{Tool: "a"})
		synctest.Wait()
		s.next(t)
		waiting := s.begin(t.Context(), caller.Request{Tool: "b"})
		synctest.Wait()
		s.End()
		for _, c := range []<-chan outcome{taken, waiting, s.begin(t.Context(), caller.Request{})} {
			if got := <-c; !errors.Is(got.err, caller.ErrOver) {
				t.Errorf("a call of an ended run returns %q, %v", got.text, got.err)
			}
		}
		if _, err := s.Offer(t.Context()); !errors.Is(err, caller.ErrOver) {
			t.Errorf("an ended run still offers its tools: %v", err)
		}
		s.End()
	})
}

func TestTheCallsWithoutAResultAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var all []<-chan outcome
		for range 300 {
			all = append(all, s.begin(ctx, caller.Request{Tool: "a"}))
		}
		synctest.Wait()
		busy := 0
		for _, c := range all {
			select {
			case got := <-c:
				if !errors.Is(got.err, caller.ErrBusy) {
					t.Fatal(got.err)
				}
				busy++
			default:
			}
		}
		if busy != 300-256 {
			t.Errorf("%d of 300 calls were refused, want those beyond 256", busy)
		}
		id := s.next(t).Calls[0].ID
		if got := <-s.begin(ctx, caller.Request{Tool: "a"}); !errors.Is(got.err, caller.ErrBusy) {
			t.Errorf("a call beyond those that run and wait: %q, %v", got.text, got.err)
		}
		s.finish(t, id, "done")
		s.begin(ctx, caller.Request{Tool: "a"})
		synctest.Wait()
		cancel()
		synctest.Wait()
	})
}

func TestWhoAnswersAQuestion(t *testing.T) {
	yes := message.Answer{State: message.Approved, By: "client"}
	for name, c := range map[string]struct {
		reason string
		own    answers
		client func(context.Context, message.Question) (message.Answer, error)
		want   message.ApprovalState
		by     string
	}{
		"nobody may ask the client": {
			reason: "without --approve client, what a client says does not count",
			own:    answers{Answer: message.Answer{State: message.Unanswered, By: "onAsk: Deny"}}, want: message.Unanswered, by: "onAsk: Deny",
		},
		"the client after a declared no": {
			reason: "onAsk: Deny says that nobody is there; the client's person is",
			own:    answers{Answer: message.Answer{State: message.Unanswered, By: "onAsk: Deny"}},
			client: answers{Answer: yes, after: time.Second}.Ask, want: message.Approved, by: "client",
		},
		"another terminal first": {
			reason: "the first answer counts",
			own:    answers{Answer: message.Answer{State: message.Rejected, By: "jane"}, after: time.Second},
			client: answers{Answer: yes, after: time.Hour}.Ask, want: message.Rejected, by: "jane",
		},
		"a client that fails": {
			reason: "a failure is no answer",
			own:    answers{Answer: message.Answer{State: message.Expired, By: "onAsk: Wait"}, after: time.Minute},
			client: func(context.Context, message.Question) (message.Answer, error) { return yes, errors.New("broken") },
			want:   message.Expired, by: "onAsk: Wait",
		},
		"a client that never answers": {
			reason: "every wait has an end",
			own:    answers{Answer: message.Answer{State: message.Unanswered, By: "onAsk: Deny"}},
			client: answers{Answer: yes, after: 1000 * time.Hour}.Ask, want: message.Unanswered, by: "onAsk: Deny",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serve(c.own)
				done := s.begin(t.Context(), caller.Request{Tool: "bash", Ask: c.client})
				synctest.Wait()
				id := s.next(t).Calls[0].ID
				got, err := s.cfg.Approver.Ask(t.Context(), message.Question{Call: message.ToolCall{ID: id}})
				if err != nil || got.State != c.want || got.By != c.by {
					t.Errorf("%s: got %s by %q, %v", c.reason, got.State, got.By, err)
				}
				if got.State == message.Approved && got.ExpiresAt == 0 {
					t.Error("an approval holds for ever")
				}
				s.finish(t, id, "done")
				<-done
			})
		})
	}
}

// What happened before a result is handed on before it, even if the client was slow.
func TestNothingThatHappenedBeforeTheResultIsLost(t *testing.T) {
	for range 32 {
		s := serve(nil)
		begun, on := make(chan struct{}), make(chan struct{})
		var told []string
		done := make(chan error, 1)
		go func() {
			_, err := s.Call(t.Context(), caller.Request{Client: "c", Tool: "bash", Args: "{}", Notify: func(n caller.Note) {
				if told = append(told, n.Output); len(told) == 1 {
					close(begun)
					<-on
				}
			}})
			done <- err
		}()
		id := s.next(t).Calls[0].ID
		for i := range 4 {
			if _, err := s.cfg.Journal.Append(event.Event{Call: id, Data: event.ToolProgress{Text: fmt.Sprint(i)}}); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				<-begun
			}
		}
		s.finish(t, id, "done")
		close(on)
		if err := <-done; err != nil || strings.Join(told, "") != "0123" {
			t.Fatalf("told %q, %v", told, err)
		}
	}
}
