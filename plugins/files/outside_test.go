package files

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/plugins/sdk"
)

// outsideCall is a call for which paths outside the workspace were approved.
func outsideCall(d *desk, tool string, in args, paths ...sdk.OutsidePath) *sdk.Result {
	d.t.Helper()
	b, err := json.Marshal(in)
	if err != nil {
		d.t.Fatal(err)
	}
	res, err := d.tools[tool].Run(d.t.Context(), &sdk.Call{Workspace: d.dir, Run: d.run, Outside: paths}, b)
	if err != nil {
		d.t.Fatalf("%s %v: %v", tool, in, err)
	}
	return res
}

func TestOnlyWhatWasApprovedIsServedOutside(t *testing.T) {
	d := newDesk(t, map[string]string{"in.txt": "in\n"})
	out, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"a.txt": "alpha\n", "b.txt": "beta\n", "d/c.txt": "gamma\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(out, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(out, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"link": "a.txt", "d/away": "../b.txt", "dirlink": "d"} {
		if err := os.Symlink(to, filepath.Join(out, name)); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string, writable bool) sdk.OutsidePath {
		return sdk.OutsidePath{Name: filepath.Join(out, name), Path: filepath.Join(out, name), Writable: writable}
	}
	tests := map[string]struct {
		reason, tool string
		in           args
		approved     sdk.OutsidePath
		says         string
		fails        bool
	}{
		"the file":            {"", "read", args{"path": out + "/a.txt"}, at("a.txt", false), "1: alpha", false},
		"by dots":             {"a name is compared without dots", "read", args{"path": out + "/d/../a.txt"}, at("a.txt", false), "1: alpha", false},
		"by another name":     {"links were resolved when the call was judged", "read", args{"path": "x/../link"}, sdk.OutsidePath{Name: d.dir + "/link", Path: out + "/a.txt"}, "1: alpha", false},
		"beside it":           {"", "read", args{"path": out + "/b.txt"}, at("a.txt", false), "outside the workspace", true},
		"its folder":          {"", "list", args{"path": out}, at("a.txt", false), "outside the workspace", true},
		"in the folder":       {"the file itself was not judged", "read", args{"path": out + "/d/c.txt"}, at("d", false), "outside the workspace", true},
		"the folder":          {"", "grep", args{"path": out + "/d", "pattern": "."}, at("d", false), out + "/d/c.txt:1:gamma", false},
		"a link in it":        {"it leads out of what was approved", "grep", args{"path": out + "/d", "pattern": "beta"}, at("d", false), "", false},
		"a link":              {"what was approved was no link", "read", args{"path": out + "/link"}, at("link", false), "was replaced by a link", true},
		"a link to a folder":  {"", "list", args{"path": out + "/dirlink"}, at("dirlink", false), "was replaced by a link", true},
		"behind a link":       {"", "read", args{"path": out + "/dirlink/c.txt"}, at("dirlink/c.txt", false), "was replaced by a link", true},
		"not there":           {"what else is there is not told", "read", args{"path": out + "/b.tx"}, at("b.tx", false), "does not exist", true},
		"to be read":          {"", "write", args{"path": out + "/a.txt", "content": "x"}, at("a.txt", false), "may only be read", true},
		"not read before":     {"", "write", args{"path": out + "/d/c.txt", "content": "x"}, at("d/c.txt", true), "was not read in this run", true},
		"a new file":          {"whoever approved it has made it", "write", args{"path": out + "/new", "content": "x"}, at("new", true), "does not exist", true},
		"git's own":           {"", "write", args{"path": out + "/.git/hook", "content": "x"}, at(".git/hook", true), "does not exist", true},
		"by a pattern":        {"", "glob", args{"path": out + "/d", "pattern": "*"}, at("d", false), out + "/d/c.txt", false},
		"a pattern by itself": {"", "glob", args{"pattern": out + "/d/*.txt"}, at("d", false), out + "/d/c.txt", false},
		"the workspace still": {"", "read", args{"path": "in.txt"}, at("a.txt", false), "1: in", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			res := outsideCall(d, tc.tool, tc.in, tc.approved)
			if res.IsError != tc.fails || !strings.Contains(res.Text, tc.says) || strings.Contains(res.Text, "beta") || strings.Contains(res.Text, "Similar") {
				t.Errorf("%s: error %v: %s", tc.reason, res.IsError, res.Text)
			}
		})
	}
}

func TestAFileOutsideIsWrittenInPlace(t *testing.T) {
	d := newDesk(t, nil)
	file := filepath.Join(t.TempDir(), "a.txt")
	if err := os.WriteFile(file, []byte("alpha, and more\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	file, err := filepath.EvalSymlinks(file)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	p := sdk.OutsidePath{Name: file, Path: file, Writable: true}
	first := outsideCall(d, "read", args{"path": file}, p)
	var p1 past // a process that serves one call receives what earlier ones recorded
	p1.add(t, d, first)
	d.restart(p1)
	if res := outsideCall(d, "write", args{"path": file, "content": "beta\n"}, p); res.IsError {
		t.Fatal(res.Text)
	}
	b, err := os.ReadFile(file)
	after, e := os.Stat(file)
	if err != nil || e != nil || string(b) != "beta\n" || !os.SameFile(before, after) {
		t.Errorf("the file holds %q, %v, %v; the same file: %v", b, err, e, os.SameFile(before, after))
	}
	if names, err := os.ReadDir(filepath.Dir(file)); err != nil || len(names) != 1 {
		t.Errorf("beside it there is now %v, %v", names, err)
	}
}
