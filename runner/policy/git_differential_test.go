package policy

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/message"
)

// TestRealGitTellsNothingThatIsNotJudged runs commands that are allowed, made of
// all kinds of options, in a repository whose unreadable file is committed, staged,
// changed and put away: none may show a word of it.
func TestRealGitTellsNothingThatIsNotJudged(t *testing.T) {
	e := engine(t, ways["rule"])
	root := e.context.Workspace.Root
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	repo(t, root, "a.go", "d/b.go")
	for i, text := range []string{"CANARY one\n", "CANARY two\n", "CANARY three\n"} {
		write(".env", text)
		write("a.go", strings.Repeat("x", i+2)+"\n")
		runGit(t, root, "add", "-f", ".")
		runGit(t, root, "commit", "-q", "-m", text[len("CANARY "):])
	}
	runGit(t, root, "branch", "-q", "other", "HEAD~1")
	write(".env", "CANARY stash\n")
	runGit(t, root, "stash", "-q")
	write(".env", "CANARY staged\n")
	runGit(t, root, "add", ".env")
	write(".env", "CANARY changed\n")
	blob, err := exec.Command("git", "-C", root, "rev-parse", "HEAD:.env").Output()
	if err != nil {
		t.Fatal(err)
	}
	hash := strings.TrimSpace(string(blob))
	runGit(t, root, "tag", "blob", hash)

	subs := []string{"log", "log", "show", "show", "diff", "diff", "diff-tree HEAD", "reflog", "whatchanged", "stash list", "stash show", "status", "blame", "cat-file", "tag", "for-each-ref", "shortlog", "branch", "rev-list HEAD", "ls-tree HEAD", "ls-files", "describe", "show-ref", "rev-parse", "name-rev HEAD", "merge-base HEAD"}
	words := []string{
		"-p", "-u", "-s", "-q", "-v", "-1", "-n", "-n1", "-c", "--cc", "-m", "-t", "-e", "-w", "-z", "-r", "-i", "-M", "-C", "-S", "-G", "-L", "-O", "-l", "--", "--", "--stat", "--raw", "--patch", "--no-patch", "--name-only", "--quiet", "--cached", "--oneline",
		"--all", "--graph", "--author", "--grep", "--until", "--since", "--format", "--pretty", "--format=%H", "--format=%B", "--format=%(raw)", "--skip", "--word-diff", "--color-words", "--patch-with-stat", "--unified", "-U3", "--max-count", "--follow",
		"--full-diff", "--reverse", "--summary", "--diff-filter", "--dirstat", "--binary", "--exit-code", "--check", "--follow", "--relative", "--show-notes", "--no-index", "--batch", "--textconv", "--ignore-submodules", "--decorate", "--first-parent", "-W", "--remerge-diff", "--log-size", "--stat=80", "--numstat",
		"HEAD", "HEAD~1", "@", "other", "main", "blob", hash, hash[:8], "HEAD^{tree}", "a.go", "d", ".", ":/", "*", "'*.go'", "x", "1", "HEAD~2..HEAD", "stash@{0}", "refs/tags/blob",
	}
	allowed, told := 0, 0
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		script := "git " + subs[r.IntN(len(subs))]
		for range r.IntN(5) {
			script += " " + words[r.IntN(len(words))]
		}
		d := decide(t, e, bash(script))
		if d.Action != message.Allow {
			continue
		}
		allowed++
		out := run(t, root, script)
		if strings.Contains(out, "CANARY") {
			t.Errorf("%s: allowed by %s, and shows\n%s", script, d.Rule, out)
		}
		if out != "" {
			told++
		}
	}
	t.Logf("%d were allowed, %d of them told something", allowed, told)
	if told < 60 {
		t.Errorf("only %d commands told anything", told)
	}
}

func run(t *testing.T, dir, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "bash", "-c", script)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_PAGER=cat", "GIT_OPTIONAL_LOCKS=0")
	out, _ := c.Output() // what fails shows something, too
	return string(out)
}
