package runs

import (
	"context"
	"slices"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/journal"
)

// Below returns the runs that the calls of a run have started, and those that they have
// started, in the order in which a tree lists them; each has its Parent.
func Below(ctx context.Context, state, ref string) ([]Summary, error) {
	found, err := journal.FindRun(state, ref)
	if err != nil {
		return nil, &reason.UsageError{Err: err}
	}
	all, err := journal.List(state)
	if err != nil {
		return nil, err
	}
	var below []Summary
	for _, f := range newTree(all).below(found.ID) {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		below = append(below, summary(ctx, f))
	}
	return below, nil
}

// tree is the runs of a state folder by the run that has started them.
type tree struct {
	// roots are the runs whose parent is not there, the newest first.
	roots    []journal.Found
	children map[string][]journal.Found
}

func newTree(all []journal.Found) *tree {
	t := &tree{children: map[string][]journal.Found{}}
	there := make(map[string]bool, len(all))
	for _, f := range all {
		there[f.ID] = true
	}
	for _, f := range all {
		if f.Parent == "" || !there[f.Parent] {
			t.roots = append(t.roots, f)
		} else {
			t.children[f.Parent] = append(t.children[f.Parent], f)
		}
	}
	return t
}

// below lists the runs below one. Journals that name each other as parents are not
// followed in a circle.
func (t *tree) below(id string) (all []journal.Found) {
	seen := map[string]bool{id: true}
	var walk func(id string)
	walk = func(id string) {
		for _, c := range slices.Backward(t.children[id]) { // the oldest first
			if !seen[c.ID] {
				seen[c.ID] = true
				all = append(all, c)
				walk(c.ID)
			}
		}
	}
	walk(id)
	return all
}
