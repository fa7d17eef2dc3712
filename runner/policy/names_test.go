package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
)

func hardLink(t testing.TB, root, old, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(root, old), filepath.Join(root, name)); err != nil {
		t.Fatal(err)
	}
}

// bySource makes an engine whose workspace is a copy: in it every file is one of
// its own, as the copy of a run makes them.
func bySource(t *testing.T, text, source string) *Engine {
	t.Helper()
	e := engine(t, text)
	e.context.Workspace.Source = source
	return e
}

func TestAFileThatMayNotBeReadIsUnreadableByItsOtherNames(t *testing.T) {
	for name, text := range ways {
		inPlace := engine(t, text)
		root := inPlace.context.Workspace.Root
		put(t, root, ".env", "d/a.go", "a.go")
		hardLink(t, root, ".env", "hard")
		hardLink(t, root, ".env", "d/deep/hard.txt")
		hardLink(t, root, "a.go", "b.go")
		copied := bySource(t, text, root)
		put(t, copied.context.Workspace.Root, ".env", "hard", "d/a.go", "d/deep/hard.txt", "a.go", "b.go")
		for kind, e := range map[string]*Engine{"in place": inPlace, "copied": copied} {
			for _, c := range []message.ToolCall{
				bash("cat hard"), bash("cp hard x"), bash("cat < d/deep/hard.txt"), bash("grep -r x d"), bash("mytool ./hard"), bash("cat h*"), bash("ln -s hard x"),
				call("read", map[string]any{"path": "hard"}), call("read", map[string]any{"path": "./d/../d/deep/hard.txt"}), call("grep", map[string]any{"path": "hard", "pattern": "x"}),
			} {
				if d := decide(t, e, c); d.Action != message.Deny && c.Tool != "grep" {
					t.Errorf("%s, %s: %s %s: got %s by %s (%s)", name, kind, c.Tool, c.Args, d.Action, d.Rule, d.Message)
				} else if d.Action == message.Allow {
					t.Errorf("%s, %s: %s %s: allowed by %s", name, kind, c.Tool, c.Args, d.Rule)
				}
			}
			for _, c := range []message.ToolCall{bash("cat b.go"), bash("grep -r x d/a.go"), call("read", map[string]any{"path": "b.go"}), bash("ls hard.txt")} {
				if d := decide(t, e, c); d.Action != message.Allow {
					t.Errorf("%s, %s: %s %s: got %s by %s (%s)", name, kind, c.Tool, c.Args, d.Action, d.Rule, d.Message)
				}
			}
			got, err := e.Unreadable(t.Context(), call("grep", map[string]any{"pattern": "x"}), []string{"a.go", "b.go", "hard", "d/a.go", "d/deep/hard.txt", ".env"})
			if diff := cmp.Diff([]string{"hard", "d/deep/hard.txt", ".env"}, got); diff != "" || err != nil {
				t.Errorf("%s, %s: %v, unreadable (-want +got):\n%s", name, kind, err, diff)
			}
			if _, err := e.Load(t.Context(), filepath.Join(e.context.Workspace.Root, "hard"), "x"); err == nil {
				t.Errorf("%s, %s: the runner loads it", name, kind)
			}
		}
	}
}

func TestALinkThatIsMadeLaterIsFound(t *testing.T) {
	e := engine(t, ways["rule"])
	root := e.context.Workspace.Root
	put(t, root, ".env", "a.go")
	hardLink(t, root, "a.go", "b.go")
	if d := decide(t, e, bash("cat b.go")); d.Action != message.Allow {
		t.Fatalf("got %s by %s", d.Action, d.Rule)
	}
	hardLink(t, root, ".env", "x")
	if d := decide(t, e, bash("cat x")); d.Action != message.Deny {
		t.Errorf("got %s by %s", d.Action, d.Rule)
	}
	if err := os.Rename(filepath.Join(root, ".env"), filepath.Join(root, "new.env")); err != nil {
		t.Fatal(err)
	}
	if d := decide(t, e, bash("cat x")); d.Action != message.Deny {
		t.Errorf("the other name has changed: got %s by %s", d.Action, d.Rule)
	}
}

func TestATreeOfHardLinksIsAllowed(t *testing.T) {
	e := engine(t, ways["rule"], "rules: [{name: outside, when: \"paths.exists(p, !p.inWorkspace)\", action: ask}]")
	root := e.context.Workspace.Root
	put(t, root, ".env")
	store := t.TempDir()
	for i := range 300 {
		put(t, store, fmt.Sprint(i))
		name := filepath.Join(root, "node_modules", ".store", fmt.Sprint(i), "index.js")
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Link(filepath.Join(store, fmt.Sprint(i)), name); err != nil {
			t.Fatal(err)
		}
		hardLink(t, root, fmt.Sprintf("node_modules/.store/%d/index.js", i), fmt.Sprintf("node_modules/p%d/index.js", i))
	}
	for _, c := range []message.ToolCall{
		bash("cat node_modules/p7/index.js"), bash("grep -r x node_modules/p8"), bash("grep -r x node_modules"), call("read", map[string]any{"path": "node_modules/p9/index.js"}),
	} {
		if d := decide(t, e, c); d.Action != message.Allow {
			t.Errorf("%s: got %s by %s (%s)", c.Args, d.Action, d.Rule, d.Message)
		}
	}
}

func TestRulesReadHowManyNamesAFileHas(t *testing.T) {
	e := engine(t, "rules: [{name: linked, when: \"paths.exists(p, p.links > 1)\", action: ask}]\ndefault: allow")
	root := e.context.Workspace.Root
	put(t, root, "a", "b/c")
	if err := os.Link(filepath.Join(root, "a"), filepath.Join(t.TempDir(), "elsewhere")); err != nil {
		t.Fatal(err)
	}
	for script, want := range map[string]message.Action{"cat a": message.Ask, "cat b/c": message.Allow, "cat none": message.Allow, "ls b": message.Allow, "cat ~/none": message.Allow} {
		if d := decide(t, e, bash(script)); d.Action != want {
			t.Errorf("%s: got %s by %s (%s)", script, d.Action, d.Rule, d.Message)
		}
	}
	hardLink(t, root, "b/c", "d/e")
	if d := decide(t, e, call("read", map[string]any{"path": "b/c"})); len(d.Always) > 0 || d.Once == "" {
		t.Errorf("what is said of one name is remembered for others: %v", d.Always)
	}
}

func BenchmarkManyHardLinks(b *testing.B) {
	e := engine(b, ways["rule"])
	root := e.context.Workspace.Root
	put(b, root, "a")
	for i := range 15_000 {
		hardLink(b, root, "a", fmt.Sprintf("d%d/%d", i%50, i))
	}
	for b.Loop() {
		if d := decide(b, e, bash("cat d7/7")); d.Action != message.Allow {
			b.Fatalf("got %s by %s", d.Action, d.Rule)
		}
	}
}

// TestAFileOfASkillIsJudgedInTheSource: it is read there without links, and what a run has
// put at its place in the copy says nothing about it.
func TestAFileOfASkillIsJudgedInTheSource(t *testing.T) {
	source := t.TempDir()
	put(t, source, "s/private/f.txt", "s/open/f.txt")
	for name, text := range map[string]string{
		"rule on the real path": "rules: [{name: a, match: {tools: [read]}, when: \"paths.exists(p, p.real.contains('/private/'))\", action: deny}]",
		"list":                  "permissions: [{permission: '*', action: allow}, {permission: read, pattern: '*/private/*', action: deny}]",
	} {
		root := t.TempDir()
		loads := Tool{Name: "skill", Builtin: "skill", Source: "builtin", Risk: "R0", Effects: []v1alpha1.Effect{"Read"}, Category: "Read", Schema: schema("name", "file"), Digest: "d9"}
		e := NewEngine([]*Compiled{compile(t, text)}, Context{Workspace: Workspace{Root: root, Source: source}, Tools: append(testTools(), loads), Now: time.Now})
		put(t, root, "s/open/f.txt")
		if err := os.Symlink("open", filepath.Join(root, "s", "private")); err != nil {
			t.Fatal(err)
		}
		got, err := e.Unreadable(t.Context(), call("skill", map[string]any{"name": "s"}), []string{"s/private/f.txt", "s/open/f.txt"})
		if diff := cmp.Diff([]string{"s/private/f.txt"}, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}
