package workspace

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// empty removes everything in a folder, the stage of an apply too.
func empty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		must(t, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
}

func stages(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, stagePrefix+"*"))
	must(t, err)
	return found
}

// What people do with a folder in which an apply was killed.
var afterACrash = map[string]func(t *testing.T, dir string){
	"the stage is removed": func(t *testing.T, dir string) {
		t.Helper()
		for _, s := range stages(t, dir) {
			must(t, os.RemoveAll(s))
		}
	},
	"everything is restored": func(t *testing.T, dir string) {
		t.Helper()
		empty(t, dir)
		base.write(t, dir)
	},
	"known files are restored, the stage is left": func(t *testing.T, dir string) {
		t.Helper()
		for _, name := range []string{"file2dir", "dir2file", "link", "link2file", "file2link", "mod", "mode", "del"} {
			must(t, os.RemoveAll(filepath.Join(dir, name)))
		}
		base.write(t, dir)
	},
	"unknown files are removed": func(t *testing.T, dir string) {
		t.Helper()
		for _, name := range append(stages(t, dir), filepath.Join(dir, "top"), filepath.Join(dir, "added")) {
			must(t, os.RemoveAll(name))
		}
	},
	"a file is put into the stage": func(t *testing.T, dir string) {
		t.Helper()
		for _, s := range stages(t, dir) {
			must(t, os.WriteFile(filepath.Join(s, "mine"), nil, 0o600))
		}
	},
}

func TestAnInterruptedApplyIsRecoverableWhateverWasDoneToTheFolder(t *testing.T) {
	for name, did := range afterACrash {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n, step := range steps(t) {
				if n%2 != len(name)%2 && os.Getenv("CRASH") != "full" {
					continue // a sample, as in the crash harness
				}
				if step == "clear stage" && strings.Contains(name, "known files") {
					continue // the whole change was made, and then a part of it taken back
				}
				spec, c := changed(t)
				app := application(spec, c)
				if !applyUntil(t, app, n) {
					t.Fatalf("step %d was not reached", n)
				}
				did(t, spec.Source)
				applyUntil(t, app, 4) // the next one is killed as well
				if err := Apply(context.Background(), app); err != nil && !errors.Is(err, ErrApplied) {
					t.Fatalf("crash before %s: %v", step, err)
				}
				for _, s := range stages(t, spec.Source) {
					if name != "a file is put into the stage" {
						t.Errorf("crash before %s: %s is left", step, s)
					}
					must(t, os.RemoveAll(s))
				}
				if diff := cmp.Diff(target, read(t, spec.Source)); diff != "" {
					t.Fatalf("crash before %s (-want +got):\n%s", step, diff)
				}
				if err := Apply(context.Background(), app); !errors.Is(err, ErrApplied) {
					t.Fatalf("crash before %s, applied once more: %v", step, err)
				}
			}
		})
	}
}

func TestAnEditAfterACrashSaysHowToGoOn(t *testing.T) {
	t.Parallel()
	interrupted := 0
	for n, step := range steps(t) {
		if step == "clear stage" {
			continue // the whole change is made
		}
		spec, c := changed(t)
		app := application(spec, c)
		applyUntil(t, app, n)
		mod := filepath.Join(spec.Source, "mod")
		f, err := os.OpenFile(mod, os.O_WRONLY|os.O_TRUNC, 0) // the same inode
		must(t, err)
		_, err = f.WriteString("edited by a person\n")
		must(t, errors.Join(err, f.Close()))
		err = Apply(context.Background(), app)
		if stop, ok := errors.AsType[*InterruptedError](err); ok {
			interrupted++
			if got := read(t, spec.Source); got["del"] != base["del"] || got["top"] != "" {
				t.Errorf("crash before %s: the other files are not as before: %v", step, got)
			}
			_, command, found := strings.Cut(stop.Advice, "then: ")
			if !found || !strings.Contains(err.Error(), `"mod"`) {
				t.Fatalf("crash before %s: %v; %s", step, err, stop.Advice)
			}
			must(t, exec.Command("sh", "-c", command).Run())
			err = Apply(context.Background(), app)
		}
		drift, ok := errors.AsType[*DriftError](err)
		if !ok && !errors.Is(err, ErrApplied) {
			t.Fatalf("crash before %s: %v", step, err)
		}
		if ok && (len(drift.Files) != 1 || drift.Files[0].Path != "mod") {
			t.Fatalf("crash before %s: %v", step, err)
		}
		if b, err := os.ReadFile(mod); err != nil || string(b) != "edited by a person\n" {
			t.Fatalf("crash before %s: the edit is now %q, %v", step, b, err)
		}
		must(t, os.WriteFile(mod, []byte(base["mod"]), 0o644))
		must(t, os.Chmod(mod, 0o644))
		if err := Apply(context.Background(), app); err != nil {
			t.Fatalf("crash before %s, restored: %v", step, err)
		}
		if diff := cmp.Diff(target, read(t, spec.Source)); diff != "" {
			t.Fatalf("crash before %s (-want +got):\n%s", step, diff)
		}
	}
	if interrupted == 0 {
		t.Error("no crash left an apply that could not be undone")
	}
}

func TestAPartialApplyThatFailsStaysPartial(t *testing.T) {
	t.Parallel()
	names := steps(t)
	at := 0
	for i, name := range names {
		if name == "replace mode" {
			at = i
		}
	}
	for fail := range at {
		spec, c := changed(t)
		app := application(spec, c)
		applyUntil(t, app, at)
		afterACrash["the stage is removed"](t, spec.Source)
		before := read(t, spec.Source)
		again, n, failed := app, 0, ""
		again.step = func(name string) error {
			if n++; n == fail+1 {
				failed = name
				return errInjected
			}
			return nil
		}
		err := Apply(context.Background(), again)
		if err != nil && !errors.Is(err, errInjected) {
			t.Fatalf("failure at step %d: %v", fail, err)
		}
		if diff := cmp.Diff(before, read(t, spec.Source)); err != nil && diff != "" && failed != "clear stage" {
			t.Fatalf("failure at step %d (-want +got):\n%s", fail, diff)
		}
		if err := Apply(context.Background(), app); err != nil && !errors.Is(err, ErrApplied) {
			t.Fatalf("after a failure at step %d: %v", fail, err)
		}
		if diff := cmp.Diff(target, read(t, spec.Source)); diff != "" {
			t.Fatalf("after a failure at step %d (-want +got):\n%s", fail, diff)
		}
	}
}

func TestAnInterruptedApplyCanBeUndoneWithoutMakingIt(t *testing.T) {
	for n, step := range steps(t) {
		spec, c := changed(t)
		app := application(spec, c)
		if !applyUntil(t, app, n) {
			t.Fatalf("step %d was not reached", n)
		}
		want := base
		if step == "clear stage" {
			want = target // the whole change was made
		}
		for range 2 { // there is nothing to undo the second time
			must(t, Undo(app.Source, app.Record))
			if diff := cmp.Diff(want, read(t, spec.Source)); diff != "" {
				t.Fatalf("crash before %s (-want +got):\n%s", step, diff)
			}
			if left := stages(t, spec.Source); len(left) > 0 {
				t.Fatalf("crash before %s: %s are left", step, left)
			}
		}
	}
}

// A run can be deleted while only its folder knows how to undo what it was doing.
func TestWhatAKilledProcessWasChangingIsSettled(t *testing.T) {
	last := len(steps(t)) - 1
	for _, n := range []int{1, last / 2, last} {
		spec, c := changed(t)
		app, run := application(spec, c), t.TempDir()
		app.Record = filepath.Join(run, MergePrefix+"1.json")
		if !applyUntil(t, app, n) {
			t.Fatalf("step %d was not reached", n)
		}
		must(t, os.WriteFile(filepath.Join(run, MergePrefix+"2.json"), []byte(`{"source":"relative","phase":"swapping"}`), 0o600))
		must(t, os.WriteFile(filepath.Join(run, ApplyRecord), []byte(`{"source":"/no/such/folder","stage":"x","phase":"swapping"}`), 0o600))
		copied := filepath.Join(run, "workspace", "w")
		must(t, os.MkdirAll(copied, 0o700))
		must(t, os.WriteFile(filepath.Join(run, MergePrefix+"3.json"), []byte(`{"source":"`+copied+`","stage":"no stage"}`), 0o600))
		must(t, Settle(run))
		want := base
		if n == last {
			want = target // the whole change was made
		}
		if diff := cmp.Diff(want, read(t, spec.Source)); diff != "" || len(stages(t, spec.Source)) > 0 {
			t.Errorf("killed at step %d: %v is left (-want +got):\n%s", n, stages(t, spec.Source), diff)
		}
	}
}

// What is left of a merge that cannot be undone is not a change of the run.
func TestTheStageOfAnInterruptedMergeIsNotListed(t *testing.T) {
	spec, c := changed(t)
	records, others := t.TempDir(), Spec{Strategy: v1alpha1.StrategyInPlace, Source: spec.Source, Blobs: spec.Blobs}
	others.Records = records
	w, err := Prepare(t.Context(), others)
	must(t, err)
	must(t, w.Ready(t.Context()))
	app := application(spec, c)
	app.Record = filepath.Join(records, MergePrefix+"1.json")
	if !applyUntil(t, app, len(steps(t))/3) {
		t.Fatal("the step was not reached")
	}
	left := stages(t, spec.Source)
	if len(left) != 1 {
		t.Fatalf("left: %v", left)
	}
	listed := func(w *Workspace) (n int) {
		change, err := w.Changes(t.Context())
		must(t, err)
		for _, f := range change.Files {
			if strings.HasPrefix(string(f.Path), stagePrefix) {
				n++
			}
		}
		return n
	}
	if n := listed(w); n > 0 {
		t.Errorf("%d files of the stage are listed", n)
	}
	must(t, w.Leave())
	again, err := Open(t.Context(), others, w.Base())
	must(t, err)
	must(t, again.Ready(t.Context()))
	if n := listed(again); n > 0 {
		t.Errorf("%d files of the stage are listed after a resume", n)
	}
	must(t, os.Remove(app.Record))
	if n := listed(again); n == 0 {
		t.Error("a folder of that name that a program has made is not listed")
	}
	must(t, again.Close())
}
