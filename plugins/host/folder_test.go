package host

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func names(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range list {
		all = append(all, e.Name())
	}
	return all
}

func TestWhatAKilledHostLeftIsSweptAndNothingElse(t *testing.T) {
	home, err := os.MkdirTemp("/tmp", "hf-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(home)
	left, err := newFolder(home)
	if err != nil {
		t.Fatal(err)
	}
	if err := left.lock.Close(); err != nil { // as the end of its host does
		t.Fatal(err)
	}
	other := filepath.Join(home, "other-1")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	running, err := newFolder(home)
	if err != nil {
		t.Fatal(err)
	}
	last, err := newFolder(home)
	if err != nil {
		t.Fatal(err)
	}
	last.remove()
	last.remove()
	if got := names(t, home); len(got) != 2 || got[0] != "other-1" || got[1] != filepath.Base(running.path) {
		t.Errorf("there are %v, want other-1 and %s", got, filepath.Base(running.path))
	}
	// While one is being made nothing is swept.
	lost := filepath.Join(home, folderName+"1")
	if err := os.Mkdir(lost, 0o700); err != nil {
		t.Fatal(err)
	}
	making, err := lock(home, syscall.LOCK_SH)
	if err != nil {
		t.Fatal(err)
	}
	running.remove()
	if got := strings.Join(names(t, home), " "); got != "other-1 plugin-1" {
		t.Errorf("there are %s", got)
	}
	_ = making.Close()
	sweep(home)
	if got := strings.Join(names(t, home), " "); got != "other-1" {
		t.Errorf("there are %s", got)
	}
}

func TestAFolderThatOthersCanChangeIsNotTrusted(t *testing.T) {
	base, err := os.MkdirTemp("/tmp", "hf-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(base)
	taken := filepath.Join(base, "taken")
	if err := os.Symlink("/tmp", taken); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(base, "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil { //nolint:gosec // that is the point
		t.Fatal(err)
	}
	for _, home := range []string{taken, open} {
		f, err := makeFolder(home, base)
		if err != nil {
			t.Fatal(err)
		}
		if f.home != "" || filepath.Dir(f.path) != base {
			t.Errorf("%s: a folder in %s", home, f.path)
		}
		if info, err := os.Stat(f.path); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", f.path, info.Mode(), err)
		}
		f.remove()
	}
	if _, err := newFolder(filepath.Join(base, strings.Repeat("x", 80))); err == nil {
		t.Error("a folder whose socket's path is too long")
	}
	if _, err := newFolder(filepath.Join(base, "none", "none")); err == nil {
		t.Error("a folder in one that is not there")
	}
}
