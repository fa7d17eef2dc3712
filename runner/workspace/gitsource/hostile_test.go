package gitsource

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// TestTheConfigurationOfTheRepositoryStaysThere clones a repository of this host whose own
// configuration, hooks and attributes start programs wherever git lets them. None is
// started by the clone, and none comes along: git in the clone starts none later.
func TestTheConfigurationOfTheRepositoryStaysThere(t *testing.T) {
	dir := repository(t, map[string]string{".gitattributes": "*.txt filter=evil diff=evil merge=evil\n"})
	mark := hostileUser(t)
	touch := filepath.Join(filepath.Dir(mark), "touch")
	hooks := map[string]string{}
	for _, name := range []string{"post-checkout", "post-index-change", "reference-transaction", "pre-receive", "update", "post-update", "fsmonitor-watchman", "sendemail-validate", "post-merge"} {
		hooks[name] = "#!/bin/sh\n" + touch + " hook\n"
	}
	write(t, filepath.Join(dir, ".git/hooks"), hooks)
	for name := range hooks {
		if err := os.Chmod(filepath.Join(dir, ".git/hooks", name), 0o755); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, ".git"), map[string]string{
		"info/attributes": "* filter=evil diff=evil merge=evil\n",
		"included":        "[core]\n\tfsmonitor = " + touch + " included\n",
	})
	for _, key := range []string{
		"core.fsmonitor", "core.sshCommand", "core.gitProxy", "core.alternateRefsCommand", "core.askPass", "core.pager", "core.editor",
		"uploadpack.packObjectsHook", "filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "diff.evil.textconv", "diff.evil.command", "diff.external",
		"merge.evil.driver", "gpg.program", "credential.helper", "remote.origin.uploadpack", "sequence.editor", "interactive.diffFilter",
	} {
		command(t, dir, "", "config", key, touch+" "+key)
	}
	command(t, dir, "", "config", "include.path", filepath.Join(dir, ".git/included"))
	command(t, dir, "", "config", "protocol.ext.allow", "always")
	command(t, dir, "", "config", "core.hooksPath", filepath.Join(dir, ".git/hooks"))
	_ = os.Remove(mark) // what these commands started

	_, at, err := clone(t, v1alpha1.GitSource{URL: "file://" + dir})
	if err != nil {
		t.Fatal(err)
	}
	unmarked(t, mark)
	keys := map[string]bool{}
	for line := range strings.SplitSeq(command(t, at, "", "config", "--local", "--list", "--name-only"), "\n") {
		keys[line] = true
	}
	known := []string{
		"branch.main.merge", "branch.main.remote", "core.bare", "core.filemode", "core.logallrefupdates", "core.repositoryformatversion",
		"remote.origin.fetch", "remote.origin.tagopt", "remote.origin.url",
	}
	for key := range keys {
		if !slices.Contains(known, key) {
			t.Errorf("the clone has the configuration %s", key)
		}
	}
	for _, name := range []string{"hooks", "objects/info/alternates", "info/attributes", "modules"} {
		if _, err := os.Lstat(filepath.Join(at, ".git", name)); err == nil {
			t.Errorf("the clone has .git/%s", name)
		}
	}
	for _, args := range [][]string{{"status"}, {"diff", "HEAD"}, {"log", "-p", "-1"}, {"checkout", "--", "a.txt"}} {
		command(t, at, "", args...)
	}
	unmarked(t, mark)
	write(t, dir, map[string]string{"a.txt": "third\n"})
	_ = exec.CommandContext(t.Context(), "git", "-C", dir, "status").Run() // it fails at what the programs print
	if _, err := os.Stat(mark); err != nil {
		t.Error("git in the repository itself started none of the programs: the test proves nothing")
	}
}
