package control

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/journal"
)

// died is the observation of a run that has failed.
func died(why reason.Reason) Observation {
	return Observation{
		Progress: Ended, Reason: string(why), Message: "it broke",
		Status: v1alpha1.RunStatus{Phase: v1alpha1.PhaseFailed, Steps: 2, Journal: &v1alpha1.JournalStatus{Path: "/j", LastSeq: 9}},
	}
}

// fail steps a run that has been started until its end is written.
func (b *bench) fail(r *runReconciler, why reason.Reason) time.Duration {
	b.t.Helper()
	b.executor.seen[b.executor.started[len(b.executor.started)-1].ID] = died(why)
	return b.step(r, "one").RequeueAfter
}

func TestAFailedRunIsTriedAgainLaterAndLater(t *testing.T) {
	b := newBench(t, workerYAML+sep+runYAML("one", ", backoffLimit: 7")).settled()
	r := newRunReconciler(b.base, b.executor)
	b.step(r, "one")
	var waited []time.Duration
	for attempt := int32(1); attempt <= 7; attempt++ {
		wait := b.fail(r, reason.ProviderUnavailable)
		waited = append(waited, wait)
		run := b.run("one")
		if s := run.Status; s.Phase != v1alpha1.PhasePending || s.Attempt != attempt+1 || s.Journal != nil || s.Steps != 0 {
			t.Fatalf("attempt %d has failed, and the status is %+v", attempt, s)
		}
		c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionRetrying)
		if c == nil || c.Status != metav1.ConditionTrue || c.Reason != "ProviderUnavailable" || c.Message != fmt.Sprintf("attempt %d: it broke", attempt) {
			t.Fatalf("what it died of is %+v", c)
		}
		if got := b.step(r, "one"); len(b.executor.started) != int(attempt) || got.RequeueAfter != wait {
			t.Fatalf("attempt %d was begun at once, or is waited for %s", attempt+1, got.RequeueAfter)
		}
		b.clock = b.clock.Add(wait)
		b.step(r, "one")
		if len(b.executor.started) != int(attempt)+1 {
			t.Fatalf("attempt %d was not begun", attempt+1)
		}
		if w := b.executor.started[attempt]; w.ID != AttemptID(run, attempt+1) || len(w.Documents) == 0 {
			t.Fatalf("attempt %d was begun as %s with %d documents", attempt+1, w.ID, len(w.Documents))
		}
	}
	want := "[10s 20s 40s 1m20s 2m40s 5m20s 6m0s]"
	if got := fmt.Sprint(waited); got != want {
		t.Errorf("it waited %s, want %s", got, want)
	}
	b.fail(r, reason.ProviderUnavailable)
	s := b.run("one").Status
	if c := s.Conditions[0]; s.Phase != v1alpha1.PhaseFailed || s.Attempt != 8 || c.Reason != "ProviderUnavailable" || c.Message != "attempt 8: it broke" {
		t.Errorf("the last end is %+v", s)
	}
	if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionRetrying); c.Status != metav1.ConditionFalse {
		t.Errorf("it is said to be tried again: %+v", c)
	}
	b.clock = b.clock.Add(time.Hour)
	if b.step(r, "one"); len(b.executor.started) != 8 {
		t.Errorf("it was begun %d times, want 8", len(b.executor.started))
	}
}

func TestOnlyWhatMayGoBetterIsTriedAgain(t *testing.T) {
	for _, info := range reason.All() {
		if info.ExitCode < 0 || info.Reason == reason.Completed {
			continue
		}
		b := newBench(t, workerYAML+sep+runYAML("one", ", backoffLimit: 3")).settled()
		r := newRunReconciler(b.base, b.executor)
		b.step(r, "one")
		b.fail(r, info.Reason)
		again := info.Reason == reason.ModelError || info.Reason == reason.ProviderUnavailable || info.Reason == reason.Internal
		if got := b.run("one").Status; (got.Phase == v1alpha1.PhasePending) != again {
			t.Errorf("%s: %+v, want it tried again: %v", info.Reason, got, again)
		}
	}
}

func TestARunIsNotTriedAgainUnasked(t *testing.T) {
	b := newBench(t, workerYAML+sep+runYAML("one", "")).settled()
	r := newRunReconciler(b.base, b.executor)
	b.step(r, "one")
	if b.fail(r, reason.ModelError); b.run("one").Status.Phase != v1alpha1.PhaseFailed {
		t.Errorf("%+v", b.run("one").Status)
	}
}

// TestARetryIsRememberedByTheObjectAlone has every step done by a process that
// knows nothing of the one before.
func TestARetryIsRememberedByTheObjectAlone(t *testing.T) {
	b := newBench(t, workerYAML+sep+runYAML("one", ", backoffLimit: 1")).settled()
	anew := func() *runReconciler { return newRunReconciler(b.base, b.executor) }
	b.step(anew(), "one")
	first := b.executor.started[0].ID
	b.fail(anew(), reason.Internal)
	if got := b.step(anew(), "one"); len(b.executor.started) != 1 || got.RequeueAfter != firstRetry {
		t.Fatalf("begun %d times, again after %s", len(b.executor.started), got.RequeueAfter)
	}
	b.clock = b.clock.Add(firstRetry)
	b.step(anew(), "one")
	if len(b.executor.started) != 2 || b.executor.started[1].ID != first+"-2" {
		t.Fatalf("begun as %+v", b.executor.started)
	}
	// The second attempt was left by a process that came to no status.
	b.executor.seen[first+"-2"] = Observation{Progress: Left}
	b.step(anew(), "one")
	if len(b.executor.started) != 3 || b.executor.started[2].ID != first+"-2" || len(b.executor.started[2].Documents) > 0 {
		t.Errorf("it continues as %+v", b.executor.started[2])
	}
}

// TestAnOldAttemptInTheCacheIsNoReason plays a cache that is behind: it still
// shows the attempt whose end has been written.
func TestAnOldAttemptInTheCacheIsNoReason(t *testing.T) {
	b := newBench(t, workerYAML+sep+runYAML("one", ", backoffLimit: 3")).settled()
	r := newRunReconciler(b.base, b.executor)
	b.step(r, "one")
	old := b.run("one")
	b.fail(r, reason.ModelError)
	writes := b.writes
	b.executor.seen[RunID(old)] = died(reason.ModelError)
	if result, err := r.advance(t.Context(), old); err != nil || result.RequeueAfter != changedAgain || b.writes != writes {
		t.Errorf("%+v, %v, written %d times", result, err, b.writes-writes)
	}
	b.clock = b.clock.Add(time.Minute)
	if r.outdated(old) {
		t.Error("a status that somebody has reset is waited for for ever")
	}
}

func TestARunIsCancelledBetweenItsAttempts(t *testing.T) {
	b := newBench(t, workerYAML+sep+runYAML("one", ", backoffLimit: 3")).settled()
	r := newRunReconciler(b.base, b.executor)
	b.step(r, "one")
	b.fail(r, reason.ModelError)
	run := b.run("one")
	run.Spec.Cancel = true
	if err := b.Update(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	b.step(r, "one")
	if s := b.run("one").Status; s.Phase != v1alpha1.PhaseCancelled || len(b.executor.started) != 1 {
		t.Errorf("%+v, begun %d times", s, len(b.executor.started))
	}
}

// TestEveryAttemptHasAJournalOfItsOwn executes two attempts of a run whose provider fails
// at first.
func TestEveryAttemptHasAJournalOfItsOwn(t *testing.T) {
	broken, asked := true, 0
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		if broken {
			http.Error(w, `{"error": {"message": "we are sorry", "type": "invalid_request_error"}}`, http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"all well\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	defer provider.Close()
	t.Setenv("TEST_KEY", "sk-test")
	model := head + "kind: Model\nmetadata: {name: script}\nspec: {provider: openai, model: m, baseURL: \"" + provider.URL + "/v1\", apiKey: {valueFrom: {env: TEST_KEY}}}\n"
	b := newBench(t, agentYAML+sep+model+sep+toolYAML+sep+policyYAML+sep+runYAML("one", ", backoffLimit: 1")).settled()
	state := t.TempDir()
	lived := make(chan struct{}, 16)
	workers := NewWorkers(WorkerOptions{State: state, Limit: 1, AllowUnsandboxed: true, Log: slog.New(slog.DiscardHandler)})
	workers.Follow(func(string, string) { lived <- struct{}{} })
	r := newRunReconciler(b.base, workers)
	until := func(done func(v1alpha1.RunStatus) bool) v1alpha1.RunStatus {
		t.Helper()
		late := time.After(patience)
		for {
			b.step(r, "one")
			if s := b.run("one").Status; done(s) {
				return s
			}
			select {
			case <-lived:
			case <-late:
				t.Fatalf("it does not come to that: %+v", b.run("one").Status)
			}
		}
	}
	until(func(s v1alpha1.RunStatus) bool { return s.Attempt == 2 })
	broken = false
	b.clock = b.clock.Add(firstRetry)
	s := until(func(s v1alpha1.RunStatus) bool {
		return s.Phase != v1alpha1.PhasePending && s.Phase != v1alpha1.PhaseRunning
	})
	if s.Phase != v1alpha1.PhaseSucceeded || s.Output != "all well" || s.Attempt != 2 {
		t.Fatalf("the end is %+v", s)
	}
	if err := workers.Stop(patience); err != nil {
		t.Fatal(err)
	}
	run := b.run("one")
	for attempt, want := range map[int32]string{1: "ModelError", 2: "Completed"} {
		dir := journal.Dir(state, AttemptID(run, attempt))
		if _, err := journal.Verify(t.Context(), dir); err != nil {
			t.Error(err)
		}
		last, err := journal.Last(dir)
		if err != nil || !strings.Contains(fmt.Sprint(last.Data), want) {
			t.Errorf("attempt %d ended with %v, %v, want %s", attempt, last, err, want)
		}
	}
	if s.Journal.Path != journal.Dir(state, RunID(run)) {
		t.Errorf("the status names %s", s.Journal.Path)
	}
	if dirs, err := os.ReadDir(state + "/runs"); err != nil || len(dirs) != 2 {
		t.Errorf("%d runs are there, %v", len(dirs), err)
	}
}

func TestBackOffHasALongest(t *testing.T) {
	for n, want := range map[int32]time.Duration{0: firstRetry, 1: firstRetry, 6: 320 * time.Second, 7: lastRetry, 1 << 30: lastRetry} {
		if got := backOff(n); got != want {
			t.Errorf("after %d failures %s, want %s", n, got, want)
		}
	}
}
