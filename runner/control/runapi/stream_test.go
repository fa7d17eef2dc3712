package runapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
)

func text(s string) event.Payload { return event.TextDelta{Text: s} }

var protocols = []string{"sse", "ws"}

// TestStreamContinuesAtEveryEvent reads a journal from each of its events on; the stream
// equals the journal, byte for byte.
func TestStreamContinuesAtEveryEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	b := w.begin(w.run("r", standing(v1alpha1.PhaseSucceeded, "Completed", "")), 1)
	b.add(text("one"), text("<tags> & \u2028 lines\nof text"), text(strings.Repeat("long ", 100_000)))
	b.now = b.now.Add(24 * time.Hour) // another file
	for i := range 20 {
		b.add(text(fmt.Sprint(i)))
	}
	b.add(finished(v1alpha1.PhaseSucceeded, 0))
	lines := b.lines()
	for _, how := range protocols {
		for from := 1; from <= len(lines)+2; from++ {
			got := all(t, w.open(how, "r", fmt.Sprintf("?from=%d", from)))
			want := lines[min(from-1, len(lines)):]
			if diff := cmp.Diff(append([]string(nil), want...), got.events); diff != "" {
				t.Errorf("%s from %d (-journal +stream)\n%.500s", how, from, diff)
			}
			end := record{Type: recordEnd, Next: int64(max(from, len(lines)+1)), Attempt: 1, Phase: v1alpha1.PhaseSucceeded, Reason: "Completed", ExitCode: new(0)}
			if from == len(lines)+2 { // the end is before the wanted events: it comes from the object
				end.Attempt = 0
			}
			if diff := cmp.Diff(end, got.last()); diff != "" {
				t.Errorf("%s from %d: the end (-want +got)\n%s", how, from, diff)
			}
			if how == "ws" && got.code != websocket.StatusNormalClosure {
				t.Errorf("closed with %d", got.code)
			}
		}
	}
	req := httptest.NewRequest(http.MethodGet, base+"runs/r/events?from=1", nil)
	req.Header.Set("Last-Event-ID", "22") // a browser repeats the address
	rec := httptest.NewRecorder()
	w.server.ServeHTTP(rec, req)
	if body := rec.Body.String(); !strings.Contains(body, "id: 23\n") || strings.Contains(body, "id: 22\n") {
		t.Errorf("after event 22 comes %.300s", body)
	}
}

// TestStreamsTellWhatIsWritten has many readers follow a journal that grows, some
// woken and some not.
func TestStreamsTellWhatIsWritten(t *testing.T) {
	t.Parallel()
	for name, lives := range map[string]bool{"woken": true, "looking": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(o *Options) {
				if o.Executes = func(string) bool { return lives }; lives {
					o.lookEvery = time.Hour // nothing but a wake helps
				}
			})
			run := w.run("r", standing(v1alpha1.PhaseRunning, "Accepted", ""))
			b := w.begin(run, 1)
			b.add(text("first"))
			var wg sync.WaitGroup
			results := make([]*received, 8)
			begun := make(chan struct{}, len(results))
			for i := range results {
				wg.Go(func() {
					r, got := w.open(protocols[i%2], "r", ""), &received{}
					until(t, r, got, event.TypeTextDelta)
					begun <- struct{}{}
					rest := all(t, r)
					results[i] = &received{events: append(got.events, rest.events...), record: rest.record}
				})
			}
			for range results {
				<-begun
			}
			for i := range 500 {
				if b.add(text(fmt.Sprint(i))); lives {
					w.server.Wake("default", "r")
				}
			}
			b.add(finished(v1alpha1.PhaseFailed, 3))
			run.Status.Phase = v1alpha1.PhaseFailed
			w.say(run)
			wg.Wait()
			for i, got := range results {
				if diff := cmp.Diff(b.lines(), got.events); diff != "" {
					t.Errorf("reader %d (-journal +stream)\n%.500s", i, diff)
				}
				if end := got.last(); end.Type != recordEnd || end.Phase != v1alpha1.PhaseFailed || end.ExitCode == nil || *end.ExitCode != 3 {
					t.Errorf("reader %d ends with %+v", i, end)
				}
			}
		})
	}
}

// TestEndWaitsForTheObject: a client that has read the end of a run finds it in the
// object, and an object that is never updated keeps no stream for ever.
func TestEndWaitsForTheObject(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	run := w.run("r", standing(v1alpha1.PhaseRunning, "Accepted", ""))
	b := w.begin(run, 1)
	b.add(text("a"), finished(v1alpha1.PhaseSucceeded, 0))
	r, got := w.open("sse", "r", ""), &received{}
	until(t, r, got, event.TypeRunFinished)
	run.Status.Phase = v1alpha1.PhaseSucceeded
	w.say(run)
	if end := all(t, r).last(); end.Type != recordEnd || end.Phase != v1alpha1.PhaseSucceeded {
		t.Errorf("%+v", end)
	}

	w = newWorld(t, func(o *Options) { o.statusPatience = time.Millisecond })
	w.begin(w.run("r", standing(v1alpha1.PhaseRunning, "Accepted", "")), 1).add(finished(v1alpha1.PhaseFailed, 4))
	if end := all(t, w.open("ws", "r", "")).last(); end.Type != recordEnd || *end.ExitCode != 4 {
		t.Errorf("%+v", end)
	}
}

func TestRunThatHasNotBegunIsWaitedFor(t *testing.T) {
	t.Parallel()
	for _, how := range protocols {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			run := w.run("r", v1alpha1.RunStatus{})
			r, got := w.open(how, "r", ""), &received{}
			until(t, r, got, recordWaiting)
			run.Status = standing(v1alpha1.PhasePending, "ReferenceNotFound", "there is no agent")
			w.say(run)
			until(t, r, got, recordWaiting)
			want := []record{
				{Type: recordWaiting, Phase: v1alpha1.PhasePending},
				{Type: recordWaiting, Phase: v1alpha1.PhasePending, Reason: "ReferenceNotFound", Message: "there is no agent"},
			}
			if diff := cmp.Diff(want, got.record); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			b := w.begin(run, 1) // it begins after all
			b.add(text("a"))
			until(t, r, got, event.TypeTextDelta)
			r.close()
		})
	}
}

// TestRunThatNeverBeginsHasAnEnd: refused, cancelled before it began, deleted.
func TestRunThatNeverBeginsHasAnEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status v1alpha1.RunStatus
		end    record
	}{
		"refused": {
			standing(v1alpha1.PhaseFailed, "SpecInvalid", "it is nonsense"),
			record{Type: recordEnd, Next: 1, Phase: v1alpha1.PhaseFailed, Reason: "SpecInvalid", Message: "it is nonsense", ExitCode: new(reason.SpecInvalid.ExitCode())},
		},
		"cancelled": {
			standing(v1alpha1.PhaseCancelled, "Cancelled", "cancelled before it began"),
			record{Type: recordEnd, Next: 1, Phase: v1alpha1.PhaseCancelled, Reason: "Cancelled", Message: "cancelled before it began", ExitCode: new(reason.Cancelled.ExitCode())},
		},
		"deleted": {
			v1alpha1.RunStatus{},
			record{Type: recordEnd, Next: 1, Phase: v1alpha1.PhaseCancelled, Reason: "Cancelled", Message: "the run was deleted", ExitCode: new(reason.Cancelled.ExitCode())},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			run := w.run("r", v1alpha1.RunStatus{})
			r, got := w.open("sse", "r", ""), &received{}
			until(t, r, got, recordWaiting)
			if c.status.Phase != "" {
				run.Status = c.status
				w.say(run)
			} else if err := w.Delete(t.Context(), run); err != nil {
				t.Fatal(err)
			} else {
				w.runOf("r", "another", standing(v1alpha1.PhaseRunning, "Accepted", "")) // of the same name
			}
			rest := all(t, r)
			if diff := cmp.Diff(c.end, rest.last()); diff != "" || len(rest.events) > 0 {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestSuspendedRunDoesNotEndTheStream: it continues when there is an answer.
func TestSuspendedRunDoesNotEndTheStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	run := w.run("r", standing(v1alpha1.PhaseSuspended, "ApprovalPending", ""))
	b := w.begin(run, 1)
	b.add(text("a"), finished(v1alpha1.PhaseSuspended, 6))
	r, got := w.open("ws", "r", ""), &received{}
	until(t, r, got, event.TypeRunFinished)
	now := all(t, w.open("sse", "r", "?follow=false"))
	if end := now.last(); end.Type != recordEnd || end.Phase != v1alpha1.PhaseSuspended || end.Next != 3 || *end.ExitCode != 6 {
		t.Errorf("what there is now ends with %+v", end)
	}
	b.add(event.RunResumed{}, finished(v1alpha1.PhaseSucceeded, 0))
	run.Status.Phase = v1alpha1.PhaseSucceeded
	w.say(run)
	rest := all(t, r)
	if diff := cmp.Diff(b.lines(), append(got.events, rest.events...)); diff != "" || rest.last().Phase != v1alpha1.PhaseSucceeded {
		t.Errorf("ends with %+v (-journal +stream)\n%s", rest.last(), diff)
	}
}

func TestFollowFalseEndsAtWhatThereIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	run := w.run("r", standing(v1alpha1.PhaseRunning, "Accepted", "it goes on"))
	w.run("new", v1alpha1.RunStatus{})
	b := w.begin(run, 1)
	b.add(text("a"), text("b"))
	got := all(t, w.open("sse", "r", "?follow=false"))
	want := record{Type: recordEnd, Next: 3, Phase: v1alpha1.PhaseRunning, Reason: "Accepted", Message: "it goes on"}
	if diff := cmp.Diff(want, got.last()); diff != "" || len(got.events) != 2 {
		t.Errorf("%d events (-want +got)\n%s", len(got.events), diff)
	}
	got = all(t, w.open("ws", "new", "?follow=false"))
	if diff := cmp.Diff([]record{{Type: recordEnd, Next: 1, Phase: v1alpha1.PhasePending}}, got.record); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestAttemptsFollowEachOther: a run that is tried again has one journal after
// the other, and its stream is one.
func TestAttemptsFollowEachOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	run := w.run("r", standing(v1alpha1.PhaseRunning, "Accepted", ""))
	run.Spec.BackoffLimit = 2
	if err := w.Update(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	b := w.begin(run, 1)
	b.add(text("a"), finished(v1alpha1.PhaseFailed, 1))
	r, got := w.open("sse", "r", ""), &received{}
	until(t, r, got, event.TypeRunFinished)
	run.Status = standing(v1alpha1.PhasePending, "ModelError", "tried again in 10s")
	run.Status.Attempt = 1
	w.say(run)
	for got.last().Reason != "ModelError" {
		until(t, r, got, recordWaiting)
	}
	run.Status = standing(v1alpha1.PhaseRunning, "Accepted", "")
	run.Status.Attempt = 2
	w.say(run)
	b2 := w.begin(run, 2)
	b2.add(text("b"), text("c"), finished(v1alpha1.PhaseSucceeded, 0))
	run.Status.Phase = v1alpha1.PhaseSucceeded
	w.say(run)
	rest := all(t, r)
	if diff := cmp.Diff(append(b.lines(), b2.lines()...), append(got.events, rest.events...)); diff != "" {
		t.Errorf("(-journals +stream)\n%s", diff)
	}
	if end := rest.last(); end.Type != recordEnd || end.Attempt != 2 || end.Next != 4 {
		t.Errorf("%+v", end)
	}
	for query, want := range map[string][]string{
		"":                  b2.lines(),
		"?from=2":           b2.lines()[1:],
		"?attempt=2&from=3": b2.lines()[2:],
		"?attempt=1&from=2": append(b.lines()[1:], b2.lines()...),
	} {
		got := all(t, w.open("ws", "r", query))
		if diff := cmp.Diff(want, got.events); diff != "" {
			t.Errorf("%q (-want +got)\n%s", query, diff)
		}
		if got.record[0].Type != recordAttempt {
			t.Errorf("%q begins with %+v", query, got.record[0])
		}
	}
}

// trickle is a reader so slow that three more events come while it takes one.
type trickle struct {
	received received
	t        *testing.T
	b        *book
	n        int
}

func (s *trickle) event(_ head, line []byte) error {
	if s.n++; s.n < 100_000 { // a failure must end, too
		for range 3 {
			s.b.add(text(strings.Repeat("x", 100_000)))
		}
	}
	s.received.take(s.t, string(line))
	return nil
}

func (s *trickle) below(event.Type, []byte) error { return nil }

func (s *trickle) record(r record) error {
	s.received.record = append(s.received.record, r)
	return nil
}
func (s *trickle) flush() error { return nil }
func (s *trickle) ping() error  { return nil }
func (s *trickle) end(r record, w why) {
	if _ = s.record(r); w != whyReader {
		s.t.Errorf("dropped because of %v", w)
	}
}

// TestSlowReaderIsDroppedWithItsPlace: what was read before is not lost, however
// far back the stream began.
func TestSlowReaderIsDroppedWithItsPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.maxLag = 4 << 20 })
	run := w.run("r", standing(v1alpha1.PhaseRunning, "Accepted", ""))
	b := w.begin(run, 1)
	for range 100 {
		b.add(text(strings.Repeat("old ", 25_000))) // more than a reader may fall back, but old
	}
	s := &trickle{t: t, b: b}
	w.server.stream(t.Context(), run, wanted{from: 5, attempt: 1, follow: true}, s)
	end := s.received.last()
	if end.Type != recordDropped || end.Next != int64(5+len(s.received.events)) || end.Message == "" {
		t.Fatalf("after %d events: %+v", len(s.received.events), end)
	}
	b.add(finished(v1alpha1.PhaseSucceeded, 0))
	run.Status.Phase = v1alpha1.PhaseSucceeded
	w.say(run)
	rest := all(t, w.open("sse", "r", fmt.Sprintf("?from=%d", end.Next)))
	if diff := cmp.Diff(b.lines()[4:], append(s.received.events, rest.events...)); diff != "" {
		t.Errorf("(-journal +streams)\n%.500s", diff)
	}
}

// TestSlowReaderIsCutOff: it delays no other reader, and continues after the
// last event that it has received completely.
func TestSlowReaderIsCutOff(t *testing.T) {
	t.Parallel()
	for _, how := range protocols {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(o *Options) { o.writePatience = 200 * time.Millisecond })
			b := w.begin(w.run("r", standing(v1alpha1.PhaseSucceeded, "Completed", "")), 1)
			for range 60 { // more than the system takes for a reader that takes nothing
				b.add(text(strings.Repeat("x", 100_000)))
			}
			b.add(finished(v1alpha1.PhaseSucceeded, 0))
			r := w.open(how, "r", "")
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			select {
			case <-w.server.limiter.close(): // the stream has ended, though nothing was read
			case <-ctx.Done():
				t.Fatal("the stream continues")
			}
			got := all(t, r)
			if n := len(got.events); n >= 61 || got.last().Type == recordEnd {
				t.Fatalf("%d events were sent", n)
			}
			w.server.limiter.reopen()
			w.server.o.writePatience = patience
			rest := all(t, w.open(how, "r", fmt.Sprintf("?from=%d", len(got.events)+1)))
			if diff := cmp.Diff(b.lines(), append(got.events, rest.events...)); diff != "" {
				t.Errorf("(-journal +streams)\n%.500s", diff)
			}
		})
	}
}

// reopen takes a close back, after the last stream has ended.
func (l *limiter) reopen() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed, l.idle = false, nil
}

func TestStopTellsEachReaderItsPlace(t *testing.T) {
	t.Parallel()
	for _, how := range protocols {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			b := w.begin(w.run("r", standing(v1alpha1.PhaseRunning, "Accepted", "")), 1)
			b.add(text("a"), text("b"))
			r, got := w.open(how, "r", ""), &received{}
			until(t, r, got, event.TypeTextDelta)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			closed := make(chan error, 1)
			go func() { closed <- w.server.Close(ctx) }()
			rest := all(t, r)
			if err := <-closed; err != nil {
				t.Error(err)
			}
			want := record{Type: recordDropped, Next: 3, Attempt: 1, Message: "the server is stopping"}
			if diff := cmp.Diff(want, rest.last()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if how == "ws" && rest.code != websocket.StatusTryAgainLater {
				t.Errorf("closed with %d", rest.code)
			}
			rec := httptest.NewRecorder()
			w.server.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, base+"runs/r/events", nil))
			if rec.Code != http.StatusServiceUnavailable || rec.Header().Get("Retry-After") == "" {
				t.Errorf("a new stream: %d %s", rec.Code, rec.Body)
			}
		})
	}
}

func TestReaderWhoMayNotAnyMoreIsDropped(t *testing.T) {
	t.Parallel()
	for _, how := range protocols {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			b := w.begin(w.run("r", standing(v1alpha1.PhaseRunning, "Accepted", "")), 1)
			b.add(text("a"))
			r, got := w.open(how, "r", ""), &received{}
			until(t, r, got, event.TypeTextDelta)
			w.cancel(errors.New("the token is not valid any more"))
			rest := all(t, r)
			want := record{Type: recordDropped, Next: 2, Attempt: 1, Message: "the token is not valid any more"}
			if diff := cmp.Diff(want, rest.last()); diff != "" || how == "ws" && rest.code != websocket.StatusPolicyViolation {
				t.Errorf("closed with %d (-want +got)\n%s", rest.code, diff)
			}
		})
	}
}

func TestSilenceIsBroken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.pingEvery = 10 * time.Millisecond })
	w.begin(w.run("r", standing(v1alpha1.PhaseRunning, "Accepted", "")), 1).add(text("a"))
	r := w.open("sse", "r", "").(*sseReader)
	for pings := 0; pings < 3; {
		line, err := r.in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line == ": ping\n" {
			pings++
		}
	}
	pinged := make(chan struct{}, 100)
	c, _, err := websocket.Dial(t.Context(), w.http.URL+base+"runs/r/events", &websocket.DialOptions{ //nolint:bodyclose // the response has no body
		OnPingReceived: func(context.Context, []byte) bool { pinged <- struct{}{}; return true },
	})
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for _, _, err := c.Read(t.Context()); err == nil; {
			_, _, err = c.Read(t.Context())
		}
	}()
	for range 3 {
		select {
		case <-pinged:
		case <-time.After(patience):
			t.Fatal("no ping")
		}
	}
	_ = c.CloseNow()
	<-read
}

// TestNothingIsReadFromAReader: any message of it is a mistake.
func TestNothingIsReadFromAReader(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.begin(w.run("r", standing(v1alpha1.PhaseRunning, "Accepted", "")), 1).add(text("a"))
	r := w.open("ws", "r", "").(*wsReader)
	until(t, r, &received{}, event.TypeTextDelta)
	if err := r.c.Write(t.Context(), websocket.MessageText, []byte(`{"cancel": true}`)); err != nil {
		t.Fatal(err)
	}
	if got := all(t, r); got.code != websocket.StatusUnsupportedData {
		t.Errorf("closed with %d", got.code)
	}
}

func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	s := &limiter{}
	var back []func()
	take := func(name string) error {
		done, err := s.reserve(name)
		if err == nil {
			back = append(back, done)
		}
		return err
	}
	for i := range maxStreams {
		name := fmt.Sprint("u", i/maxEach)
		if err := take(name); err != nil {
			t.Fatal(i, err)
		}
		if i%maxEach == maxEach-1 && take(name) == nil {
			t.Fatalf("%s has more than %d", name, maxEach)
		}
	}
	if take("another") == nil {
		t.Errorf("there are more than %d", maxStreams)
	}
	back[0]()
	if err := take("another"); err != nil {
		t.Error(err)
	}
	w := newWorld(t, nil)
	w.run("r", standing(v1alpha1.PhaseRunning, "Accepted", ""))
	for range maxEach {
		w.open("sse", "r", "")
	}
	rec := httptest.NewRecorder()
	w.server.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, base+"runs/r/events", nil))
	if rec.Code != http.StatusTooManyRequests || rec.Header().Get("Retry-After") == "" || !strings.Contains(rec.Body.String(), `"reason":"TooManyRequests"`) {
		t.Errorf("%d %v %s", rec.Code, rec.Header(), rec.Body)
	}
}

// TestDamagedJournalDropsItsReaders, each with what it has got.
func TestDamagedJournalDropsItsReaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	run := w.run("r", standing(v1alpha1.PhaseRunning, "Accepted", ""))
	b := w.begin(run, 1)
	b.add(text("a"), text("b"))
	damage(t, b, "hello\n")
	got := all(t, w.open("ws", "r", ""))
	if end := got.last(); end.Type != recordDropped || end.Next != 3 || len(got.events) != 2 || !strings.Contains(end.Message, "event 3") {
		t.Errorf("%d events, then %+v", len(got.events), end)
	}
}

// TestAStreamOfAJournalThatWasCutSaysSo: the reader of a control plane notices as
// any other that events are missing.
func TestAStreamOfAJournalThatWasCutSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	b := w.begin(w.run("r", standing(v1alpha1.PhaseSucceeded, "Completed", "")), 1)
	b.add(text("one"), text("two"), finished(v1alpha1.PhaseSucceeded, 0))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	lines := b.lines()
	files, err := filepath.Glob(filepath.Join(b.dir, "events-*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	if err := os.WriteFile(files[0], []byte(strings.Join(lines[:2], "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, how := range protocols {
		got := all(t, w.open(how, "r", "?follow=false"))
		if end := got.last(); len(got.events) != 2 || end.Type != recordEnd || !strings.Contains(end.Damage, "it had 3 events") {
			t.Errorf("%s: %d events, %+v", how, len(got.events), end)
		}
	}
}
