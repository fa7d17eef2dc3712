package gitguard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A Guard keeps the files that git would run, or read its settings from, as they were
// before the first program of a run that works in place. Most of them are read-only in a
// sandbox. What a program can change all the same, for example by creating another
// repository, is undone afterwards by Restore.
type Guard struct {
	// Repositories are the folders that git takes for a repository.
	Repositories []string `json:"repositories"`
	// Files are guarded files by path; one that was not there is nil.
	Files map[string]*File `json:"files"`
	// Folders are guarded folders of programs: a file that is new in one is undone.
	Folders []string `json:"folders"`
	// Links are symbolic links on the way to guarded files.
	Links map[string]bool `json:"links"`
	// Made are placeholders that Take has made.
	Made []string `json:"made,omitempty"`
}

// File is a guarded file.
type File struct {
	Mode    fs.FileMode `json:"mode"`
	Content []byte      `json:"content,omitempty"`
	// Target of a symbolic link.
	Target string `json:"target,omitempty"`
}

// Limits of what is looked at.
const (
	maxFolders = 1_000_000
	maxFile    = 1 << 20
	maxGuarded = 20_000
)

// untrusted ends the name that a file gets which git must not find.
const untrusted = ".untrusted"

// settings are the files of a repository from which git takes what it runs.
var settings = []string{"config", "config.worktree", commonDir}

// Take reads the files below root before the first program runs. A repository that has no
// config.worktree and no commondir gets harmless ones: a missing file cannot be made
// read-only. Skip are folders that no program sees, such as the state folder.
func Take(root string, skip ...string) (*Guard, error) {
	g := &Guard{Files: map[string]*File{}, Links: map[string]bool{}}
	repos, links, err := find(root, skip)
	if err != nil {
		return nil, err
	}
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	g.Repositories = repos
	for _, link := range links {
		g.take(r, link)
	}
	for _, repo := range repos {
		for name, content := range map[string]string{"config.worktree": "", commonDir: ".\n"} {
			file := path.Join(repo, name)
			if _, err := r.Lstat(file); errors.Is(err, fs.ErrNotExist) && r.WriteFile(file, []byte(content), 0o644) == nil {
				g.Made = append(g.Made, file)
			}
		}
		for _, name := range settings {
			g.take(r, path.Join(repo, name))
		}
		_ = r.Mkdir(path.Join(repo, "hooks"), 0o755) // as git makes it; what is not there cannot be read-only
		g.folder(r, path.Join(repo, "hooks"))
	}
	for _, repo := range repos {
		g.follow(r, repo, path.Join(repo, "config"), 0)
		g.follow(r, repo, path.Join(repo, "config.worktree"), 0)
	}
	for _, file := range userConfigs() {
		if b, err := os.ReadFile(file); err == nil && len(b) <= maxFile {
			for _, repo := range repos {
				g.named(r, repo, "", parse(b), 0)
			}
		}
	}
	if len(g.Files) > maxGuarded {
		return nil, fmt.Errorf("git would run or read %d files of %s, more than %d", len(g.Files), root, maxGuarded)
	}
	return g, nil
}

// userConfigs are the config files of the user and of the host: they apply to every
// repository.
func userConfigs() []string {
	files := []string{"/etc/gitconfig"}
	home, err := os.UserHomeDir()
	if err == nil {
		files = append(files, filepath.Join(home, ".gitconfig"))
	}
	if dir := os.Getenv("XDG_CONFIG_HOME"); dir != "" {
		files = append(files, filepath.Join(dir, "git", "config"))
	} else if err == nil {
		files = append(files, filepath.Join(home, ".config", "git", "config"))
	}
	return files
}

// find returns the repositories below root, and the files and links called .git. A
// folder is a repository by what is in it, as for git: it may have any name.
func find(root string, skip []string) (repos, links []string, err error) {
	left := maxFolders
	var skipped []fs.FileInfo
	for _, dir := range skip {
		if info, err := os.Stat(dir); err == nil {
			skipped = append(skipped, info)
		}
	}
	err = filepath.WalkDir(root, func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be read here git cannot read either
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		if e.Name() == ".git" && !e.IsDir() {
			links = append(links, rel)
		}
		if !e.IsDir() {
			return nil
		}
		if info, err := e.Info(); err == nil && slices.ContainsFunc(skipped, func(s fs.FileInfo) bool { return os.SameFile(s, info) }) {
			return fs.SkipDir
		}
		if left--; left < 0 {
			return fmt.Errorf("look for repositories of git in %s: more than %d folders", root, maxFolders)
		}
		if isGitFolder(file) {
			repos = append(repos, rel)
		}
		if e.Name() == "objects" && isGitFolder(filepath.Dir(file)) {
			return fs.SkipDir
		}
		return nil
	})
	return repos, links, err
}

func isGitFolder(dir string) bool {
	there := func(name string) bool { _, err := os.Lstat(filepath.Join(dir, name)); return err == nil }
	return there("HEAD") && (there("objects") || there(commonDir))
}

func (g *Guard) take(r *os.Root, name string) {
	if _, ok := g.Files[name]; ok {
		return
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if info, err := r.Lstat(dir); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			g.Links[dir] = true
		}
	}
	f := look(r, name)
	if g.Files[name] = f; f != nil && f.Target != "" {
		if to, ok := within(r.Name(), path.Dir(name), f.Target); ok && path.Base(name) != ".git" {
			g.take(r, to)
		}
	}
}

// look returns what is at a path; nil for nothing, or something that git does not read.
func look(r *os.Root, name string) *File {
	info, err := r.Lstat(name)
	switch {
	case err != nil:
		return nil
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := r.Readlink(name)
		if err != nil {
			return nil
		}
		return &File{Mode: fs.ModeSymlink, Target: target}
	case info.Mode().IsRegular() && info.Size() <= maxFile:
		b, err := r.ReadFile(name)
		if err != nil {
			return nil
		}
		return &File{Mode: info.Mode().Perm(), Content: b}
	}
	return nil
}

func (f *File) same(o *File) bool {
	if f == nil || o == nil {
		return f == o
	}
	return f.Mode == o.Mode && f.Target == o.Target && string(f.Content) == string(o.Content)
}

// folder guards a folder of programs: each file in it, and what comes new.
func (g *Guard) folder(r *os.Root, dir string) {
	if slices.Contains(g.Folders, dir) {
		return
	}
	g.Folders = append(g.Folders, dir)
	if info, err := r.Lstat(dir); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		g.Links[dir] = true
	}
	for _, name := range programs(r, dir) {
		g.take(r, name)
	}
}

// programs are the files of a folder that git could run.
func programs(r *os.Root, dir string) (names []string) {
	f, err := r.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if !e.IsDir() && !strings.HasSuffix(e.Name(), ".sample") && !strings.Contains(e.Name(), untrusted) {
			names = append(names, path.Join(dir, e.Name()))
		}
	}
	slices.Sort(names)
	return names
}

// follow guards what a config file names.
func (g *Guard) follow(r *os.Root, repo, config string, depth int) {
	if f := g.Files[config]; f != nil && depth < 10 {
		content := f.Content
		if f.Target != "" {
			content, _ = r.ReadFile(config)
		}
		g.named(r, repo, config, parse(content), depth)
	}
}

// named guards the files that the values of a config name: other configs, folders
// of hooks, programs.
func (g *Guard) named(r *os.Root, repo, config string, values []setting, depth int) {
	tree := strings.TrimSuffix(strings.TrimSuffix(repo, ".git"), "/")
	for _, v := range values {
		bases := []string{tree, repo, ""}
		if v.include {
			bases = []string{path.Dir(config)}
		}
		words := strings.FieldsFunc(v.value, func(r rune) bool { return strings.ContainsRune(" \t\"';&|!()", r) })
		for _, word := range append(words, v.value) {
			for _, base := range bases {
				name, ok := within(r.Name(), base, word)
				if !ok {
					continue
				}
				info, err := r.Stat(name)
				switch {
				case v.include:
					_, known := g.Files[name]
					g.take(r, name)
					if !known {
						g.follow(r, repo, name, depth+1)
					}
				case v.hooks:
					g.folder(r, name)
				case err == nil && info.Mode().IsRegular():
					g.take(r, name)
				}
			}
		}
	}
}

// within is a word as a path below root.
func within(root, base, word string) (string, bool) {
	if word == "" || strings.HasPrefix(word, "~") || len(word) > 4096 {
		return "", false
	}
	if filepath.IsAbs(word) {
		rel, err := filepath.Rel(root, word)
		return rel, err == nil && filepath.IsLocal(rel) && rel != "."
	}
	name := path.Join(base, word)
	return name, filepath.IsLocal(name) && name != "."
}

// Protected returns the guarded files and folders that are there and can be made
// read-only: a link cannot, and what is behind one is guarded by its own name.
func (g *Guard) Protected(root string) (names []string) {
	for name := range g.Files {
		names = append(names, name)
	}
	names = append(names, g.Folders...)
	slices.Sort(names)
	return slices.DeleteFunc(names, func(name string) bool {
		info, err := os.Lstat(filepath.Join(root, name))
		return err != nil || info.Mode()&fs.ModeSymlink != 0 || slices.ContainsFunc(parents(name, false), func(dir string) bool { return g.Links[dir] })
	})
}

// Restore undoes what programs have changed of the guarded files, and keeps git from
// running what they have made. It returns what was found, for a person to read. It
// is called when no program runs, and may be called again. At the end of a run done
// is set: the placeholders are removed. Skip is that of Take.
func (g *Guard) Restore(root string, done bool, skip ...string) (found []string, err error) {
	note := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	var errs []error
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	// First what leads elsewhere: nothing is written behind a link of a program.
	repos, links, err := find(root, skip)
	errs = append(errs, err)
	for _, link := range links {
		if _, known := g.Files[link]; !known {
			note("a program made %s, which leads git to another repository: it is now %s", link, link+untrusted)
			errs = append(errs, aside(r, link))
		}
	}
	for _, name := range slices.Concat(sortedKeys(g.Files), g.Folders) {
		for _, dir := range parents(name, slices.Contains(g.Folders, name)) {
			if info, err := r.Lstat(dir); err == nil && !info.IsDir() && !g.Links[dir] {
				note("a program made %s, through which git would find other settings: it is now %s", dir, dir+untrusted)
				errs = append(errs, aside(r, dir))
			}
		}
	}
	for _, name := range sortedKeys(g.Files) {
		was := g.Files[name]
		if now := look(r, name); now.same(was) && (now != nil || gone(r, name)) {
			continue
		}
		if was == nil {
			note("a program made %s, from which git takes what it runs: it is now %s", name, name+untrusted)
			errs = append(errs, aside(r, name))
			continue
		}
		note("a program changed %s, from which git takes what it runs: it is again as before the run", name)
		errs = append(errs, was.write(r, name))
	}
	for _, dir := range g.Folders {
		for _, name := range programs(r, dir) {
			if _, known := g.Files[name]; !known {
				note("a program made %s, which git would run: it is now %s", name, name+untrusted)
				errs = append(errs, aside(r, name))
			}
		}
	}
	for _, repo := range repos {
		if !slices.Contains(g.Repositories, repo) {
			text, err := disarm(r, repo)
			found, errs = append(found, text), append(errs, err)
		}
	}
	if done {
		for _, name := range g.Made {
			errs = append(errs, r.Remove(name))
		}
	}
	return found, errors.Join(errs...)
}

func gone(r *os.Root, name string) bool { _, err := r.Lstat(name); return err != nil }

// parents are the folders on the way to a path, the topmost first, and the path itself
// where it is a folder.
func parents(name string, folder bool) (dirs []string) {
	if folder {
		dirs = append(dirs, name)
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		dirs = append(dirs, dir)
	}
	slices.Reverse(dirs)
	return dirs
}

// disarm keeps git from taking settings from a repository that is new. One that
// holds nothing to run is only named.
func disarm(r *os.Root, repo string) (found string, err error) {
	hooks := path.Join(repo, "hooks")
	names := programs(r, hooks)
	if info, err := r.Lstat(hooks); err == nil && !info.IsDir() {
		names = []string{hooks}
	}
	for _, name := range settings {
		file := path.Join(repo, name)
		if !gone(r, file) && !(name == "config" && harmless(look(r, file))) {
			names = append(names, file)
		}
	}
	if len(names) == 0 {
		return fmt.Sprintf("a program made the repository %s; it names nothing that git would run", repo), nil
	}
	var errs []error
	for _, name := range names {
		errs = append(errs, aside(r, name))
	}
	return fmt.Sprintf("a program made the repository %s, by which git would run programs: %s now end in %s", repo, strings.Join(names, ", "), untrusted), errors.Join(errs...)
}

// write puts a guarded file back in its place.
func (f *File) write(r *os.Root, name string) error {
	if err := r.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	if !gone(r, name) {
		if err := aside(r, name); err != nil {
			return err
		}
	}
	if f.Target != "" {
		return r.Symlink(f.Target, name)
	}
	if err := r.WriteFile(name, f.Content, 0o600); err != nil {
		return err
	}
	return r.Chmod(name, f.Mode)
}

// aside renames a file so that git does not find it.
func aside(r *os.Root, name string) error {
	to := name + untrusted
	for i := 2; !gone(r, to); i++ {
		to = fmt.Sprintf("%s%s-%d", name, untrusted, i)
	}
	return r.Rename(name, to)
}

func sortedKeys(m map[string]*File) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Save writes the guard so that it survives this process, before a program runs.
func (g *Guard) Save(file string) error {
	b, err := json.Marshal(g)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".git-*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// Load reads a guard that was saved; one that was not there is nil.
func Load(file string) (*Guard, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	g := &Guard{}
	if err := json.Unmarshal(b, g); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return g, nil
}
