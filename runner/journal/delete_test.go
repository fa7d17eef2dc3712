package journal

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestDeleteRemovesARunAndWhatAnInterruptedRemovalLeft(t *testing.T) {
	dir := state(t)
	stuck := filepath.Join(Dir(dir, "fixer-01a"), "workspace", "closed")
	if err := os.MkdirAll(filepath.Join(stuck, "in"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(stuck, 0); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "kept")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(Dir(dir, "fixer-01a"), "link")); err != nil {
		t.Fatal(err)
	}
	if Size(t.Context(), Dir(dir, "fixer-01a")) <= 0 {
		t.Error("the folder takes nothing")
	}
	if err := Delete(t.Context(), dir, "fixer-01a", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := FindRun(dir, "fixer-01a"); err == nil {
		t.Error("the run is still there")
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("a link was followed: %v", err)
	}
	left := filepath.Join(dir, "runs", deleted+"old-01a")
	if err := os.MkdirAll(filepath.Join(left, "blobs"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := SweepDeleted(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(left); !os.IsNotExist(err) {
		t.Errorf("what was left is still there: %v", err)
	}
	if err := SweepDeleted(filepath.Join(dir, "none")); err != nil {
		t.Errorf("no state folder: %v", err)
	}
}

func TestDeleteRefusesARunThatIsWritten(t *testing.T) {
	dir := t.TempDir()
	w, err := Create(context.Background(), Options{Dir: Dir(dir, "a-01a"), Run: "a-01a"})
	if err != nil {
		t.Fatal(err)
	}
	appendText(t, w, "x")
	held := &HeldError{}
	if err := Delete(t.Context(), dir, "a-01a", nil); !errors.As(err, &held) {
		t.Errorf("got %v", err)
	}
	closeWriter(t, w)
	if err := Delete(t.Context(), dir, "a-01a", nil); err != nil {
		t.Errorf("closed: %v", err)
	}
	for _, name := range []string{"..", "", "../x", deleted + "a"} {
		if err := Delete(t.Context(), dir, name, nil); err == nil {
			t.Errorf("%q was deleted", name)
		}
	}
}
