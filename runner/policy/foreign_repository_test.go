package policy

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"agentctl.dev/agentctl/api/message"
)

func TestARepositoryOfTheAgentMaySayWhatGitRuns(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git to make repositories with")
	}
	for name, c := range map[string]struct {
		reason, setup, script string
		want                  message.Action
	}{
		"fresh":            {"git has written its settings", "git init -q x", "cd x && git status", message.Allow},
		"cloned":           {"", "git init -q y && git clone -q y x 2>/dev/null", "cd x && git log", message.Allow},
		"the run's own":    {"it is guarded", "git init -q . && git config core.fsmonitor 'touch m'", "git status", message.Allow},
		"fsmonitor":        {"", "git init -q x && git -C x config core.fsmonitor 'touch m'", "cd x && git status", message.Ask},
		"by -C":            {"", "git init -q x && git -C x config core.fsmonitor 'touch m'", "git -C x status", message.Ask},
		"bare":             {"files of a repository in a folder", "git init -q --bare x && git -C x config core.worktree .. && git -C x config core.fsmonitor m", "cd x && git status", message.Ask},
		"bare at the top":  {"", "git init -q --bare . && git config alias.x '!m'", "git log", message.Ask},
		"a pager":          {"", "git init -q x && git -C x config pager.log m", "git -C x log", message.Ask},
		"a filter":         {"", "git init -q x && git -C x config filter.a.clean m", "git -C x diff", message.Ask},
		"an include":       {"", "git init -q x && git -C x config include.path ../c", "git -C x diff", message.Ask},
		"a section inline": {"git takes a key behind the bracket", "git init -q x && printf '[core] fsmonitor = m\n' >> x/.git/config", "git -C x diff", message.Ask},
		"a continued line": {"", "git init -q x && printf '[user]\\nname = a\\\\\\n\\nfsmonitor = m\\n' >> x/.git/config", "git -C x diff", message.Ask},
		"a hook":           {"", "git init -q x && cp /bin/true x/.git/hooks/post-index-change", "git -C x status", message.Ask},
		"a linked tree":    {"its settings are elsewhere", "git init -q x && echo 'gitdir: ../d' > y && mkdir z d && mv y z/.git && touch d/commondir", "git -C z status", message.Ask},
		"no repository":    {"", "mkdir x", "cd x && git status", message.Allow},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			cmd := exec.CommandContext(t.Context(), "bash", "-c", c.setup)
			cmd.Dir = root
			cmd.Env = []string{"PATH=" + filepath.Dir(git) + ":/usr/bin:/bin", "HOME=" + root, "GIT_CONFIG_NOSYSTEM=1"}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			_ = os.Remove(filepath.Join(root, ".gitconfig"))
			p, problems := Compile(parse(t, "rules: [{name: show, match: {tools: [bash]}, when: \"!cmd.dynamic\", action: allow}]"), testTools())
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			e := NewEngine([]*Compiled{p}, Context{Workspace: Workspace{Root: root}, Tools: testTools()})
			if d := decide(t, e, bash(c.script)); d.Action != c.want {
				t.Errorf("%s: %s by %s (%s), want %s", c.reason, d.Action, d.Rule, d.Message, c.want)
			}
		})
	}
}
