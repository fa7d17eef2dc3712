package skill

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"
)

// Folder is the folder of a skill. Nothing outside of it is read, and nothing that a link
// leads to.
type Folder struct{ root *os.Root }

// Open opens the folder of a skill. Close it.
func Open(dir string) (*Folder, error) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errors.New("there is no such folder")
	case err != nil:
		return nil, cause(err)
	case !info.IsDir():
		return nil, errors.New("it is not a folder")
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, cause(err)
	}
	return &Folder{root}, nil
}

// Close closes the folder.
func (f *Folder) Close() error { return f.root.Close() }

// Skill reads its SKILL.md.
func (f *Folder) Skill() (*Skill, error) {
	text, err := readFile(f.root, File)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", File, err)
	}
	s, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", File, err)
	}
	return s, nil
}

// Text reads another of its files.
func (f *Folder) Text(name string) (string, error) {
	if err := Named(name); err != nil {
		return "", err
	}
	text, err := readFile(f.root, name)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(text) || slices.Contains(text, 0) {
		return "", fmt.Errorf("it is no text (%d bytes)", len(text))
	}
	return string(text), nil
}

// readFile reads a regular file of an allowed size, to which no link leads.
func readFile(root *os.Root, name string) ([]byte, error) {
	f, err := openFile(root, name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, errors.New("there is no such file")
	}
	if err != nil {
		return nil, cause(err)
	}
	defer f.Close() //nolint:errcheck // nothing was written
	info, err := f.Stat()
	if err != nil {
		return nil, cause(err)
	}
	text := bytes.NewBuffer(make([]byte, 0, min(info.Size(), MaxSize)+bytes.MinRead))
	_, err = text.ReadFrom(io.LimitReader(f, MaxSize+1))
	switch {
	case err != nil:
		return nil, cause(err)
	case text.Len() > MaxSize:
		return nil, fmt.Errorf("it has more than %d KiB", MaxSize>>10)
	}
	return text.Bytes(), nil
}

// cause is an error of a file without the path, which is reported once.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// Limits of a list of files.
const (
	maxFiles = 100
	maxSeen  = 2000
	maxDepth = 6
)

// Listed is a file of a skill.
type Listed struct {
	Name string
	Size int64
}

// Files lists the files besides SKILL.md, sorted. It follows no link, leaves out hidden
// files and what is no regular file, and reports whether it left out more.
func (f *Folder) Files() (files []Listed, more bool) {
	seen := 0
	err := fs.WalkDir(f.root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if seen++; seen > maxSeen {
			more = true
			return fs.SkipAll
		}
		switch {
		case err != nil && name == ".":
			return err
		case err != nil:
			return nil //nolint:nilerr // a folder that cannot be read has no files for a model
		case name == "." || name == File:
			return nil
		case strings.HasPrefix(e.Name(), ".") || e.Name() == "node_modules" || e.Name() == "__pycache__":
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case e.IsDir() && strings.Count(name, "/")+1 >= maxDepth:
			more = true
			return fs.SkipDir
		case !e.Type().IsRegular() || Line(name) != name:
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return nil //nolint:nilerr // it was removed at this moment
		}
		if len(files) == maxFiles {
			more = true
			return fs.SkipAll
		}
		files = append(files, Listed{name, info.Size()})
		return nil
	})
	return files, more || err != nil
}

// Script is the program of a skill, as a path in its folder; "" where it has none. It is
// scripts/execute with any ending.
func (f *Folder) Script() (string, error) {
	found, err := fs.Glob(f.root.FS(), "scripts/execute*")
	if err != nil {
		return "", cause(err)
	}
	found = slices.DeleteFunc(found, func(name string) bool {
		base := path.Base(name)
		return name == Schema || strings.TrimSuffix(base, path.Ext(base)) != "execute"
	})
	switch len(found) {
	case 0:
		return "", nil
	case 1:
	default:
		return "", fmt.Errorf("it has several programs: %s", strings.Join(found, ", "))
	}
	scripts, err := enter(f.root, path.Dir(found[0]))
	if err != nil {
		return "", fmt.Errorf("%s: %w", path.Dir(found[0]), cause(err))
	}
	defer scripts.Close() //nolint:errcheck // nothing was written
	info, err := scripts.Lstat(path.Base(found[0]))
	if err != nil {
		return "", cause(err)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is a link, or no file", found[0])
	}
	if interpreter(found[0]) == "" && info.Mode()&0o111 == 0 {
		return "", fmt.Errorf("%s can neither be executed (chmod +x) nor has an ending with a known interpreter: .sh .bash .py .js .mjs .cjs .rb .pl", found[0])
	}
	return found[0], nil
}

// Schema is the file with the JSON Schema of what the program of a skill takes.
const Schema = "scripts/execute.schema.json"

// interpreter is the program that runs a script; "" where the file is run itself.
func interpreter(script string) string {
	return map[string]string{
		".sh": "sh", ".bash": "bash", ".py": "python3", ".js": "node", ".mjs": "node", ".cjs": "node", ".rb": "ruby", ".pl": "perl",
	}[path.Ext(script)]
}

// Command is what runs the program of the skill in a folder.
func Command(dir, script string) []string {
	file := filepath.Join(dir, filepath.FromSlash(script))
	if by := interpreter(script); by != "" {
		return []string{by, file}
	}
	return []string{file}
}

// Optional reads a file that need not be there.
func (f *Folder) Optional(name string) (text string, found bool, err error) {
	if _, err := f.root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	text, err = f.Text(name)
	return text, err == nil, err
}
