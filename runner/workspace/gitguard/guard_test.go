package gitguard

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// attacks are what a program can do in files that it works on in place, so that git
// runs a program of its choice for the person who calls it there. MARK is the
// command that git is to run.
var attacks = map[string]struct{ before, during, git string }{
	"another common folder":      {"", `mkdir -p ev/hooks; cp -r .git/objects .git/refs .git/HEAD ev/; (cat .git/config; printf '[core]\n\tfsmonitor = "MARK; false"\n') > ev/config; printf ../ev > .git/commondir`, "git status"},
	"config":                     {"", `printf '[core]\n\tfsmonitor = "MARK; false"\n' >> .git/config`, "git status"},
	"config of a work tree":      {"git config extensions.worktreeConfig true", `printf '[core]\n\tfsmonitor = "MARK; false"\n' > .git/config.worktree`, "git status"},
	"a hook":                     {"", `printf '#!/bin/sh\nMARK\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit`, "git commit --allow-empty -m x"},
	"a hook that was there":      {`printf '#!/bin/sh\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit`, `printf '#!/bin/sh\nMARK\n' > .git/hooks/pre-commit`, "git commit --allow-empty -m x"},
	"hooks in a linked folder":   {"rm -r .git/hooks", `rm -rf .git/hooks; mkdir h; ln -s ../h .git/hooks; printf '#!/bin/sh\nMARK\n' > h/pre-commit; chmod +x h/pre-commit`, "git commit --allow-empty -m x"},
	"a folder of hooks":          {"git config core.hooksPath .husky; mkdir .husky", `printf '#!/bin/sh\nMARK\n' > .husky/pre-commit; chmod +x .husky/pre-commit`, "git commit --allow-empty -m x"},
	"a folder of hooks to come":  {"git config core.hooksPath .husky", `mkdir .husky; printf '#!/bin/sh\nMARK\n' > .husky/pre-commit; chmod +x .husky/pre-commit`, "git commit --allow-empty -m x"},
	"an included config":         {"git config include.path ../inc; echo > inc", `printf '[core]\n\tfsmonitor = "MARK; false"\n' > inc`, "git status"},
	"an included config to come": {"git config include.path ../inc", `printf '[core]\n\tfsmonitor = "MARK; false"\n' > inc`, "git status"},
	"an include of an include":   {"git config include.path ../inc; printf '[include]\n\tpath = inc2\n' > inc", `printf '[core]\n\tfsmonitor = "MARK; false"\n' > inc2`, "git status"},
	"a program that config names": {
		`git config core.fsmonitor ./tools/watch; mkdir tools; printf '#!/bin/sh\nexit 1\n' > tools/watch; chmod +x tools/watch`,
		`printf '#!/bin/sh\nMARK\n' > tools/watch`, "git status",
	},
	"a filter":                {`git config filter.f.clean 'sh tools/clean.sh'; mkdir tools; echo cat > tools/clean.sh; echo '* filter=f' > .gitattributes`, `echo 'MARK; cat' > tools/clean.sh; echo new > a.txt`, "git diff"},
	"a file called .git":      {"mv .git real; echo 'gitdir: real' > .git", `printf '[core]\n\tfsmonitor = "MARK; false"\n' >> real/config`, "git status"},
	"a link called .git":      {"mv .git real; ln -s real .git", `printf '[core]\n\tfsmonitor = "MARK; false"\n' >> real/config`, "git status"},
	"another .git":            {"", `mv .git old; mkdir n; cd n; git init -q .; cd ..; mv n/.git .git; printf '[core]\n\tfsmonitor = "MARK; false"\n' >> .git/config`, "git status"},
	"a link instead of .git":  {"", `mv .git old; printf '[core]\n\tfsmonitor = "MARK; false"\n' >> old/config; ln -s old .git`, "git status"},
	"a file instead of .git":  {"", `mv .git old; printf '[core]\n\tfsmonitor = "MARK; false"\n' >> old/config; echo 'gitdir: old' > .git`, "git status"},
	"a repository below":      {"", `git init -q sub; cd sub; git -c user.name=x -c user.email=x@y commit -qm x --allow-empty; printf '[core]\n\tfsmonitor = "MARK; false"\n' >> .git/config; cd ..; git update-index --add --cacheinfo 160000,$(git -C sub -c core.fsmonitor=false rev-parse HEAD),sub`, "git status"},
	"a bare repository below": {"", `git init -q --bare bare; printf '[core]\n\tfsmonitor = "MARK; false"\n' >> bare/config; printf '[alias]\n\tx = "!MARK"\n' >> bare/config`, "cd bare && git x"},
	"a pager":                 {"", `printf '[core]\n\tpager = MARK\n[diff]\n\texternal = MARK\n' >> .git/config; echo n > a.txt`, "git diff"},
	"a module":                {"", `mkdir -p .git/modules/m; cp -r .git/HEAD .git/objects .git/refs .git/modules/m/; printf '[core]\n\tfsmonitor = "MARK; false"\n\tworktree = ../../../m\n' > .git/modules/m/config; mkdir m; echo 'gitdir: ../.git/modules/m' > m/.git`, "cd m && git status"},
}

func shell(t *testing.T, dir, script string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "HOME="+t.TempDir(), "GIT_AUTHOR_NAME=x", "GIT_AUTHOR_EMAIL=x@y", "GIT_COMMITTER_NAME=x", "GIT_COMMITTER_EMAIL=x@y")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func repo(t *testing.T, before string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if out, err := shell(t, dir, "git init -q . && echo hi > a.txt && git add -A && git commit -qm x && "+before+":"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

func TestWhatGitWouldRunIsUndoneAndListed(t *testing.T) {
	for name, a := range attacks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := a.before
			if before != "" {
				before += "; "
			}
			for _, guarded := range []bool{false, true} {
				dir := repo(t, before)
				mark := filepath.Join(t.TempDir(), "ran")
				saved := filepath.Join(t.TempDir(), "git.json")
				if guarded {
					g, err := Take(dir)
					if err != nil {
						t.Fatal(err)
					}
					if err := g.Save(saved); err != nil {
						t.Fatal(err)
					}
				}
				if out, err := shell(t, dir, strings.ReplaceAll(a.during, "MARK", "touch "+mark)); err != nil {
					t.Fatalf("the attack failed: %v\n%s", err, out)
				}
				_ = os.Remove(mark)
				if guarded { // by another process
					g, err := Load(saved)
					if err != nil {
						t.Fatal(err)
					}
					found, err := g.Restore(dir, true)
					if err != nil || len(found) == 0 {
						t.Errorf("found %q, %v", found, err)
					}
					again, err := g.Restore(dir, false)
					if err != nil {
						t.Errorf("once more: %q, %v", again, err)
					}
				}
				out, _ := shell(t, dir, "GIT_PAGER= ; unset GIT_PAGER; "+a.git)
				_, err := os.Stat(mark)
				if ran := err == nil; ran == guarded && !(name == "a pager" && !guarded) {
					t.Errorf("guarded %v: git ran it: %v\n%s", guarded, ran, out)
				}
			}
		})
	}
}

func TestAnHonestRunIsLeftAlone(t *testing.T) {
	dir := repo(t, "")
	g, err := Take(dir)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := shell(t, dir, "echo new > b.txt; git add -A; git commit -qm y; git status; git log --oneline; git branch b; git gc -q"); err != nil {
		t.Fatalf("git does not work with the placeholders: %v\n%s", err, out)
	}
	found, err := g.Restore(dir, true)
	if err != nil || len(found) > 0 {
		t.Errorf("found %q, %v", found, err)
	}
	for _, name := range []string{commonDir, "config.worktree"} {
		if _, err := os.Lstat(filepath.Join(dir, ".git", name)); err == nil {
			t.Errorf("%s is left", name)
		}
	}
	if out, err := shell(t, dir, "git init -q new"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	found, err = g.Restore(dir, false)
	if err != nil || len(found) == 0 || !strings.Contains(strings.Join(found, "\n"), "new/.git; it names nothing") {
		t.Errorf("a new repository: %q, %v", found, err)
	}
	if out, err := shell(t, filepath.Join(dir, "new"), "git status"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The copies of other runs are below the state folder, which may be in the folder of the run.
func TestFoldersThatNoProgramSeesAreLeftAlone(t *testing.T) {
	dir := repo(t, "")
	state := filepath.Join(dir, ".state")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	g, err := Take(dir, state)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := shell(t, dir, "git init -q .state/copy; git -C .state/copy config core.fsmonitor 'touch x'"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if found, err := g.Restore(dir, true, state); err != nil || len(found) > 0 {
		t.Errorf("found %q, %v", found, err)
	}
	if found, err := g.Restore(dir, true); err != nil || len(found) == 0 {
		t.Errorf("in a folder that programs see: %q, %v", found, err)
	}
}

// Nothing outside the folder is touched, whatever a program makes a link to it.
func TestRestoreDoesNotFollowLinksOut(t *testing.T) {
	for name, during := range map[string]string{
		"the repository": "mv .git old; ln -s OUT .git", "the hooks": "mv .git/hooks h; ln -s OUT/hooks .git/hooks", "the config": "rm .git/config; ln -s OUT/config .git/config",
		"hooks of a new one": "git init -q n; rm -r n/.git/hooks; ln -s OUT/hooks n/.git/hooks",
	} {
		dir, out := repo(t, ""), t.TempDir()
		if text, err := shell(t, out, "mkdir hooks objects refs; echo mine > hooks/pre-commit; echo mine > config; echo ref > HEAD; echo mine > commondir; find . -type f | sort | xargs cat > ../before"); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		g, err := Take(dir)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := shell(t, dir, strings.ReplaceAll(during, "OUT", out)); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		found, err := g.Restore(dir, true)
		if err != nil || len(found) == 0 {
			t.Errorf("%s: %q, %v", name, found, err)
		}
		if text, err := shell(t, out, "find . -type f | sort | xargs cat | cmp - ../before && test $(find . -type f | wc -l) = 4"); err != nil {
			t.Errorf("%s: a file outside was changed: %s", name, text)
		}
	}
}
