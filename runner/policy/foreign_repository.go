package policy

import (
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// The settings of a git repository name programs that git starts, also when it only shows
// something: core.fsmonitor, pagers, filters, hooks. Those of the repository that the run
// began with are guarded. Any other one among the files of the workspace can be made by the
// agent, with a tool that writes files, so a command of git in it is known only where the
// settings name nothing but what git writes there itself.

// harmlessSettings are the settings that start no program and lead to no other folder.
var harmlessSettings = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol|safecrlf)` +
		`|remote\.(url|fetch|pushurl|tagopt)|branch\.(remote|merge|rebase)|user\.(name|email)|init\.defaultbranch|submodule\.(url|active)` +
		`|extensions\.(objectformat|refstorage)|pull\.(rebase|ff)|push\.(default|autosetupremote)|gc\.auto|advice\.[a-z]+|color\.[a-z]+)$`)
})

// settingsSize bounds a file of settings that is read.
const settingsSize = 64 << 10

// steered marks a call as dynamic that has git work in a repository which may say what git
// runs.
func (w Workspace) steered(f *facts) {
	root := realPath(filepath.Clean(w.Root))
	for _, at := range f.script.Repositories {
		repo, ok := w.repository(f, at)
		if !ok {
			continue
		}
		dir := realPath(path.Dir(repo.index))
		if !inside(dir, root) || dir == root+"/.git" {
			continue
		}
		if why := programSettings(dir, inside(dir, root+"/.git/modules")); why != "" {
			f.doubt("the repository " + at.Dir + " may say what git runs: " + why)
		}
	}
}

// programSettings is what in a repository may name programs; "" if nothing does. That of a
// submodule names its folder.
func programSettings(dir string, submodule bool) string {
	for _, name := range []string{"commondir", "config.worktree"} {
		if exists(path.Join(dir, name)) {
			return "it has a file " + name
		}
	}
	if setting, ok := namedSetting(path.Join(dir, "config")); !ok {
		return "its settings cannot be read"
	} else if setting != "" && !(submodule && setting == "core.worktree") {
		return "it sets " + setting
	}
	hooks, err := os.ReadDir(path.Join(dir, "hooks"))
	if err != nil && !os.IsNotExist(err) {
		return "its hooks cannot be read"
	}
	for _, h := range hooks {
		if !strings.HasSuffix(h.Name(), ".sample") {
			return "it has the hook " + h.Name()
		}
	}
	return ""
}

// namedSetting is the first setting of a file that is not known to be harmless. The file is
// read as git does it where git itself has written it; anything else is not understood.
func namedSetting(file string) (setting string, ok bool) {
	f, err := openRegular(file)
	if os.IsNotExist(err) {
		return "", true
	}
	if err != nil {
		return "", false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, settingsSize+1))
	if err != nil || len(b) > settingsSize {
		return "", false
	}
	section := ""
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case strings.HasSuffix(line, `\`):
			return "", false
		case line[0] == '[':
			name, rest, closed := strings.Cut(line[1:], "]")
			if !closed || strings.TrimSpace(rest) != "" {
				return "", false
			}
			section, _, _ = strings.Cut(name, " ")
		default:
			key, _, _ := strings.Cut(line, "=")
			full := strings.ToLower(section + "." + strings.TrimSpace(key))
			if !harmlessSettings().MatchString(full) {
				return full, true
			}
		}
	}
	return "", true
}
