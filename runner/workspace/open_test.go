package workspace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// abandon leaves a workspace as a kill would: nothing is closed in order, only
// the goroutine and the descriptor, which end with a process, are.
func abandon(t *testing.T, w *Workspace) {
	t.Helper()
	w.cancel()
	<-w.done
	must(t, w.pack.file.Close())
}

func reopen(t *testing.T, spec Spec, base *Snapshot) *Workspace {
	t.Helper()
	w, err := Open(context.Background(), spec, base)
	must(t, err)
	t.Cleanup(func() { _ = w.Close() })
	ready(t, w)
	return w
}

// recorded is the base as another process reads it.
func recorded(t *testing.T, w *Workspace, blobs Blobs) *Snapshot {
	t.Helper()
	id, err := w.Base().Record(blobs)
	must(t, err)
	base, err := ReadSnapshot(blobs, id)
	must(t, err)
	return base
}

// work is what the programs of a run do to the project.
func work(t *testing.T, dir string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(dir, "src/a.go"), []byte("package a\n\nfunc A() {}\n"), 0o644))
	must(t, os.Remove(filepath.Join(dir, "README.md")))
	must(t, os.WriteFile(filepath.Join(dir, "bin.dat"), []byte("other\x00"), 0o644))
	must(t, os.Chmod(filepath.Join(dir, "src/deep/b.go"), 0o755))
	must(t, os.Remove(filepath.Join(dir, "dangling")))
	must(t, os.MkdirAll(filepath.Join(dir, "new/deep"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "new/deep/file"), []byte("new\n"), 0o644))
}

func TestChangesAfterAResumeAreThoseOfAnUndisturbedRun(t *testing.T) {
	inPlace := func(s *Spec) { s.Strategy = v1alpha1.StrategyInPlace }
	tests := map[string]struct {
		reason string
		adjust func(*Spec)
		spoil  func(t *testing.T, spec Spec)
	}{
		"copy": {"the plain case", func(*Spec) {}, nil},
		"source changed": {"the base is what was copied, not what the source is now", func(*Spec) {}, func(t *testing.T, spec Spec) {
			t.Helper()
			must(t, os.WriteFile(filepath.Join(spec.Source, "src/a.go"), []byte("by a person\n"), 0o644))
			must(t, os.Remove(filepath.Join(spec.Source, "README.md")))
		}},
		"in place": {"the source is what the run changes", inPlace, nil},
		"texts lost": {"the source still has them", func(*Spec) {}, func(t *testing.T, spec Spec) {
			t.Helper()
			must(t, os.Remove(spec.packPath()))
		}},
		"killed while writing": {"half a file is nobody's work", func(*Spec) {}, func(t *testing.T, spec Spec) {
			t.Helper()
			name := ".agentctl-" + strings.Repeat("A2", 13) + ".tmp"
			must(t, os.WriteFile(filepath.Join(spec.Dir, "src", name), []byte("pack"), 0o600))
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			calm, _ := setup(t, project, tt.adjust)
			ready(t, calm)
			work(t, calm.Dir())
			want := changes(t, calm)

			w, spec := setup(t, project, tt.adjust)
			ready(t, w)
			base := recorded(t, w, spec.Blobs)
			work(t, w.Dir())
			changes(t, w)
			abandon(t, w)
			if tt.spoil != nil {
				tt.spoil(t, spec)
			}
			again := reopen(t, spec, base)
			got := changes(t, again)
			if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Entry{})); diff != "" {
				t.Errorf("%s (-undisturbed +resumed):\n%s", tt.reason, diff)
			}
			if diff := cmp.Diff(read(t, calm.Dir()), read(t, again.Dir())); diff != "" {
				t.Errorf("%s: files (-undisturbed +resumed):\n%s", tt.reason, diff)
			}
			must(t, again.Close())
			if _, err := os.Lstat(spec.packPath()); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the texts of the base stay behind: %v", err)
			}
		})
	}
}

func TestAnEditThatHidesBehindSizeAndTimeIsFoundAfterAResume(t *testing.T) {
	w, spec := setup(t, files{"a": "one\n"})
	ready(t, w)
	base := recorded(t, w, spec.Blobs)
	p := filepath.Join(w.Dir(), "a")
	info, err := os.Stat(p)
	must(t, err)
	abandon(t, w)
	must(t, os.WriteFile(p, []byte("two\n"), 0o644))
	must(t, os.Chtimes(p, info.ModTime(), info.ModTime()))
	if c := changes(t, reopen(t, spec, base)); kinds(c)["a"] != Modified {
		t.Errorf("%+v", c)
	}
}

func TestAResumeMayItselfBeInterrupted(t *testing.T) {
	w, spec := setup(t, project)
	ready(t, w)
	base := recorded(t, w, spec.Blobs)
	must(t, os.WriteFile(filepath.Join(w.Dir(), "src/a.go"), []byte("package b\n"), 0o644))
	abandon(t, w)
	for range 3 {
		again, err := Open(context.Background(), spec, base)
		must(t, err)
		abandon(t, again)
	}
	suspended := reopen(t, spec, base)
	must(t, suspended.Leave())
	c := changes(t, reopen(t, spec, base))
	if want := "-package a\n+package b\n"; !strings.Contains(string(c.Diff), want) {
		t.Errorf("diff:\n%s", c.Diff)
	}
}

func TestAHalfMadeCopyIsMadeAnew(t *testing.T) {
	w, spec := setup(t, project)
	ready(t, w)
	abandon(t, w)
	must(t, os.Remove(filepath.Join(spec.Dir, "src/a.go")))
	must(t, os.WriteFile(filepath.Join(spec.Dir, "half"), []byte("ha"), 0o644))
	must(t, os.Truncate(spec.packPath(), 5))
	again := reopen(t, spec, nil)
	if diff := cmp.Diff(project, read(t, again.Dir())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c := changes(t, again); !c.Empty() {
		t.Errorf("%+v", c)
	}
}

func TestAPersonsFilesAreNeverSwept(t *testing.T) {
	mine := ".agentctl-" + strings.Repeat("B3", 13) + ".tmp"
	w, spec := setup(t, files{mine: "mine", "a": "a"}, func(s *Spec) { s.Strategy = v1alpha1.StrategyInPlace })
	ready(t, w)
	base := recorded(t, w, spec.Blobs)
	abandon(t, w)
	files{".agentctl-short.tmp": "x", ".agentctl-" + strings.Repeat("b3", 13) + ".tmp": "x"}.write(t, w.Dir())
	want := read(t, w.Dir())
	if diff := cmp.Diff(want, read(t, reopen(t, spec, base).Dir())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestACopyIsTakenUpWithoutItsSource(t *testing.T) {
	w, spec := setup(t, project)
	ready(t, w)
	base := recorded(t, w, spec.Blobs)
	want := read(t, w.Dir())
	abandon(t, w)
	must(t, os.RemoveAll(spec.Source))
	if diff := cmp.Diff(want, read(t, reopen(t, spec, base).Dir())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := Open(context.Background(), spec, nil); !errors.Is(err, ErrSource) {
		t.Errorf("a copy that was never made: %v", err)
	}
}

func TestWorkspaceThatIsGoneIsSaid(t *testing.T) {
	w, spec := setup(t, project)
	ready(t, w)
	base := recorded(t, w, spec.Blobs)
	abandon(t, w)
	must(t, os.RemoveAll(spec.Dir))
	if _, err := Open(context.Background(), spec, base); !errors.Is(err, ErrGone) {
		t.Errorf("gone: %v", err)
	}
	must(t, os.Symlink(spec.Source, spec.Dir))
	if _, err := Open(context.Background(), spec, base); !errors.Is(err, ErrGone) {
		t.Errorf("a link in its place: %v", err)
	}
}

// TestADamagedPackCostsLinesAndNothingElse spoils every byte of the file in
// which old texts are kept, and cuts it everywhere.
func TestADamagedPackCostsLinesAndNothingElse(t *testing.T) {
	w, spec := setup(t, files{"a": "one\n", "b": "two\n", "c": "bin\x00"}, func(s *Spec) { s.Strategy = v1alpha1.StrategyInPlace })
	ready(t, w)
	base := recorded(t, w, spec.Blobs)
	abandon(t, w)
	files{"a": "1\n", "b": "2\n"}.write(t, w.Dir())
	whole, err := os.ReadFile(spec.packPath())
	must(t, err)
	spoilt := func(b []byte) {
		must(t, os.WriteFile(spec.packPath(), b, 0o600))
		again, err := Open(context.Background(), spec, base)
		must(t, err)
		c := changes(t, again)
		must(t, again.Leave())
		if diff := cmp.Diff(map[string]string{"a": Modified, "b": Modified}, kinds(c)); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		if !strings.Contains(string(c.Diff), "-one\n") && !strings.Contains(string(c.Diff), "Binary files a/a and b/a differ") {
			t.Fatalf("a diff of something else:\n%s", c.Diff)
		}
	}
	for i := range whole {
		b := append([]byte(nil), whole...)
		b[i] ^= 0x41
		spoilt(b)
		spoilt(whole[:i])
	}
}

func TestForgedSnapshotsAreRefused(t *testing.T) {
	blobs := &memory{}
	for _, text := range []string{
		`{`, `{"entries":[{"path":"../x","type":"file"}]}`, `{"entries":[{"path":"/x","type":"file"}]}`,
		`{"entries":[{"path":"a/../b","type":"file"}]}`, `{"entries":[{"path":"a\u0000","type":"file"}]}`,
		`{"entries":[{"path":"a","type":"door"}]}`, `{"entries":[{"path":"","type":"dir"}]}`,
	} {
		id, err := blobs.PutBlob([]byte(text))
		must(t, err)
		if s, err := ReadSnapshot(blobs, id); err == nil {
			t.Errorf("%s: %+v", text, s)
		}
	}
	if _, err := ReadSnapshot(blobs, "sha256:none"); err == nil {
		t.Error("a snapshot out of nothing")
	}
}

func BenchmarkOpen500Files(b *testing.B) {
	tree := files{}
	for i := range 500 {
		tree[filepath.Join("d"+string(rune('a'+i%20)), "f"+strings.Repeat("x", i/20))] = strings.Repeat("some text\n", 200)
	}
	w, spec := setup(b, tree)
	ready(b, w)
	base := w.Base()
	must(b, w.Leave())
	for b.Loop() {
		again, err := Open(context.Background(), spec, base)
		must(b, err)
		ready(b, again)
		must(b, again.Leave())
	}
}
