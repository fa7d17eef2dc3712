package control

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner"
	"agentctl.dev/agentctl/runner/control/controltest"
	"agentctl.dev/agentctl/runner/journal"
)

// hangingOnce is an agent whose tool hangs the first time it is called.
func hangingOnce(t *testing.T) (manifests, fifo string) {
	t.Helper()
	dir := t.TempDir()
	fifo = filepath.Join(dir, "begun")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	program, mark := filepath.Join(dir, "hang"), filepath.Join(dir, "mark")
	text := "#!/bin/sh\n[ -e " + mark + " ] && exec cat\n: >" + mark + "\necho now >" + fifo + "\nexec sleep 300\n"
	if err := os.WriteFile(program, []byte(text), 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	return strings.Replace(workerYAML, "[cat]", "["+program+"]", 1), fifo
}

func TestASuspendedRunIsLeftAndGoesOn(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	manifests, fifo := hangingOnce(t)
	s.apply(manifests + sep + runYAML("one", ""))
	begun(t, fifo)
	s.awaitPhase("one", v1alpha1.PhaseRunning)
	s.apply(runYAML("one", ", suspend: true"))
	run := s.awaitPhase("one", v1alpha1.PhaseSuspended, v1alpha1.PhaseFailed, v1alpha1.PhaseSucceeded)
	c := run.Status.Conditions[0]
	if run.Status.Phase != v1alpha1.PhaseSuspended || c.Status != "Unknown" || !strings.Contains(c.Message, "spec.suspend") || run.Status.Journal == nil || run.Status.Attempt != 1 {
		t.Fatalf("it is shown as %+v", run.Status)
	}
	if dir := journal.Dir(shared.dir, RunID(run)); journal.Held(dir) {
		t.Error("somebody still lives it")
	}
	s.apply(runYAML("one", ", suspend: false"))
	run = s.awaitPhase("one", v1alpha1.PhaseFailed, v1alpha1.PhaseSucceeded)
	if run.Status.Phase != v1alpha1.PhaseSucceeded || run.Status.Attempt != 1 || run.Status.Steps != 3 {
		t.Fatalf("it ended as %+v", run.Status)
	}
	resumed := 0
	for e, err := range journal.Read(t.Context(), run.Status.Journal.Path, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := e.Data.(event.RunResumed); ok {
			resumed++
		}
	}
	if resumed != 1 {
		t.Errorf("it was resumed %d times, want once", resumed)
	}
}

func TestASuspendedRunDoesNotBegin(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply(workerYAML)
	s.awaitReady("Agent", "worker", "True", "Accepted")
	s.apply(runYAML("one", ", suspend: true"))
	run := s.awaitPhase("one", v1alpha1.PhaseSuspended, v1alpha1.PhaseRunning, v1alpha1.PhaseSucceeded)
	if _, err := os.Stat(journal.Dir(shared.dir, RunID(run))); run.Status.Phase != v1alpha1.PhaseSuspended || !os.IsNotExist(err) {
		t.Fatalf("it has begun: %+v, %v", run.Status, err)
	}
	s.apply(runYAML("one", ", suspend: true, cancel: true"))
	s.awaitPhase("one", v1alpha1.PhaseCancelled)
	s.apply(runYAML("two", ", suspend: true"))
	s.awaitPhase("two", v1alpha1.PhaseSuspended)
	s.apply(runYAML("two", ""))
	s.awaitPhase("two", v1alpha1.PhaseSucceeded)
}

func TestASuspendedRunIsCancelled(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	manifests, fifo := hangingOnce(t)
	s.apply(manifests + sep + runYAML("one", ""))
	begun(t, fifo)
	s.apply(runYAML("one", ", suspend: true"))
	run := s.awaitPhase("one", v1alpha1.PhaseSuspended)
	s.apply(runYAML("one", ", suspend: true, cancel: true"))
	s.awaitPhase("one", v1alpha1.PhaseCancelled)
	if last, err := journal.Last(journal.Dir(shared.dir, RunID(run))); err != nil || last.Type() != (event.RunFinished{}).Type() {
		t.Errorf("the last event is %v, %v, want the end", last, err)
	}
}

// documents are manifests as a run is made of them.
func documents(t *testing.T, manifests string) (all []runner.Document) {
	t.Helper()
	for i, u := range objects(t, "ns", manifests) {
		raw, err := u.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, runner.Document{Name: fmt.Sprint(i), Text: raw})
	}
	return all
}

// TestWorkersForgetWhatIsSuspendedInTheLine fills the only worker.
func TestWorkersForgetWhatIsSuspendedInTheLine(t *testing.T) {
	manifests, fifo := hangingOnce(t)
	made := documents(t, manifests)
	lived := make(chan string, 16)
	w := NewWorkers(WorkerOptions{State: t.TempDir(), Limit: 1, AllowUnsandboxed: true, Log: slog.New(slog.DiscardHandler)})
	w.Follow(func(_, name string) { lived <- name })
	w.Start(Work{ID: "first-1", Namespace: "ns", Agent: "worker", Name: "first", Documents: made})
	begun(t, fifo)
	for range 2 { // the second time is a new turn
		w.Start(Work{ID: "second-1", Namespace: "ns", Agent: "worker", Name: "second", Documents: made})
		if got := w.Observe("second-1").Progress; got != Queued {
			t.Fatalf("it is %q", got)
		}
		w.Suspend("second-1")
		if got := w.Observe("second-1").Progress; got != Unknown {
			t.Fatalf("it is %q", got)
		}
	}
	w.Start(Work{ID: "third-1", Namespace: "ns", Agent: "worker", Name: "third", Documents: made})
	w.Suspend("first-1")
	w.Suspend("first-1") // again
	w.Suspend("nobody")
	over := func(id string) bool { p := w.Observe(id).Progress; return p == Ended || p == Left }
	for !over("first-1") || !over("third-1") {
		if name := <-lived; name == "second" {
			t.Error("the second was begun")
		}
	}
	if got := w.Observe("first-1").Progress; got != Left {
		t.Errorf("the first is %q", got)
	}
	if got := w.Observe("third-1").Status.Phase; got != v1alpha1.PhaseSucceeded {
		t.Errorf("the third is %q", got)
	}
	if err := w.Stop(patience); err != nil || w.Busy() {
		t.Errorf("%v, busy %v", err, w.Busy())
	}
}

// TestACancelledRunGoesOnFromWhatItWas cancels a run that was left before a worker has
// read its journal: the status then is still that of the same run.
func TestACancelledRunGoesOnFromWhatItWas(t *testing.T) {
	manifests, fifo := hangingOnce(t)
	log := &controltest.Log{}
	told := make(chan string, 64)
	w := NewWorkers(WorkerOptions{State: t.TempDir(), AllowUnsandboxed: true, Log: slog.New(slog.NewTextHandler(log, nil))})
	w.Follow(func(_, name string) { told <- name })
	awaitEnd := func(want Progress) Observation {
		for {
			<-told
			if o := w.Observe("one-1"); o.Progress == want {
				return o
			}
		}
	}
	work := Work{ID: "one-1", Namespace: "ns", Agent: "worker", Name: "one", Documents: documents(t, manifests)}
	w.Start(work)
	begun(t, fifo)
	w.Suspend("one-1")
	awaitEnd(Left)
	w.Release("one-1")
	w.Start(work)
	w.Cancel("one-1")
	if o := awaitEnd(Ended); o.Status.Phase != v1alpha1.PhaseCancelled || o.Status.Steps == 0 {
		t.Errorf("it ended as %+v", o)
	}
	if err := w.Stop(patience); err != nil || log.String() != "" {
		t.Errorf("%v; the log says:\n%s", err, log.String())
	}
}
