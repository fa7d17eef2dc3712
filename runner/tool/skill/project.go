package skill

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Limits of a search for skills.
const (
	maxSkills      = 256
	maxFolders     = 2000
	maxFolderDepth = 4
)

// Find finds the skills below folders of a workspace, which are paths in it. A skill is
// called as its folder is, whatever its text says. Notes are about what was left out. No
// link is followed.
func Find(workspace string, folders []string) (found []Entry, notes []string) {
	s, err := begin(workspace)
	if err != nil {
		return nil, []string{err.Error()}
	}
	defer s.root.Close() //nolint:errcheck // nothing was written
	s.folders(folders)
	return s.read(nil), s.notes
}

// Remark is something about a skill of a workspace that other programs, or this one, may
// refuse.
type Remark struct {
	// Folder of the skill as a path in the workspace; "" where the text names it.
	Folder, Text string
}

// Review finds skills as Find does, and returns what was left out, and where the others
// differ from the specification.
func Review(workspace string, folders []string) (all []Remark) {
	s, err := begin(workspace)
	if err != nil {
		return []Remark{{Text: err.Error()}}
	}
	defer s.root.Close() //nolint:errcheck // nothing was written
	s.folders(folders)
	texts := make([]*Skill, len(s.found))
	s.read(texts)
	for _, note := range s.notes {
		all = append(all, Remark{Text: note})
	}
	for i, k := range texts {
		if k == nil {
			continue // a note says why
		}
		remarks := append(k.Problems, k.Departures()...)
		if base := s.found[i].Name; k.Name != "" && k.Name != base {
			remarks = append(remarks, fmt.Sprintf("its name is %q, and its folder is called %q", short(k.Name), base))
		}
		for _, r := range remarks {
			all = append(all, Remark{s.found[i].Workspace, File + ": " + r})
		}
	}
	return all
}

// begin begins a search; close its root.
func begin(workspace string) (*search, error) {
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return nil, fmt.Errorf("skills of the workspace: %w", cause(err))
	}
	return &search{root: root, workspace: workspace}, nil
}

// folders looks for skills in folders of the workspace.
func (s *search) folders(folders []string) {
	root := s.root
	for _, folder := range folders {
		folder = path.Clean(filepath.ToSlash(folder))
		if !filepath.IsLocal(folder) {
			continue
		}
		at, err := beneath(root, folder)
		switch {
		case errors.Is(err, errLinked):
			s.note(folder, isLink)
		case err == nil: // otherwise there is no such folder, or it is not one
			_ = at.Close() // nothing was written
			s.look(root, folder, folder, 0)
		}
	}
}

// search is a search for skills.
type search struct {
	root      *os.Root
	workspace string
	seen      int
	found     []Entry
	notes     []string
}

func (s *search) note(folder, format string, args ...any) {
	const most = 20
	if len(s.notes) < most {
		s.notes = append(s.notes, fmt.Sprintf("skill %s is left out: ", short(folder))+fmt.Sprintf(format, args...))
	}
}

// look looks at a folder, and into those below it unless it is a skill itself. name is its
// path in parent, which is opened once for all folders in it.
func (s *search) look(parent *os.Root, name, folder string, depth int) {
	if s.seen++; s.seen > maxFolders || len(s.found) >= maxSkills {
		if s.seen == maxFolders+1 || len(s.found) == maxSkills && !slices.ContainsFunc(s.notes, func(n string) bool { return strings.HasSuffix(n, tooMany) }) {
			s.note(folder, tooMany)
		}
		return
	}
	if _, err := parent.Lstat(path.Join(name, File)); err == nil {
		s.add(folder)
		return
	}
	if depth >= maxFolderDepth {
		return
	}
	here, err := beneath(parent, name)
	if err != nil {
		return // there is no such folder, or it is not one
	}
	defer here.Close() //nolint:errcheck // nothing was written
	entries, err := fs.ReadDir(here.FS(), ".")
	if err != nil {
		return // it cannot be listed
	}
	for _, e := range entries {
		below := path.Join(folder, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), ".") || e.Name() == "node_modules":
		case e.IsDir():
			s.look(here, e.Name(), below, depth+1)
		case e.Type()&fs.ModeSymlink != 0:
			s.linked(below)
		}
	}
}

const (
	tooMany = "there are too many skills or folders"
	isLink  = "it is a link, and no link is followed: name the folder that it leads to in spec.skillFolders"
)

// linked notes a link that is no link to a file: what it leads to is not looked into.
func (s *search) linked(name string) {
	if info, err := s.root.Stat(name); err != nil || info.IsDir() {
		s.note(name, isLink)
	}
}

// add notes the folder of a skill. Of two with one name, the first counts.
func (s *search) add(folder string) {
	name := path.Base(folder)
	if !Callable(name) {
		s.note(folder, "the folder's name cannot be that of a skill: 1 to 64 of A-Z a-z 0-9 _ -")
		return
	}
	if at := slices.IndexFunc(s.found, func(e Entry) bool { return e.Name == name }); at >= 0 {
		s.note(folder, "%s has the same name", s.found[at].Workspace)
		return
	}
	s.found = append(s.found, Entry{Name: name, Dir: filepath.Join(s.workspace, filepath.FromSlash(folder)), Workspace: folder})
}

// readers is how many skills are read at the same time.
const readers = 4

// read reads the skills that were found, and returns those that can be used. Their texts
// are kept where they are wanted.
func (s *search) read(texts []*Skill) []Entry {
	errs := make([]error, len(s.found))
	var next atomic.Int64
	var working sync.WaitGroup
	for range min(readers, len(s.found)) {
		working.Go(func() {
			from := parents{workspace: s.root}
			defer from.close()
			for {
				i := int(next.Add(1)) - 1
				if i >= len(s.found) {
					return
				}
				read, err := s.found[i].read(&from)
				if errs[i] = err; err == nil && texts != nil {
					texts[i] = read
				}
			}
		})
	}
	working.Wait()
	var usable []Entry
	for i, e := range s.found {
		if errs[i] != nil {
			s.note(e.Workspace, "%v", errs[i])
			continue
		}
		usable = append(usable, e)
	}
	return usable
}

// parents reads files of the skills of a workspace. It keeps the folder that contains the
// last skill open, since the next one is usually in it, too.
type parents struct {
	workspace, last *os.Root
	name            string
}

func (p *parents) readFile(name string) ([]byte, error) {
	if parent := path.Dir(path.Dir(name)); p.last == nil || parent != p.name {
		p.close()
		root, err := beneath(p.workspace, parent)
		if err != nil {
			return nil, cause(err)
		}
		p.last, p.name = root, parent
	}
	return readFile(p.last, path.Join(path.Base(path.Dir(name)), path.Base(name)))
}

func (p *parents) close() {
	if p.last != nil {
		_ = p.last.Close() // nothing was written
		p.last = nil
	}
}

// read takes over what the SKILL.md of a workspace says.
func (e *Entry) read(from *parents) (*Skill, error) {
	text, err := from.readFile(path.Join(e.Workspace, File))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", File, err)
	}
	read, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", File, err)
	}
	if e.Description, e.Digest = Brief(read.Description), read.Digest; e.Description == "" {
		return nil, fmt.Errorf("%s has no description", File)
	}
	return read, nil
}

// Callable reports whether a model can call a skill by a name.
func Callable(name string) bool {
	return name != "" && len(name) <= maxName && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}
