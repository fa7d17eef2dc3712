package journal

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
)

// told is a journal and the feed of its events.
type told struct {
	testing.TB
	journal *Writer
	*Feed
}

// recorded is a new journal whose events are passed to watch, and its folder.
func recorded(t testing.TB, watch func(event.Event)) (told, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "r-1")
	w, err := Create(context.Background(), Options{Dir: dir, Run: "r-1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return told{t, w, NewFeed(dir, 0, watch)}, dir
}

// tell writes n events.
func (f told) tell(n int) {
	f.Helper()
	for range n {
		e, err := f.journal.Append(event.Event{Data: event.Warning{Message: "a \x1b <line>"}})
		if err != nil {
			f.Fatal(err)
		}
		f.Offer(e)
	}
}

func offered(t testing.TB, dir string) (all []event.Event) {
	t.Helper()
	for e, err := range Read(context.Background(), dir, 0) {
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
				f, dir := recorded(t, func(e event.Event) {
					time.Sleep(c.pause(len(seen)))
					seen = append(seen, e)
				})
				start := time.Now()
				for range 3000 {
					f.tell(1)
					time.Sleep(time.Millisecond)
					if n := f.held(); n > watcherRoom {
						t.Fatalf("%s: %d events are in memory", c.reason, n)
					}
				}
				if took := time.Since(start); took != 3*time.Second {
					t.Errorf("%s: the run took %s, it waits for its watcher", c.reason, took)
				}
				if n := f.End(t.Context(), nil); n != 0 {
					t.Errorf("%s: %d events are unseen", c.reason, n)
				}
				if diff := cmp.Diff(offered(t, dir), seen); diff != "" {
					t.Errorf("%s (-journal +seen):\n%s", c.reason, diff)
				}
			})
		})
	}
}

// held counts the events in memory.
func (f *Feed) held() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.queue) - f.head
}

func TestWatcherThatStandsStillIsGivenUp(t *testing.T) {
	cases := map[string]struct {
		reason string
		giveUp chan struct{}
		signal time.Duration // after the end of the run; 0 means none
		want   time.Duration
	}{
		"time":          {"the end of a run has a deadline", nil, 0, watcherPatience},
		"signal":        {"a person waits", nil, 3 * time.Second, 3*time.Second + stoppedPatience},
		"second signal": {"it waits for nothing", closedKill(), 0, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				block, calls := make(chan struct{}), 0
				f, _ := recorded(t, func(e event.Event) {
					calls++
					if e.Seq == 3 {
						<-block
					}
				})
				f.tell(600)
				synctest.Wait()
				start := time.Now()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.signal > 0 {
					time.AfterFunc(c.signal, cancel)
				}
				if n := f.End(ctx, c.giveUp); n != 598 {
					t.Errorf("%s: %d events are unseen, want 598", c.reason, n)
				}
				if took := time.Since(start); took != c.want {
					t.Errorf("%s: gave up after %s, want %s", c.reason, took, c.want)
				}
				close(block)
				<-f.ended
				if calls != 3 {
					t.Errorf("%s: it got %d events", c.reason, calls)
				}
			})
		})
	}
}

func TestSlowWatcherIsNotGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := 0
		f, _ := recorded(t, func(event.Event) {
			time.Sleep(watcherPatience - time.Second)
			seen++
		})
		f.tell(300)
		if n := f.End(t.Context(), nil); n != 0 || seen != 300 {
			t.Errorf("it saw %d of 300 events, %d are unseen", seen, n)
		}
	})
}

func TestJournalThatCannotBeReadEndsTheFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, block := make(chan struct{}), make(chan struct{})
		seen := 0
		f, dir := recorded(t, func(event.Event) {
			if seen++; seen == 1 {
				close(first)
				<-block
			}
		})
		f.tell(1)
		<-first
		f.tell(watcherRoom + 10)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		close(block)
		f.Flush(t.Context())
		if n := f.End(t.Context(), nil); n != 10 || seen != watcherRoom+1 {
			t.Errorf("%d events were seen, %d are unseen", seen, n)
		}
	})
}

func closedKill() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}
