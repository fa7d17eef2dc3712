package execution

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/runner/journal"
)

// recorded is a recorder over a new journal, and the journal's folder.
func recorded(t testing.TB, watch func(event.Event)) (*Recorder, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "r-1")
	w, err := journal.Create(context.Background(), journal.Options{Dir: dir, Run: "r-1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return NewRecorder(w, dir, watch), dir
}

func tellAll(t testing.TB, r *Recorder, n int) {
	t.Helper()
	for range n {
		if err := r.Record(event.Warning{Message: "a \x1b <line>"}); err != nil {
			t.Fatal(err)
		}
	}
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
		r.End(t.Context(), nil)
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
		r.End(t.Context(), nil)
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
	again := NewRecorder(w, dir, func(e event.Event) { seen = append(seen, e.Seq) })
	tellAll(t, again, 2)
	again.End(t.Context(), nil)
	if !slices.Equal(seen, []int64{701, 702}) {
		t.Errorf("it was told %v", seen)
	}
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
			r.End(b.Context(), closedKill())
		})
	}
}

// BenchmarkFirstLook measures the time from an append to the watcher.
func BenchmarkFirstLook(b *testing.B) {
	seen := make(chan struct{})
	r, _ := recorded(b, func(event.Event) { seen <- struct{}{} })
	for b.Loop() {
		if err := r.Record(event.Warning{Message: "x"}); err != nil {
			b.Fatal(err)
		}
		<-seen
	}
	r.End(b.Context(), nil)
}

func closedKill() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}
