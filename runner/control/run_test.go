package control

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/control/embedded"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/runs"
)

const workerYAML = agentYAML + sep + modelYAML + sep + toolYAML + sep + policyYAML

func runYAML(name, spec string) string {
	return head + "kind: Run\nmetadata: {name: " + name + "}\nspec: {agentRef: {name: worker}, prompt: go" + spec + "}\n"
}

func TestARunIsLivedAndShown(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply(workerYAML + sep + runYAML("one", ""))
	run := s.awaitPhase("one", v1alpha1.PhaseSucceeded, v1alpha1.PhaseFailed, v1alpha1.PhaseCancelled)
	c := run.Status.Conditions[0]
	if c.Type != "Succeeded" || c.Status != "True" || c.Reason != "Completed" || c.ObservedGeneration != run.Generation {
		t.Errorf("the condition is %+v", c)
	}
	if run.Status.Steps != 3 || !strings.HasPrefix(run.Status.Output, "done: ") || run.Status.Cost != "0.00" {
		t.Errorf("the status is %+v", run.Status)
	}
	dir := journal.Dir(shared.dir, RunID(run))
	report, err := journal.Verify(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if j := run.Status.Journal; j == nil || j.Path != dir || j.LastSeq != report.Events || j.HeadHash != report.Head {
		t.Errorf("the status names the journal %+v, want %s with %d events and head %s", j, dir, report.Events, report.Head)
	}
	for _, m := range run.ManagedFields {
		if m.Manager != "test" && m.Manager != string(owner(v1alpha1.KindRun)) {
			t.Errorf("%q has set fields, which is no writer", m.Manager)
		}
	}
	agent := &v1alpha1.Agent{}
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: s.name, Name: "worker"}, agent); err != nil {
		t.Fatal(err)
	}
	if o := run.OwnerReferences; len(o) != 1 || o[0].UID != agent.UID {
		t.Errorf("the owners are %+v, want the agent", o)
	}
}

func TestARunWaitsForItsAgent(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply(runYAML("early", ""))
	run := s.awaitPhase("early", v1alpha1.PhasePending)
	if c := run.Status.Conditions[0]; c.Status != "Unknown" || c.Reason != "ReferenceNotFound" || !strings.Contains(c.Message, `agent "worker"`) {
		t.Errorf("the condition is %+v", c)
	}
	s.apply(agentYAML + sep + toolYAML + sep + policyYAML)
	await(s, &v1alpha1.Run{}, &v1alpha1.RunList{}, "early", func(r *v1alpha1.Run) bool {
		return len(r.Status.Conditions) > 0 && strings.Contains(r.Status.Conditions[0].Message, `model "script"`)
	})
	s.apply(modelYAML)
	s.awaitPhase("early", v1alpha1.PhaseSucceeded)
}

func TestARunThatCannotBeginFails(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply(workerYAML)
	s.awaitReady("Agent", "worker", "True", "Accepted")
	for name, c := range map[string]struct{ reason, spec, why, message string }{
		"wider":    {"a run may only narrow", ", limits: {maxSteps: 90000}", "SpecInvalid", "a run may only narrow"},
		"relative": {"there is no current folder", ", workspace: {source: {path: repo}}", "PathNotAbsolute", "spec.workspace.source.path"},
		"nowhere":  {"the folder is not there", ", workspace: {source: {path: /no/such/folder}}", "SpecInvalid", "/no/such/folder"},
		"inputs":   {"the agent takes none", ", inputs: {x: 1}", "SpecInvalid", "takes no inputs"},
	} {
		s.apply(runYAML(name, c.spec))
		run := s.awaitPhase(name, v1alpha1.PhaseFailed, v1alpha1.PhaseSucceeded)
		if got := run.Status.Conditions[0]; got.Status != "False" || got.Reason != c.why || !strings.Contains(got.Message, c.message) {
			t.Errorf("%s: the condition is %+v, want %s with %q", c.reason, got, c.why, c.message)
		}
	}
}

// hanging is an agent whose tool reports by a FIFO that it has begun, and hangs.
func hanging(t *testing.T) (manifests, fifo string) {
	t.Helper()
	dir := t.TempDir()
	fifo = filepath.Join(dir, "begun")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "hang")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho now >"+fifo+"\nexec sleep 300\n"), 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	return strings.Replace(workerYAML, "[cat]", "["+program+"]", 1), fifo
}

// begun waits until a hanging tool runs.
func begun(t *testing.T, fifo string) {
	t.Helper()
	if _, err := os.ReadFile(fifo); err != nil {
		t.Fatal(err)
	}
}

func TestARunIsCancelledByItsObject(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	manifests, fifo := hanging(t)
	s.apply(manifests + sep + runYAML("hangs", ""))
	begun(t, fifo)
	run := s.awaitPhase("hangs", v1alpha1.PhaseRunning)
	if c := run.Status.Conditions[0]; c.Status != "Unknown" || run.Status.Steps == 0 && run.Status.Journal == nil {
		t.Errorf("a run that continues is shown as %+v", run.Status)
	}
	s.apply(runYAML("hangs", ", cancel: true"))
	run = s.awaitPhase("hangs", v1alpha1.PhaseCancelled, v1alpha1.PhaseFailed, v1alpha1.PhaseSucceeded)
	if c := run.Status.Conditions[0]; run.Status.Phase != v1alpha1.PhaseCancelled || c.Reason != "Cancelled" || c.Status != "False" {
		t.Errorf("the end is %s, %+v", run.Status.Phase, c)
	}
}

func TestARunIsCancelledBeforeItBegins(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply(runYAML("early", ", cancel: true"))
	run := s.awaitPhase("early", v1alpha1.PhaseCancelled)
	if _, err := os.Stat(journal.Dir(shared.dir, RunID(run))); !os.IsNotExist(err) {
		t.Errorf("a run that never began has a folder: %v", err)
	}
}

func TestADeletedRunIsEndedFirst(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	manifests, fifo := hanging(t)
	s.apply(manifests + sep + runYAML("hangs", ""))
	begun(t, fifo)
	run := s.awaitPhase("hangs", v1alpha1.PhaseRunning)
	s.delete(run)
	if last, err := journal.Last(journal.Dir(shared.dir, RunID(run))); err != nil || last.Type() != (event.RunFinished{}).Type() {
		t.Errorf("the object is gone, and the last event of the run is %v, %v", last, err)
	}
}

func TestASuspendedRunGoesOnWhenItIsAnswered(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	asking := strings.Replace(agentYAML, "policyRefs: [{name: open}]", "policyRefs: [{name: ask}]\n  approvals: {onAsk: Suspend}", 1)
	s.apply(asking + sep + strings.Replace(modelYAML, "    - {say: two, calls: [{tool: echo, args: {text: b}}]}\n", "", 1) + sep + toolYAML + sep +
		head + "kind: Policy\nmetadata: {name: ask}\nspec: {default: ask}\n" + sep + runYAML("asks", ""))
	run := s.awaitPhase("asks", v1alpha1.PhaseSuspended, v1alpha1.PhaseFailed, v1alpha1.PhaseSucceeded)
	if c := run.Status.Conditions[0]; c.Status != "Unknown" || c.Reason != "ApprovalRequired" || run.Status.PendingApprovals != 1 {
		t.Fatalf("it is shown as %+v", run.Status)
	}
	if _, err := runs.Answer(t.Context(), runs.AnswerOptions{Ref: RunID(run), State: shared.dir, Approve: true, By: "jane"}); err != nil {
		t.Fatal(err)
	}
	run = s.awaitPhase("asks", v1alpha1.PhaseFailed, v1alpha1.PhaseSucceeded)
	if !strings.HasPrefix(run.Status.Output, "done: ") || run.Status.PendingApprovals != 0 {
		t.Errorf("it ended as %+v", run.Status)
	}
}

func TestARunWhoseJournalIsGoneIsNotBegunAgain(t *testing.T) {
	b := newBench(t, workerYAML+sep+runYAML("one", "")).settled()
	run := b.run("one")
	run.Status.Phase, run.Status.Journal = v1alpha1.PhaseRunning, &v1alpha1.JournalStatus{Path: "/gone", LastSeq: 7}
	if err := b.Status().Update(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	b.step(newRunReconciler(b.base, b.executor), "one")
	if got := b.run("one").Status; len(b.executor.started) > 0 || got.Phase != v1alpha1.PhaseFailed || got.Conditions[0].Reason != "Internal" {
		t.Errorf("started %d times, %+v", len(b.executor.started), got)
	}
}

func TestRunsGoWithTheirAgent(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply(workerYAML + sep + runYAML("one", ""))
	run := s.awaitPhase("one", v1alpha1.PhaseSucceeded)
	w := s.watchRuns()
	defer w.Stop()
	if err := s.Delete(t.Context(), &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "worker"}}); err != nil {
		t.Fatal(err)
	}
	s.awaitGone(w, run)
}

func TestARunIsDeletedWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply(workerYAML)
	w := s.watchRuns()
	defer w.Stop()
	s.apply(runYAML("brief", ", ttlAfterFinished: 1s"))
	run := &v1alpha1.Run{}
	run.Namespace, run.Name = s.name, "brief"
	s.awaitGone(w, run)
	ids, err := os.ReadDir(filepath.Join(shared.dir, "runs"))
	if err != nil {
		t.Fatal(err)
	}
	kept := false
	for _, id := range ids {
		kept = kept || strings.HasPrefix(id.Name(), "brief-")
	}
	if !kept {
		t.Error("the journal went with the object: it is the record of what was done")
	}
}

// TestManyRunsAreEachLivedOnce is the throughput of the benchmark without a
// time: nothing is lost, nothing is done twice.
func TestManyRunsAreEachLivedOnce(t *testing.T) {
	t.Parallel()
	const many = 200
	s := newSpace(t)
	s.apply(workerYAML)
	s.awaitReady("Agent", "worker", "True", "Accepted")
	s.startMany(many)
	for _, run := range s.awaitAll(many) {
		if run.Status.Phase != v1alpha1.PhaseSucceeded || run.Status.Steps != 3 {
			t.Errorf("run %s is %s after %d steps: %+v", run.Name, run.Status.Phase, run.Status.Steps, run.Status.Conditions)
			continue
		}
		started, results := 0, 0
		for e, err := range journal.Read(t.Context(), run.Status.Journal.Path, 0) {
			if err != nil {
				t.Fatal(err)
			}
			switch e.Data.(type) {
			case event.RunStarted, event.RunResumed:
				started++
			case event.ToolResult:
				results++
			}
		}
		if started != 1 || results != 2 {
			t.Errorf("run %s was begun %d times and has %d results, want 1 and 2", run.Name, started, results)
		}
	}
}

func BenchmarkRuns(b *testing.B) {
	s := newSpace(b)
	s.apply(workerYAML)
	s.awaitReady("Agent", "worker", "True", "Accepted")
	round := 0
	for b.Loop() {
		round++
		s.startMany(1000)
		s.awaitAll(1000)
		if err := s.DeleteAllOf(b.Context(), &v1alpha1.Run{}, client.InNamespace(s.name)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(1000*float64(round)/b.Elapsed().Seconds(), "runs/s")
}

// startMany applies runs of the worker, some at a time.
func (s space) startMany(n int) {
	s.t.Helper()
	var wg sync.WaitGroup
	next := make(chan int)
	for range 8 {
		wg.Go(func() {
			for i := range next {
				s.apply(runYAML(fmt.Sprintf("run-%d", i), ""))
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// awaitAll waits until n runs have ended, and returns them.
func (s space) awaitAll(n int) map[string]*v1alpha1.Run {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	over := map[string]*v1alpha1.Run{}
	add := func(r *v1alpha1.Run) {
		if r.Status.Phase.Finished() {
			over[r.Name] = r
		}
	}
	for len(over) < n && ctx.Err() == nil { // a watcher that the machine is too busy for is dropped, and comes again
		var list v1alpha1.RunList
		if err := s.List(ctx, &list, client.InNamespace(s.name)); err != nil {
			s.t.Fatal(err)
		}
		for i := range list.Items {
			add(&list.Items[i])
		}
		s.watchUntil(ctx, list.ResourceVersion, func(r *v1alpha1.Run) bool { add(r); return len(over) == n })
	}
	if len(over) < n {
		s.t.Fatalf("%d of %d runs have ended", len(over), n)
	}
	return over
}

// watchUntil watches runs until one of them satisfies done, or the watch ends.
func (s space) watchUntil(ctx context.Context, from string, done func(*v1alpha1.Run) bool) {
	s.t.Helper()
	w, err := s.Watch(ctx, &v1alpha1.RunList{}, client.InNamespace(s.name), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: from}})
	if err != nil {
		s.t.Fatal(err)
	}
	defer w.Stop()
	for {
		select {
		case e, ok := <-w.ResultChan():
			if !ok {
				return
			}
			if r, is := e.Object.(*v1alpha1.Run); is && done(r) {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// TestAWorkerWritesTheStatusOfItsOwnRunsOnly holds the role to what a worker
// outside of agentd would have.
func TestAWorkerWritesTheStatusOfItsOwnRunsOnly(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply(runYAML("mine", "") + sep + runYAML("other", ""))
	token, err := shared.server.Tokens().Create(t.Context(), embedded.Identity{Name: s.name, Role: embedded.RoleWorker, Runs: []string{s.name + "/mine"}})
	if err != nil {
		t.Fatal(err)
	}
	c := shared.server.Loopback()
	c.BearerToken = token
	worker, err := newClient(c)
	if err != nil {
		t.Fatal(err)
	}
	show := func(name string) error {
		r := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: name}}
		return worker.Status().Patch(t.Context(), r, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"changedFiles":7}}`)))
	}
	if err := show("mine"); err != nil {
		t.Errorf("its own run: %v", err)
	}
	if err := show("other"); !apierrors.IsForbidden(err) {
		t.Errorf("another run: %v, want it forbidden", err)
	}
	if err := worker.Delete(t.Context(), &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "mine"}}); !apierrors.IsForbidden(err) {
		t.Errorf("deleting its own run: %v, want it forbidden", err)
	}
}
