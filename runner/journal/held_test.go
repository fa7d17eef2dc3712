package journal

import (
	"path/filepath"
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
