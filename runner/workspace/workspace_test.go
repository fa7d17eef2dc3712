package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"agentctl.dev/agentctl/api/v1alpha1"
)

func TestMain(m *testing.M) {
	syscall.Umask(0o022) // modes are compared
	goleak.VerifyTestMain(m)
}

// memory is a store of blobs.
type memory struct {
	mu sync.Mutex
	m  map[string][]byte
}

func (b *memory) PutBlob(content []byte) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.m == nil {
		b.m = map[string][]byte{}
	}
	id := hashOf(content)
	b.m[id] = append([]byte(nil), content...)
	return id, nil
}

func (b *memory) GetBlob(id string) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c, ok := b.m[id]; ok {
		return c, nil
	}
	return nil, fs.ErrNotExist
}

// files describes a tree: "dir/" is a folder, "->target" a link, "!content"
// an executable file.
type files map[string]string

func (f files) write(t testing.TB, dir string) {
	t.Helper()
	for name, content := range f {
		p := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(p), 0o755))
		switch {
		case strings.HasSuffix(name, "/"):
			must(t, os.MkdirAll(p, 0o755))
		case strings.HasPrefix(content, "->"):
			must(t, os.Symlink(content[2:], p))
		case strings.HasPrefix(content, "!"):
			must(t, os.WriteFile(p, []byte(content[1:]), 0o755))
		default:
			must(t, os.WriteFile(p, []byte(content), 0o644))
		}
	}
}

// read is the reverse; a folder is listed only if it is empty.
func read(t testing.TB, dir string) files {
	t.Helper()
	out := files{}
	must(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		info, err := d.Info()
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if list, _ := os.ReadDir(p); len(list) == 0 {
				out[rel+"/"] = ""
			}
		case info.Mode().Type() == fs.ModeSymlink:
			target, _ := os.Readlink(p)
			out[rel] = "->" + target
		case info.Mode().IsRegular():
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			out[rel] = string(b)
			if info.Mode().Perm()&0o100 != 0 {
				out[rel] = "!" + string(b)
			}
		default:
			out[rel] = info.Mode().String()
		}
		return nil
	}))
	return out
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// setup makes a source and a copy of it.
func setup(t testing.TB, tree files, adjust ...func(*Spec)) (*Workspace, Spec) {
	t.Helper()
	dir := t.TempDir()
	spec := Spec{Source: filepath.Join(dir, "source"), Dir: filepath.Join(dir, "run", "workspace", "copy"), Blobs: &memory{}}
	must(t, os.Mkdir(spec.Source, 0o755))
	tree.write(t, spec.Source)
	for _, f := range adjust {
		f(&spec)
	}
	w, err := Prepare(context.Background(), spec)
	must(t, err)
	t.Cleanup(func() { _ = w.Close() })
	return w, spec
}

func ready(t testing.TB, w *Workspace) {
	t.Helper()
	must(t, w.Ready(context.Background()))
}

func changes(t testing.TB, w *Workspace) *Change {
	t.Helper()
	c, err := w.Changes(context.Background())
	must(t, err)
	return c
}

func kinds(c *Change) map[string]string {
	m := map[string]string{}
	for _, f := range c.Files {
		m[string(f.Path)] = f.Change
	}
	return m
}

var project = files{
	"README.md": "hello\n", "run.sh": "!#!/bin/sh\n", "src/a.go": "package a\n", "src/deep/b.go": "package b\n",
	"empty/": "", "link": "->README.md", "dangling": "->nowhere/at/all", "outside": "->/etc/passwd", "dirlink": "->src",
	".git/config": "[core]\n", ".git/objects/ab/cd": "x\x00y", "bin.dat": "a\x00b", "empty.txt": "",
}

func TestCopyIsFaithful(t *testing.T) {
	w, spec := setup(t, project)
	past := time.Date(2020, 1, 2, 3, 4, 5, 678, time.UTC)
	ready(t, w)
	must(t, w.Close())
	must(t, os.Chtimes(filepath.Join(spec.Source, "src/a.go"), past, past))
	must(t, os.Chtimes(filepath.Join(spec.Source, "src"), past, past))
	must(t, os.Chmod(filepath.Join(spec.Source, "bin.dat"), 0o640|os.ModeSetuid))
	spec.Dir += "2"
	w, err := Prepare(context.Background(), spec)
	must(t, err)
	defer w.Close() //nolint:errcheck // the test is about the copy
	ready(t, w)
	if diff := cmp.Diff(project, read(t, w.Dir())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, name := range []string{"src/a.go", "src"} {
		info, err := os.Stat(filepath.Join(w.Dir(), name))
		must(t, err)
		if !info.ModTime().Equal(past) {
			t.Errorf("%s: time %v, want %v", name, info.ModTime(), past)
		}
	}
	info, err := os.Stat(filepath.Join(w.Dir(), "bin.dat"))
	must(t, err)
	if info.Mode() != 0o640 {
		t.Errorf("mode %v: set-uid must be dropped, the rest kept", info.Mode())
	}
	if n := w.Base().Files; n != len(project)-3 {
		t.Errorf("%d files in the base, want %d: git's own and folders do not count", n, len(project)-3)
	}
	if len(w.Notes()) != 0 {
		t.Errorf("notes: %q", w.Notes())
	}
}

func TestUntouchedCopyHasNoChanges(t *testing.T) {
	w, _ := setup(t, project)
	if c := changes(t, w); !c.Empty() || len(c.Diff) != 0 {
		t.Errorf("%+v", c)
	}
}

func TestEveryKindOfChangeIsFound(t *testing.T) {
	w, spec := setup(t, project)
	ready(t, w)
	in := func(name string) string { return filepath.Join(w.Dir(), name) }
	must(t, os.WriteFile(in("README.md"), []byte("hello\nworld\n"), 0o644))
	must(t, os.Chmod(in("src/a.go"), 0o755))
	must(t, os.RemoveAll(in("src/deep")))
	must(t, os.WriteFile(in("new.txt"), []byte("new\n"), 0o600))
	must(t, os.Remove(in("link")))
	must(t, os.Symlink("src/a.go", in("link")))
	must(t, os.Remove(in("empty.txt")))
	files{"empty.txt/now/a": "folder\n", ".git/config": "changed\n", "sub/.git/HEAD": "x", "made/": ""}.write(t, w.Dir())
	c := changes(t, w)
	want := map[string]string{
		"README.md": Modified, "src/a.go": Modified, "src/deep/b.go": Deleted, "new.txt": Added, "link": Modified,
		"empty.txt": Deleted, "empty.txt/now/a": Added,
	}
	if diff := cmp.Diff(want, kinds(c)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Summary{Added: 2, Modified: 3, Deleted: 2, LinesAdded: 4, LinesRemoved: 2}, c.Summary); diff != "" {
		t.Errorf("summary (-want +got):\n%s\n%s", diff, c.Diff)
	}
	if diff := cmp.Diff(project, read(t, spec.Source)); diff != "" {
		t.Errorf("the source was touched (-want +got):\n%s", diff)
	}
	patch, err := c.Record(spec.Blobs)
	must(t, err)
	again, err := ReadChange(spec.Blobs, patch.Change)
	must(t, err)
	again.Diff = c.Diff
	if diff := cmp.Diff(c, again, cmpopts.IgnoreUnexported(Entry{})); diff != "" || len(patch.Files) != len(want) {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
	if id, err := w.Base().Record(spec.Blobs); err != nil || id == "" {
		t.Errorf("record of the base: %q, %v", id, err)
	}
}

func TestEditThatRestoresSizeAndTimeIsFound(t *testing.T) {
	for _, strategy := range []v1alpha1.WorkspaceStrategy{v1alpha1.StrategyCopy, v1alpha1.StrategyInPlace} {
		w, _ := setup(t, files{"f": "aaaa"}, func(s *Spec) { s.Strategy = strategy })
		ready(t, w)
		p := filepath.Join(w.Dir(), "f")
		info, err := os.Stat(p)
		must(t, err)
		for i := range 3 {
			must(t, os.WriteFile(p, fmt.Append(nil, "bbb", i), 0o644))
			must(t, os.Chtimes(p, info.ModTime(), info.ModTime()))
			c := changes(t, w)
			if len(c.Files) != 1 || c.Files[0].New.Hash != hashOf(fmt.Append(nil, "bbb", i)) {
				t.Fatalf("%s, edit %d: %+v", strategy, i, c.Files)
			}
		}
	}
}

func TestDiffSurvivesAChangingSource(t *testing.T) {
	w, spec := setup(t, files{"f": "old\n"})
	ready(t, w)
	must(t, os.WriteFile(filepath.Join(spec.Source, "f"), []byte("somebody else\n"), 0o644))
	must(t, os.WriteFile(filepath.Join(w.Dir(), "f"), []byte("new\n"), 0o644))
	if c := changes(t, w); !strings.Contains(string(c.Diff), "-old\n+new\n") {
		t.Errorf("diff:\n%s", c.Diff)
	}
}

func TestSpecialFilesAreListedNotCopied(t *testing.T) {
	dir := t.TempDir()
	src := filepath.Join(dir, "src")
	files{"a": "a", "locked/x": "x", ".git": "gitdir: /elsewhere\n"}.write(t, src)
	must(t, syscall.Mkfifo(filepath.Join(src, "pipe"), 0o644))
	must(t, os.Link(filepath.Join(src, "a"), filepath.Join(src, "hard")))
	spec := Spec{Source: src, Dir: filepath.Join(dir, "copy"), Blobs: &memory{}}
	w, err := Prepare(context.Background(), spec)
	must(t, err)
	defer w.Close() //nolint:errcheck // the test is about the copy
	ready(t, w)
	want := files{"a": "a", "hard": "a", "locked/x": "x", ".git": "gitdir: /elsewhere\n"}
	if diff := cmp.Diff(want, read(t, w.Dir())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	all := strings.Join(w.Notes(), "\n")
	for _, part := range []string{`"pipe" was left out`, `".git" is a file that points`} {
		if !strings.Contains(all, part) {
			t.Errorf("notes %q lack %q", all, part)
		}
	}
	must(t, os.WriteFile(filepath.Join(w.Dir(), "hard"), []byte("changed"), 0o644))
	if b, _ := os.ReadFile(filepath.Join(src, "a")); string(b) != "a" {
		t.Error("a hard link led out of the copy")
	}
	must(t, syscall.Mkfifo(filepath.Join(w.Dir(), "made-by-run"), 0o644))
	if got := kinds(changes(t, w)); !cmp.Equal(got, map[string]string{"hard": Modified}) {
		t.Errorf("changes: %v", got)
	}
}

// unprivileged lets the rest of a test run as a user whom file modes bind: root
// reads everything.
func unprivileged(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	const nobody = 65534
	dir, err := os.MkdirTemp("", "nobody-")
	must(t, err)
	must(t, os.Chown(dir, nobody, nobody))
	t.Setenv("TMPDIR", dir) // also keeps the test from running beside others
	must(t, syscall.Setresuid(-1, nobody, -1))
	t.Cleanup(func() {
		must(t, syscall.Setresuid(-1, 0, -1))
		must(t, os.RemoveAll(dir))
	})
}

func TestUnreadableFileIsAWarning(t *testing.T) {
	unprivileged(t)
	w, _ := setup(t, files{"a": "a"}, func(s *Spec) {
		must(t, os.WriteFile(filepath.Join(s.Source, "secret"), []byte("x"), 0))
	})
	ready(t, w)
	if notes := strings.Join(w.Notes(), "\n"); !strings.Contains(notes, `"secret" was left out`) {
		t.Errorf("notes: %q", notes)
	}
}

func TestWhatCannotBeReadIsNotDeleted(t *testing.T) {
	unprivileged(t)
	w, spec := setup(t, files{"a": "a", "dir/x": "x", "dir/y/z": "z"})
	ready(t, w)
	dir := filepath.Join(w.Dir(), "dir")
	must(t, os.Chmod(filepath.Join(w.Dir(), "a"), 0))
	must(t, os.Chmod(dir, 0))
	c := changes(t, w)
	must(t, os.Chmod(dir, 0o700))
	if diff := cmp.Diff(map[string]string{"a": Modified}, kinds(c)); diff != "" || len(c.RemovedDirs) != 0 {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := Apply(context.Background(), application(spec, c)); err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("apply: %v", err)
	}
	if notes := strings.Join(w.Notes(), "\n"); !strings.Contains(notes, `"dir" was left out`) {
		t.Errorf("notes: %q", notes)
	}
}

func TestExcludedAndSkippedPathsAreNoPart(t *testing.T) {
	tree := files{
		"a.go": "a", "node_modules/x/i.js": "x", "web/node_modules/y": "y", "build/out": "o", "web/build/keep": "k",
		"x.log": "l", "web/y.log": "l", "state/runs/r/secret": "s",
	}
	w, spec := setup(t, tree, func(s *Spec) {
		s.Exclude = []string{"node_modules/", "/build", "**/*.log"}
		s.Skip = []string{filepath.Join(s.Source, "state"), filepath.Join(s.Source, "none")}
	})
	ready(t, w)
	if diff := cmp.Diff(files{"a.go": "a", "web/build/keep": "k"}, read(t, w.Dir())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	files{"node_modules/z": "z", "w.log": "w", "b.go": "b"}.write(t, w.Dir())
	if diff := cmp.Diff(map[string]string{"b.go": Added}, kinds(changes(t, w))); diff != "" {
		t.Errorf("what is not copied cannot be changed (-want +got):\n%s", diff)
	}
	spec.Exclude, spec.Dir = []string{"[a"}, spec.Dir+"2"
	if _, err := Prepare(context.Background(), spec); err == nil || !strings.Contains(err.Error(), "workspace.exclude") {
		t.Errorf("bad glob: %v", err)
	}
}

func TestCopyInsideTheSourceDoesNotCopyItself(t *testing.T) {
	w, _ := setup(t, files{"a": "a"}, func(s *Spec) { s.Dir = filepath.Join(s.Source, ".state", "ws") })
	ready(t, w)
	if diff := cmp.Diff(files{"a": "a", ".state/": ""}, read(t, w.Dir())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSourcesNobodyMeansAreRefused(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	must(t, os.Symlink("/", filepath.Join(dir, "rootlink")))
	must(t, os.MkdirAll(filepath.Join(dir, "state", "control", "deep"), 0o700))
	must(t, os.Symlink(filepath.Join(dir, "state", "control"), filepath.Join(dir, "keyslink")))
	for name, tt := range map[string]struct {
		spec Spec
		want string
	}{
		"root":          {Spec{Source: "/"}, "the whole file system"},
		"link to root":  {Spec{Source: filepath.Join(dir, "rootlink")}, "the whole file system"},
		"home":          {Spec{Source: dir, Home: dir}, "the home folder"},
		"home in place": {Spec{Source: dir, Home: dir, Strategy: v1alpha1.StrategyInPlace}, "the home folder"},
		"state folder":  {Spec{Source: dir, Skip: []string{dir}}, "is the state folder"},
		"below it":      {Spec{Source: filepath.Join(dir, "state", "control", "deep"), Skip: []string{filepath.Join(dir, "state")}}, "lies in the state folder"},
		"link below it": {Spec{Source: filepath.Join(dir, "keyslink"), Skip: []string{filepath.Join(dir, "state")}}, "lies in the state folder"},
		"below in place": {
			Spec{Source: filepath.Join(dir, "state", "control"), Skip: []string{filepath.Join(dir, "state")}, Strategy: v1alpha1.StrategyInPlace}, "lies in the state folder",
		},
		"relative": {Spec{Source: "."}, "not an absolute path"},
		"missing":  {Spec{Source: filepath.Join(dir, "none")}, "no such file"},
		"file":     {Spec{Source: filepath.Join(dir, "file")}, "not a folder"},
	} {
		tt.spec.Dir = filepath.Join(t.TempDir(), "x")
		if _, err := Prepare(context.Background(), tt.spec); !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	for _, s := range []v1alpha1.WorkspaceStrategy{"Worktree", "Odd"} {
		if _, err := Prepare(context.Background(), Spec{Strategy: s, Source: dir, Dir: filepath.Join(dir, "y")}); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v", s, err)
		}
	}
	must(t, os.MkdirAll(filepath.Join(dir, "full", "sub"), 0o700))
	if _, err := Prepare(context.Background(), Spec{Source: dir, Dir: filepath.Join(dir, "full")}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a folder with something in it: %v", err)
	}
}

func TestSizeLimitStopsTheCopyAndLeavesNothing(t *testing.T) {
	w, spec := setup(t, files{"a": strings.Repeat("x", 600), "b": strings.Repeat("y", 600)}, func(s *Spec) { s.SizeLimit = 1000 })
	err := w.Ready(context.Background())
	if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "1000 bytes") || !strings.Contains(err.Error(), "workspace.exclude") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(spec.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half a copy was left: %v", err)
	}
	if _, err := w.Changes(context.Background()); !errors.Is(err, ErrTooLarge) {
		t.Errorf("changes of a failed workspace: %v", err)
	}
}

func TestCancelStopsTheCopy(t *testing.T) {
	dir := t.TempDir()
	src := filepath.Join(dir, "src")
	files{"a/b/c": "x"}.write(t, src)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w, err := Prepare(ctx, Spec{Source: src, Dir: filepath.Join(dir, "copy")})
	must(t, err)
	if err := w.Ready(context.Background()); !errors.Is(err, context.Canceled) {
		t.Errorf("ready: %v", err)
	}
	if w.Base() != nil {
		t.Error("a cancelled copy has a base")
	}
	must(t, w.Close())
}

func TestEmptyWorkspace(t *testing.T) {
	w, spec := setup(t, nil, func(s *Spec) { s.Strategy = v1alpha1.StrategyEmpty })
	ready(t, w)
	files{"made/by.txt": "the run\n"}.write(t, w.Dir())
	c := changes(t, w)
	if diff := cmp.Diff(map[string]string{"made/by.txt": Added}, kinds(c)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	must(t, Apply(context.Background(), application(spec, c)))
	if diff := cmp.Diff(files{"made/by.txt": "the run\n"}, read(t, spec.Source)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLinkSwappedInDuringTheRunIsNotFollowed(t *testing.T) {
	secret := t.TempDir()
	files{"key": "do not read\n"}.write(t, secret)
	w, _ := setup(t, files{"dir/key": "mine\n"})
	ready(t, w)
	must(t, os.RemoveAll(filepath.Join(w.Dir(), "dir")))
	must(t, os.Symlink(secret, filepath.Join(w.Dir(), "dir")))
	c := changes(t, w)
	if strings.Contains(string(c.Diff), "do not read") {
		t.Errorf("the diff shows a file outside:\n%s", c.Diff)
	}
	if diff := cmp.Diff(map[string]string{"dir": Added, "dir/key": Deleted}, kinds(c)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNamesThatAreNotTextSurvive(t *testing.T) {
	w, spec := setup(t, files{"keep": "k"})
	ready(t, w)
	names := files{"bad\xff\xfe": "1\n", "new\nline": "2\n", "quote\"\\": "3\n", "tab\t": "4\n", "-rf": "5\n", "ünï": "6\n", " lead": "7\n"}
	names.write(t, w.Dir())
	c := changes(t, w)
	patch, err := c.Record(spec.Blobs)
	must(t, err)
	c, err = ReadChange(spec.Blobs, patch.Change)
	must(t, err)
	must(t, Apply(context.Background(), application(spec, c)))
	names["keep"] = "k"
	if diff := cmp.Diff(names, read(t, spec.Source)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestManyNotesEnd(t *testing.T) {
	var n notes
	for i := range 3 * maxNotes {
		n.add(fmt.Sprint(i))
		n.add("0")
	}
	if l := n.list(); len(l) != maxNotes+1 || l[maxNotes] != "and 200 more like these" {
		t.Errorf("%d lines, last %q", len(l), l[len(l)-1])
	}
}

func repository(t testing.TB, n int) files {
	t.Helper()
	tree := files{}
	line := strings.Repeat("0123456789abcde\n", 640) // 10 KB
	for i := range n {
		tree[fmt.Sprintf("pkg%02d/sub%d/file%03d.go", i%25, i%3, i)] = fmt.Sprint(i, line)
	}
	return tree
}

func BenchmarkCopy500Files(b *testing.B) {
	dir := b.TempDir()
	repository(b, 500).write(b, filepath.Join(dir, "src"))
	i := 0
	for b.Loop() {
		i++
		w, err := Prepare(context.Background(), Spec{Source: filepath.Join(dir, "src"), Dir: filepath.Join(dir, fmt.Sprint("copy", i))})
		must(b, err)
		ready(b, w)
		must(b, w.Close())
		// Thousands of copies would fill a disk, or a memory.
		b.StopTimer()
		must(b, os.RemoveAll(w.Dir()))
		b.StartTimer()
	}
}

func BenchmarkPrepareReturns(b *testing.B) {
	dir := b.TempDir()
	repository(b, 500).write(b, filepath.Join(dir, "src"))
	i := 0
	for b.Loop() {
		i++
		w, err := Prepare(context.Background(), Spec{Source: filepath.Join(dir, "src"), Dir: filepath.Join(dir, fmt.Sprint("copy", i))})
		must(b, err)
		b.StopTimer()
		ready(b, w)
		must(b, errors.Join(w.Close(), os.RemoveAll(w.Dir())))
		b.StartTimer()
	}
}

func BenchmarkChangesOf500Files(b *testing.B) {
	w, _ := setup(b, repository(b, 500))
	ready(b, w)
	must(b, os.WriteFile(filepath.Join(w.Dir(), "new"), []byte("x\n"), 0o600))
	for b.Loop() {
		if c := changes(b, w); len(c.Files) != 1 {
			b.Fatal(len(c.Files))
		}
	}
}
