package opencode_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/decisions"
	"agentctl.dev/agentctl/runner/opencode"
)

// carry writes a configuration and returns what became of it.
func carry(t *testing.T, config string) *opencode.Result {
	t.Helper()
	dir := t.TempDir()
	from := filepath.Join(dir, "opencode.json")
	if err := os.WriteFile(from, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := opencode.Write(from, filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// written is the text of all manifests.
func written(t *testing.T, r *opencode.Result) string {
	t.Helper()
	var b strings.Builder
	for _, name := range r.Files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(text)
	}
	return b.String()
}

// TestACarriedRuleDecidesAsItDid judges calls by the written manifests, as a run would.
func TestACarriedRuleDecidesAsItDid(t *testing.T) {
	bash := func(command string) map[string]any { return map[string]any{"command": command} }
	file := func(path string) map[string]any {
		return map[string]any{"path": path, "content": "x"}
	}
	read := func(path string) map[string]any { return map[string]any{"path": path} }
	url := func(u string) map[string]any { return map[string]any{"url": u} }
	type call struct {
		tool string
		args map[string]any
		want message.Action
	}
	for name, c := range map[string]struct {
		reason, config, agent string
		calls                 []call
	}{
		"the last rule wins": {
			"a list of OpenCode is read from its end",
			`{"permission": {"bash": {"*": "ask", "git *": "allow", "git push *": "deny"}}}`, "build",
			[]call{
				{"bash", bash("git status"), message.Allow},
				{"bash", bash("git push origin main"), message.Deny},
				{"bash", bash("make"), message.Ask},
				{"bash", bash("git status && make"), message.Ask},
				{"bash", bash("git status; git push"), message.Deny},
			},
		},
		"a rule about everything at the end": {
			"the order of the file decides, not the length of a pattern",
			`{"permission": {"bash": {"git push *": "deny", "git *": "allow", "*": "ask"}}}`, "build",
			[]call{{"bash", bash("git push"), message.Ask}, {"bash", bash("git status"), message.Ask}},
		},
		"one action": {
			"a text stands for all calls of a tool",
			`{"permission": {"edit": "deny", "bash": "allow", "read": "ask"}}`, "build",
			[]call{{"write", file("a.md"), message.Deny}, {"bash", bash("make"), message.Allow}, {"read", read("a.md"), message.Ask}},
		},
		"one action for everything": {
			"the permission itself may be an action",
			`{"permission": "deny"}`, "build",
			[]call{{"write", file("a.md"), message.Deny}, {"bash", bash("ls"), message.Deny}, {"read", read("a.md"), message.Deny}},
		},
		"a tool over all tools": {
			"names of permissions are patterns, too",
			`{"permission": {"*": "deny", "read": "allow", "l*": "allow"}}`, "build",
			[]call{{"read", read("a.md"), message.Allow}, {"list", read("."), message.Allow}, {"write", file("a.md"), message.Deny}},
		},
		"files": {
			"a pattern of edit holds for write and patch, below the project",
			`{"permission": {"edit": {"*": "deny", "docs/*": "allow", "docs/api/*": "ask"}}}`, "build",
			[]call{{"write", file("docs/a.md"), message.Allow}, {"write", file("docs/api/a.md"), message.Ask}, {"write", file("main.go"), message.Deny}},
		},
		"an allow for files anywhere": {
			"a Policy would hold **/x for more files: it is left out",
			`{"permission": {"edit": {"*": "deny", "**/src/*": "allow", "a.md": "ask"}}}`, "build",
			[]call{{"write", file("src/a.md"), message.Deny}, {"write", file("x/a.md"), message.Deny}},
		},
		"OpenCode's own rules": {
			"what it asks about without a word in the file",
			`{}`, "build",
			[]call{{"read", read(".env"), message.Ask}, {"read", read("a/.env.local"), message.Ask}, {"read", read(".env.example"), message.Allow}, {"read", read("/etc/hosts"), message.Ask}},
		},
		"outside": {
			"an allow for everything opens no other folder; one for the folder does",
			`{"permission": {"*": "allow", "external_directory": {"*": "deny", "/usr/share/*": "allow"}}}`, "build",
			[]call{{"read", read("/usr/share/x"), message.Allow}, {"read", read("/var/lib/x"), message.Deny}},
		},
		"outside without the star": {
			"OpenCode compares with /*, so the pattern never matches",
			`{"permission": {"external_directory": {"*": "deny", "/usr/share/x": "allow"}}}`, "build",
			[]call{{"read", read("/usr/share/x"), message.Deny}},
		},
		"addresses": {
			"an address without patterns in its host",
			`{"permission": {"webfetch": {"*": "ask", "https://go.dev/*": "allow", "https://go.dev/private/*": "deny"}}}`, "build",
			[]call{{"webfetch", url("https://go.dev/doc"), message.Allow}, {"webfetch", url("https://go.dev/private/x"), message.Deny}, {"webfetch", url("https://example.com/"), message.Ask}},
		},
		"a text in an address": {
			"a Policy compares hosts and paths, so a deny for any text denies all",
			`{"permission": {"webfetch": {"*": "allow", "*secret*": "deny"}}}`, "build",
			[]call{{"webfetch", url("https://go.dev/secret"), message.Deny}, {"webfetch", url("https://go.dev/"), message.Deny}},
		},
		"a command as text": {
			"quotes are not in a parsed command: the deny holds for all",
			`{"permission": {"bash": {"*": "allow", "echo \"x\"*": "deny", "ls *": "allow"}}}`, "build",
			[]call{{"bash", bash("echo \"x\" y"), message.Deny}, {"bash", bash("ls -l"), message.Allow}},
		},
		"an allow as text": {
			"is left out, and what stands before it decides",
			`{"permission": {"bash": {"*": "ask", "ls | wc *": "allow"}}}`, "build",
			[]call{{"bash", bash("ls | wc -l"), message.Ask}},
		},
		"an ask as text behind a deny": {
			"an ask about everything would lift the deny",
			`{"permission": {"bash": {"rm *": "deny", "a > b": "ask"}}}`, "build",
			[]call{{"bash", bash("rm x"), message.Deny}},
		},
		"the old form": {
			"tools are rules, and write is edit",
			`{"tools": {"write": false, "bash": false}}`, "build",
			[]call{{"edit", map[string]any{"path": "a", "oldString": "a", "newString": "b"}, message.Deny}, {"bash", bash("ls"), message.Deny}},
		},
		"the old form and the new one": {
			"a permission takes the place of the tool of its name, and stays in its place",
			`{"tools": {"bash": false}, "permission": {"*": "ask", "bash": {"*": "deny"}}}`, "build",
			[]call{{"bash", bash("ls"), message.Ask}},
		},
		"an agent's own rules": {
			"stand behind those of the file",
			`{"permission": {"bash": {"*": "deny"}, "edit": "allow"}, "agent": {"reviewer": {"permission": {"bash": {"git log*": "allow"}, "edit": "deny"}}}}`, "reviewer",
			[]call{{"bash", bash("git log -1"), message.Allow}, {"bash", bash("make"), message.Deny}, {"write", file("a.md"), message.Deny}},
		},
		"and not of another agent": {
			"rules of one agent are not those of the others",
			`{"agent": {"reviewer": {"permission": {"edit": "deny"}}}}`, "build",
			[]call{{"write", file("a.md"), message.Allow}},
		},
		"a variable in a pattern": {
			"is not known, so the deny holds for all",
			`{"permission": {"bash": {"*": "allow", "{env:X} *": "deny"}}}`, "build",
			[]call{{"bash", bash("ls"), message.Deny}},
		},
		"whole numbers first": {
			"as JavaScript orders an object",
			`{"permission": {"bash": {"*": "allow", "7": "deny"}}}`, "build",
			[]call{{"bash", bash("7"), message.Allow}},
		},
		"subagents": {
			"patterns of task are names of agents",
			`{"permission": {"task": {"*": "deny", "rev*": "ask"}}, "agent": {"reviewer": {"mode": "subagent", "description": "r"}, "other": {"mode": "subagent", "description": "o"}}}`, "build",
			[]call{{"task", map[string]any{"agent": "reviewer", "prompt": "x", "description": "x"}, message.Ask}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := carry(t, c.config)
			work := t.TempDir()
			for _, call := range c.calls {
				args, err := json.Marshal(call.args)
				if err != nil {
					t.Fatal(err)
				}
				got, err := decisions.CanI(t.Context(), decisions.AccessOptions{Paths: []string{r.Dir}, Agent: c.agent, Workspace: work, Tool: call.tool, Args: args})
				if err != nil {
					t.Fatalf("%s %s: %v", call.tool, args, err)
				}
				if got.Decision != call.want {
					t.Errorf("%s: %s %s: got %s (%s %s), want %s\n%s", c.reason, call.tool, args, got.Decision, got.Rule, got.Reason, call.want, written(t, r))
				}
			}
		})
	}
}

func TestSecretsAreNotWritten(t *testing.T) {
	r := carry(t, `{
		"model": "mine/m",
		"provider": {"mine": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "http://127.0.0.1:1/v1", "apiKey": "hunter2-key"}}},
		"mcp": {
			"a": {"type": "local", "command": ["server"], "environment": {"A_TOKEN": "hunter2-env", "B": "{env:HERS}", "C": "x{env:HERS}"}},
			"b": {"type": "local", "command": ["server", "--token=hunter2-arg"]},
			"c": {"type": "remote", "url": "https://x.example/mcp?key=hunter2-query"},
			"d": {"type": "remote", "url": "https://u:hunter2-user@x.example/mcp"},
			"e": {"type": "remote", "url": "https://x.example/mcp", "headers": {"Authorization": "Bearer hunter2-header", "X-Key": "{env:HERS}"}}
		}
	}`)
	list, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if all := written(t, r) + string(list); strings.Contains(all, "hunter2") {
		t.Errorf("a secret is written:\n%s", all)
	}
	var places []string
	for _, l := range r.Left {
		places = append(places, l.At)
	}
	for _, want := range []string{"/provider/mine/options/apiKey", "/mcp/a/environment/A_TOKEN", "/mcp/a/environment/C", "/mcp/b", "/mcp/c", "/mcp/d", "/mcp/e/headers/Authorization"} {
		if !slices.Contains(places, want) {
			t.Errorf("%s is not listed: %v", want, places)
		}
	}
	if n := strings.Count(written(t, r), "env: HERS"); n != 2 {
		t.Errorf("%d references, want 2:\n%s", n, written(t, r))
	}
}

func TestAPromptInAFileIsReadBesideTheConfigurationOnly(t *testing.T) {
	outer := t.TempDir()
	dir := filepath.Join(outer, "project")
	for name, text := range map[string]string{
		filepath.Join(outer, "secret.txt"):       "hunter2",
		filepath.Join(dir, "prompts/review.txt"): "Review it.\n",
		filepath.Join(dir, "opencode.json"): `{"agent": {"a": {"prompt": "{file:./prompts/review.txt}"}, "b": {"prompt": "{file:../secret.txt}"},
			"c": {"prompt": "{file:link.txt}"}, "d": {"prompt": "{file:prompts}"}}}`,
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../secret.txt", filepath.Join(dir, "link.txt")); err != nil {
		t.Fatal(err)
	}
	r, err := opencode.Write(filepath.Join(dir, "opencode.json"), filepath.Join(outer, "out"))
	if err != nil {
		t.Fatal(err)
	}
	text := written(t, r)
	if !strings.Contains(text, "Review it.") || strings.Contains(text, "hunter2") {
		t.Errorf("%s", text)
	}
	for _, want := range []string{"/agent/b/prompt", "/agent/c/prompt", "/agent/d/prompt"} {
		if !slices.ContainsFunc(r.Left, func(l opencode.Left) bool { return l.At == want }) {
			t.Errorf("%s is not listed", want)
		}
	}
}

func TestMistakesNameTheirPlace(t *testing.T) {
	dir := t.TempDir()
	for config, want := range map[string]string{
		"":                                      ":1:1: the configuration ends",
		"{\n  \"a\": 1\n  \"b\": 2}":            ":3:3: a comma or } is expected",
		"{\"a\": 1, \"a\": 2}":                  ":1:13: \"a\" is there twice",
		"{/* x":                                 ":1:2: a comment without its end",
		"{\"ä\": \"\n\"}":                       ":1:7: a text without its closing quote",
		"{\"a\": yes}":                          ":1:7: \"yes\" is no value",
		"[]":                                    ":1:1: an object is expected",
		"{} {}":                                 ":1:4: text behind the end",
		strings.Repeat("[", 100):                "nested more than 64 deep",
		strings.Repeat(" ", 1<<20) + "{}":       "more than 1048576 bytes",
		`{"permission": {"bash": "sometimes"}}`: "/permission/bash is none of allow, ask and deny",
		`{"permission": {"bash": {"a": 1}}}`:    "/permission/bash/a is none of allow, ask and deny",
		`{"permission": 7}`:                     "/permission is neither",
		`{"tools": {"bash": "no"}}`:             "/tools/bash is neither true nor false",
		`{"agent": {"a": {"mode": "both"}}}`:    "/agent/a/mode is none of",
		`{"agent": {"build": {"disable": true}}}`: "leaves no agent",
	} {
		from := filepath.Join(dir, "c.json")
		if err := os.WriteFile(from, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		var usage *reason.UsageError
		if _, err := opencode.Write(from, filepath.Join(dir, "out")); !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: got %v, want %q", config, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "out")); err == nil {
		t.Error("something was written")
	}
}

func TestNothingIsReplaced(t *testing.T) {
	dir := t.TempDir()
	from, out := filepath.Join(dir, "c.json"), filepath.Join(dir, "out")
	for name, text := range map[string]string{from: "{}", filepath.Join(out, "models.yaml"): "mine"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := opencode.Write(from, out); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("got %v", err)
	}
	if names, err := os.ReadDir(out); err != nil || len(names) != 1 {
		t.Errorf("%v, %v", names, err)
	}
}
