package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
)

// A script of the workspace is judged by the commands in it.
func TestAScriptThatAShellRunsIsJudgedByItsText(t *testing.T) {
	const policy = "permissions: [{permission: bash, action: allow}, {permission: edit, action: allow}, {permission: bash, pattern: 'git push *', action: deny}]"
	root := t.TempDir()
	for name, text := range map[string]string{
		"show.sh": "#!/bin/bash\nset -eu\necho run\nls src\n", "push.sh": "echo run\nif true; then git push -f; fi\n", "calls.sh": "bash ./push.sh\n",
		"names.sh": "echo \"$1\"; $1\n", "self.sh": "echo x >> self.sh\nls\n", "bash.sh": "cat {a,b}\n", "loop.sh": "bash loop.sh\n", "nul.sh": "ls\x00\n",
		"opaque.sh": "make all\n", "long.sh": strings.Repeat("ls\n", scriptSize/3+1),
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/profile", filepath.Join(root, "out.sh")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("show.sh", filepath.Join(root, "link.sh")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "two.sh"), []byte("ls\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(root, "two.sh"), filepath.Join(root, "other.sh")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	c, problems := Compile(parse(t, policy), testTools())
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	e := NewEngine([]*Compiled{c}, Context{Workspace: Workspace{Root: root}, Tools: testTools()})
	for script, tc := range map[string]struct {
		reason string
		want   message.Action
	}{
		"bash show.sh":              {"it shows names", message.Allow},
		"bash -eu ./show.sh a b":    {"options and arguments", message.Allow},
		"sh show.sh":                {"another shell reads it in the same way", message.Allow},
		"sh bash.sh":                {"sh does not expand braces", message.Ask},
		"bash link.sh":              {"a link within the workspace", message.Allow},
		"bash push.sh":              {"it pushes", message.Deny},
		"bash calls.sh":             {"it runs one that pushes", message.Deny},
		"timeout 5 bash push.sh":    {"behind a wrapper", message.Deny},
		"cd sub && bash ../push.sh": {"in another folder", message.Deny},
		"bash names.sh git":         {"what it runs is an argument", message.Ask},
		"bash self.sh":              {"it changes itself", message.Ask},
		"bash loop.sh":              {"it runs itself", message.Ask},
		"bash nul.sh":               {"bash stops reading at another place", message.Ask},
		"bash long.sh":              {"too long", message.Ask},
		"bash opaque.sh":            {"a list that allows every command allows make", message.Allow},
		"bash none.sh":              {"it is not there yet", message.Ask},
		"bash sub":                  {"a folder", message.Ask},
		"bash out.sh":               {"it is not in the workspace", message.Ask},
		"bash two.sh":               {"it can be changed under its other name", message.Ask},
		"bash /tmp/show.sh":         {"outside", message.Ask},
		"echo 'git push' > show.sh; bash show.sh":  {"changed before", message.Ask},
		"bash show.sh & echo 'git push' > show.sh": {"changed meanwhile", message.Ask},
		"cp push.sh show.sh; bash show.sh":         {"replaced", message.Ask},
		"mv push.sh show.sh && bash show.sh":       {"replaced", message.Ask},
		"echo x > link.sh; bash show.sh":           {"changed behind a link", message.Ask},
		"sed -i s/ls/id/ *.sh; bash show.sh":       {"changed by a pattern", message.Ask},
		"ln -sf push.sh show.sh; bash show.sh":     {"a link in its place", message.Ask},
		"echo x > notes; bash show.sh":             {"another file", message.Allow},
		"source ./show.sh":                         {"it runs in this shell", message.Ask},
	} {
		t.Run(script, func(t *testing.T) {
			if d := decide(t, e, bash(script)); d.Action != tc.want {
				t.Errorf("%s: %s by %s (%s), want %s", tc.reason, d.Action, d.Rule, d.Message, tc.want)
			}
		})
	}
}

// The program that a rule reads of is also the one in the file.
func TestAScriptThatIsRunIsAPathOfTheCall(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "show.sh"), []byte("cat notes\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, problems := Compile(parse(t, "rules: [{name: no, when: \"cmd.commands.exists(c, c.name == 'cat' && 'bash' in c.wrappers) && paths.exists(p, p.raw == 'show.sh') && paths.exists(p, p.raw == 'notes')\", action: deny}]"), testTools())
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	e := NewEngine([]*Compiled{c}, Context{Workspace: Workspace{Root: root}, Tools: testTools()})
	if d := decide(t, e, bash("bash show.sh")); d.Action != message.Deny {
		t.Errorf("%s by %s (%s)", d.Action, d.Rule, d.Message)
	}
}
