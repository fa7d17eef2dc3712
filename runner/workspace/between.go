package workspace

import (
	"fmt"
	"slices"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// Between returns the change that turns one recorded state into another one. Contents that
// are not among the blobs are marked in it, so that it cannot be applied; the lines of such
// files are not in its diff.
func Between(blobs Blobs, from, to *Snapshot) *Change {
	c := &Change{Strategy: v1alpha1.StrategyCopy, Files: []FileChange{}}
	for old, neu := range differing(from.Entries, to.Entries) {
		switch {
		case neu == nil && to.hides(old.Path), old == nil && from.hides(neu.Path):
			continue // it is not known what is there
		case neu != nil:
			c.add(neu.Path, old, neu)
		default:
			c.add(old.Path, old, nil)
		}
	}
	c.sort()
	d := differ{old: func(_ Path, v *Version) ([]byte, bool) {
		if v.Hash == "" || v.Size > maxText {
			return nil, false
		}
		b, err := blobs.GetBlob(v.Hash)
		return b, err == nil && isText(b)
	}}
	for i := range c.Files {
		f := &c.Files[i]
		var text []byte
		if f.New != nil && f.New.Type == TypeFile {
			var err error
			if text, err = kept(blobs, f.New); err != nil {
				f.NotApplicable = err.Error()
			} else {
				f.New.Blob = f.New.Hash
			}
		}
		d.file(f, text)
	}
	c.Diff = d.text()
	c.Summary = c.count(d)
	return c
}

// kept returns the content of a file of a recorded state.
func kept(blobs Blobs, v *Version) ([]byte, error) {
	if v.Hash != "" {
		if b, err := blobs.GetBlob(v.Hash); err == nil {
			return b, nil
		}
	}
	return nil, fmt.Errorf("contents of more than %d bytes, and of many files, are not kept", MaxKept)
}

// Without leaves files out of a change that others have added, and returns those that both
// have changed: it is not known what is whose.
func (c *Change) Without(others map[Path]bool) (both []Path) {
	c.Files = slices.DeleteFunc(c.Files, func(f FileChange) bool {
		if !others[f.Path] {
			return false
		}
		if f.Old != nil && f.New != nil {
			both = append(both, f.Path)
			return false
		}
		return f.Old == nil || f.New == nil
	})
	return both
}

// Unkept are the files of a change whose contents are not kept.
func (c *Change) Unkept() (all []Path) {
	for _, f := range c.Files {
		if f.NotApplicable != "" {
			all = append(all, f.Path)
		}
	}
	return all
}
