package runner

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/runs"
)

// recorded is a recorder over a new journal, and the journal's folder.
func recorded(t testing.TB, watch func(event.Event)) (*recorder, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "r-1")
	w, err := journal.Create(context.Background(), journal.Options{Dir: dir, Run: "r-1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return newRecorder(w, dir, watch), dir
}

func tellAll(t testing.TB, r *recorder, n int) {
	t.Helper()
	for range n {
		if err := r.tell(event.Warning{Message: "a \x1b <line>"}); err != nil {
			t.Fatal(err)
		}
	}
}

func written(t testing.TB, dir string) (all []event.Event) {
	t.Helper()
	for e, err := range journal.Read(context.Background(), dir, 0) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

func TestWatcherSeesEveryEventOnceAndInOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	cases := map[string]struct {
		reason string
		pause  func(n int) time.Duration // before event n is taken
	}{
		"quick":   {"all come from memory", func(int) time.Duration { return 0 }},
		"blocked": {"it stands still while the run writes everything", func(n int) time.Duration { return time.Duration(max(0, 1-n)) * 9 * time.Second }},
		"slow":    {"it falls further behind all the time", func(int) time.Duration { return 3 * time.Millisecond }},
		"uneven":  {"it falls behind and catches up", func(int) time.Duration { return time.Duration(random.IntN(100)/98) * time.Second }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen []event.Event
				r, dir := recorded(t, func(e event.Event) {
					time.Sleep(c.pause(len(seen)))
					seen = append(seen, e)
				})
				start := time.Now()
				for range 3000 {
					tellAll(t, r, 1)
					time.Sleep(time.Millisecond)
					if n := r.feed.held(); n > feedRoom {
						t.Fatalf("%s: %d events are in memory", c.reason, n)
					}
				}
				if took := time.Since(start); took != 3*time.Second {
					t.Errorf("%s: the run took %s, it waits for its watcher", c.reason, took)
				}
				if n := r.end(t.Context(), nil); n != 0 {
					t.Errorf("%s: %d events are unseen", c.reason, n)
				}
				if diff := cmp.Diff(written(t, dir), seen); diff != "" {
					t.Errorf("%s (-journal +seen):\n%s", c.reason, diff)
				}
			})
		})
	}
}

// held counts the events in memory.
func (f *feed) held() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.queue) - f.head
}

func TestWatcherThatStandsStillIsGivenUp(t *testing.T) {
	cases := map[string]struct {
		reason string
		giveUp chan struct{}
		signal time.Duration // after the end of the run; 0 is none
		want   time.Duration
	}{
		"time":          {"the end of a run has a deadline", nil, 0, feedPatience},
		"signal":        {"a person waits", nil, 3 * time.Second, 3*time.Second + feedHurry},
		"second signal": {"it waits for nothing", closedKill(), 0, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				block, calls := make(chan struct{}), 0
				r, _ := recorded(t, func(e event.Event) {
					calls++
					if e.Seq == 3 {
						<-block
					}
				})
				tellAll(t, r, 600)
				synctest.Wait()
				start := time.Now()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.signal > 0 {
					time.AfterFunc(c.signal, cancel)
				}
				if n := r.end(ctx, c.giveUp); n != 598 {
					t.Errorf("%s: %d events are unseen, want 598", c.reason, n)
				}
				if took := time.Since(start); took != c.want {
					t.Errorf("%s: gave up after %s, want %s", c.reason, took, c.want)
				}
				close(block)
				<-r.feed.ended
				if calls != 3 {
					t.Errorf("%s: it was told %d events", c.reason, calls)
				}
			})
		})
	}
}

func TestSlowWatcherIsNotGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := 0
		r, _ := recorded(t, func(event.Event) {
			time.Sleep(feedPatience - time.Second)
			seen++
		})
		tellAll(t, r, 300)
		if n := r.end(t.Context(), nil); n != 0 || seen != 300 {
			t.Errorf("it saw %d of 300 events, %d are unseen", seen, n)
		}
	})
}

func TestQuestionComesAfterWhatLedToIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []int64
		r, _ := recorded(t, func(e event.Event) {
			time.Sleep(time.Millisecond)
			seen = append(seen, e.Seq)
		})
		tellAll(t, r, 400)
		r.shown(t.Context())
		if len(seen) != 400 {
			t.Errorf("%d of 400 events were shown before the question", len(seen))
		}
		r.shown(t.Context()) // nothing is new: nothing to wait for
		tellAll(t, r, 1)
		r.end(t.Context(), nil)
	})
}

func TestBlockedWatcherHoldsBackNoQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		r, _ := recorded(t, func(event.Event) { <-block })
		tellAll(t, r, 1)
		start := time.Now()
		r.shown(t.Context())
		if took := time.Since(start); took != askPatience {
			t.Errorf("it waited %s, want %s", took, askPatience)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r.shown(ctx)
		if took := time.Since(start); took != askPatience {
			t.Errorf("it waited for a question that is cancelled")
		}
		close(block)
		r.end(t.Context(), nil)
	})
}

func TestJournalThatCannotBeReadEndsTheFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, block := make(chan struct{}), make(chan struct{})
		seen := 0
		r, dir := recorded(t, func(event.Event) {
			if seen++; seen == 1 {
				close(first)
				<-block
			}
		})
		tellAll(t, r, 1)
		<-first
		tellAll(t, r, feedRoom+10)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		close(block)
		r.shown(t.Context())
		if n := r.end(t.Context(), nil); n != 10 || seen != feedRoom+1 {
			t.Errorf("%d events were seen, %d are unseen", seen, n)
		}
	})
}

func TestResumedRunTellsOnlyWhatIsNew(t *testing.T) {
	r, dir := recorded(t, nil)
	tellAll(t, r, 700)
	if err := r.journal.Close(); err != nil {
		t.Fatal(err)
	}
	w, err := journal.Open(t.Context(), journal.Options{Dir: dir, Run: "r-1"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var seen []int64
	again := newRecorder(w, dir, func(e event.Event) { seen = append(seen, e.Seq) })
	tellAll(t, again, 2)
	again.end(t.Context(), nil)
	if !slices.Equal(seen, []int64{701, 702}) {
		t.Errorf("it was told %v", seen)
	}
}

func TestBlockedReaderDoesNotStopARun(t *testing.T) {
	p := newPlace(t, agent("", "- say: done"), nil)
	block := make(chan struct{})
	kill := make(chan struct{})
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	watched := make(chan struct{})
	out := make(chan *Outcome)
	go func() {
		out <- p.runWith(ctx, t, func(o *RunOptions) {
			o.Kill = kill
			o.Events = func(e event.Event) {
				if e.Seq == 1 {
					close(watched)
				}
				<-block
			}
		})
	}()
	<-watched
	// The run is over when its journal is whole, whoever reads it or not.
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for done := false; !done; <-tick.C {
		ids, err := runs.IDs(p.state)
		if err != nil {
			t.Fatal(err)
		}
		_, err = os.Stat(filepath.Join(p.state, "runs", ids[0], "head.json"))
		done = err == nil
		if t.Context().Err() != nil {
			t.Fatal("the run does not end")
		}
	}
	close(kill)
	if o := <-out; o.Unseen == 0 || o.Run.Finished == nil || o.Run.Finished.Reason != "Completed" {
		t.Errorf("%d events are unseen, the end is %+v", o.Unseen, o.Run.Finished)
	}
	close(block)
}

// BenchmarkAppend measures what a watcher costs an append.
func BenchmarkAppend(b *testing.B) {
	none := func(event.Event) {}
	line := []byte(nil)
	for name, watch := range map[string]func(event.Event){
		"nobody": nil, "quick": none,
		"lines": func(e event.Event) { line, _ = e.AppendJSON(line[:0]) },
		"slow":  func(event.Event) { time.Sleep(100 * time.Microsecond) },
	} {
		b.Run(name, func(b *testing.B) {
			r, _ := recorded(b, watch)
			for _, e := range []event.Event{
				{Message: "msg-00", Part: "part-00", Data: event.RunStarted{}},
				{Data: event.StepStart{Step: 1}},
				{Message: "msg-01", Data: event.ModelRequest{Step: 1}},
				{Message: "msg-01", Part: "part-01", Data: event.TextStart{}},
			} {
				if _, err := r.Append(e); err != nil {
					b.Fatal(err)
				}
			}
			e := event.Event{Message: "msg-01", Part: "part-01", Data: event.TextDelta{Text: "a hundred bytes of text, as a model streams them: not much more than a line of it, again and again"}}
			for b.Loop() {
				if _, err := r.Append(e); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			r.end(b.Context(), closedKill())
		})
	}
}

func closedKill() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// BenchmarkFirstLook measures the time from an append to the watcher.
func BenchmarkFirstLook(b *testing.B) {
	seen := make(chan struct{})
	r, _ := recorded(b, func(event.Event) { seen <- struct{}{} })
	for b.Loop() {
		if err := r.tell(event.Warning{Message: "x"}); err != nil {
			b.Fatal(err)
		}
		<-seen
	}
	r.end(b.Context(), nil)
}
