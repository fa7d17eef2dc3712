package runs

import (
	"slices"
	"testing"

	"agentctl.dev/agentctl/runner/journal"
)

func TestTreeOfRuns(t *testing.T) {
	all := []journal.Found{ // the newest first
		{ID: "leaf", Parent: "second"},
		{ID: "second", Parent: "top"},
		{ID: "first", Parent: "top"},
		{ID: "other"},
		{ID: "top"},
		{ID: "orphan", Parent: "gone"},
		{ID: "x", Parent: "y"},
		{ID: "y", Parent: "x"},
	}
	tree := newTree(all)
	ids := func(found []journal.Found) (ids []string) {
		for _, f := range found {
			ids = append(ids, f.ID)
		}
		return ids
	}
	if got := ids(tree.below("top")); !slices.Equal(got, []string{"first", "second", "leaf"}) {
		t.Errorf("below top: %v", got)
	}
	if got := ids(tree.roots); !slices.Equal(got, []string{"other", "top", "orphan"}) {
		t.Errorf("roots: %v", got)
	}
	if got := ids(tree.below("x")); !slices.Equal(got, []string{"y"}) {
		t.Errorf("a circle is followed: %v", got)
	}
}
