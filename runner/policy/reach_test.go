package policy

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
)

// ways are two ways to say that no file called .env may be read.
var ways = map[string]string{
	"list": "permissions: [{permission: bash, pattern: '*', action: allow}, {permission: read, pattern: '*.env', action: deny}]",
	"rule": "permissions: [{permission: bash, pattern: '*', action: allow}]\nrules: [{name: env, match: {tools: [read]}, when: \"paths.exists(p, p.real.endsWith('.env'))\", action: deny}]",
}

func TestNoScriptReachesAFileThatMayNotBeRead(t *testing.T) {
	for name, text := range ways {
		e := engine(t, text)
		root := e.context.Workspace.Root
		put(t, root, ".env", "d/x.env", "d/a.go", "clean/a.go", "other/b.go")
		if err := os.Symlink("../d", filepath.Join(root, "other", "link")); err != nil {
			t.Fatal(err)
		}
		for script, want := range map[string]message.Action{
			"cat .env": message.Deny, "tac < d/x.env": message.Deny, "grep -r x": message.Deny, "grep -rn x d": message.Deny, "rg x": message.Deny,
			"cd d && rg x": message.Deny, "cp -r d e": message.Deny, "mv d e": message.Deny, "tar cf x.tar d": message.Deny, "zip -r x.zip .": message.Deny,
			"find d -exec cat {} +": message.Deny, "rsync -a d/ e/": message.Deny, "git grep x": message.Deny, "git show HEAD:.env": message.Deny,
			"mytool d/": message.Deny, "grep -R x other": message.Deny, "diff -r d clean": message.Deny, "sh -c 'grep -r x .'": message.Deny,
			"grep -r x clean": message.Allow, "rg x clean": message.Allow, "cp -r clean new": message.Allow, "cat d/a.go": message.Allow,
			"ls -la d": message.Allow, "find . -name '*.env'": message.Allow, "go test ./clean": message.Allow, "echo .env": message.Allow,
		} {
			if d := decide(t, e, bash(script)); d.Action != want {
				t.Errorf("%s: %s: got %s by %s (%s), want %s", name, script, d.Action, d.Rule, d.Message, want)
			}
		}
		if d := decide(t, e, bash("cat $x")); d.Action == message.Allow {
			t.Errorf("%s: a file that only the run can tell is allowed by %s", name, d.Rule)
		}
	}
}

func TestAFolderWithTooManyFilesIsAskedAbout(t *testing.T) {
	e := engine(t, ways["rule"])
	many := filepath.Join(e.context.Workspace.Root, "many")
	if err := os.Mkdir(many, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range patternEntries + 1 { // one file under many names is made at once
		name := filepath.Join(many, fmt.Sprint(i))
		if i == 0 {
			if err := os.WriteFile(name, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		} else if err := os.Link(filepath.Join(many, "0"), name); err != nil {
			t.Fatal(err)
		}
	}
	if d := decide(t, e, bash("grep -r x many")); d.Action != message.Ask || d.Rule != "default/folder" {
		t.Errorf("got %s by %s (%s)", d.Action, d.Rule, d.Message)
	}
}

func TestACallIsJudgedWhenTheFilesAreThere(t *testing.T) {
	e := engine(t, ways["rule"])
	root := e.context.Workspace.Root
	e.context.Ready = func(context.Context) error {
		put(t, root, "d/.env")
		return os.Symlink("d", filepath.Join(root, "link"))
	}
	if d := decide(t, e, bash("grep -r x link")); d.Action != message.Deny {
		t.Errorf("got %s by %s", d.Action, d.Rule)
	}
	e.context.Ready = func(context.Context) error { return os.ErrDeadlineExceeded }
	if d := decide(t, e, bash("grep -r x link")); d.Action != message.Deny {
		t.Errorf("files that do not come: got %s by %s", d.Action, d.Rule)
	}
}

func TestUnreadableFilesOfASearch(t *testing.T) {
	files := []string{"a.go", ".env", "d/x.env", "d/a.go"}
	tests := map[string]struct {
		reason, policy string
		call           message.ToolCall
		want           []string
	}{
		"list":          {"an entry for read", ways["list"], call("grep", map[string]any{"pattern": "x"}), []string{".env", "d/x.env"}},
		"rule":          {"a rule about read", ways["rule"], call("grep", map[string]any{"pattern": "x"}), []string{".env", "d/x.env"}},
		"own rule":      {"a rule about the search", "rules: [{name: a, match: {tools: [grep]}, when: \"paths.exists(p, p.clean.contains('/d/'))\", action: deny}]", call("grep", map[string]any{"pattern": "x"}), []string{"d/x.env", "d/a.go"}},
		"own argument":  {"a rule about its argument", "rules: [{name: a, match: {tools: [grep]}, when: \"call.args.path == 'a.go'\", action: deny}]", call("grep", map[string]any{"pattern": "x", "path": "."}), []string{"a.go"}},
		"asked":         {"what would be asked about is not shown unasked", "rules: [{name: a, match: {tools: [read]}, when: \"paths.exists(p, p.secret)\", action: ask}]", call("grep", map[string]any{"pattern": "x"}), []string{".env"}},
		"asked anyway":  {"who has approved the search has approved what it shows", "rules: [{name: a, match: {tools: [grep]}, action: ask}]", call("grep", map[string]any{"pattern": "x"}), nil},
		"read denied":   {"a tool that is denied as a whole says nothing about files", "rules: [{name: a, match: {tools: [read]}, action: deny}]", call("grep", map[string]any{"pattern": "x"}), nil},
		"a rule fails":  {"a rule that fails for a file denies it", "rules: [{name: a, match: {tools: [read]}, when: \"paths.exists(p, 1 / (p.raw == '.env' ? 0 : 1) > 5)\", action: deny}]", call("grep", map[string]any{"pattern": "x"}), []string{".env"}},
		"nothing is so": {"", "default: allow", call("grep", map[string]any{"pattern": "x"}), nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := engine(t, tc.policy).Unreadable(t.Context(), tc.call, files)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
