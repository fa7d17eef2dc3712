package workspace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/v1alpha1"
)

func application(spec Spec, c *Change) Application {
	return Application{Source: spec.Source, Record: filepath.Join(filepath.Dir(filepath.Dir(spec.Dir)), "apply.json"), Change: c, Blobs: spec.Blobs}
}

var base = files{
	"mod": "old\n", "del": "gone\n", "d/x": "1\n", "d/y": "2\n", "file2dir": "f\n", "dir2file/a": "a\n", "dir2file/b/c": "c\n",
	"link": "->mod", "link2file": "->mod", "file2link": "z\n", "mode": "m\n", "keep/k": "k\n", "mix/a": "a\n", "empty/": "",
}

var target = files{
	"mod": "new\n", "d/y": "2\n", "file2dir/in": "i\n", "dir2file": "now\n", "link": "->keep", "link2file": "file\n",
	"file2link": "->mod", "mode": "!m\n", "keep/k": "k\n", "added/deep/f": "!f\n", "added/empty/": "", "top": "t\n",
}

// changed makes a run that turned base into target.
func changed(t testing.TB) (Spec, *Change) {
	t.Helper()
	w, spec := setup(t, base)
	ready(t, w)
	entries, err := os.ReadDir(w.Dir())
	must(t, err)
	for _, e := range entries {
		must(t, os.RemoveAll(filepath.Join(w.Dir(), e.Name())))
	}
	target.write(t, w.Dir())
	return spec, changes(t, w)
}

func TestApplyMakesExactlyTheChange(t *testing.T) {
	spec, c := changed(t)
	extra := files{"mine.txt": "not the run's\n", "mix/mine": "m\n"}
	extra.write(t, spec.Source)
	app := application(spec, c)
	must(t, Apply(context.Background(), app))
	want := files{}
	for _, m := range []files{target, extra} {
		maps.Copy(want, m)
	}
	if diff := cmp.Diff(want, read(t, spec.Source)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := Apply(context.Background(), app); !errors.Is(err, ErrApplied) {
		t.Errorf("second time: %v", err)
	}
}

func TestDriftRefusesAndTouchesNothing(t *testing.T) {
	tests := map[string]struct {
		reason string
		drift  func(dir string) error
		want   string
	}{
		"edited":          {"the person's edit wins", func(d string) error { return os.WriteFile(d+"/mod", []byte("mine\n"), 0o644) }, `"mod" was changed`},
		"deleted":         {"a missing file is no base", func(d string) error { return os.Remove(d + "/mod") }, `"mod" is missing`},
		"mode":            {"modes count", func(d string) error { return os.Chmod(d+"/mod", 0o600) }, `"mod" has mode 0600, not 0644`},
		"in the way":      {"an added file replaces nothing", func(d string) error { return os.WriteFile(d+"/top", nil, 0o644) }, `"top" exists`},
		"folder in way":   {"nor does it replace a folder", func(d string) error { return os.Mkdir(d+"/top", 0o755) }, `"top" is a folder`},
		"fifo":            {"a FIFO must not hang us", func(d string) error { return errors.Join(os.Remove(d+"/mod"), syscall.Mkfifo(d+"/mod", 0o644)) }, `"mod" was changed`},
		"relinked":        {"links count", func(d string) error { return errors.Join(os.Remove(d+"/link"), os.Symlink("/etc", d+"/link")) }, `"link" was changed`},
		"linked folder":   {"a link is no folder", func(d string) error { return errors.Join(os.Rename(d+"/d", d+"/e"), os.Symlink("e", d+"/d")) }, `"d/x" is missing`},
		"new folder file": {"a file where a folder shall be", func(d string) error { return os.WriteFile(d+"/added", nil, 0o644) }, `"added" is in the way`},
		"new folder link": {"a link where a folder shall be", func(d string) error { return os.Symlink("/tmp", d+"/added") }, `"added" is in the way`},
		"half applied":    {"by hand", func(d string) error { return os.WriteFile(d+"/mod", []byte("new\n"), 0o644) }, `"mod" has the run's change already`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			spec, c := changed(t)
			must(t, tt.drift(spec.Source))
			before := read(t, spec.Source)
			err := Apply(context.Background(), application(spec, c))
			_, ok := errors.AsType[*DriftError](err)
			if !ok || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: got %v, want %q", tt.reason, err, tt.want)
			}
			if diff := cmp.Diff(before, read(t, spec.Source)); diff != "" {
				t.Errorf("the source was touched (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParentThatVanishedIsDrift(t *testing.T) {
	w, spec := setup(t, files{"dir/": "", "a": "a"})
	ready(t, w)
	files{"dir/new": "n"}.write(t, w.Dir())
	c := changes(t, w)
	must(t, os.Remove(filepath.Join(spec.Source, "dir")))
	must(t, os.Symlink(t.TempDir(), filepath.Join(spec.Source, "dir")))
	if err := Apply(context.Background(), application(spec, c)); err == nil || !strings.Contains(err.Error(), `"dir" is no longer a folder`) {
		t.Errorf("got %v", err)
	}
}

// steps lists the steps of an apply.
func steps(t *testing.T) []string {
	t.Helper()
	spec, c := changed(t)
	app := application(spec, c)
	var names []string
	app.step = func(name string) error { names = append(names, name); return nil }
	must(t, Apply(context.Background(), app))
	return names
}

var errInjected = errors.New("injected")

func TestFailureAtEveryStepIsUndone(t *testing.T) {
	t.Parallel()
	names := steps(t)
	for i, name := range names {
		spec, c := changed(t)
		app := application(spec, c)
		n := 0
		app.step = func(string) error {
			if n++; n == i+1 {
				return errInjected
			}
			return nil
		}
		err := Apply(context.Background(), app)
		if !errors.Is(err, errInjected) {
			t.Fatalf("step %d, %s: %v", i, name, err)
		}
		want := base
		if name == "clear stage" { // all was done before
			want = target
			app.step = nil
			if err := Apply(context.Background(), app); !errors.Is(err, ErrApplied) {
				t.Errorf("after %s: %v", name, err)
			}
		}
		if diff := cmp.Diff(want, read(t, spec.Source)); diff != "" {
			t.Fatalf("failure at step %d, %s (-want +got):\n%s", i, name, diff)
		}
	}
}

type crash struct{}

// applyUntil runs an apply that dies at its n-th step without undoing anything.
func applyUntil(t *testing.T, app Application, n int) (died bool) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(crash); !ok {
				panic(r)
			}
			died = true
		}
	}()
	app.step = func(string) error {
		if n--; n < 0 {
			panic(crash{})
		}
		return nil
	}
	_ = Apply(context.Background(), app)
	return false
}

func TestCrashAtEveryStepIsFinishedByTheNextApply(t *testing.T) {
	t.Parallel()
	for n := range len(steps(t)) {
		spec, c := changed(t)
		app := application(spec, c)
		if !applyUntil(t, app, n) {
			t.Fatalf("step %d was not reached", n)
		}
		// The second dies too, while it cleans up after the first.
		applyUntil(t, app, 3)
		if err := Apply(context.Background(), app); err != nil && !errors.Is(err, ErrApplied) {
			t.Fatalf("crash at step %d: %v", n, err)
		}
		if diff := cmp.Diff(target, read(t, spec.Source)); diff != "" {
			t.Fatalf("crash at step %d (-want +got):\n%s", n, diff)
		}
	}
}

func TestEditAfterACrashIsNotLost(t *testing.T) {
	t.Parallel()
	names := steps(t)
	for n := range names {
		spec, c := changed(t)
		app := application(spec, c)
		applyUntil(t, app, n)
		p := filepath.Join(spec.Source, "mod")
		must(t, os.WriteFile(p, []byte("edited by a person\n"), 0o644))
		err := Apply(context.Background(), app)
		if err == nil {
			t.Fatalf("crash before %s: applied over an edit", names[n])
		}
		b, readErr := os.ReadFile(p)
		if readErr != nil || string(b) != "edited by a person\n" {
			t.Fatalf("crash before %s: the edit is now %q (%v), apply said %v", names[n], b, readErr, err)
		}
	}
}

func TestFileSystemWithoutExchange(t *testing.T) {
	spec, c := changed(t)
	app := application(spec, c)
	r, err := openRoot(spec.Source)
	must(t, err)
	defer r.close()
	s := newSwapper(r, app)
	defer s.closeStage()
	must(t, s.plan())
	s.record.Stage, s.record.Source = stagePrefix+"0123456789abcdef", spec.Source
	must(t, s.write(phaseStaging))
	must(t, s.stageAll(context.Background()))
	must(t, s.write(phaseSwapping))
	// What replace does where two names cannot be swapped, cut in the middle.
	for i := range s.record.Operations {
		op := &s.record.Operations[i]
		if op.Kind != opReplace {
			continue
		}
		must(t, linkNew(int(r.file.Fd()), string(op.Path), int(s.stage), op.oldName()))
		if op.Path != "mod" {
			must(t, linkNew(int(s.stage), op.newName(), int(r.file.Fd()), string(op.Path)))
		}
	}
	must(t, Apply(context.Background(), app))
	if diff := cmp.Diff(target, read(t, spec.Source)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSwapBetweenCheckAndWriteEscapesNothing(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	files{"x": "outside\n", "y": "outside\n"}.write(t, outside)
	for _, at := range []string{"record staging", "stage mod", "record swapping", "remove d/x", "replace mod"} {
		for name, swap := range map[string]func(dir string) error{
			"folder to link": func(d string) error { return errors.Join(os.Rename(d+"/d", d+"/moved"), os.Symlink(outside, d+"/d")) },
			"file to link":   func(d string) error { return errors.Join(os.Remove(d+"/mod"), os.Symlink(outside+"/x", d+"/mod")) },
			"file edited":    func(d string) error { return os.WriteFile(d+"/mod", []byte("mine\n"), 0o644) },
			"file to folder": func(d string) error { return errors.Join(os.Remove(d+"/mod"), os.Mkdir(d+"/mod", 0o755)) },
			"file appears":   func(d string) error { return os.WriteFile(d+"/top", []byte("mine\n"), 0o644) },
		} {
			if name == "folder to link" && at == "replace mod" {
				continue // d/x is gone by then: nothing of the change is left in d
			}
			spec, c := changed(t)
			app := application(spec, c)
			var before files
			app.step = func(step string) error {
				if step == at && before == nil {
					must(t, swap(spec.Source))
					before = base.with(t, spec.Source, name)
				}
				return nil
			}
			if err := Apply(context.Background(), app); err == nil {
				t.Errorf("%s at %q: applied", name, at)
			}
			if diff := cmp.Diff(before, read(t, spec.Source)); diff != "" {
				t.Errorf("%s at %q: not as before (-want +got):\n%s", name, at, diff)
			}
			if diff := cmp.Diff(files{"x": "outside\n", "y": "outside\n"}, read(t, outside)); diff != "" {
				t.Fatalf("%s at %q: wrote outside (-want +got):\n%s", name, at, diff)
			}
		}
	}
}

// with is the base as a swap of the test above leaves it.
func (f files) with(t *testing.T, dir, swap string) files {
	t.Helper()
	out := files{}
	for k, v := range f {
		if swap == "folder to link" && strings.HasPrefix(k, "d/") {
			k = "moved/" + k[2:]
		}
		out[k] = v
	}
	switch swap {
	case "folder to link":
		l, err := os.Readlink(dir + "/d")
		must(t, err)
		out["d"] = "->" + l
	case "file to link":
		l, err := os.Readlink(dir + "/mod")
		must(t, err)
		out["mod"] = "->" + l
	case "file edited":
		out["mod"] = "mine\n"
	case "file to folder":
		delete(out, "mod")
		out["mod/"] = ""
	case "file appears":
		out["top"] = "mine\n"
	}
	return out
}

func TestRacingLinkSwapsWriteNothingOutside(t *testing.T) {
	outside := t.TempDir()
	files{"f": "outside\n"}.write(t, outside)
	w, spec := setup(t, files{"d/f": "old\n"})
	ready(t, w)
	must(t, os.WriteFile(filepath.Join(w.Dir(), "d/f"), []byte("new\n"), 0o644))
	c := changes(t, w)
	d, side := filepath.Join(spec.Source, "d"), filepath.Join(spec.Source, "side")
	must(t, os.Symlink(outside, side))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { // swaps the folder and the link as fast as it can
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Rename(d, d+"1")
			_ = os.Rename(side, d)
			_ = os.Rename(d, side)
			_ = os.Rename(d+"1", d)
		}
	})
	for i := range 300 {
		_ = Apply(context.Background(), application(spec, c))
		if b, err := os.ReadFile(filepath.Join(outside, "f")); err != nil || string(b) != "outside\n" {
			t.Errorf("round %d: the file outside is %q (%v)", i, b, err)
			break
		}
	}
	close(stop)
	wg.Wait()
	if left, _ := os.ReadDir(outside); len(left) != 1 {
		t.Errorf("%d files outside", len(left))
	}
}

func TestForgedChangesAreRefused(t *testing.T) {
	blobs := &memory{}
	id, err := blobs.PutBlob([]byte("evil\n"))
	must(t, err)
	evil := &Version{Type: TypeFile, Mode: 0o644, Size: 5, Hash: id, Blob: id}
	paths := []string{
		"", ".", "..", "../x", "a/../../x", "/etc/x", "a//b", "a/./b", "a/", "./a", "x\x00y", strings.Repeat("a/", 3000) + "a",
		".git/hooks/pre-commit", "sub/.git/config", ".GIT/config", ".Git", "git~1/x", ".git./x", ".git /x", ".g\u200cit/config", ".git::$INDEX_ALLOCATION/x",
		stagePrefix + "x/y",
	}
	for _, p := range paths {
		dir := t.TempDir()
		spec := Spec{Source: filepath.Join(dir, "s"), Dir: filepath.Join(dir, "run", "w", "c"), Blobs: blobs}
		must(t, errors.Join(os.MkdirAll(spec.Source, 0o755), os.MkdirAll(filepath.Dir(spec.Dir), 0o755)))
		for name, c := range map[string]*Change{
			"file":         {Files: []FileChange{{Path: Path(p), Change: Added, New: evil}}},
			"added dir":    {AddedDirs: []Entry{{Path: Path(p), Type: TypeDir, Mode: 0o755}}},
			"removed dir":  {RemovedDirs: []Entry{{Path: Path(p), Type: TypeDir, Mode: 0o755}}},
			"deleted file": {Files: []FileChange{{Path: Path(p), Change: Deleted, Old: evil}}},
		} {
			err := Apply(context.Background(), application(spec, c))
			if err == nil || !strings.Contains(err.Error(), "path ") {
				t.Errorf("%s %q: %v", name, p, err)
			}
		}
		if got := read(t, spec.Source); len(got) != 0 {
			t.Errorf("%q left %v", p, got)
		}
	}
}

func TestChangesThatCannotBeMadeWholeAreRefused(t *testing.T) {
	blobs := &memory{}
	id, err := blobs.PutBlob([]byte("x"))
	must(t, err)
	good := &Version{Type: TypeFile, Mode: 0o644, Size: 1, Hash: id, Blob: id}
	tests := map[string]struct {
		file FileChange
		want string
	}{
		"set-uid":       {FileChange{Path: "a", New: &Version{Type: TypeFile, Mode: 0o4755, Hash: id, Blob: id}}, "mode 4755"},
		"odd type":      {FileChange{Path: "a", New: &Version{Type: "device"}}, `type "device"`},
		"nothing":       {FileChange{Path: "a"}, "no change"},
		"not recorded":  {FileChange{Path: "a", New: good, NotApplicable: "too large"}, "too large"},
		"missing blob":  {FileChange{Path: "a", New: &Version{Type: TypeFile, Hash: id, Blob: "sha256:none"}}, "does not exist"},
		"another blob":  {FileChange{Path: "a", New: &Version{Type: TypeFile, Hash: "sha256:other", Blob: id}}, "another hash"},
		"name too long": {FileChange{Path: Path(strings.Repeat("n", 300)), New: good}, "name too long"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			spec := Spec{Source: filepath.Join(dir, "s"), Dir: filepath.Join(dir, "run", "w", "c"), Blobs: blobs}
			must(t, errors.Join(os.MkdirAll(spec.Source, 0o755), os.MkdirAll(filepath.Dir(spec.Dir), 0o755)))
			c := &Change{Files: []FileChange{{Path: "Good", New: good}, tt.file}}
			if err := Apply(context.Background(), application(spec, c)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if got := read(t, spec.Source); len(got) != 0 {
				t.Errorf("left %v", got)
			}
			twice := &Change{Files: []FileChange{{Path: "a", New: good}, {Path: "a", New: good}}}
			if err := Apply(context.Background(), application(spec, twice)); err == nil || !strings.Contains(err.Error(), "named twice") {
				t.Errorf("twice: %v", err)
			}
		})
	}
}

func TestInPlaceNeedsNoApplying(t *testing.T) {
	w, spec := setup(t, files{"a": "a\n"}, func(s *Spec) { s.Strategy = v1alpha1.StrategyInPlace })
	ready(t, w)
	must(t, os.WriteFile(filepath.Join(w.Dir(), "a"), []byte("b\n"), 0o644))
	c := changes(t, w)
	if w.Dir() != spec.Source || !strings.Contains(string(c.Diff), "-a\n+b\n") {
		t.Errorf("in %s:\n%s", w.Dir(), c.Diff)
	}
	if err := Apply(context.Background(), application(spec, c)); !errors.Is(err, ErrInPlace) {
		t.Errorf("got %v", err)
	}
}

func TestOneApplyAtATime(t *testing.T) {
	spec, c := changed(t)
	app := application(spec, c)
	inner := app
	inner.Record += "2"
	app.step = func(name string) error {
		if name == "record swapping" {
			if err := Apply(context.Background(), inner); !errors.Is(err, ErrBusy) {
				return fmt.Errorf("the second apply: %w", err)
			}
		}
		return nil
	}
	must(t, Apply(context.Background(), app))
}

func TestForeignRecordIsRefused(t *testing.T) {
	spec, c := changed(t)
	app := application(spec, c)
	for content, want := range map[string]string{
		"nonsense": "read ",
		"{}":       "not a record of an apply",
		`{"stage":"../../etc","phase":"staging"}`:                                                                             "not a record of an apply",
		`{"stage":"` + stagePrefix + `0123456789abcdef","phase":"swapping","source":"/elsewhere"}`:                            "apply there first",
		`{"stage":"` + stagePrefix + `0123456789abcdef","phase":"odd","source":"` + spec.Source + `"}`:                        "is unknown",
		`{"stage":"` + stagePrefix + `0123456789abcdef","phase":"applied","source":"/x","operations":[{"path":"../escape"}]}`: `path "../escape"`,
	} {
		must(t, os.WriteFile(app.Record, []byte(content), 0o600))
		if err := Apply(context.Background(), app); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", content, err, want)
		}
	}
	if diff := cmp.Diff(base, read(t, spec.Source)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCancelledApplyIsUndone(t *testing.T) {
	spec, c := changed(t)
	app := application(spec, c)
	ctx, cancel := context.WithCancel(context.Background())
	app.step = func(name string) error {
		if name == "replace mod" {
			cancel()
		}
		return nil
	}
	if err := Apply(ctx, app); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff(base, read(t, spec.Source)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
