package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/plugins/sdk"
)

func patchOf(lines ...string) string {
	return "*** Begin Patch\n" + strings.Join(lines, "\n") + "\n*** End Patch"
}

// tree is every file of the workspace with its mode and content.
func (d *desk) tree() map[string]string {
	d.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(d.dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || name == d.dir {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(d.dir, name)
		all[rel] = info.Mode().String()
		if info.Mode().IsRegular() {
			b, err := os.ReadFile(name)
			all[rel] += " " + string(b)
			return err
		}
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return all
}

func TestPatchChangesSeveralFiles(t *testing.T) {
	d := newDesk(t, map[string]string{
		"main.go": "package main\n\nfunc main() {\n\ta()\n\tb()\n}\n", "old.txt": "x\n", "run.sh": "#!/bin/sh\n", "crlf": "a\r\nb\r\n",
		"image": "\x89PNG\x00\xff", "none": "last", "two": "f {\n  x\n}\ng {\n  x\n}\n",
	})
	if err := os.Chmod(filepath.Join(d.dir, "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	got := d.ok("patch", args{"patch": patchOf(
		"*** Add File: docs/a/new.md", "+# New", "+",
		"*** Update File: main.go", "@@ func main() {", " \ta()", "-\tb()", "+\tc()", " }", "@@", "+// end", "*** End of File",
		"*** Delete File: old.txt",
		"*** Update File: run.sh", "*** Move to: bin/run", "@@", " #!/bin/sh", "+echo hi",
		"*** Update File: crlf", "@@", "-b", "+c", "+d",
		"*** Update File: image", "*** Move to: images/i.png",
		"*** Update File: none", "@@", "-last", "+first", "+last",
		"*** Update File: two", "@@ g {", "-  x", "+  y",
	)})
	d.want("what was done", got, "added docs/a/new.md (2 lines)\nupdated main.go (2 places)\ndeleted old.txt\nmoved run.sh to bin/run\nupdated crlf (1 place)\nmoved image to images/i.png\nupdated none (1 place)\nupdated two (1 place)")
	want := map[string]string{
		"docs": "drwxr-xr-x", "docs/a": "drwxr-xr-x", "docs/a/new.md": "-rw-r--r-- # New\n\n",
		"main.go": "-rw-r--r-- package main\n\nfunc main() {\n\ta()\n\tc()\n}\n// end\n",
		"bin":     "drwxr-xr-x", "bin/run": "-rwxr-xr-x #!/bin/sh\necho hi\n", "crlf": "-rw-r--r-- a\r\nc\r\nd\r\n",
		"images": "drwxr-xr-x", "images/i.png": "-rw-r--r-- \x89PNG\x00\xff", "none": "-rw-r--r-- first\nlast\n",
		"two": "-rw-r--r-- f {\n  x\n}\ng {\n  y\n}\n",
	}
	if diff := cmp.Diff(want, d.tree()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	d.ok("edit", args{"path": "main.go", "oldString": "c()", "newString": "e()"}) // the run knows what it wrote
	d.ok("edit", args{"path": "docs/a/new.md", "oldString": "New", "newString": "Newer"})
}

func TestPatchRefusesAndChangesNothing(t *testing.T) {
	out := t.TempDir()
	if err := os.WriteFile(filepath.Join(out, "f"), []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	content := map[string]string{
		"f": "a\nb\nc\nb\n", "g": "g\n", "dir/h": "h\n", ".git/config": "[core]\n", "binary": "\x00\x01", "ro": "x\n", "big": strings.Repeat("x", maxEdit+1),
	}
	first := []string{"*** Add File: made/first", "+x", "*** Update File: g", "@@", "-g", "+G"}
	for name, tc := range map[string]struct {
		reason string
		lines  []string
		want   string
	}{
		"syntax":           {"a cut patch is no patch", []string{"*** Update File: f", "@@"}, "changes nothing"},
		"lines not there":  {"a hunk has to fit", []string{"*** Update File: f", "@@", "-z", "+y"}, "the lines to change were not found; they"},
		"ambiguous":        {"one place is meant", []string{"*** Update File: f", "@@", "-b", "+y"}, "stand 2 times in the file, at lines 2, 4"},
		"inside a line":    {"lines are whole", []string{"*** Update File: g", "@@", "-", "+y"}, "the patch names g twice"},
		"part of a line":   {"lines are whole", []string{"*** Update File: dir/h", "@@", "- h", "+y"}, "were not found"},
		"order":            {"hunks follow the file", []string{"*** Update File: f", "@@", "-c", "+C", "@@", "-a", "+A"}, "not found after line 3"},
		"header":           {"the line before is looked for", []string{"*** Update File: f", "@@ nothing", "-b", "+y"}, `no line "nothing"`},
		"nowhere":          {"lines alone have no place", []string{"*** Update File: f", "@@", "+y"}, "does not say where"},
		"end":              {"the end is the end", []string{"*** Update File: f", "@@", "-c", "+C", "*** End of File"}, "were not found"},
		"missing":          {"an update needs a file", []string{"*** Update File: none", "@@", "-x", "+y"}, "none does not exist"},
		"delete missing":   {"a deletion needs a file", []string{"*** Delete File: none"}, "none does not exist"},
		"exists":           {"an added file is new", []string{"*** Add File: f", "+x"}, "f exists"},
		"move onto a file": {"nothing is overwritten", []string{"*** Update File: f", "*** Move to: dir/h"}, "dir/h exists"},
		"binary":           {"binary data is no text", []string{"*** Update File: binary", "@@", "-x", "+y"}, "is not text"},
		"large":            {"too large", []string{"*** Delete File: big"}, "more than the 16777216"},
		"read-only":        {"its mode forbids it", []string{"*** Update File: ro", "@@", "-x", "+y"}, "ro is read-only"},
		"a folder":         {"a folder is no file", []string{"*** Delete File: dir"}, "is a folder"},
		"into a file":      {"a file is no folder", []string{"*** Add File: f/x", "+x"}, "f is a file, not a folder"},
		"a folder's name":  {"a folder is no file", []string{"*** Add File: x/", "+x"}, "names a folder"},
		"dots":             {"outside", []string{"*** Update File: ../" + filepath.Base(out) + "/f", "@@", "-secret", "+x"}, "outside the workspace"},
		"absolute":         {"outside", []string{"*** Delete File: " + out + "/f"}, "outside the workspace"},
		"move out":         {"outside", []string{"*** Update File: f", "*** Move to: " + out + "/stolen"}, "outside the workspace"},
		"link out":         {"a link leads out", []string{"*** Update File: out/f", "@@", "-secret", "+x"}, "outside the workspace"},
		"add by a link":    {"a link leads out", []string{"*** Add File: out/new", "+x"}, "out is a symlink"},
		"link in":          {"it was judged as another file", []string{"*** Update File: alias", "@@", "-h", "+x"}, "alias leads through a symlink to dir/h: name that file"},
		"folder link":      {"it was judged as another file", []string{"*** Delete File: also/h"}, "leads through a symlink to dir/h"},
		"dangling":         {"a link is no free name", []string{"*** Add File: dangling", "+x"}, "dangling exists"},
		"git":              {"git's files run programs", []string{"*** Update File: .git/config", "@@", "-[core]", "+x"}, "git's own folder"},
		"git hook":         {"git's files run programs", []string{"*** Add File: sub/.GIT/hooks/pre-commit", "+x"}, "git's own folder"},
		"move into git":    {"git's files run programs", []string{"*** Update File: f", "*** Move to: .git/hooks/pre-commit"}, "git's own folder"},
		"two names":        {"the order would decide", []string{"*** Update File: f", "@@", "-c", "+C", "*** Delete File: $WS/f"}, "names f twice"},
		"two links":        {"the order would decide", []string{"*** Delete File: dir/h", "*** Delete File: also/h"}, "leads through a symlink"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, content)
			d.link(out, "out")
			d.link("dir/h", "alias")
			d.link("dir", "also")
			d.link("nothing", "dangling")
			if err := os.Chmod(filepath.Join(d.dir, "ro"), 0o444); err != nil {
				t.Fatal(err)
			}
			before := d.tree()
			text := strings.ReplaceAll(patchOf(append(first[:len(first):len(first)], tc.lines...)...), "$WS", d.dir)
			if got := d.refused("patch", args{"patch": text}); !strings.Contains(got, tc.want) || !strings.HasSuffix(got, "; nothing was changed") {
				t.Errorf("%s: %s", tc.reason, got)
			}
			if diff := cmp.Diff(before, d.tree()); diff != "" {
				t.Errorf("%s (-before +after):\n%s", tc.reason, diff)
			}
			if b, err := os.ReadFile(filepath.Join(out, "f")); err != nil || string(b) != "secret\n" {
				t.Errorf("outside there is %q, %v", b, err)
			}
		})
	}
}

// Whatever step fails, and whatever happens to a file between the look at it and the
// step, the patch changes all files or none.
func TestPatchIsTakenBackWhereAStepFails(t *testing.T) {
	text := patchOf("*** Update File: a", "@@", "-a", "+A", "*** Add File: new/n", "+n", "*** Update File: b", "*** Move to: moved/b", "@@", "-b", "+B", "*** Delete File: c", "*** Update File: d", "@@", "-d", "+D")
	for at := range 6 {
		for name, c := range map[string]struct {
			meddle func(d *desk) error
			mine   []string // what the meddling changes itself
		}{
			"fails":   {func(*desk) error { return errors.New("the disk is full") }, nil},
			"changed": {func(d *desk) error { return os.WriteFile(filepath.Join(d.dir, "d"), []byte("other\n"), 0o644) }, []string{"d"}},
			"replaced": {func(d *desk) error {
				return errors.Join(os.Remove(filepath.Join(d.dir, "d")), os.Symlink("victim", filepath.Join(d.dir, "d")))
			}, []string{"d"}},
		} {
			if at > 3 && name != "fails" { // d has been written by then
				continue
			}
			t.Run(fmt.Sprint(name, " at ", at), func(t *testing.T) {
				d := newDesk(t, map[string]string{"a": "a\n", "b": "b\n", "c": "c\n", "d": "d\n", "victim": "v\n"})
				s := &set{seen: newSeen(), locks: newLocks()}
				s.between = func(step int) error {
					if step == at {
						return c.meddle(d)
					}
					return nil
				}
				for _, tool := range s.tools() {
					d.tools[tool.Name()] = tool
				}
				before := d.tree()
				if got := d.refused("patch", args{"patch": text}); !strings.Contains(got, "nothing was changed") {
					t.Errorf("%s", got)
				}
				after := d.tree()
				for _, name := range c.mine {
					delete(before, name)
					delete(after, name)
				}
				if diff := cmp.Diff(before, after); diff != "" {
					t.Errorf("(-before +after):\n%s", diff)
				}
				s.between = nil
				if name == "fails" {
					d.ok("patch", args{"patch": text})
				}
			})
		}
	}
}

func TestAPatchIsRemembered(t *testing.T) {
	d := newDesk(t, map[string]string{"a": "a\n", "b": "b\n"})
	res := d.call(t.Context(), "patch", args{"patch": patchOf("*** Update File: a", "@@", "-a", "+A", "*** Delete File: b", "*** Add File: c", "+c")})
	metadata, err := json.Marshal(res.Metadata)
	if err != nil {
		t.Fatal(err)
	}
	s := &set{seen: newSeen(), locks: newLocks()} // a process after a crash
	s.recallPatch(sdk.Past{Run: d.run, Workspace: d.dir, Metadata: metadata})
	for _, tool := range s.tools() {
		d.tools[tool.Name()] = tool
	}
	d.ok("edit", args{"path": "a", "oldString": "A", "newString": "x"})
	d.ok("write", args{"path": "c", "content": "y"})
}

func TestACancelledPatchChangesNothing(t *testing.T) {
	d := newDesk(t, map[string]string{"a": "a\n"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if res := d.call(ctx, "patch", args{"patch": patchOf("*** Delete File: a", "*** Add File: x/b", "+b")}); !res.IsError || d.get("a") != "a\n" {
		t.Errorf("%+v", res)
	}
	if len(d.tree()) != 1 {
		t.Errorf("left: %v", d.tree())
	}
}

func TestEditReplacesSeveralPlaces(t *testing.T) {
	d := newDesk(t, map[string]string{"f": "a\nb\nc\nb\n"})
	d.ok("read", args{"path": "f"})
	got := d.ok("edit", args{"path": "f", "edits": []args{{"oldString": "a", "newString": "x\na"}, {"oldString": "b", "newString": "B", "replaceAll": true}, {"oldString": "a\nB", "newString": "z"}}})
	d.want("each counts in the text before it", got, "edited f: 1 replacement at line 1 (exact match), 2 replacements at line 3, 5 (exact match), 1 replacement at line 2 (exact match); *")
	d.want("in order", d.get("f"), "x\nz\nc\nB\n")
	for name, c := range map[string]struct {
		in   args
		want string
	}{
		"half":    {args{"path": "f", "edits": []args{{"oldString": "x", "newString": "X"}, {"oldString": "nowhere", "newString": "X"}}}, "edit 2: oldString was not found in f*"},
		"empty":   {args{"path": "f", "edits": []args{{"oldString": "", "newString": "X"}}}, "edit 1: oldString is empty*"},
		"both":    {args{"path": "f", "oldString": "x", "newString": "y", "edits": []args{{"oldString": "z", "newString": "X"}}}, "give either oldString and newString or edits, not both"},
		"neither": {args{"path": "f", "oldString": "x"}, "newString is missing*"},
		"many":    {args{"path": "f", "edits": make([]args, 101)}, "arguments of edit: *"},
	} {
		d.want(name, d.refused("edit", c.in), c.want)
		d.want(name, d.get("f"), "x\nz\nc\nB\n")
	}
}
