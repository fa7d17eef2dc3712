package workspace

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A program makes folders in folders: their paths together grow with the square
// of the depth, and would take all memory.
func TestFoldersWithoutEndAreNotListed(t *testing.T) {
	w, _ := setup(t, files{"a": "x"})
	at, err := unix.Open(w.Dir(), unix.O_PATH|unix.O_DIRECTORY, 0)
	must(t, err)
	name := strings.Repeat("n", 200)
	for range 1700 {
		must(t, unix.Mkdirat(at, name, 0o700))
		below, err := unix.Openat(at, name, unix.O_PATH|unix.O_DIRECTORY, 0)
		must(t, err)
		must(t, unix.Close(at))
		at = below
	}
	must(t, unix.Close(at))
	if _, err := w.Changes(t.Context()); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "paths of more than") {
		t.Errorf("error = %v", err)
	}
}
