package files

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/plugins/sdk"
)

// bench is a workspace with the tools of one process.
type desk struct {
	t     *testing.T
	dir   string
	run   string
	tools map[string]sdk.Tool
}

func newDesk(t *testing.T, content map[string]string) *desk {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, dir: dir, run: "r1", tools: map[string]sdk.Tool{}}
	for _, tool := range Tools() {
		d.tools[tool.Name()] = tool
	}
	for name, text := range content {
		d.put(name, text)
	}
	return d
}

func (d *desk) put(name, text string) {
	d.t.Helper()
	p := filepath.Join(d.dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) link(target, name string) {
	d.t.Helper()
	if err := os.Symlink(target, filepath.Join(d.dir, name)); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) get(name string) string {
	d.t.Helper()
	b, err := os.ReadFile(filepath.Join(d.dir, name))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(b)
}

type args map[string]any

func (d *desk) call(ctx context.Context, tool string, in args) *sdk.Result {
	d.t.Helper()
	b, err := json.Marshal(in)
	if err != nil {
		d.t.Fatal(err)
	}
	res, err := d.tools[tool].Run(ctx, &sdk.Call{Workspace: d.dir, Run: d.run}, b)
	if err != nil {
		d.t.Fatalf("%s %v: %v", tool, in, err)
	}
	return res
}

// ok runs a call that must succeed, refused one that must not.
func (d *desk) ok(tool string, in args) string {
	d.t.Helper()
	res := d.call(d.t.Context(), tool, in)
	if res.IsError {
		d.t.Fatalf("%s %v: %s", tool, in, res.Text)
	}
	return res.Text
}

func (d *desk) refused(tool string, in args) string {
	d.t.Helper()
	res := d.call(d.t.Context(), tool, in)
	if !res.IsError {
		d.t.Fatalf("%s %v was not refused: %s", tool, in, res.Text)
	}
	return res.Text
}

// want compares a text; a trailing * matches anything.
func (d *desk) want(reason, got, want string) {
	d.t.Helper()
	want = strings.ReplaceAll(want, "$WS", d.dir)
	if head, open := strings.CutSuffix(want, "*"); open {
		if !strings.HasPrefix(got, head) {
			d.t.Errorf("%s:\n got %q\nwant %q…", reason, got, head)
		}
		return
	}
	if got != want {
		d.t.Errorf("%s:\n got %q\nwant %q", reason, got, want)
	}
}

func TestOutsideIsRefusedByEveryTool(t *testing.T) {
	d := newDesk(t, map[string]string{"in.txt": "in\n", "sub/x": "x\n"})
	out, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(out, "secret")
	if err := os.WriteFile(secret, []byte("secret\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	d.link(secret, "filelink")
	d.link(out, "dirlink")
	d.link("../../../../../../../../"+secret, "dots")
	d.link("/proc/self/root", "proc")
	d.link("dirlink", "chain")
	direct := " is outside the workspace $WS (external_directory): the file tools serve only files of the workspace, and paths that the policy or a person allows by name. Use a path within it, or have the file copied there"
	linked := " leads outside the workspace $WS through a symlink (external_directory): the file tools serve only files of the workspace, and follow only relative links within it"
	for _, tc := range []struct{ reason, path, want string }{
		{"absolute", secret, secret + direct},
		{"system file", "/etc/passwd", "/etc/passwd" + direct},
		{"dots", "../secret", "../secret" + direct},
		{"dots within", "sub/../../secret", "sub/../../secret" + direct},
		{"absolute with dots", d.dir + "/../secret", d.dir + "/../secret" + direct},
		{"a folder whose name begins like the workspace", d.dir + "x/secret", d.dir + "x/secret" + direct},
		{"link to a file", "filelink", "filelink" + linked},
		{"link to a folder", "dirlink/secret", "dirlink/secret" + linked},
		{"relative link", "dots", "dots" + linked},
		{"link through /proc", "proc/etc/passwd", "proc/etc/passwd" + linked},
		{"link to a link", "chain/secret", "chain/secret" + linked},
		{"process memory", "/proc/self/mem", "/proc/self/mem" + direct},
		{"NUL", "a\x00b", `path "a\x00b" holds a NUL character`},
	} {
		d.want(tc.reason, d.refused("read", args{"path": tc.path}), tc.want)
		d.want(tc.reason, d.refused("list", args{"path": tc.path}), tc.want)
		d.want(tc.reason, d.refused("glob", args{"path": tc.path, "pattern": "*"}), tc.want)
		d.want(tc.reason, d.refused("grep", args{"path": tc.path, "pattern": "s"}), tc.want)
		d.want(tc.reason, d.refused("edit", args{"path": tc.path, "oldString": "s", "newString": "t"}), tc.want)
		d.want(tc.reason, d.refused("write", args{"path": tc.path, "content": "x"}), tc.want)
	}
	d.refused("write", args{"path": "dirlink/new", "content": "x"})
	d.refused("write", args{"path": "dirlink/a/b/new", "content": "x"})
	d.refused("glob", args{"pattern": "/etc/*"})
	d.refused("glob", args{"pattern": "../*"})
	if names, _ := os.ReadDir(out); len(names) != 1 {
		t.Errorf("something was written outside: %v", names)
	}
	if text := d.ok("grep", args{"pattern": "secret|root"}); text != "no line matches" {
		t.Errorf("grep went through a link: %q", text)
	}
	if b, _ := os.ReadFile(secret); string(b) != "secret\n" {
		t.Errorf("the secret is now %q", b)
	}
}

func TestAbsolutePathsWithinTheWorkspaceWork(t *testing.T) {
	d := newDesk(t, map[string]string{"a/b.txt": "x\n"})
	d.want("absolute", d.ok("read", args{"path": d.dir + "/a/b.txt"}), "1: x\n")
	d.want("absolute root", d.ok("list", args{"path": d.dir}), "a/\n")
	d.want("absolute pattern", d.ok("glob", args{"pattern": d.dir + "/**/*.txt"}), "a/b.txt\n")
	other := filepath.Join(t.TempDir(), "ws")
	if err := os.Symlink(d.dir, other); err != nil {
		t.Fatal(err)
	}
	res, err := d.tools["read"].Run(t.Context(), &sdk.Call{Workspace: other}, json.RawMessage(`{"path":"`+other+`/a/b.txt"}`))
	if err != nil || res.Text != "1: x\n" {
		t.Errorf("a workspace behind a link: %v %v", res, err)
	}
}

func TestACallNeedsAWorkspace(t *testing.T) {
	for _, tool := range Tools() {
		for _, ws := range []string{"", "relative", "/nonexistent-workspace"} {
			in := map[string]string{
				"read": `{"path":"a"}`, "list": `{}`, "glob": `{"pattern":"*"}`, "grep": `{"pattern":"a"}`, "codesearch": `{"query":"a"}`,
				"edit": `{"path":"a","oldString":"b","newString":"c"}`, "write": `{"path":"a","content":""}`,
				"workspace_fs": `{"op":"read","path":"a"}`,
				"patch":        `{"patch":"*** Begin Patch\n*** Delete File: a\n*** End Patch"}`,
			}[tool.Name()]
			res, err := tool.Run(t.Context(), &sdk.Call{Workspace: ws}, json.RawMessage(in))
			if err != nil || !res.IsError || !strings.Contains(res.Text, "workspace") {
				t.Errorf("%s in %q: %+v, %v", tool.Name(), ws, res, err)
			}
		}
	}
}

func TestUnknownFieldsAreErrors(t *testing.T) {
	d := newDesk(t, nil)
	for _, tc := range []struct {
		tool string
		in   args
	}{{"read", args{"path": "a", "file": 1}}, {"list", args{"dir": "a"}}, {"glob", args{"pattern": "*", "x": 1}}, {"grep", args{"pattern": "*", "x": 1}}, {"edit", args{"path": "a", "oldString": "a", "newString": "b", "x": 1}}, {"write", args{"path": "a", "content": "", "x": 1}}, {"read", args{}}, {"read", args{"path": 7}}} {
		if res := d.call(t.Context(), tc.tool, tc.in); res.Code != sdk.CodeSchema {
			t.Errorf("%s %v: code %q", tc.tool, tc.in, res.Code)
		}
	}
}

func TestAnEndedCallStops(t *testing.T) {
	d := newDesk(t, map[string]string{"a": "x\n", "b/c": "y\n"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for tool, in := range map[string]args{"read": {"path": "a"}, "list": {}, "glob": {"pattern": "**"}, "grep": {"pattern": "x"}} {
		if res := d.call(ctx, tool, in); res.Code != sdk.CodeCancelled {
			t.Errorf("%s: got code %q, text %q", tool, res.Code, res.Text)
		}
	}
}
