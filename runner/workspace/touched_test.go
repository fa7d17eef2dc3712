package workspace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// large is a tree that is watched.
func large() files {
	tree := files{}
	for i := range minWatched {
		tree[fmt.Sprintf("g%02d/h%d/f%04d", i%20, i%3, i)] = fmt.Sprint(i)
	}
	return tree
}

// watchable reports whether the file system of temporary folders is one that is watched.
func watchable(t *testing.T) bool {
	t.Helper()
	w := newWatch(t.TempDir())
	closeWatch(w)
	return w != nil
}

// watched is a workspace with a large tree that is being watched.
func watched(t *testing.T, adjust ...func(*Spec)) *Workspace {
	t.Helper()
	if !watchable(t) {
		t.Skip("the temporary folder is on a file system that is not watched")
	}
	w, _ := setup(t, large(), adjust...)
	ready(t, w)
	if w.watch == nil {
		t.Fatal("a large tree is not watched")
	}
	return w
}

// mustFindAll looks, and compares that with a look that knows nothing.
func mustFindAll(t *testing.T, w *Workspace) {
	t.Helper()
	now, err := w.look(t.Context())
	must(t, err)
	if diff := cmp.Diff(visible(fresh(t, w)), visible(now)); diff != "" {
		t.Fatalf("(-fresh +look):\n%s", diff)
	}
}

// TestAFileWithTwoNamesEndsTheWatch changes a file through its other name.
func TestAFileWithTwoNamesEndsTheWatch(t *testing.T) {
	w := watched(t)
	one, other := filepath.Join(w.Dir(), "g01/h1/f0001"), filepath.Join(w.Dir(), "g02/other")
	must(t, os.Link(one, other))
	must(t, os.WriteFile(other, []byte("through the other name"), 0o644))
	mustFindAll(t, w)
	for range 2 {
		must(t, os.WriteFile(other, []byte("again, through the other name"), 0o644))
		mustFindAll(t, w)
		if w.watch != nil {
			t.Error("it is watched, and what is done through the other name is not reported")
		}
	}
	must(t, os.Remove(other))
	for range 2 {
		mustFindAll(t, w)
	}
	if w.watch == nil {
		t.Error("it is not watched again")
	}
}

// TestAFolderThatCannotBeWatchedEndsTheWatch has a folder of another file system in the tree.
func TestAFolderThatCannotBeWatchedEndsTheWatch(t *testing.T) {
	w := watched(t)
	w.watch.Add(procFolder(t), "other")
	must(t, os.WriteFile(filepath.Join(w.Dir(), "g01/new"), nil, 0o644))
	mustFindAll(t, w)
	if w.watch == nil {
		t.Error("what has become of one watch says nothing of the next one")
	}
	w.watch.Close()
	begun := newWatch(w.Dir())
	begun.Add(procFolder(t), "other")
	now, err := w.lookWatching(t.Context(), begun)
	must(t, err)
	w.watch, w.last = nil, now
	for range 2 {
		mustFindAll(t, w)
		if w.watch != nil {
			t.Error("it is watched, and not all of it can be")
		}
	}
}

// procFolder is an open folder of a file system that is not watched.
func procFolder(t *testing.T) int {
	t.Helper()
	f, err := os.Open("/proc/self")
	must(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return int(f.Fd())
}

// TestMoreChangesThanTheQueueHolds overflows the queue of the system.
func TestMoreChangesThanTheQueueHolds(t *testing.T) {
	w := watched(t)
	for i := range 9_000 {
		must(t, os.WriteFile(filepath.Join(w.Dir(), fmt.Sprintf("g01/new%d", i%2)), []byte(fmt.Sprint(i)), 0o644))
	}
	must(t, os.WriteFile(filepath.Join(w.Dir(), "g03/last"), nil, 0o644))
	mustFindAll(t, w)
	if w.watch == nil {
		t.Error("it is not watched again")
	}
}

// TestALookThatWasStoppedLosesNothing stops a look that had asked what was touched.
func TestALookThatWasStoppedLosesNothing(t *testing.T) {
	w := watched(t)
	must(t, os.WriteFile(filepath.Join(w.Dir(), "g01/new"), nil, 0o644))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.look(ctx); err == nil {
		t.Fatal("a stopped look has a result")
	}
	mustFindAll(t, w)
}

// TestTheEndLooksAtEachFile changes a file through a name that is no part of the workspace,
// which no watch reports. The change of the run has it all the same.
func TestTheEndLooksAtEachFile(t *testing.T) {
	w := watched(t, func(s *Spec) { s.Exclude = []string{"outside"} })
	other := filepath.Join(w.Dir(), "outside")
	must(t, os.Link(filepath.Join(w.Dir(), "g01/h1/f0001"), other))
	must(t, os.WriteFile(other, []byte("unseen"), 0o644))
	c := changes(t, w)
	if len(c.Files) != 1 || c.Files[0].Path != "g01/h1/f0001" {
		t.Errorf("the change is of %+v", c.Files)
	}
}

// TestTheLimitOfFilesHoldsForTouchedFolders adds files over the limit, a few at a time.
func TestTheLimitOfFilesHoldsForTouchedFolders(t *testing.T) {
	w := watched(t, func(s *Spec) { s.MaxListed = minWatched + 100 })
	var err error
	for i := 0; i < 200 && err == nil; i++ {
		must(t, os.WriteFile(filepath.Join(w.Dir(), fmt.Sprintf("g01/new%d", i)), nil, 0o644))
		_, err = w.look(t.Context())
	}
	if err == nil {
		t.Errorf("%d files were listed", len(w.last.Entries))
	}
}
