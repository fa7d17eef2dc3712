package journal

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// state makes a state folder with three runs, begun in the order given.
func state(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for i, id := range []string{"reviewer-01b", "fixer-01a", "reviewer-01a"} {
		w, err := Create(context.Background(), Options{Dir: Dir(dir, id), Run: id, Clock: func() time.Time { return noon.Add(time.Duration(i) * time.Hour) }})
		if err != nil {
			t.Fatal(err)
		}
		appendText(t, w, "x")
		closeWriter(t, w)
	}
	for _, empty := range []string{"no-events", "Strange_Name"} {
		if err := os.Mkdir(Dir(dir, empty), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestListShowsNewestFirst(t *testing.T) {
	dir := state(t)
	all, err := List(dir)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, f := range all {
		ids = append(ids, f.ID)
	}
	if diff := cmp.Diff([]string{"reviewer-01a", "fixer-01a", "reviewer-01b"}, ids); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if all, err := List(filepath.Join(dir, "none")); err != nil || len(all) != 0 {
		t.Errorf("no state folder: %v, %v", all, err)
	}
}

func TestFindRun(t *testing.T) {
	dir := state(t)
	tests := map[string]struct{ reason, ref, want, problem string }{
		"id":         {"an id names its run", "fixer-01a", "fixer-01a", ""},
		"kind":       {"as other verbs write it", "run/fixer-01a", "fixer-01a", ""},
		"prefix":     {"the beginning of one id", "fix", "fixer-01a", ""},
		"exact":      {"a whole id wins", "reviewer-01a", "reviewer-01a", ""},
		"latest":     {"started last, not last in the alphabet", "@latest", "reviewer-01a", ""},
		"ambiguous":  {"two begin like this", "rev", "", "2 runs begin like this: reviewer-01a, reviewer-01b"},
		"typo":       {"the nearest is shown", "fixr-01a", "", "the nearest are: fixer-01a"},
		"no events":  {"a folder without events is no run", "no-events", "", "it was stopped before it began"},
		"traversal":  {"a path is no name", "../../etc", "", "no run can have this name"},
		"traversal2": {"a path is no name", "run/../x", "", "no run can have this name"},
		"empty":      {"nothing is no name", "", "", "no run can have this name"},
		"escape":     {"terminal sequences are quoted", "a\x1b[2J", "", `run "a\x1b[2J"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := FindRun(dir, tt.ref)
			if tt.problem == "" {
				if err != nil || got.ID != tt.want || got.Dir != Dir(dir, tt.want) {
					t.Errorf("%s: %+v, %v", tt.reason, got, err)
				}
				return
			}
			_, ok := errors.AsType[*NotFoundError](err)
			if !ok || !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("%s: got %v, want %q", tt.reason, err, tt.problem)
			}
		})
	}
}

func TestFindRunWithoutRunsNamesTheFolder(t *testing.T) {
	dir := t.TempDir()
	for _, ref := range []string{"@latest", "x"} {
		if _, err := FindRun(dir, ref); err == nil || !strings.Contains(err.Error(), "there are no runs in "+filepath.Join(dir, "runs")) {
			t.Errorf("%s: %v", ref, err)
		}
	}
}
