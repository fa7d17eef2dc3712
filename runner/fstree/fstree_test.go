package fstree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// deepen makes folders in folders, each with a file and a second folder beside the
// next one, and closes the last one to everybody.
func deepen(t *testing.T, dir, name string, depth int) {
	t.Helper()
	fd, err := unix.Open(dir, openDir, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range depth {
		if err := errors.Join(unix.Mkdirat(fd, name, 0o700), unix.Mkdirat(fd, "a", 0o700), unix.Mkdirat(fd, "z", 0o700)); err != nil {
			t.Fatal(err)
		}
		file, err := unix.Openat(fd, "f", unix.O_CREAT|unix.O_WRONLY, 0o400)
		if err != nil {
			t.Fatal(err)
		}
		_ = unix.Close(file)
		next, err := unix.Openat(fd, name, openDir, 0)
		_ = unix.Close(fd)
		if err != nil {
			t.Fatal(err)
		}
		fd = next
	}
	if err := errors.Join(unix.Mkdirat(fd, "closed", 0o700), unix.Mkdirat(fd, "closed/in", 0o700), unix.Fchmodat(fd, "closed", 0, 0), unix.Close(fd)); err != nil {
		t.Fatal(err)
	}
}

// fewFiles lowers the limit of open files for the test.
func fewFiles(t *testing.T) {
	t.Helper()
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 128, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &old) })
}

func TestATreeOfAnyDepthIsMeasuredAndRemoved(t *testing.T) {
	for name, c := range map[string]struct {
		name  string
		depth int
	}{
		"deep":           {"d", 2000},
		"long names":     {strings.Repeat("n", 255), 300},
		"our own names":  {".removed-1", 300},
		"usual":          {"src", 3},
		"names of links": {"f2", 10},
	} {
		t.Run(name, func(t *testing.T) {
			fewFiles(t)
			dir := filepath.Join(t.TempDir(), "tree")
			outside := filepath.Join(t.TempDir(), "kept")
			if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(outside, []byte("x"), 0o600), os.Symlink(filepath.Dir(outside), dir+"/link")); err != nil {
				t.Fatal(err)
			}
			deepen(t, dir, c.name, c.depth)
			// dir, link, and the two folders at the end; four of each level.
			u, err := Measure(t.Context(), dir, 0)
			if want := 3 + 4*c.depth; err != nil || u.Entries < want || u.Bytes < int64(want)*entrySize {
				t.Errorf("measured %+v, %v, want %d entries", u, err, want)
			}
			if err := Remove(dir); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("it is there: %v", err)
			}
			if _, err := os.Stat(outside); err != nil {
				t.Errorf("a link was followed: %v", err)
			}
			if err := Remove(dir); err != nil {
				t.Errorf("a second time: %v", err)
			}
		})
	}
}

// The owner of a folder that is closed is not root, who may enter any.
func TestFoldersThatAreClosedForTheirOwnerAreRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tree")
	if err := errors.Join(os.MkdirAll(dir+"/a/b/c", 0o700), os.WriteFile(dir+"/a/b/f", nil, 0o400), os.Chmod(dir+"/a/b", 0o500), os.Chmod(dir+"/a", 0), os.Chmod(dir, 0o100)); err != nil {
		t.Fatal(err)
	}
	fd, err := func() (int, error) {
		if err := os.Chmod(dir, 0o700); err != nil {
			return -1, err
		}
		return unix.Open(dir, openDir, 0)
	}()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	r := &removal{top: fd, buf: make([]byte, direntSize)}
	if err := r.run(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestAMeasureCountsBlocksOnceAndEnds(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/big", make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"1", "2", "3"} {
		if err := os.Link(dir+"/big", dir+"/"+name); err != nil {
			t.Fatal(err)
		}
	}
	sparse, err := os.Create(dir + "/sparse")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(sparse.Truncate(100<<30), sparse.Close()); err != nil {
		t.Fatal(err)
	}
	u, err := Measure(t.Context(), dir, 0)
	if err != nil || u.Partial || u.Bytes < 1<<20 || u.Bytes > 2<<20 || u.Entries != 6 {
		t.Errorf("measured %+v, %v", u, err)
	}
	if u, err = Measure(t.Context(), dir, 3); err != nil || !u.Partial {
		t.Errorf("with a bound: %+v, %v", u, err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = Measure(over, dir, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("without time: %v", err)
	}
	if _, err = Measure(t.Context(), dir+"/none", 0); err == nil {
		t.Error("what is not there was measured")
	}
}
