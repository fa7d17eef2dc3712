package runner

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/journal"
)

func (p place) resume(t *testing.T, change ...func(*ResumeOptions)) (*Outcome, error) {
	t.Helper()
	o := ResumeOptions{Ref: journal.Latest, State: p.state, Approve: "all", Version: "test"}
	for _, c := range change {
		c(&o)
	}
	return Resume(t.Context(), o)
}

// TestARunThatGoesOnIsNotTakenOver asks for a resume while the run is alive.
func TestARunThatGoesOnIsNotTakenOver(t *testing.T) {
	p := crashing(t, "Copy")
	var writes atomic.Int64
	asked := false
	out := p.run(t, func(o *RunOptions) {
		o.Approve = "all"
		o.disk.write = func(f *os.File, b []byte) (int, error) { // the run stands still meanwhile
			if writes.Add(1) == 20 {
				asked = true
				_, err := p.resume(t)
				if _, ok := errors.AsType[*reason.UsageError](err); !ok {
					t.Errorf("resume of a live run: %v", err)
				}
				if held, ok := errors.AsType[*journal.HeldError](err); !ok || !strings.Contains(held.Holder, strconv.Itoa(os.Getpid())) {
					t.Errorf("nobody is named: %v", err)
				}
			}
			return f.Write(b)
		}
	})
	want(t, out, reason.Completed)
	if n := len(p.lines(t, "never")); !asked || n != 3 {
		t.Errorf("asked %v, %d effects", asked, n)
	}
}

// TestOfManyWhoResumeOneDoes lets several go on with a killed run at once.
func TestOfManyWhoResumeOneDoes(t *testing.T) {
	calm := undisturbed(t, "Copy")
	v := &victim{place: crashing(t, "Copy")}
	v.die(t, doom{"write", calm.writes / 2, 0.5}, 0, false)
	outs, errs := make([]*Outcome, 4), make([]error, 4)
	var wg sync.WaitGroup
	for i := range outs {
		wg.Go(func() { outs[i], errs[i] = v.resume(t) })
	}
	wg.Wait()
	drove := 0
	for i, out := range outs {
		if _, ok := errors.AsType[*journal.HeldError](errs[i]); ok {
			continue
		}
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		if drove++; out.Run.Attempt != 2 {
			t.Errorf("%d processes have worked on the run, want 2", out.Run.Attempt)
		}
		v.check(t, out, calm)
	}
	if drove == 0 {
		t.Error("nobody went on with the run")
	}
}

// TestASuspendedRunGoesOnWithItsFiles answers the question a run was suspended
// for, and looks at what it changed before and after.
func TestASuspendedRunGoesOnWithItsFiles(t *testing.T) {
	spec := "approvals: {onAsk: Suspend}\ntools: [{name: read}, {name: edit}, {name: bash}]"
	steps := `
- calls: [{tool: read, args: {path: a.txt}}]
- calls: [{tool: edit, args: {path: a.txt, oldString: one, newString: two}}]
- calls: [{tool: bash, args: {command: "echo 1 >> log.txt"}}]
- calls: [{tool: edit, args: {path: a.txt, oldString: two, newString: three}}]
- say: done
`
	p := newPlace(t, agent(spec, steps), map[string]string{"a.txt": "one\n"})
	out := p.run(t)
	want(t, out, reason.ApprovalRequired)
	if out.Run.Phase != view.Suspended {
		t.Fatalf("phase %s", out.Run.Phase)
	}
	// A person goes on working meanwhile.
	write(t, filepath.Join(p.workspace, "a.txt"), "by hand\n")
	out, err := p.resume(t)
	if err != nil {
		t.Fatal(err)
	}
	want(t, out, reason.Completed)
	const diff = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+three\n" +
		"diff --git a/log.txt b/log.txt\nnew file mode 100644\n--- /dev/null\n+++ b/log.txt\n@@ -0,0 +1 @@\n+1\n"
	if got := diffOf(t, out); got != diff {
		t.Errorf("diff:\n%s", got)
	}
	if left, _ := filepath.Glob(filepath.Join(out.Journal, "workspace", "*.base")); len(left) > 0 {
		t.Errorf("%v is left of a run that has ended", left)
	}
	if _, err := os.Stat(filepath.Join(out.Journal, "head.json")); err != nil {
		t.Error(err)
	}
}

// TestFilesThatAreGoneEndARunAndNothingElse takes away what a suspended run has
// worked on. The source of a copy is not needed any more.
func TestFilesThatAreGoneEndARunAndNothingElse(t *testing.T) {
	const steps = `
- calls: [{tool: read, args: {path: a.txt}}]
- calls: [{tool: bash, args: {command: "echo 1 > log.txt"}}]
- say: done
`
	for name, c := range map[string]struct {
		inPlace bool
		gone    func(p place, out *Outcome) string
		want    reason.Reason
	}{
		"source of a copy": {false, func(p place, _ *Outcome) string { return p.workspace }, reason.Completed},
		"the copy":         {false, func(_ place, out *Outcome) string { return filepath.Join(out.Journal, "workspace") }, reason.WorkspaceUnavailable},
		"in place":         {true, func(p place, _ *Outcome) string { return p.workspace }, reason.WorkspaceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, agent("approvals: {onAsk: Suspend}\ntools: [{name: read}, {name: bash}]", steps), map[string]string{"a.txt": "one\n"})
			out := p.run(t, func(o *RunOptions) { o.InPlace = c.inPlace })
			want(t, out, reason.ApprovalRequired)
			if err := os.RemoveAll(c.gone(p, out)); err != nil {
				t.Fatal(err)
			}
			out, err := p.resume(t)
			if err != nil {
				t.Fatal(err)
			}
			want(t, out, c.want)
			if n := len(out.Result().ChangedFiles); c.want == reason.Completed && n != 1 {
				t.Errorf("%d files have changed, want 1", n)
			}
		})
	}
}
