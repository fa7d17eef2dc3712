package policy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"agentctl.dev/agentctl/api/message"
)

// TestTheFolderACommandRunsInIsAPath: however a script goes to a folder outside of the
// workspace, a rule about paths and the permission list see it.
func TestTheFolderACommandRunsInIsAPath(t *testing.T) {
	out := t.TempDir()
	policies := map[string]string{
		"rule": "rules: [{name: stay, when: \"paths.exists(p, !p.inWorkspace)\", action: deny}]\ndefault: allow",
		"list": "permissions: [{permission: bash, pattern: '*', action: allow}, {permission: external_directory, pattern: '*', action: deny}]\ndefault: allow",
	}
	for name, policy := range policies {
		e := engine(t, policy)
		root := e.context.Workspace.Root
		if err := os.Symlink(out, filepath.Join(root, "away")); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(root, "sub"), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, script := range []string{
			"cd " + out + " && make", "cd " + out + " && ls", "cd " + out + "; git log", "cd ../x && ./run.sh", "git -C " + out + " log", "git -C" + " ../x stash", "pushd " + out + " && make", "env -C " + out + " make", "env --ch=" + out + " make",
			"make -C " + out, "make -C" + out, "make --directory=" + out, "make -C away", "cd away && make", "tar -C " + out + " -cf a.tar .", "find " + out + " -execdir ls {} \\;", "find away -execdir ls +", "cd && ls", "cd sub && cd " + out + " && pwd", "(cd " + out + "; pwd)", "cd gone; cat ../x",
			"for f in " + out + "/*; do echo x; done", "echo " + out + "/*", "cargo -C " + out + " build", "npm --prefix " + out + " test", "sudo -D " + out + " ls", "bash -c 'cd " + out + " && ls'",
		} {
			if d := decide(t, e, bash(script)); d.Action == message.Allow {
				t.Errorf("%s: %s is allowed: %s", name, script, d.Facts)
			}
		}
		for _, dir := range []string{out, "..", "away", "sub/../.."} {
			args, err := json.Marshal(map[string]string{"command": "make", "workdir": dir})
			if err != nil {
				t.Fatal(err)
			}
			if d := decide(t, e, message.ToolCall{Tool: "bash", Args: args}); d.Action != message.Deny {
				t.Errorf("%s: workdir %s: got %s (%s)", name, dir, d.Action, d.Facts)
			}
		}
		for _, script := range []string{"cd sub && make", "cd sub; ls; cd ..", "git -C sub log --oneline", "make -C sub", "pushd sub; ls; popd", "env -C sub ls", "cd . && ls", "cd sub && cat ../x", "(cd sub && make); ls"} {
			if d := decide(t, e, bash(script)); d.Action != message.Allow {
				t.Errorf("%s: %s: got %s by %s (%s)", name, script, d.Action, d.Rule, d.Facts)
			}
		}
	}
}

// TestLoopsOverFilesOfTheWorkspaceAreAllowed, unless a name leads out of it or is more
// than a name.
func TestLoopsOverFilesOfTheWorkspaceAreAllowed(t *testing.T) {
	const policy = "rules: [{name: stay, when: \"paths.exists(p, !p.inWorkspace)\", action: deny, messageExpression: \"'outside the workspace: ' + paths.filter(p, !p.inWorkspace)[0].clean\"}]\ndefault: allow"
	loops := []string{"for f in *.go; do cat $f; done", `for f in *.go; do cat "$f"; done`, "for f in *.go; do gofmt -l $f; done", "for f in *.go; do cp $f $f.bak; done"}
	tests := map[string]struct {
		reason  string
		prepare func(root string) error
		want    message.Action
	}{
		"files":  {"plain names", func(string) error { return nil }, message.Allow},
		"a link": {"it leads out", func(root string) error { return os.Symlink("/etc/passwd", filepath.Join(root, "l.go")) }, message.Deny},
		"an option": {"it begins with a dash", func(root string) error {
			return os.WriteFile(filepath.Join(root, "-o.go"), nil, 0o600)
		}, message.Ask},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := engine(t, policy)
			root := e.context.Workspace.Root
			if err := os.WriteFile(filepath.Join(root, "a.go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := tc.prepare(root); err != nil {
				t.Fatal(err)
			}
			for _, script := range loops {
				if d := decide(t, e, bash(script)); d.Action != tc.want {
					t.Errorf("%s: %s: got %s (%s), want %s", tc.reason, script, d.Action, d.Facts, tc.want)
				}
			}
		})
	}

	t.Run("a blank", func(t *testing.T) {
		e := engine(t, policy)
		if err := os.WriteFile(filepath.Join(e.context.Workspace.Root, "a ..go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if d := decide(t, e, bash("for f in *go; do cat $f; done")); d.Action != message.Ask {
			t.Errorf("the name becomes two words, one of which is ..: got %s", d.Action)
		}
		if d := decide(t, e, bash(`for f in *go; do cat "$f"; done`)); d.Action != message.Allow {
			t.Errorf("in quotes it is one word: got %s (%s)", d.Action, d.Message)
		}
	})

	e := engine(t, policy)
	if d := decide(t, e, bash("cat a.go /etc/passwd")); d.Message != "outside the workspace: /etc/passwd" {
		t.Errorf("the message names another path: %q", d.Message)
	}
}
