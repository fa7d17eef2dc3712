package loop

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// slow is a model that takes some time for each answer.
type slow struct {
	model
	pause func(request int)
}

func (s slow) Next(ctx context.Context, req message.Request, emit func(message.Delta) error) (*message.Output, error) {
	out, err := s.model.Next(ctx, req, emit)
	s.pause(len(s.w.requests))
	return out, err
}

// syncs returns how often the journal was synced.
func (w *world) syncs() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.log {
		if l == "sync" {
			n++
		}
	}
	return n
}

func TestIntentIsDurableBeforeTheToolRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, calls(`a {}`), calls(`b {}`), say("done"))
		w.run = func(_ context.Context, c message.ToolCall) (*message.ToolResult, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			last := w.events[w.synced-1]
			if last.Type() != event.TypeToolCall || last.Call != c.ID {
				t.Errorf("call %s ran when the last durable event was %s %s", c.ID, last.Type(), last.Call)
			}
			return &message.ToolResult{Text: "ok"}, nil
		}
		w.start(t.Context())
		want := []string{"model", "sync", "run c0-a", "model", "sync", "run c0-b", "model", "sync"}
		if diff := cmp.Diff(want, w.log); diff != "" {
			t.Errorf("one sync a turn and one for the last result (-want +got):\n%s", diff)
		}
	})
}

func TestResultsAreDurableSoonWithoutAnIntent(t *testing.T) {
	for name, tc := range map[string]struct {
		answer answer
		ask    bool
	}{
		"while the model is asked":  {answer: say("done")},
		"while a person is asked":   {answer: calls(`b {}`), ask: true},
		"after a step of refusals":  {answer: calls(`none {}`)},
		"before another intent too": {answer: calls(`b {}`)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, calls(`a {}`), tc.answer, say("done"))
				// soon checks that the result of the first call becomes durable.
				soon := func() {
					w.mu.Lock()
					at := slices.IndexFunc(w.events, func(e event.Event) bool { return e.Type() == event.TypeToolResult })
					early := w.synced > at
					w.mu.Unlock()
					time.Sleep(syncDelay + time.Nanosecond)
					synctest.Wait()
					w.mu.Lock()
					defer w.mu.Unlock()
					if early || w.synced <= at {
						t.Errorf("the result is event %d: durable at once %v, and %d events after %v", at, early, w.synced, syncDelay)
					}
				}
				if tc.ask {
					w.decide = func(c message.ToolCall) (message.Decision, error) {
						action := message.Allow
						if c.Tool == "b" {
							action = message.Ask
						}
						return message.Decision{Action: action, Rule: "test/ask"}, nil
					}
					w.ask = func(context.Context, message.Question) (message.Answer, error) {
						soon()
						return message.Answer{State: message.Approved, By: "test"}, nil
					}
				}
				w.start(t.Context(), func(c *Config) {
					c.Model = slow{model{w}, func(request int) {
						if request == 2 && !tc.ask {
							soon()
						}
					}}
				})
				w.mu.Lock()
				defer w.mu.Unlock()
				last := slices.IndexFunc(w.events, func(e event.Event) bool { return e.Type() == event.TypeToolResult || e.Type() == event.TypeToolError })
				if w.synced <= last {
					t.Errorf("the run ended with %d durable events, the last result is %d", w.synced, last)
				}
			})
		})
	}
}

func TestAStepWithoutAnIntentDoesNotDelayTheSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Each answer takes less than the delay, and no call runs after the first.
		w := newWorld(t, calls(`a {}`), calls(`none {"n":1}`), calls(`none {"n":2}`), calls(`a {"n":3}`), say("done"))
		var at []int
		w.start(t.Context(), func(c *Config) {
			c.Model = slow{model{w}, func(int) {
				time.Sleep(syncDelay * 2 / 3)
				synctest.Wait()
				at = append(at, w.syncs())
			}}
		})
		if want := []int{0, 1, 2, 2, 3}; !slices.Equal(at, want) {
			t.Errorf("syncs at the end of each request %v, want %v", at, want)
		}
	})
}

func TestALateSyncThatFailsEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, calls(`a {}`), answer{block: true})
		w.run = func(context.Context, message.ToolCall) (*message.ToolResult, error) {
			time.AfterFunc(syncDelay/2, func() {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.failing = errDisk
			})
			return &message.ToolResult{Text: "ok"}, nil
		}
		begun := time.Now()
		_, err := Run(t.Context(), w.config())
		if err == nil || time.Since(begun) != syncDelay {
			t.Errorf("ended after %v with %v, want the error of the disk after %v", time.Since(begun), err, syncDelay)
		}
	})
}

func TestACancelledRunLeavesNoSyncBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which fails on a goroutine that is left
		w := newWorld(t, calls(`a {}`), answer{block: true})
		ctx, cancel := context.WithTimeout(t.Context(), syncDelay/2)
		defer cancel()
		w.start(ctx)
		if w.syncs() != 2 || w.synced == 0 {
			t.Errorf("%d syncs, want that of the intent and one at the end", w.syncs())
		}
	})
}
