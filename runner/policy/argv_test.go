package policy

import (
	"os"
	"path/filepath"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/policy/shell"
)

func argv(command string, args ...string) message.ToolCall {
	return call("workspace_shell", map[string]any{"command": command, "args": append([]string{}, args...)})
}

// argvEngine judges by one policy, with workspace_shell among the tools.
func argvEngine(t *testing.T, text string) *Engine {
	t.Helper()
	tools := append(testTools(), Tool{
		Name: shell.ToolArgv, Builtin: shell.ToolArgv, Source: "builtin", Risk: "R2", Effects: []v1alpha1.Effect{"Read", "Execute"}, Category: "Execute",
		Schema: schema("command", "args:array", "cwd"), Digest: "d9",
	})
	c, problems := Compile(parse(t, text), tools)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return NewEngine([]*Compiled{c}, Context{Agent: Agent{Name: "a"}, Workspace: Workspace{Root: t.TempDir()}, Tools: tools})
}

func TestArgumentsWithoutAShellAreOneCommand(t *testing.T) {
	tool := &Tool{Builtin: shell.ToolArgv}
	for _, words := range [][]string{
		{"cat", "a"},
		{"cat", "; rm -rf x"},
		{"grep", "$(rm x)", "it's"},
		{"cat", "''; rm x; ''"},
		{"grep", "a\nrm x"},
		{"cat", `\'; rm x`},
		{"ls", "", "`rm x`"},
		{"grep", "-e", "> x"},
		{"ls", "{a,b}"},
		{"cat", "日本"},
	} {
		args := make([]any, 0, len(words))
		for _, w := range words[1:] {
			args = append(args, w)
		}
		text, _, ok := tool.script(map[string]any{"command": words[0], "args": args})
		f := shell.Parse(text, "")
		if !ok || f.Dynamic || len(f.Commands) != 1 || len(f.Commands[0].Argv) != len(words) || len(f.Redirects) != 0 {
			t.Errorf("%q became %s, which is %+v", words, text, f)
			continue
		}
		for i, got := range f.Commands[0].Argv {
			if got != words[i] {
				t.Errorf("%q: word %d became %q", words, i, got)
			}
		}
	}
}

func TestArgumentsAreJudgedLikeCommands(t *testing.T) {
	for name, text := range map[string]string{
		"list": "permissions: [{permission: workspace_shell, pattern: '*', action: allow}, {permission: workspace_shell, pattern: 'git log *', action: deny}, {permission: read, pattern: '*.env', action: deny}]",
		"rule": "permissions: [{permission: workspace_shell, pattern: '*', action: allow}]\nrules:\n" +
			"- {name: env, match: {tools: [read]}, when: \"paths.exists(p, p.real.endsWith('.env'))\", action: deny}\n" +
			"- {name: log, match: {builtins: [workspace_shell]}, when: \"cmd.commands.exists(c, c.name == 'git' && 'log' in c.argv)\", action: deny}",
	} {
		e := argvEngine(t, text)
		root := e.context.Workspace.Root
		put(t, root, ".env", "d/x.env", "clean/a.go")
		if err := os.Symlink("../.env", filepath.Join(root, "clean", "link")); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			call message.ToolCall
			want message.Action
		}{
			{argv("cat", "clean/a.go"), message.Allow},
			{argv("cat", ".env"), message.Deny},
			{argv("cat", "clean/link"), message.Deny},
			{argv("grep", "-r", "x", "d"), message.Deny},
			{argv("grep", "-r", "x"), message.Deny},
			{argv("grep", "-r", "x", "clean/a.go"), message.Allow},
			{argv("git", "log", "-1"), message.Deny},
			{argv("git", "status"), message.Allow},
			{argv("cat", "/etc/passwd"), message.Ask},
			{call("workspace_shell", map[string]any{"command": "cat", "args": []string{"x.env"}, "cwd": "d"}), message.Deny},
			{call("workspace_shell", map[string]any{"command": "cat", "args": []string{"a.go"}, "cwd": "clean"}), message.Allow},
			{call("workspace_shell", map[string]any{"command": "ls", "cwd": "/etc"}), message.Ask},
			{call("workspace_shell", map[string]any{"command": "cat", "args": []any{[]string{".env"}}}), message.Ask},
			{call("workspace_shell", map[string]any{"command": 1}), message.Ask},
		} {
			if d := decide(t, e, c.call); d.Action != c.want {
				t.Errorf("%s: %s: got %s by %s (%s), want %s", name, c.call.Args, d.Action, d.Rule, d.Message, c.want)
			}
		}
	}
}

func TestAnApprovalOfArgumentsIsNarrow(t *testing.T) {
	e := argvEngine(t, "rules: [{name: all, action: ask}]")
	put(t, e.context.Workspace.Root, "d/a.go", "top.go")
	for want, c := range map[string]message.ToolCall{
		"workspace_shell: cat *":      argv("cat", "top.go"),
		"workspace_shell: cat * in d": call("workspace_shell", map[string]any{"command": "cat", "args": []string{"a.go"}, "cwd": "d"}),
		"workspace_shell: git log *":  argv("git", "log", "-3"),
		"":                            argv("cat", "/etc/passwd"),
	} {
		if got := written(decide(t, e, c).Always); got != want {
			t.Errorf("%s: got %q, want %q", c.Args, got, want)
		}
	}
}
