package files

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"agentctl.dev/agentctl/plugins/sdk"
)

// maxSearch bounds the look elsewhere for a file that is not where it was expected.
const maxSearch = 5000

// missing is the error for a file that does not exist, with up to three similar names.
func (w *workspace) missing(rel string) error {
	if w.approved { // what else is there was not approved
		return sdk.Errorf("%s does not exist", w.show(rel))
	}
	names := w.similar(rel)
	if len(names) == 0 {
		return sdk.Errorf("%s does not exist", rel)
	}
	return sdk.Errorf("%s does not exist. Similar: %s", rel, strings.Join(names, ", "))
}

// similar looks for names like the last part of rel in the nearest folder that
// exists, then for the very name anywhere.
func (w *workspace) similar(rel string) []string {
	dir, want := parent(rel), path.Base(rel)
	all, err := w.folder(dir)
	for errors.Is(err, fs.ErrNotExist) && dir != "." {
		dir, want = parent(dir), path.Base(dir)
		all, err = w.folder(dir)
	}
	found := closest(want, all)
	for i := range found {
		found[i] = path.Join(dir, found[i])
	}
	if len(found) < 3 {
		found = w.elsewhere(path.Base(rel), found)
	}
	return found
}

// elsewhere adds files of exactly this name from the whole workspace.
func (w *workspace) elsewhere(name string, found []string) []string {
	looked := 0
	k := &walker{w: w, visit: func(_ *folder, rel string, e entry) error {
		if looked++; looked > maxSearch || len(found) == 3 {
			return fs.SkipAll
		}
		if !e.mode.IsDir() && strings.EqualFold(e.name, name) && !slices.Contains(found, rel) {
			found = append(found, rel)
		}
		return nil
	}}
	_ = k.walk(context.Background(), ".") // bounded by maxSearch, and only a hint
	return found
}

// closest returns up to three names that a person may have meant by want.
func closest(want string, all []entry) []string {
	type scored struct {
		name string
		cost int
	}
	var near []scored
	low := strings.ToLower(want)
	for _, e := range all[:min(len(all), maxSearch)] {
		if c, ok := likeness(low, strings.ToLower(e.name)); ok {
			near = append(near, scored{e.shown(), c})
		}
	}
	slices.SortStableFunc(near, func(a, b scored) int { return cmp.Compare(a.cost, b.cost) })
	var names []string
	for _, n := range near[:min(len(near), 3)] {
		names = append(names, n.name)
	}
	return names
}

// likeness is the number of edits between two names, if they are few; a name
// within the other counts one.
func likeness(a, b string) (int, bool) {
	if len(a) > 255 || len(b) > 255 {
		return 0, false
	}
	limit := max(1, max(len(a), len(b))*2/5)
	if d := edits(a, b); d <= limit {
		return d, true
	}
	stem := strings.TrimSuffix(a, path.Ext(a))
	if len(stem) >= 3 && strings.Contains(b, stem) {
		return limit, true
	}
	return 0, false
}

// edits is the Levenshtein distance in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := diagonal
			if a[i-1] != b[j-1] {
				change++
			}
			diagonal = row[j]
			row[j] = min(change, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
