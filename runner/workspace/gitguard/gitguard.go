// Package gitguard lists the files of a git repository through which a program could make git run commands, and which no program may change.
package gitguard

import (
	"io/fs"
	"os"
	"path/filepath"

	"agentctl.dev/agentctl/runner/workspace"
)

// gitFiles are the files of a repository through which a program that can write there
// makes git run commands. Other work trees are configured in worktrees.
var gitFiles = []string{"config", "config.worktree", "hooks", "worktrees", commonDir}

// Files returns the files that no program may change in the repositories of the run's
// files, as paths in them. In a copy that is the repository at the root: git is run there
// by tools only, and nothing of a .git is ever applied. In place it is every repository,
// since the user runs git there.
func Files(root string, base *workspace.Snapshot, inPlace bool) (names []string) {
	names = repository(root, "", inPlace)
	if !inPlace {
		return names
	}
	for _, e := range base.Entries {
		if e.Type == workspace.TypeDir {
			names = append(names, repository(root, string(e.Path), true)...)
		}
	}
	return names
}

// repository returns them for the repository of a folder, if there is one. If .git is a
// file, or a link, it leads to the repository.
func repository(root, dir string, inPlace bool) []string {
	git := filepath.Join(dir, ".git")
	info, err := os.Lstat(filepath.Join(root, git))
	switch {
	case err != nil:
		return nil
	case !info.IsDir():
		return []string{git}
	}
	names := own(root, git)
	if inPlace {
		names = append(names, modules(root, filepath.Join(git, "modules"))...)
	}
	return names
}

// own are the files of one repository. One without a folder for hooks is given an
// empty one: what is not there cannot be protected.
func own(root, git string) (names []string) {
	_ = os.Mkdir(filepath.Join(root, git, "hooks"), 0o755) //nolint:gosec // as git makes it; where it cannot be made no program can either
	for _, name := range gitFiles {
		names = append(names, filepath.Join(git, name))
	}
	return names
}

// maxModules bounds how many folders are looked at for repositories of modules.
const maxModules = 10_000

// modules are the files of the repositories of submodules, which lie below one
// another by name.
func modules(root, dir string) (names []string) {
	left := maxModules
	_ = filepath.WalkDir(filepath.Join(root, dir), func(path string, e fs.DirEntry, err error) error {
		if left--; err != nil || left < 0 {
			return fs.SkipAll
		}
		rel, err := filepath.Rel(root, path)
		if err != nil || !e.IsDir() || !isRepository(path) {
			return err
		}
		names = append(names, own(root, rel)...)
		names = append(names, modules(root, filepath.Join(rel, "modules"))...)
		return fs.SkipDir
	})
	return names
}

func isRepository(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, "HEAD"))
	return err == nil
}

// commonDir makes git read a repository's config and hooks from another folder.
const commonDir = "commondir"
