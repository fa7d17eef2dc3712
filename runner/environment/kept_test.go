package environment

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/workspace"
)

// snapshots is a journal that keeps the states of the files.
type snapshots struct {
	Journal
	blobs map[string][]byte
	all   []event.WorkspaceSnapshot
}

func (s *snapshots) Append(e event.Event) (event.Event, error) {
	if d, ok := e.Data.(event.WorkspaceSnapshot); ok {
		s.all = append(s.all, d)
	}
	return e, nil
}

func (s *snapshots) PutBlob(b []byte) (string, error) {
	id := fmt.Sprintf("sha256:%x", sha256.Sum256(b))
	s.blobs[id] = b
	return id, nil
}

func (s *snapshots) GetBlob(id string) ([]byte, error) {
	if b, ok := s.blobs[id]; ok {
		return b, nil
	}
	return nil, os.ErrNotExist
}

// TestAProcessThatGoesOnCountsWhatTheRunKeeps: the limit of kept contents is reached by what
// the processes before it have kept.
func TestAProcessThatGoesOnCountsWhatTheRunKeeps(t *testing.T) {
	for kept, want := range map[int64]int64{0: 5, 1 << 40: 0} {
		j, dir := &snapshots{blobs: map[string][]byte{}}, t.TempDir()
		o := &Options{
			Dir: t.TempDir(), Run: "r-1", Journal: j, NewID: func(string) string { return "id" }, Kept: kept,
			Workspace: workspace.Spec{Strategy: v1alpha1.StrategyEmpty, Dir: filepath.Join(dir, "files")},
		}
		f, err := openFiles(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		root, err := f.touch(t.Context())
		if err == nil {
			err = os.WriteFile(filepath.Join(root, "a"), []byte("five\n"), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		f.Snapshot(t.Context(), 1)
		if n := len(j.all); n != 2 || j.all[1].Kept != want || j.all[1].Error != "" {
			t.Errorf("%d bytes were kept before, and recorded is %+v; want %d", kept, j.all, want)
		}
		if err := f.files.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestAStateIsKnownAgainAfterOneThatWasNot: a step whose files could not be recorded leaves
// them unknown until the next step, also one of another process that changes nothing. A step
// in which no program has begun says nothing of them.
func TestAStateIsKnownAgainAfterOneThatWasNot(t *testing.T) {
	j := &snapshots{blobs: map[string][]byte{}}
	o := &Options{
		Dir: t.TempDir(), Run: "r-1", Journal: j, NewID: func(string) string { return "id" },
		Workspace: workspace.Spec{Strategy: v1alpha1.StrategyEmpty, Dir: filepath.Join(t.TempDir(), "files")},
	}
	begin := func() *Files {
		t.Helper()
		f, err := openFiles(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := f.files.Close(); err != nil {
				t.Error(err)
			}
		})
		return f
	}
	use := func(f *Files) string {
		t.Helper()
		root, err := f.touch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return root
	}
	f := begin()
	a := filepath.Join(use(f), "a")
	if err := os.WriteFile(a, []byte("a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	f.Snapshot(stopped, 1) // a run that is stopped records them, too
	if n := len(j.all); n != 2 || j.all[1].Error != "" {
		t.Fatalf("recorded is %+v", j.all)
	}
	f.Snapshot(t.Context(), 2)
	if len(j.all) != 2 {
		t.Fatalf("nothing has begun, and recorded is %+v", j.all[2:])
	}
	root := use(f)
	if err := os.Rename(root, root+".away"); err != nil {
		t.Fatal(err)
	}
	f.Snapshot(t.Context(), 3)
	if len(j.all) != 3 || j.all[2].Error == "" {
		t.Fatalf("the files are away, and recorded is %+v", j.all[2:])
	}
	if err := os.Rename(root+".away", root); err != nil {
		t.Fatal(err)
	}
	o.Resumed, o.Snapshot, o.State, o.StateUnknown = true, j.all[0].Snapshot, j.all[1].Snapshot, true
	next := begin()
	for step := 4; step < 6; step++ {
		use(next)
		next.Snapshot(t.Context(), step)
	}
	if len(j.all) != 4 || j.all[3].Step != 4 || j.all[3].Snapshot != j.all[1].Snapshot || j.all[3].Files != 1 {
		t.Errorf("recorded is %+v", j.all[3:])
	}
}
