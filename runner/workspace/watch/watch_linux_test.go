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
			if w, err = New(int(f.Fd())); errors.Is(err, ErrUnsupported) {
				t.Skip("the temporary folder is on a file system that is not watched:", err)
			}
			if err != nil {
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
	for name, c := range map[string]struct {
		do   func(at func(string) string) error
		want string
	}{
		"nothing":            {func(func(string) string) error { return nil }, `[] new []`},
		"a file is read":     {func(at func(string) string) error { _, err := os.ReadFile(at("a/one")); return err }, `[] new []`},
		"a folder is listed": {func(at func(string) string) error { _, err := os.ReadDir(at("a")); return err }, `[] new []`},
		"a file is written":  {func(at func(string) string) error { return os.WriteFile(at("a/b/three"), nil, 0o600) }, `["a/b"] new []`},
		"a file at the top":  {func(at func(string) string) error { return os.WriteFile(at("top"), nil, 0o600) }, `[""] new []`},
		"a file is new":      {func(at func(string) string) error { return os.WriteFile(at("c/five"), nil, 0o600) }, `["c"] new []`},
		"a file is removed":  {func(at func(string) string) error { return os.Remove(at("a/one")) }, `["a"] new []`},
		"a mode":             {func(at func(string) string) error { return os.Chmod(at("a/one"), 0o755) }, `["a"] new []`},
		"times": {func(at func(string) string) error {
			return unix.UtimesNanoAt(unix.AT_FDCWD, at("a/one"), make([]unix.Timespec, 2), 0)
		}, `["a"] new []`},
		"a file moves":        {func(at func(string) string) error { return os.Rename(at("a/one"), at("c/one")) }, `["a" "c"] new []`},
		"a file is cut":       {func(at func(string) string) error { return os.Truncate(at("c/four"), 1) }, `["c"] new []`},
		"a link":              {func(at func(string) string) error { return os.Symlink("a", at("c/link")) }, `["c"] new []`},
		"a second name":       {func(at func(string) string) error { return os.Link(at("a/one"), at("c/one")) }, `["c"] new []`},
		"a folder is new":     {func(at func(string) string) error { return os.MkdirAll(at("c/d/e"), 0o755) }, `["c"] new ["c/d"]`},
		"a folder has a mode": {func(at func(string) string) error { return os.Chmod(at("a/b"), 0o700) }, `["a"] new ["a/b"]`},
		"a folder is removed": {func(at func(string) string) error { return os.RemoveAll(at("a/b")) }, `["a" "a/b"] new []`},
		"written through a link": {func(at func(string) string) error {
			return errors.Join(os.Symlink("../a/one", at("c/link")), os.WriteFile(at("c/link"), nil, 0o600))
		}, `["a" "c"] new []`},
	} {
		t.Run(name, func(t *testing.T) {
			w, root := watchTree(t)
			must(t, c.do(func(name string) string { return filepath.Join(root, name) }))
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
		do   func(w *Watch, root, other string) error
		want error
	}{
		"a folder moves":  {func(_ *Watch, root, _ string) error { return os.Rename(root+"/a/b", root+"/c/b") }, ErrLost},
		"a folder leaves": {func(_ *Watch, root, other string) error { return os.Rename(root+"/a", other+"/a") }, ErrLost},
		"a folder comes":  {func(_ *Watch, root, other string) error { return os.Rename(other, root+"/a/new") }, ErrLost},
		"the mode of the top": {func(_ *Watch, root, _ string) error {
			return os.Chmod(root, 0o711) //nolint:gosec // so that it differs
		}, ErrLost},
		"more than the queue": {func(_ *Watch, root, _ string) (err error) {
			for i := range 9_000 { // two events each, and none like the one before
				err = errors.Join(err, os.WriteFile(fmt.Sprint(root, "/a/f", i%2), nil, 0o600))
			}
			return err
		}, ErrLost},
		"a folder at two paths": {func(w *Watch, root, _ string) error { return add(w, root+"/a", "z") }, ErrUnsupported},
		"another file system":   {func(w *Watch, _, _ string) error { return add(w, "/proc/self", "p") }, ErrUnsupported},
		"too many folders":      {func(w *Watch, _, other string) error { w.most = 4; return add(w, other, "d") }, ErrUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			w, root := watchTree(t)
			must(t, c.do(w, root, t.TempDir()))
			for range 2 { // it does not recover
				if _, err := w.Touched(); !errors.Is(err, c.want) {
					t.Errorf("the error is %v, want %v", err, c.want)
				}
			}
		})
	}
}

func add(w *Watch, folder, at string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it is read only
	w.Add(int(f.Fd()), at)
	return nil
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
