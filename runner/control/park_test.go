package control

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/runs"
)

// crew are workers of a test's own.
type crew struct {
	*Workers
	t     *testing.T
	state string
	told  chan struct{}
}

// newCrew returns workers that keep so many runs that wait in memory.
func newCrew(t *testing.T, limit, keep int) *crew {
	t.Helper()
	c := &crew{t: t, state: t.TempDir(), told: make(chan struct{}, 1)}
	c.Workers = NewWorkers(WorkerOptions{State: c.state, Limit: limit, AllowUnsandboxed: true, Log: slog.New(slog.DiscardHandler)})
	c.keep = keep
	c.Follow(func(string, string) {
		select {
		case c.told <- struct{}{}:
		default:
		}
	})
	t.Cleanup(func() {
		if err := c.Stop(patience); err != nil {
			t.Error(err)
		}
	})
	return c
}

// start starts a run of an agent.
func (c *crew) start(name, manifests string) Work {
	c.t.Helper()
	w := Work{ID: name + "-1", Namespace: "ns", Agent: "worker", Name: name, Documents: documents(c.t, manifests+sep+runYAML(name, ""))}
	c.Start(w)
	return w
}

// await waits until the condition holds. What was parked is not announced, so it
// is looked at now and then.
func (c *crew) await(what string, holds func() bool) {
	c.t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for !holds() {
		select {
		case <-c.told:
		case <-again.C:
		case <-late.C:
			c.t.Fatalf("it does not come to this: %s", what)
		}
	}
}

func (c *crew) isParked(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.items[id]
	return i != nil && i.parked
}

func (c *crew) ends(w Work, want v1alpha1.Phase) {
	c.t.Helper()
	c.await(w.Name+" ends as "+string(want), func() bool {
		o := c.Observe(w.ID)
		if o.Progress == Ended && o.Status.Phase != want {
			c.t.Fatalf("%s ended as %+v", w.Name, o)
		}
		return o.Progress == Ended
	})
}

// question is the open question of a run.
func (c *crew) question(w Work) *runs.Asked {
	c.t.Helper()
	asked, err := c.Questions(context.Background(), w.ID)
	if err != nil || len(asked) == 0 || !asked[len(asked)-1].Open {
		c.t.Fatalf("run %s has no open question: %+v, %v", w.Name, asked, err)
	}
	return &asked[len(asked)-1]
}

func yes(id string) runs.Left {
	return runs.Left{Request: id, State: message.Approved, By: "jane", Time: time.Now()}
}

// requested are the questions in the journal of a run, and how often it was resumed.
func (c *crew) requested(w Work) (all []event.ApprovalRequested, resumed int) {
	c.t.Helper()
	for e, err := range journal.Read(context.Background(), journal.Dir(c.state, w.ID), 0) {
		if err != nil {
			c.t.Fatal(err)
		}
		switch d := e.Data.(type) {
		case event.ApprovalRequested:
			all = append(all, d)
		case event.RunResumed:
			resumed++
		}
	}
	return all, resumed
}

// TestRunsThatWaitHoldNoWorker has many more runs wait than may wait in memory.
func TestRunsThatWaitHoldNoWorker(t *testing.T) {
	t.Parallel()
	const many, keep = 12, 3
	c := newCrew(t, 2, keep)
	asks := askingYAML("onAsk: Wait, timeout: 30m")
	works := make([]Work, many)
	for i := range works {
		works[i] = c.start(fmt.Sprintf("asks-%d", i), asks)
	}
	c.await("all wait, and all but a few without a worker", func() bool {
		waiting, parked := 0, 0
		for _, w := range works {
			if c.Observe(w.ID).Status.PendingApprovals == 1 {
				waiting++
			}
			if c.isParked(w.ID) {
				parked++
			}
		}
		return waiting == many && parked == many-keep
	})
	c.mu.Lock()
	if c.living != keep || len(c.resting) != keep {
		t.Errorf("%d runs have a worker, %d of them wait, want %d", c.living, len(c.resting), keep)
	}
	c.mu.Unlock()
	if !c.isParked(works[0].ID) {
		t.Error("the run that has waited longest is not parked")
	}
	if o := c.Observe(works[0].ID); o.Progress != Living || o.Status.Phase != v1alpha1.PhaseRunning || o.Status.Journal == nil || o.Status.Steps == 0 {
		t.Errorf("a parked run is shown as %+v", o)
	}
	if journal.Held(journal.Dir(c.state, works[0].ID)) || !c.Busy() {
		t.Error("a parked run holds its journal, or is not counted as work")
	}
	c.ends(c.start("new", workerYAML), v1alpha1.PhaseSucceeded)

	// The decision reaches it through the workers, or through its inbox alone.
	q := c.question(works[0])
	if err := c.Answer(works[0], q, yes("apv-1")); err != nil {
		t.Fatal(err)
	}
	c.ends(works[0], v1alpha1.PhaseSucceeded)
	if left, err := runs.Leave(c.state, c.question(works[1]), yes("apv-2"), time.Now); err != nil || !left {
		t.Fatal(left, err)
	}
	c.ends(works[1], v1alpha1.PhaseSucceeded)
	for _, w := range works[:2] {
		asked, resumed := c.requested(w)
		if resumed != 1 || len(asked) != 2 || asked[0].ExpiresAt == 0 || asked[1].ExpiresAt != asked[0].ExpiresAt {
			t.Errorf("%s was resumed %d times, and asked %+v: the deadline of a question does not move", w.Name, resumed, asked)
		}
	}
	c.Cancel(works[2].ID)
	c.ends(works[2], v1alpha1.PhaseCancelled)
	c.Suspend(works[3].ID)
	if o := c.Observe(works[3].ID); o.Progress != Left || o.Status.PendingApprovals != 1 {
		t.Errorf("suspended while it was parked, it is %+v", o)
	}
	c.Release(works[3].ID)
	if o := c.Observe(works[3].ID); o.Progress != Left {
		t.Errorf("it is %+v", o)
	}
}

// TestAParkedQuestionExpires: no worker counts down, and the time is over all the same.
func TestAParkedQuestionExpires(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 1, 1)
	first := c.start("first", askingYAML("onAsk: Wait, timeout: 10s"))
	c.await("the first asks", func() bool { return c.Observe(first.ID).Status.PendingApprovals == 1 })
	second := c.start("second", askingYAML("onAsk: Wait, timeout: 30m"))
	c.await("the first is parked", func() bool { return c.isParked(first.ID) || c.Observe(first.ID).Progress == Ended })
	// The model answers after the refusal.
	c.await("the first ends", func() bool { return c.Observe(first.ID).Progress == Ended })
	asked, resumed := c.requested(first)
	if resumed != 1 || len(asked) != 2 || asked[1].ExpiresAt != asked[0].ExpiresAt {
		t.Errorf("it was resumed %d times, and asked %+v", resumed, asked)
	}
	q, err := c.Questions(t.Context(), first.ID)
	if err != nil || len(q) != 1 || q[0].Answer == nil || q[0].Answer.State != message.Expired {
		t.Errorf("got %+v, %v", q, err)
	}
	c.await("the second still waits", func() bool { return c.Observe(second.ID).Status.PendingApprovals == 1 })
}

// TestWorkersStopWhileRunsAreParked: nothing is lost, and the next workers ask again.
func TestWorkersStopWhileRunsAreParked(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 1, 1)
	asks := askingYAML("onAsk: Wait, timeout: 30m")
	first := c.start("first", asks)
	c.await("the first asks", func() bool { return c.Observe(first.ID).Status.PendingApprovals == 1 })
	c.start("second", asks)
	c.await("the first is parked", func() bool { return c.isParked(first.ID) })
	c.Drain(patience) // which would be minutes if it waited for an answer
	if err := c.Stop(patience); err != nil {
		t.Fatal(err)
	}
	if err := c.Answer(first, c.question(first), yes("apv-1")); err != nil {
		t.Fatal(err)
	}
	next := newCrew(t, 1, 1)
	next.o.State, next.state = c.state, c.state
	if p := next.Observe(first.ID).Progress; p != Left {
		t.Errorf("it is %q", p)
	}
	next.Start(first)
	next.ends(first, v1alpha1.PhaseSucceeded)
	if out := next.Observe(first.ID).Status.Output; !strings.Contains(out, "a") {
		t.Errorf("it answered %q", out)
	}
}
