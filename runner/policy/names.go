package policy

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"agentctl.dev/agentctl/runner/policy/shell"
)

// A hard link is another name of a file: a rule about the file applies whichever name is
// used. Other names are searched in the workspace, and in the folder it was copied from,
// because a copy turns one file into several. The search runs only for a file with more
// than one name, and from the top down, so that its result does not depend on the size of
// a folder of packages below. Of names elsewhere only the number is known.

// names are the files with several names in some folders.
type names struct {
	mu    sync.Mutex
	found map[string]*found
}

// found is what one look at a folder has brought.
type found struct {
	begun time.Time
	// whole: the folder was not too large to be searched.
	whole bool
	// names by file, relative to the folder, and when they last changed.
	names   map[fileID][]string
	changed map[fileID]time.Time
}

// stale reports whether a file may have got another name since the search: its change time
// is then later. A wrong clock must not cause a search for each file.
func (f *found) stale(id fileID, changed time.Time) bool {
	if was, ok := f.changed[id]; ok {
		return !was.Equal(changed)
	}
	return changed.After(f.begun.Add(-settled)) && (f.whole || time.Since(f.begun) > time.Second) //nolint:forbidigo // see look
}

// namesOfFile bounds what one file with very many names costs.
const namesOfFile = 100

// settled is how much older than a look the last change of a file must be for the
// look to have seen it: clocks of file systems are coarse.
const settled = 50 * time.Millisecond

// of returns the names of a file in a folder.
func (n *names) of(dir string, id fileID, changed time.Time) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	f := n.found[dir]
	if f == nil || f.stale(id, changed) {
		f = look(dir)
		n.found[dir] = f
	}
	return f.names[id]
}

// look goes through a folder, one level after the other.
func look(dir string) *found {
	f := &found{begun: time.Now(), names: map[fileID][]string{}, changed: map[fileID]time.Time{}} //nolint:forbidigo // compared with the times of files
	left := patternEntries
	for level := []string{""}; len(level) > 0 && left > 0; {
		var next []string
		for _, in := range level {
			entries, err := readBeneath(dir, in)
			if left -= len(entries) + 1; err != nil || left < 0 {
				continue // a folder that cannot be read, tools cannot read either
			}
			for _, e := range entries {
				name := path.Join(in, e.Name())
				if e.IsDir() && e.Name() != ".git" {
					next = append(next, name)
				}
				f.note(name, e)
			}
		}
		level = next
	}
	f.whole = left >= 0
	return f
}

// readBeneath returns what is in a folder below dir, to which no link leads.
func readBeneath(dir, in string) ([]fs.DirEntry, error) {
	f, err := openBeneath(realPath(dir), path.Clean(in), false)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

func (f *found) note(name string, e fs.DirEntry) {
	if !e.Type().IsRegular() {
		return
	}
	info, err := e.Info()
	if err != nil {
		return
	}
	id, links, changed := identify(info)
	if links > 1 {
		f.changed[id] = changed
	}
	if links > 1 && len(f.names[id]) < namesOfFile {
		f.names[id] = append(f.names[id], name)
	}
}

// otherNames returns the paths under which a call could also have named a file, and the
// number of its names. The root of the workspace without links is given.
func (e *Engine) otherNames(p Path, realRoot string) (others []Path, links int) {
	w := e.context.Workspace
	root := filepath.Clean(w.Root)
	leads := p.Real
	if rel, ok := strings.CutPrefix(leads, realRoot+"/"); ok {
		leads = root + "/" + rel
	}
	others, links = e.namesIn(root, leads, p)
	rel, ok := strings.CutPrefix(leads, root+"/")
	if source := filepath.Clean(w.Source); ok && w.Source != "" && source != root {
		more, n := e.namesIn(source, source+"/"+rel, p)
		others, links = append(others, more...), max(links, n)
	}
	if links == 1 {
		links = 0 // no other name
	}
	return others, links
}

func (e *Engine) namesIn(dir, file string, p Path) (others []Path, links int) {
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() {
		return nil, 0
	}
	id, links, changed := identify(info)
	if links < 2 || !e.byPath {
		return nil, links
	}
	for _, name := range e.names.of(dir, id, changed) {
		if dir+"/"+name == file {
			continue
		}
		o := e.context.Workspace.resolve(name, p.Op)
		o.Raw, o.redirect, o.Links = p.Raw, p.redirect, links
		others = append(others, o)
	}
	return others, links
}

// byAllNames is a file by the name it was found by, by the one that a link of that
// name leads to, and by its others.
func (e *Engine) byAllNames(name, op string) []Path {
	p := e.context.Workspace.resolve(name, op)
	if p.Real == shell.Unknown {
		return []Path{p}
	}
	others, links := e.otherNames(p, e.context.Workspace.realRoot())
	p.Links = links
	all := []Path{p}
	if p.Real != p.Clean && filepath.IsAbs(p.Real) {
		all = append(all, e.context.Workspace.resolve(p.Real, op))
	}
	return append(all, others...)
}

// unlinked is a file that the runner itself opens in the source of the workspace, where it
// follows no link: by its path, and by its other names. Links that a run has made in its
// copy say nothing about it.
func (e *Engine) unlinked(name, op string) []Path {
	if !filepath.IsLocal(name) {
		return e.byAllNames(name, op)
	}
	root := filepath.Clean(e.context.Workspace.Root)
	p := Path{Raw: name, Op: op, Clean: filepath.Join(root, name), Real: filepath.Join(realPath(root), name), InWorkspace: true}
	p.Secret = IsSecret(name) || IsSecret(p.Real)
	others, links := e.otherNames(p, e.context.Workspace.realRoot())
	p.Links = links
	all := []Path{p}
	if p.Real != p.Clean {
		resolved := p
		resolved.Raw, resolved.Clean = p.Real, p.Real
		all = append(all, resolved)
	}
	return append(all, others...)
}

// rename adds the other names of the files of a call.
func (e *Engine) rename(f *facts) {
	n := len(f.paths)
	for i := range n {
		if !strings.HasPrefix(f.paths[i].Real, "/") {
			continue
		}
		others, links := e.otherNames(f.paths[i], f.workspace.realRoot())
		f.paths[i].Links = links
		f.paths = append(f.paths, others...)
	}
	f.renamed = len(f.paths) > n
	f.large = f.large || f.renamed && f.exceeds()
}

// fileID is a file, whatever its name is.
type fileID struct{ dev, ino uint64 }
