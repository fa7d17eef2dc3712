package runs

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/journal"
)

func TestAListTellsHowRunsStand(t *testing.T) {
	state := t.TempDir()
	one := func(state string) Summary {
		t.Helper()
		all, err := List(t.Context(), state)
		if err != nil || len(all) != 1 {
			t.Fatalf("got %+v, %v", all, err)
		}
		alone, err := Get(t.Context(), state, "run/"+all[0].Name)
		if err != nil || alone.Phase != all[0].Phase || alone.Name != all[0].Name {
			t.Errorf("by its name: %+v, %v", alone, err)
		}
		return all[0]
	}
	k := begun(t, state, "worker-1")
	if s := one(state); s.Phase != view.Running || len(s.Waiting) != 1 || s.Steps != 1 || s.ExitCode != nil || s.EndTime != nil || s.Agent != "worker" || s.Model != "script" || Ended(state, k.id) {
		t.Errorf("while it waits: %+v", s)
	}
	if s := one(killed(t, state)); s.Phase != Interrupted || len(s.Waiting) != 1 || s.ExitCode != nil {
		t.Errorf("killed: %+v", s)
	}
	k.end(view.Succeeded, "Completed", 0)
	if s := one(state); s.Phase != view.Succeeded || s.Reason != "Completed" || s.ExitCode == nil || *s.ExitCode != 0 || len(s.Waiting) != 0 || s.EndTime == nil || !Ended(state, k.id) {
		t.Errorf("ended: %+v", s)
	}
	state, id := suspended(t)
	if s := one(state); s.Phase != Suspended || s.Reason != "ApprovalRequired" || s.ExitCode != nil || !slices.Equal(s.Waiting, []string{"call_1"}) || Ended(state, id) {
		t.Errorf("suspended: %+v", s)
	}
}

func TestAnUnreadableRunIsListed(t *testing.T) {
	state, id := suspended(t)
	files, err := filepath.Glob(filepath.Join(journal.Dir(state, id), "events-*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("got %v, %v", files, err)
	}
	if err := os.WriteFile(files[0], []byte(`{"seq":1,"type":"text.delta"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := List(t.Context(), state)
	if err != nil || len(all) != 1 || all[0].Phase != Unreadable || all[0].Message == "" {
		t.Errorf("got %+v, %v", all, err)
	}
	if ids, err := IDs(state); err != nil || !slices.Equal(ids, []string{id}) {
		t.Errorf("got %v, %v", ids, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := List(ctx, state); err == nil {
		t.Error("nobody waits for the list any more")
	}
	if _, err := Get(t.Context(), state, "nobody"); err == nil {
		t.Error("there is no such run")
	}
}
