package admission

import (
	"errors"
	"path/filepath"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/tool/skill"
)

// unpacked are the files of an image on this host, or why there are none.
type unpacked struct {
	dir string
	err error
}

// errNotFetched is the error for an image where images are not looked at.
var errNotFetched = errors.New("the images of skills are not fetched here")

// skillDir returns the folder of a skill on this host and what it is called; "" for the
// root of an image, which has no name.
func (c *Catalog) skillDir(d *manifest.Document, s *v1alpha1.Skill) (dir, called string, err error) {
	if s.Spec.Image == "" {
		dir = absolute(d.Dir, s.Spec.Dir)
		return dir, filepath.Base(dir), nil
	}
	if c.images == nil {
		return "", "", errNotFetched
	}
	ref := absoluteImage(d.Dir, s.Spec.Image)
	c.unpacking.Lock()
	defer c.unpacking.Unlock()
	u, known := c.unpacked[ref]
	if !known { // the manifests of one admission may name it several times
		u.dir, u.err = c.images(ref)
		c.unpacked[ref] = u
	}
	if u.err != nil {
		return "", "", u.err
	}
	if dir, err = skill.Within(u.dir, s.Spec.Dir); err == nil && dir != u.dir {
		called = filepath.Base(dir)
	}
	return dir, called, err
}
