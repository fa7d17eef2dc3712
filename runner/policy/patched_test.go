package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
)

func patchEngine(t *testing.T, policy string) *Engine {
	t.Helper()
	tools := append(testTools(), Tool{
		Name: "patch", Builtin: "patch", Source: "builtin", Risk: "R1", Effects: []v1alpha1.Effect{"Read", "Write"}, Category: "Edit", Schema: schema("patch"), Digest: "d9",
	})
	c, problems := Compile(parse(t, policy), tools)
	for _, p := range problems {
		if !p.Warning {
			t.Fatal(p)
		}
	}
	return NewEngine([]*Compiled{c}, Context{Agent: Agent{Name: "a"}, Workspace: Workspace{Root: t.TempDir()}, Tools: tools})
}

func patching(lines ...string) message.ToolCall {
	return call("patch", map[string]any{"patch": "*** Begin Patch\n" + strings.Join(lines, "\n") + "\n*** End Patch"})
}

func TestAPatchIsJudgedForEachFile(t *testing.T) {
	w := Workspace{Root: "/w"}
	f := w.establish(&Tool{Builtin: "patch"}, nil, map[string]any{"patch": "*** Begin Patch\n*** Add File: a\n+x\n*** Update File: b/../c\n@@\n-x\n+y\n*** Update File: d\n*** Move to: /w/e\n*** Delete File: ../f\n*** End Patch"})
	var got []string
	for _, p := range f.paths {
		got = append(got, p.Op+" "+p.Clean)
	}
	want := []string{"write /w/a", "write /w/c", "read /w/c", "write /w/d", "read /w/d", "delete /w/d", "write /w/e", "write /f", "delete /f"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// One target that may not be changed, or not be read, denies the whole patch, however
// the patch names it.
func TestADenyOfOneTargetDeniesThePatch(t *testing.T) {
	const rules = `
default: allow
rules:
- {name: keys, when: "paths.exists(p, p.op == 'read' && p.real.endsWith('.pem'))", action: deny}
- {name: locked, when: "paths.exists(p, p.op != 'read' && p.real.contains('/locked/'))", action: deny}
- {name: no-delete, when: "paths.exists(p, p.op == 'delete' && p.real.endsWith('keep.txt'))", action: deny}
`
	const lists = `
default: allow
permissions:
- {permission: "*", pattern: "*", action: allow}
- {permission: read, pattern: "*.pem", action: deny}
- {permission: edit, pattern: "locked/*", action: deny}
- {permission: patch, pattern: "keep.txt", action: deny}
`
	fine := []string{"*** Add File: fine", "+x"}
	for name, c := range map[string]struct {
		reason string
		lines  []string
		want   message.Action
	}{
		"fine":              {"nothing forbids it", nil, message.Allow},
		"update":            {"a file that may not be changed", []string{"*** Update File: locked/f", "@@", "-a", "+b"}, message.Deny},
		"add":               {"a folder that may not be changed", []string{"*** Add File: locked/new", "+x"}, message.Deny},
		"dots":              {"another spelling", []string{"*** Add File: x/../locked/new", "+x"}, message.Deny},
		"absolute":          {"another spelling", []string{"*** Add File: $ROOT/locked/new", "+x"}, message.Deny},
		"move into":         {"a target of a move", []string{"*** Update File: a.txt", "*** Move to: locked/a.txt"}, message.Deny},
		"move out of":       {"the source of a move is deleted", []string{"*** Update File: locked/f", "*** Move to: f"}, message.Deny},
		"delete":            {"a deletion is a change", []string{"*** Delete File: locked/f"}, message.Deny},
		"read by a move":    {"a file that may not be read must not get a name under which it may", []string{"*** Update File: id.pem", "*** Move to: id.txt"}, message.Deny},
		"read by an update": {"an update tells whether its context is there", []string{"*** Update File: id.pem", "@@", "-guess", "+x"}, message.Deny},
		"by a link":         {"a link to it", []string{"*** Update File: alias.txt", "*** Move to: id.txt"}, message.Deny},
		"by a folder link":  {"a link to its folder", []string{"*** Add File: also/new", "+x"}, message.Deny},
		"by a hard link":    {"another name of it", []string{"*** Update File: other.txt", "*** Move to: id.txt"}, message.Deny},
		"keep":              {"deleted by a move", []string{"*** Update File: keep.txt", "*** Move to: gone.txt"}, message.Deny},
		"unreadable":        {"a patch that cannot be read is not known to be harmless", []string{"*** Update File: a.txt"}, message.Deny},
	} {
		for kind, policy := range map[string]string{"rules": rules, "lists": lists} {
			e := patchEngine(t, policy)
			root := e.context.Workspace.Root
			for _, f := range []string{"a.txt", "id.pem", "keep.txt", "locked/f"} {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(root, f)), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(root, f), []byte("x\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for from, to := range map[string]string{"alias.txt": "id.pem", "also": "locked"} {
				if err := os.Symlink(to, filepath.Join(root, from)); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Link(filepath.Join(root, "id.pem"), filepath.Join(root, "other.txt")); err != nil {
				t.Fatal(err)
			}
			lines := append(fine[:len(fine):len(fine)], c.lines...)
			for i := range lines {
				lines[i] = strings.ReplaceAll(lines[i], "$ROOT", root)
			}
			d := decide(t, e, patching(lines...))
			if d.Action != c.want {
				t.Errorf("%s, %s (%s): %s by %s: %s", name, kind, c.reason, d.Action, d.Rule, d.Message)
			}
		}
	}
}

// A call of task_apply is judged by each file, whatever its name: one that begins with a
// tilde is a file of the workspace, and many are judged like few.
func TestAMergeIsJudgedForEachFile(t *testing.T) {
	w := Workspace{Root: "/w"}
	files := []any{"~/a", "b"}
	for range 200 {
		files = append(files, "c")
	}
	f := w.establish(&Tool{Builtin: "task_apply"}, nil, map[string]any{"run": "run/x", "files": files, "deleted": []any{"d/e", "../f"}})
	var got []string
	for _, p := range append(f.paths[:2:2], f.paths[202:]...) {
		got = append(got, p.Op+" "+p.Clean)
		if p.InWorkspace != (p.Raw != "../f") {
			t.Errorf("%s is in the workspace: %t", p.Raw, p.InWorkspace)
		}
	}
	want := []string{"write /w/~/a", "write /w/b", "write /w/d/e", "delete /w/d/e", "write /f", "delete /f"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
