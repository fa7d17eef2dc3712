package skill

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// errChanged is the error for a skill whose text is no longer that of the begin of the run.
var errChanged = errors.New("it has changed since the run began, and is not loaded")

// Load opens the skill: its text, and its folder to read more of it. Close the folder.
// The text must be the one that the run began with.
func (e *Entry) Load() (*Skill, *Folder, error) {
	f, err := e.folder()
	if err != nil {
		return nil, nil, err
	}
	s, err := f.Skill()
	if err == nil && s.Digest != e.Digest {
		err = errChanged
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, nil, err
	}
	return s, f, nil
}

// folder opens the folder. That of the workspace is opened from the workspace, so that no
// link leads to another one.
func (e *Entry) folder() (*Folder, error) {
	if e.Workspace == "" || e.Workspace == "." {
		return Open(e.Dir)
	}
	workspace, err := os.OpenRoot(strings.TrimSuffix(e.Dir, string(filepath.Separator)+filepath.FromSlash(e.Workspace)))
	if err != nil {
		return nil, cause(err)
	}
	defer workspace.Close() //nolint:errcheck // nothing was written
	root, err := beneath(workspace, e.Workspace)
	if err != nil {
		return nil, cause(err)
	}
	return &Folder{root}, nil
}

// Locate notes where the folder lies, with links resolved: in a workspace, around it, or
// elsewhere. The workspace is an absolute path without links.
func (e *Entry) Locate(workspace string) error {
	dir, err := filepath.Abs(e.Dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return cause(err)
	}
	e.Dir, e.Workspace, e.Around = dir, below(workspace, dir), ""
	if e.Workspace == "" {
		e.Around = below(dir, workspace)
	}
	return nil
}

// below is a folder as a path in another one, and "" for one that lies elsewhere.
func below(top, dir string) string {
	rel, err := filepath.Rel(top, dir)
	if err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	return filepath.ToSlash(rel)
}

// Path is a file of the skill as policies judge it: relative to the workspace. It is ""
// for a file that is not in the workspace. The name is one that Named has nothing against.
func (e *Entry) Path(file string) string {
	switch {
	case e.Workspace != "":
		return path.Join(e.Workspace, file)
	case e.Around != "":
		if in, ok := strings.CutPrefix(file, e.Around+"/"); ok {
			return in
		}
	}
	return ""
}

// Planned is what a model reads of a skill that is a plan alone.
func (e *Entry) Planned() string {
	return fmt.Sprintf("<skill name=%q>\n%s</skill>\n", e.Name, e.Plan)
}

// Describe is what a model reads of the skill.
func (e *Entry) Describe(s *Skill, f *Folder, tools []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<skill name=%q>\n%s\n%s</skill>\n", e.Name, s.Text, e.Plan)
	if e.Tool != "" {
		fmt.Fprintf(&b, "Its script is the tool %s.\n", e.Tool)
	}
	if e.Workspace != "" {
		fmt.Fprintf(&b, "Its folder is %s in the workspace.\n", e.Workspace)
	}
	if files, more := f.Files(); len(files) > 0 {
		fmt.Fprintf(&b, "Files of the skill, which the tool skill reads with {\"name\": %q, \"file\": ...}:\n", e.Name)
		for _, file := range files {
			fmt.Fprintf(&b, "- %s (%d bytes)\n", file.Name, file.Size)
		}
		if more {
			b.WriteString("- and more\n")
		}
	}
	b.WriteString(wishes(s.AllowedTools, tools))
	return b.String()
}

// wishes tells which tools a skill asks for. They are not given to it: each call is judged
// as if the skill did not exist.
func wishes(asked, have []string) string {
	const most = 32
	if len(asked) == 0 {
		return ""
	}
	var lacking []string
	for _, entry := range asked[:min(len(asked), most)] {
		name, _, _ := strings.Cut(entry, "(")
		if name != "*" && !offered(Line(name), have) { // * is whatever there is
			lacking = append(lacking, short(name))
		}
	}
	text := "It asks for tools (allowed-tools), which allows nothing: policies judge every call."
	if len(lacking) > 0 {
		text += " You do not have: " + strings.Join(lacking, ", ") + "."
	}
	return text + "\n"
}

// offered compares names without case and signs: Read is read, TodoWrite is todowrite.
func offered(name string, have []string) bool {
	plain := func(s string) string {
		return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(s))
	}
	for _, h := range have {
		if plain(h) == plain(name) {
			return true
		}
	}
	return false
}
