package watch

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// watchTree watches all folders of a tree with some files.
func watchTree(t *testing.T) (*Watch, string) {
	t.Helper()
	root := t.TempDir()
	for _, name := range []string{"top", "a/one", "a/two", "a/b/three", "c/four"} {
		must(t, os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755))
		must(t, os.WriteFile(filepath.Join(root, name), []byte(name), 0o600))
	}
	return watchAll(t, root), root
}

func watchAll(t *testing.T, root string) *Watch {
	t.Helper()
	var w *Watch
	must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // it is read only
		if w == nil {
			if w, err = New(int(f.Fd())); err != nil {
				return err
			}
			t.Cleanup(w.Close)
		}
		at, err := filepath.Rel(root, path)
		w.Add(int(f.Fd()), strings.TrimPrefix(at, "."))
		return err
	}))
	return w
}

func (t Touched) String() string {
	return fmt.Sprintf("%q new %q", slices.Sorted(maps.Keys(t.Folders)), slices.Sorted(maps.Keys(t.New)))
}

func TestWhatIsTouched(t *testing.T) {
	type tree string
	do := func(f func(at func(string) string) error) func(*testing.T, tree) {
		return func(t *testing.T, root tree) {
			must(t, f(func(name string) string { return filepath.Join(string(root), name) }))
		}
	}
	for name, c := range map[string]struct {
		do   func(*testing.T, tree)
		want string
	}{
		"nothing":            {do(func(func(string) string) error { return nil }), `[] new []`},
		"a file is read":     {do(func(at func(string) string) error { _, err := os.ReadFile(at("a/one")); return err }), `[] new []`},
		"a folder is listed": {do(func(at func(string) string) error { _, err := os.ReadDir(at("a")); return err }), `[] new []`},
		"a file is written":  {do(func(at func(string) string) error { return os.WriteFile(at("a/b/three"), nil, 0o600) }), `["a/b"] new []`},
		"a file at the top":  {do(func(at func(string) string) error { return os.WriteFile(at("top"), nil, 0o600) }), `[""] new []`},
		"a file is new":      {do(func(at func(string) string) error { return os.WriteFile(at("c/five"), nil, 0o600) }), `["c"] new []`},
		"a file is removed":  {do(func(at func(string) string) error { return os.Remove(at("a/one")) }), `["a"] new []`},
		"a mode":             {do(func(at func(string) string) error { return os.Chmod(at("a/one"), 0o755) }), `["a"] new []`},
		"times": {do(func(at func(string) string) error {
			return unix.UtimesNanoAt(unix.AT_FDCWD, at("a/one"), make([]unix.Timespec, 2), 0)
		}), `["a"] new []`},
		"a file moves":        {do(func(at func(string) string) error { return os.Rename(at("a/one"), at("c/one")) }), `["a" "c"] new []`},
		"a file is cut":       {do(func(at func(string) string) error { return os.Truncate(at("c/four"), 1) }), `["c"] new []`},
		"a link":              {do(func(at func(string) string) error { return os.Symlink("a", at("c/link")) }), `["c"] new []`},
		"a second name":       {do(func(at func(string) string) error { return os.Link(at("a/one"), at("c/one")) }), `["c"] new []`},
		"a folder is new":     {do(func(at func(string) string) error { return os.MkdirAll(at("c/d/e"), 0o755) }), `["c"] new ["c/d"]`},
		"a folder has a mode": {do(func(at func(string) string) error { return os.Chmod(at("a/b"), 0o700) }), `["a"] new ["a/b"]`},
		"a folder is removed": {do(func(at func(string) string) error { return os.RemoveAll(at("a/b")) }), `["a" "a/b"] new []`},
		"written through a link": {do(func(at func(string) string) error {
			return errors.Join(os.Symlink("../a/one", at("c/link")), os.WriteFile(at("c/link"), nil, 0o600))
		}), `["a" "c"] new []`},
	} {
		t.Run(name, func(t *testing.T) {
			w, root := watchTree(t)
			c.do(t, tree(root))
			touched, err := w.Touched()
			must(t, err)
			if touched.String() != c.want {
				t.Errorf("touched %s, want %s", touched, c.want)
			}
			if again, err := w.Touched(); err != nil || again.String() != `[] new []` {
				t.Errorf("asked again: %s, %v", again, err)
			}
		})
	}
}

// TestAFolderMadeAnewIsNew checks that what happens in a folder of an old name counts as
// unknown: it is not the one that was watched.
func TestAFolderMadeAnewIsNew(t *testing.T) {
	w, root := watchTree(t)
	b := filepath.Join(root, "a/b")
	must(t, os.RemoveAll(b))
	must(t, os.Mkdir(b, 0o755))
	must(t, os.WriteFile(filepath.Join(b, "three"), []byte("other"), 0o600))
	touched, err := w.Touched()
	must(t, err)
	if !touched.New["a/b"] || !touched.Folders["a"] {
		t.Errorf("touched %s", touched)
	}
}

// TestAnOpenFileIsSeenWhenItIsWritten writes a file that was opened before the watch began,
// by its descriptor and in mapped memory.
func TestAnOpenFileIsSeenWhenItIsWritten(t *testing.T) {
	root := t.TempDir()
	f, err := os.Create(filepath.Join(root, "f"))
	must(t, err)
	defer f.Close() //nolint:errcheck // the test has ended
	must(t, f.Truncate(4096))
	w := watchAll(t, root)
	_, err = f.WriteString("x")
	must(t, err)
	if touched, err := w.Touched(); err != nil || !touched.Folders[""] {
		t.Errorf("written: touched %s, %v", touched, err)
	}
	mapped, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	must(t, err)
	mapped[7] = 'y'
	must(t, f.Close())
	must(t, unix.Munmap(mapped))
	if touched, err := w.Touched(); err != nil || !touched.Folders[""] {
		t.Errorf("mapped and unmapped: touched %s, %v", touched, err)
	}
}

func TestWhatLosesAWatch(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(t *testing.T, w *Watch, root string)
		want error
	}{
		"a folder moves": {func(t *testing.T, _ *Watch, root string) {
			must(t, os.Rename(filepath.Join(root, "a/b"), filepath.Join(root, "c/b")))
		}, ErrLost},
		"a folder leaves": {func(t *testing.T, _ *Watch, root string) {
			must(t, os.Rename(filepath.Join(root, "a"), filepath.Join(t.TempDir(), "a")))
		}, ErrLost},
		"a folder comes": {func(t *testing.T, _ *Watch, root string) {
			must(t, os.Rename(t.TempDir(), filepath.Join(root, "a/new")))
		}, ErrLost},
		"the mode of the top": {func(t *testing.T, _ *Watch, root string) { must(t, os.Chmod(root, 0o711)) }, ErrLost}, //nolint:gosec // so that it differs
		"more than the queue": {func(t *testing.T, _ *Watch, root string) {
			for i := range 9_000 { // two events each, and none like the one before
				must(t, os.WriteFile(filepath.Join(root, "a", fmt.Sprint("f", i%2)), nil, 0o600))
			}
		}, ErrLost},
		"a folder at two paths": {func(t *testing.T, w *Watch, root string) { add(t, w, filepath.Join(root, "a"), "z") }, ErrUnsupported},
		"another file system":   {func(t *testing.T, w *Watch, _ string) { add(t, w, "/proc/self", "p") }, ErrUnsupported},
		"too many folders":      {func(t *testing.T, w *Watch, _ string) { w.most = 4; add(t, w, t.TempDir(), "d") }, ErrUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			w, root := watchTree(t)
			c.do(t, w, root)
			for range 2 { // it does not recover
				if _, err := w.Touched(); !errors.Is(err, c.want) {
					t.Errorf("the error is %v, want %v", err, c.want)
				}
			}
		})
	}
}

func add(t *testing.T, w *Watch, folder, at string) {
	t.Helper()
	f, err := os.Open(folder)
	must(t, err)
	defer f.Close() //nolint:errcheck // it is read only
	w.Add(int(f.Fd()), at)
}

func TestAForeignFileSystemIsNotWatched(t *testing.T) {
	f, err := os.Open("/proc")
	must(t, err)
	defer f.Close() //nolint:errcheck // it is read only
	if _, err := New(int(f.Fd())); !errors.Is(err, ErrUnsupported) {
		t.Errorf("the error is %v", err)
	}
}

func TestADamagedEventIsRefused(t *testing.T) {
	for _, b := range [][]byte{make([]byte, 3), append(make([]byte, 12), 0xff, 0xff, 0xff, 0xff)} {
		if _, _, err := cutEvent(b); !errors.Is(err, ErrLost) {
			t.Errorf("%d bytes: %v", len(b), err)
		}
	}
}
