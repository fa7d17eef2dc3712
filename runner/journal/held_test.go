package journal

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestHeldWhileItIsWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r")
	if Held(dir) {
		t.Error("a run that is not there is held")
	}
	w, err := Create(t.Context(), Options{Dir: dir, Run: "r"})
	if err != nil {
		t.Fatal(err)
	}
	if !Held(dir) {
		t.Error("a journal that is open is not held")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if Held(dir) {
		t.Error("a journal that was closed is held")
	}
}

// TestLockThatIsNoFileHoldsNobodyUp: what a link leads to is neither taken for
// the lock nor written to.
func TestLockThatIsNoFileHoldsNobodyUp(t *testing.T) {
	for name, put := range map[string]func(path, victim string) error{
		"a FIFO":  func(path, _ string) error { return syscall.Mkfifo(path, 0o600) },
		"a link":  func(path, victim string) error { return os.Symlink(victim, path) },
		"no end":  func(path, _ string) error { return os.Symlink("/dev/zero", path) },
		"a place": func(path, _ string) error { return os.Mkdir(path, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, victim := t.TempDir(), filepath.Join(t.TempDir(), "victim")
			if err := errors.Join(os.WriteFile(victim, []byte("precious"), 0o600), put(filepath.Join(dir, lockFile), victim)); err != nil {
				t.Fatal(err)
			}
			if Held(dir) {
				t.Error("nobody holds it")
			}
			if w, err := Create(t.Context(), Options{Dir: dir, Run: "r"}); err == nil {
				t.Errorf("a journal without a lock, closed with %v", w.Close())
			}
			if b, err := os.ReadFile(victim); err != nil || string(b) != "precious" {
				t.Errorf("what the link leads to has become %q, %v", b, err)
			}
		})
	}
}
