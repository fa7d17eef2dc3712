package workspace

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Only returns the part of a change that is about some files: those that it adds or
// modifies, and those that it deletes, each by its path. Folders come and go with files
// only. A link that leads out of the workspace is refused.
func (c *Change) Only(changed, deleted []string) (*Change, error) {
	part := &Change{Strategy: c.Strategy, Unlisted: c.Unlisted}
	known := make(map[Path]*FileChange, len(c.Files))
	for i := range c.Files {
		known[c.Files[i].Path] = &c.Files[i]
	}
	take := func(name string, gone bool) error {
		f := known[Path(name)]
		if f == nil || (f.New == nil) != gone {
			return fmt.Errorf("path %q: the run has made no such change", name)
		}
		if f.New != nil && f.New.Type == TypeLink && leadsOut(f.Path, f.New.Target) {
			return fmt.Errorf("path %q: the link leads to %q, which may be outside the workspace", name, brief(string(f.New.Target)))
		}
		part.Files = append(part.Files, *f)
		return nil
	}
	for _, name := range changed {
		if err := take(name, false); err != nil {
			return nil, err
		}
	}
	for _, name := range deleted {
		if err := take(name, true); err != nil {
			return nil, err
		}
	}
	part.folders(c)
	part.sort()
	return part, nil
}

// folders takes over the folders that the files of the part need, and those that they
// leave empty or replace.
func (c *Change) folders(whole *Change) {
	come, leave, replaced := map[Path]bool{}, map[Path]bool{}, map[Path]bool{}
	for _, f := range c.Files {
		above := come
		if f.New == nil {
			above = leave
		}
		for dir := path.Dir(string(f.Path)); dir != "."; dir = path.Dir(dir) {
			above[Path(dir)] = true
		}
		replaced[f.Path] = f.New != nil
	}
	for _, d := range whole.AddedDirs {
		if come[d.Path] {
			c.AddedDirs = append(c.AddedDirs, d)
		}
	}
	for _, d := range whole.RemovedDirs {
		below := slices.ContainsFunc(c.Files, func(f FileChange) bool {
			return replaced[f.Path] && strings.HasPrefix(string(d.Path), string(f.Path)+"/")
		})
		if leave[d.Path] || replaced[d.Path] || below {
			c.RemovedDirs = append(c.RemovedDirs, d)
		}
	}
}

// leadsOut reports whether a link may lead out of the folder that it is in the files of. A
// target that goes up behind a name counts as one: the name may be a link, too.
func leadsOut(link, target Path) bool {
	t := strings.TrimSuffix(string(target), "/")
	rest := strings.TrimPrefix(t, "./")
	for strings.HasPrefix(rest, "../") {
		rest = strings.TrimPrefix(rest, "../")
	}
	if path.IsAbs(t) || rest != ".." && strings.Contains("/"+rest+"/", "/../") {
		return true
	}
	full := path.Join(path.Dir(string(link)), t)
	return full == ".." || strings.HasPrefix(full, "../")
}
