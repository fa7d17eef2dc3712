package control

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/connect"
)

func TestAStatusIsWrittenOnceASecond(t *testing.T) {
	b := newBench(t, workerYAML+sep+runYAML("one", "")).settled()
	r := newRunReconciler(b.base, b.executor)
	b.step(r, "one")
	if len(b.executor.started) != 1 || b.run("one").Status.Phase != v1alpha1.PhasePending || b.writes != 1 {
		t.Fatalf("started %d, %d writes, %+v", len(b.executor.started), b.writes, b.run("one").Status)
	}
	id := b.executor.started[0].ID
	b.executor.seen[id] = living(1)
	b.step(r, "one")
	if b.writes != 2 || b.run("one").Status.Phase != v1alpha1.PhaseRunning {
		t.Fatalf("a transition is written at once: %d writes, %+v", b.writes, b.run("one").Status)
	}
	b.clock = b.clock.Add(300 * time.Millisecond)
	b.executor.seen[id] = living(2)
	if again := b.step(r, "one"); b.writes != 2 || again.RequeueAfter != 700*time.Millisecond {
		t.Fatalf("counters wait for their second: %d writes, again after %s", b.writes, again.RequeueAfter)
	}
	b.clock = b.clock.Add(700 * time.Millisecond)
	b.step(r, "one")
	if b.writes != 3 || b.run("one").Status.Steps != 2 {
		t.Fatalf("they are written then: %d writes, %+v", b.writes, b.run("one").Status)
	}
	waits := living(2)
	waits.Status.PendingApprovals = 1
	b.executor.seen[id] = waits
	b.step(r, "one")
	if b.writes != 4 {
		t.Errorf("a question is written at once: %d writes", b.writes)
	}
	b.step(r, "one")
	b.clock = b.clock.Add(time.Minute)
	b.step(r, "one")
	if b.writes != 4 {
		t.Errorf("what has not changed is written again: %d writes", b.writes)
	}
	if got := strings.Join(b.told, "\n"); strings.Count(got, "\n") != 1 {
		t.Errorf("told:\n%s\nwant that it waits, and that it runs", got)
	}
}

func TestARunIsTakenUpByItsJournal(t *testing.T) {
	for name, c := range map[string]struct {
		reason, spec string
		phase        v1alpha1.Phase
		seen         Progress
		starts       int
		documents    bool
		want         v1alpha1.Phase
	}{
		"new":                 {reason: "there is nothing yet", seen: Unknown, starts: 1, documents: true, want: v1alpha1.PhasePending},
		"left":                {reason: "another process lived it", phase: v1alpha1.PhaseRunning, seen: Left, starts: 1, want: v1alpha1.PhaseRunning},
		"left before status":  {reason: "that process came to no status", seen: Left, starts: 1, want: v1alpha1.PhasePending},
		"suspended":           {reason: "it waits for a person, not for a process", phase: v1alpha1.PhaseSuspended, seen: Waiting, want: v1alpha1.PhaseSuspended},
		"answered":            {reason: "the person has answered", phase: v1alpha1.PhaseSuspended, seen: Left, starts: 1, want: v1alpha1.PhasePending},
		"suspension unseen":   {reason: "the process came to no status; it asks again", phase: v1alpha1.PhaseRunning, seen: Waiting, starts: 1, want: v1alpha1.PhaseRunning},
		"suspended cancelled": {reason: "its journal gets an end", spec: ", cancel: true", phase: v1alpha1.PhaseSuspended, seen: Waiting, starts: 1, want: v1alpha1.PhasePending},
		"queued":              {reason: "it has been handed over", seen: Queued, want: v1alpha1.PhasePending},
		"finished":            {reason: "the status is the last one", phase: v1alpha1.PhaseSucceeded, seen: Left, want: v1alpha1.PhaseSucceeded},
		"cancelled when new":  {reason: "it never begins", spec: ", cancel: true", seen: Unknown, want: v1alpha1.PhaseCancelled},
		"cancelled when left": {reason: "its journal gets an end", spec: ", cancel: true", phase: v1alpha1.PhaseRunning, seen: Left, starts: 1, want: v1alpha1.PhaseRunning},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, workerYAML+sep+runYAML("one", c.spec)).settled()
			run := b.run("one")
			run.Status.Phase = c.phase
			if err := b.Status().Update(t.Context(), run); err != nil {
				t.Fatal(err)
			}
			id := RunID(run)
			b.executor.seen[id] = Observation{Progress: c.seen}
			b.step(newRunReconciler(b.base, b.executor), "one")
			if len(b.executor.started) != c.starts {
				t.Errorf("%s: started %d times, want %d", c.reason, len(b.executor.started), c.starts)
			}
			for _, w := range b.executor.started {
				if w.ID != id || (len(w.Documents) > 0) != c.documents {
					t.Errorf("%s: started as %s with %d documents", c.reason, w.ID, len(w.Documents))
				}
			}
			if got := b.run("one").Status.Phase; got != c.want {
				t.Errorf("%s: the phase is %q, want %q", c.reason, got, c.want)
			}
			if cancel := strings.Contains(c.spec, "cancel") && c.seen != Unknown; cancel != (len(b.executor.cancelled) > 0) {
				t.Errorf("%s: cancelled %v", c.reason, b.executor.cancelled)
			}
		})
	}
}

func TestARunIsLeftToItsExecutorUntilTheStatusSaysItIsOver(t *testing.T) {
	b := newBench(t, workerYAML+sep+runYAML("one", "")).settled()
	r := newRunReconciler(b.base, b.executor)
	b.step(r, "one")
	id := b.executor.started[0].ID
	b.executor.seen[id] = Observation{Progress: Ended, Status: v1alpha1.RunStatus{Phase: v1alpha1.PhaseFailed, Steps: 4}, Reason: "MaxSteps", Message: "it took too many"}
	b.step(r, "one")
	run := b.run("one")
	c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionSucceeded)
	if run.Status.Phase != v1alpha1.PhaseFailed || c.Status != metav1.ConditionFalse || c.Reason != "MaxSteps" || run.Status.Steps != 4 {
		t.Errorf("the end is shown as %+v", run.Status)
	}
	if len(b.executor.released) != 0 {
		t.Error("it was forgotten before the status could be read back: it would be begun again")
	}
	b.step(r, "one")
	if len(b.executor.released) != 1 || len(b.executor.started) != 1 {
		t.Errorf("released %v, started %d times", b.executor.released, len(b.executor.started))
	}
}

func TestARunThatDoesNotComeAboutSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		err    error
		why    string
		phase  v1alpha1.Phase
	}{
		"usage":     {"its workspace is not there", &reason.UsageError{Err: errors.New("no folder"), Hint: "name one"}, "SpecInvalid", v1alpha1.PhaseFailed},
		"cancelled": {"it was cancelled in the line", reason.New(reason.Cancelled, "cancelled before it began"), "Cancelled", v1alpha1.PhaseCancelled},
		"disk":      {"the state folder cannot be written", errors.New("no space left on device"), "Internal", v1alpha1.PhaseFailed},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, workerYAML+sep+runYAML("one", "")).settled()
			b.executor.seen[RunID(b.run("one"))] = Observation{Progress: Ended, Err: c.err}
			b.step(newRunReconciler(b.base, b.executor), "one")
			got := b.run("one").Status
			if got.Phase != c.phase || got.Conditions[0].Reason != c.why || !strings.Contains(got.Conditions[0].Message, c.err.Error()) {
				t.Errorf("%s: %+v", c.reason, got)
			}
		})
	}
}

func TestARunWhoseObjectIsTakenAwayEnds(t *testing.T) {
	b := newBench(t, workerYAML+sep+runYAML("one", "")).settled()
	r := newRunReconciler(b.base, b.executor)
	b.step(r, "one")
	run := b.run("one")
	run.Finalizers = nil // by force
	if err := errors.Join(b.Update(t.Context(), run), b.Delete(t.Context(), run)); err != nil {
		t.Fatal(err)
	}
	b.step(r, "one")
	if len(b.executor.cancelled) != 1 || b.executor.cancelled[0] != RunID(run) {
		t.Errorf("cancelled %v, want the run", b.executor.cancelled)
	}
}

func TestARunWhoseNameIsTakenEnds(t *testing.T) {
	b := newBench(t, workerYAML+sep+runYAML("one", "")).settled()
	r := newRunReconciler(b.base, b.executor)
	b.step(r, "one")
	run := b.run("one")
	run.Finalizers = nil // by force
	other := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "one", UID: "another"}, Spec: run.Spec}
	if err := errors.Join(b.Update(t.Context(), run), b.Delete(t.Context(), run), b.Create(t.Context(), other)); err != nil {
		t.Fatal(err)
	}
	b.step(r, "one") // the change and the change back are one to a queue
	if len(b.executor.cancelled) != 1 || b.executor.cancelled[0] != RunID(run) {
		t.Errorf("cancelled %v, want the run that nobody can see any more", b.executor.cancelled)
	}
	b.step(r, "one")
	if len(b.executor.started) != 2 || b.executor.started[1].ID != RunID(other) || len(b.executor.cancelled) != 1 {
		t.Errorf("started %v, cancelled %v: want the other one to go on", b.executor.started, b.executor.cancelled)
	}
}

func TestAToolIsAskedOnceAndHeldToIt(t *testing.T) {
	b := newBench(t, toolYAML)
	says, asked := "sha256:a", 0
	fresh := func() *toolReconciler {
		r := newToolReconciler(b.base, connect.ProbeOptions{})
		r.probe = func(context.Context, *v1alpha1.Tool) (*connect.ToolFacts, error) {
			asked++
			return &connect.ToolFacts{Digest: says}, nil
		}
		return r
	}
	tool := func() *v1alpha1.Tool {
		x := &v1alpha1.Tool{}
		if err := b.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "echo"}, x); err != nil {
			t.Fatal(err)
		}
		return x
	}
	step := func(r *toolReconciler) {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), request("echo")); err != nil {
			t.Fatal(err)
		}
	}
	r := fresh()
	step(r)
	step(r)
	if got := tool().Status; asked != 1 || got.Digest != "sha256:a" || readyOf(tool()).why != "Accepted" || b.writes != 1 {
		t.Fatalf("asked %d times, %d writes, %+v", asked, b.writes, got)
	}
	says = "sha256:b"
	step(fresh()) // another process
	if got := tool(); readyOf(got).why != "ToolChanged" || got.Status.Digest != "sha256:a" {
		t.Fatalf("a changed program: %+v", got.Status)
	}
	step(fresh())
	if got := tool(); readyOf(got).why != "ToolChanged" {
		t.Fatalf("it is taken for granted the next time: %+v", got.Status)
	}
	changed := tool()
	changed.Generation = 2
	if err := b.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	step(fresh())
	if got := tool(); readyOf(got).why != "Accepted" || got.Status.Digest != "sha256:b" {
		t.Errorf("a new spec accepts what the program is now: %+v", got.Status)
	}
}

func TestAChangedToolIsAccepted(t *testing.T) {
	b := newBench(t, toolYAML)
	says := "sha256:a"
	r := newToolReconciler(b.base, connect.ProbeOptions{})
	r.probe = func(context.Context, *v1alpha1.Tool) (*connect.ToolFacts, error) {
		return &connect.ToolFacts{Digest: says}, nil
	}
	step := func(accept string) *v1alpha1.Tool {
		t.Helper()
		x := &v1alpha1.Tool{}
		if err := b.Get(t.Context(), request("echo").NamespacedName, x); err != nil {
			t.Fatal(err)
		}
		if accept != "" {
			x.Annotations = map[string]string{AcceptDigest: accept}
			if err := b.Update(t.Context(), x); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.Reconcile(t.Context(), request("echo")); err != nil {
			t.Fatal(err)
		}
		if err := b.Get(t.Context(), request("echo").NamespacedName, x); err != nil {
			t.Fatal(err)
		}
		return x
	}
	step("")
	says = "sha256:b"
	r.forget(request("echo").NamespacedName)
	if got := readyOf(step("")); got.why != "ToolChanged" || !strings.Contains(got.message, AcceptDigest+"=sha256:b") {
		t.Fatalf("%+v", got)
	}
	if got := step("sha256:c"); readyOf(got).why != "ToolChanged" {
		t.Fatalf("something else was accepted: %+v", got.Status)
	}
	if got := step("sha256:b"); readyOf(got).why != "Accepted" || got.Status.Digest != "sha256:b" {
		t.Fatalf("it was accepted: %+v", got.Status)
	}
	says = "sha256:a" // what was accepted once is not what it was before
	r.forget(request("echo").NamespacedName)
	if got := step(""); readyOf(got).why != "ToolChanged" {
		t.Errorf("%+v", got.Status)
	}
}

// TestAProgramIsAskedAgainWhenItsFileIsAnother replaces the program of a plugin without an
// event.
func TestAProgramIsAskedAgainWhenItsFileIsAnother(t *testing.T) {
	file := filepath.Join(t.TempDir(), "program")
	write := func(text string) {
		t.Helper()
		if err := errors.Join(os.WriteFile(file+".new", []byte(text), 0o600), os.Rename(file+".new", file)); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	b := newBench(t, strings.Replace(toolYAML, "exec: {command: [cat]}", "plugin: {command: ["+file+"]}", 1))
	asked := 0
	r := newToolReconciler(b.base, connect.ProbeOptions{})
	r.probe = func(context.Context, *v1alpha1.Tool) (*connect.ToolFacts, error) {
		asked++
		text, err := os.ReadFile(file)
		return &connect.ToolFacts{Digest: "sha256:" + string(text)}, err
	}
	for _, c := range []struct {
		text, why string
		asked     int
	}{{"", "Accepted", 1}, {"", "Accepted", 1}, {"two", "ToolChanged", 2}, {"", "ToolChanged", 2}, {"one", "Accepted", 3}} {
		if c.text != "" {
			write(c.text)
		}
		again, err := r.Reconcile(t.Context(), request("echo"))
		tool := &v1alpha1.Tool{}
		if err := errors.Join(err, b.Get(t.Context(), request("echo").NamespacedName, tool)); err != nil {
			t.Fatal(err)
		}
		if got := readyOf(tool); got.why != c.why || asked != c.asked || again.RequeueAfter != lookAgain || tool.Status.Digest != "sha256:one" {
			t.Errorf("%+v, asked %d times, again after %s, %s", got, asked, again.RequeueAfter, tool.Status.Digest)
		}
	}
}

func TestAToolThatFailedIsTriedAgain(t *testing.T) {
	b := newBench(t, toolYAML)
	r := newToolReconciler(b.base, connect.ProbeOptions{})
	broken := error(reason.New(reason.ToolError, "no such file").WithHint("build it"))
	r.probe = func(context.Context, *v1alpha1.Tool) (*connect.ToolFacts, error) {
		return &connect.ToolFacts{Digest: "sha256:a"}, broken
	}
	again, err := r.Reconcile(t.Context(), request("echo"))
	tool := &v1alpha1.Tool{}
	if err := errors.Join(err, b.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "echo"}, tool)); err != nil {
		t.Fatal(err)
	}
	if got := readyOf(tool); got.why != "PluginFailed" || got.message != "no such file (build it)" || again.RequeueAfter != lookAgain {
		t.Errorf("got %+v, again after %s", got, again.RequeueAfter)
	}
	broken = reason.New(reason.IsolationUnavailable, "no sandbox here")
	if _, err := r.Reconcile(t.Context(), request("echo")); err != nil {
		t.Fatal(err)
	}
	broken = nil
	if again, err = r.Reconcile(t.Context(), request("echo")); err != nil || again.RequeueAfter != 0 {
		t.Fatal(again, err)
	}
	if got := strings.Join(b.told, "\n"); got != "tool/echo PluginFailed no such file (build it)\ntool/echo IsolationUnavailable no sandbox here\ntool/echo Accepted Ready" {
		t.Errorf("told:\n%s", got)
	}
}

// TestTheTimeOfAFinishedRunGoesOnAcrossARestart asks reconcilers that know nothing
// but the object.
func TestTheTimeOfAFinishedRunGoesOnAcrossARestart(t *testing.T) {
	b := newBench(t, workerYAML+sep+runYAML("one", ", ttlAfterFinished: 10m")).settled()
	r := newRunReconciler(b.base, b.executor)
	b.step(r, "one")
	b.executor.seen[b.executor.started[0].ID] = Observation{Progress: Ended, Status: v1alpha1.RunStatus{Phase: v1alpha1.PhaseSucceeded}, Reason: "Completed"}
	b.step(r, "one")
	b.clock = b.clock.Add(4 * time.Minute)
	if again := b.step(newRunReconciler(b.base, b.executor), "one"); again.RequeueAfter != 6*time.Minute {
		t.Fatalf("it is looked at again after %s, want 6m", again.RequeueAfter)
	}
	b.clock = b.clock.Add(time.Hour) // no process was there when it ended
	b.step(newRunReconciler(b.base, b.executor), "one")
	if run := b.run("one"); run.DeletionTimestamp.IsZero() {
		t.Fatal("it is still there")
	}
	b.step(newRunReconciler(b.base, b.executor), "one") // lets go of it
	err := b.Get(t.Context(), request("one").NamespacedName, &v1alpha1.Run{})
	if client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("%v, want it gone", err)
	}
	if len(b.executor.started) != 1 {
		t.Errorf("it was begun %d times", len(b.executor.started))
	}
}
