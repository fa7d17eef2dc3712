//go:build linux && amd64

package main

import (
	"path"
	"slices"
	"strings"
)

// compare returns the effects that exact facts lack.
func compare(f Facts, t Trace) (missing []Effect) {
	if !f.Exact {
		return nil
	}
	c := newComparison(f, t.Links)
	for _, e := range t.Effects {
		if !c.covers(e) {
			missing = append(missing, e)
		}
	}
	return missing
}

// comparison holds the facts as absolute paths without the links of the fixture.
type comparison struct {
	Facts
	writes, reads, trees []string
	// within are folders somewhere below which it writes.
	within []string
}

func newComparison(f Facts, links map[string]string) comparison {
	c := comparison{Facts: f}
	if links == nil {
		links = fixture.links
	}
	c.writes = absolute(slices.Concat(f.Writes, f.Either), links)
	c.reads = absolute(slices.Concat(f.Reads, f.Either, f.Writes, f.Commands), links)
	c.trees = absolute(f.Trees, links)
	for _, w := range c.writes { // somewhere below a folder
		if dir, ok := strings.CutSuffix(w, "/?"); ok {
			c.within = append(c.within, dir)
		}
	}
	c.within = append(c.within, absolute(f.Within, links)...)
	c.trees = append(c.trees, absolute(f.Within, links)...)
	for _, dir := range absolute(f.Repositories, links) {
		c.within, c.trees = append(c.within, dir+"/.git"), append(c.trees, dir+"/.git")
		for ; inWorkspace(dir); dir = path.Dir(dir) { // it may be that of a folder above
			c.within, c.trees = append(c.within, dir+"/.git"), append(c.trees, dir+"/.git")
		}
	}
	for _, r := range c.reads {
		if dir, ok := strings.CutSuffix(r, "/?"); ok {
			c.trees = append(c.trees, dir)
		}
	}
	return c
}

// covers reports whether the facts have an effect.
func (c comparison) covers(e Effect) bool {
	switch e.Kind {
	case Exec:
		name := path.Base(e.Path)
		return slices.Contains(c.Commands, name) || slices.Contains(c.Commands, e.Path)
	case Connect:
		return c.Network
	case Read:
		// A git that is in the facts reads the repository of the workspace.
		if path.Base(e.By) == "git" && slices.Contains(c.Commands, "git") && below([]string{workspace + "/.git", home + "/.gitconfig", home + "/.config/git"}, e.Path) {
			return true
		}
		return named(c.reads, e.Path) || below(c.trees, e.Path) || above(slices.Concat(c.reads, c.trees), e.Path)
	default:
		if named(c.writes, e.Path) || c.writesTree(e.Path) || below(c.within, e.Path) {
			return true
		}
		// Folders on the way to a file are created for it, and files that replace it are
		// made beside it.
		return e.Kind == Create && above(c.writes, e.Path) ||
			e.Passing && slices.ContainsFunc(c.writes, func(w string) bool { return path.Dir(w) == path.Dir(e.Path) })
	}
}

func inWorkspace(dir string) bool { return dir == workspace || strings.HasPrefix(dir, workspace+"/") }

// writesTree reports whether a path is in a folder that is written as a whole.
func (c comparison) writesTree(p string) bool {
	return slices.ContainsFunc(c.trees, func(tree string) bool {
		return below([]string{tree}, p) && (named(c.writes, tree) || above([]string{tree}, p))
	}) || below(c.writes, p) && slices.ContainsFunc(c.trees, func(string) bool { return true })
}

// named reports whether a path is in a list of paths and patterns.
func named(list []string, p string) bool {
	return slices.ContainsFunc(list, func(pattern string) bool {
		if pattern == p {
			return true
		}
		ok, err := path.Match(pattern, p)
		return err == nil && ok
	})
}

// below reports whether a path is in one of some folders, above whether one is on its way.
func below(folders []string, p string) bool {
	for ; p != "/" && p != "."; p = path.Dir(p) {
		if named(folders, p) {
			return true
		}
	}
	return slices.Contains(folders, "/")
}

func above(list []string, p string) bool {
	return slices.ContainsFunc(list, func(q string) bool { return strings.HasPrefix(q, strings.TrimSuffix(p, "/")+"/") })
}

// absolute returns paths as the kernel sees them: ~ is the home folder, relative ones start
// in the workspace, and links that were there before the script are followed.
func absolute(list []string, links map[string]string) (all []string) {
	for _, p := range list {
		switch {
		case p == "~" || strings.HasPrefix(p, "~/"):
			p = home + p[1:]
		case p == "~root" || strings.HasPrefix(p, "~root/"):
			p = "/" + p[1:]
		case !strings.HasPrefix(p, "/"):
			p = workspace + "/" + p
		}
		if strings.Contains(p, "/../") { // dots lead from where a link leads
			all = append(all, physical(p, links))
		}
		p = path.Clean(p)
		all = append(append(all, p), followed(p, links)...)
	}
	return all
}

// physical is where a path leads element by element.
func physical(p string, links map[string]string) string {
	at := "/"
	for _, e := range strings.Split(p, "/") {
		at = path.Join(at, e)
		if to, ok := links[at]; ok {
			if !path.IsAbs(to) {
				to = path.Join(path.Dir(at), to)
			}
			at = to
		}
	}
	return at
}

// followed returns where a path or a pattern leads through links of the workspace.
func followed(p string, links map[string]string) (all []string) {
	elements := strings.Count(workspace, "/") + 2 // of a name in the workspace
	parts := strings.SplitAfterN(p, "/", elements+1)
	if len(parts) < elements {
		return nil
	}
	first, rest := strings.TrimSuffix(strings.Join(parts[:elements], ""), "/"), strings.Join(parts[elements:], "")
	for name, target := range links {
		if !named([]string{first}, name) {
			continue
		}
		if !strings.HasPrefix(target, "/") {
			target = path.Join(path.Dir(name), target)
		}
		all = append(all, path.Join(target, rest))
	}
	return all
}
