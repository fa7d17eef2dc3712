package shell

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"agentctl.dev/agentctl/plugins/sdk"
)

// place is the workspace, and the folder in it that a listed command runs in. Neither path
// has links.
type place struct{ root, dir string }

func (at *place) holds(p string) bool {
	return p == at.root || strings.HasPrefix(p, strings.TrimSuffix(at.root, "/")+"/")
}

// hold refuses paths outside the workspace, also those that links lead to. What does
// not exist may be a revision, and is judged by the folder it would be in.
func (at *place) hold(paths []string) error {
	for _, p := range paths {
		full := p
		if !filepath.IsAbs(p) {
			full = at.dir + "/" + p // not joined: behind a link, dots lead elsewhere than on paper
		}
		leads, err := resolve(full)
		if err != nil {
			return sdk.Errorf("%s: %w", word(p), err)
		}
		if !at.holds(leads) {
			return sdk.Errorf("%s is outside the workspace", word(p))
		}
	}
	return nil
}

// resolve follows the links of a path as far as it exists.
func resolve(p string) (string, error) {
	for {
		leads, err := filepath.EvalSymlinks(p)
		if err == nil {
			return leads, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return "", err
		}
		cut := strings.LastIndexByte(strings.TrimRight(p, "/"), '/')
		if cut <= 0 {
			return "/", nil
		}
		p = p[:cut]
	}
}

// find returns the file of a program. A file of the workspace is never taken for it.
func (at *place) find(name string) (string, error) {
	for _, dir := range filepath.SplitList(searchPath()) {
		if !filepath.IsAbs(dir) {
			continue
		}
		file := filepath.Join(dir, name)
		info, err := os.Stat(file)
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
			continue
		}
		if leads, err := filepath.EvalSymlinks(file); err != nil || at.holds(leads) || at.holds(file) {
			continue
		}
		return file, nil
	}
	return "", sdk.Errorf("%s is not installed here", name)
}

func searchPath() string {
	if p := os.Getenv("PATH"); p != "" {
		return p
	}
	return "/usr/local/bin:/usr/bin:/bin"
}

// environment is all that a listed command gets: nothing that the manifest declares, no
// home with settings, and no way for git to reach another host, to start a program or to
// look for a repository above the workspace.
func (at *place) environment(dir string) []string {
	var safe []string
	for _, d := range filepath.SplitList(searchPath()) {
		if filepath.IsAbs(d) && !at.holds(filepath.Clean(d)) {
			safe = append(safe, d)
		}
	}
	return []string{
		"PATH=" + strings.Join(safe, ":"), "PWD=" + dir, "HOME=/nonexistent", "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "TZ=UTC", "TERM=dumb",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1", "GIT_OPTIONAL_LOCKS=0",
		"GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1", "GIT_PAGER=cat", "GIT_CEILING_DIRECTORIES=" + filepath.Dir(at.root),
		"GOENV=off", "GOTOOLCHAIN=local",
	}
}
