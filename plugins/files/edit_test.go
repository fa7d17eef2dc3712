package files

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestEditReplaces(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, file, before, after string
		all                         bool
		want, said                  string
	}{
		"exact":         {"what stands there", "a\nb\nc\n", "b", "B", false, "a\nB\nc\n", "1 replacement at line 2 (exact match)"},
		"inside a line": {"need not be a line", "x = 1; y = 2\n", "1; y", "3; y", false, "x = 3; y = 2\n", "1 replacement at line 1 (exact match)"},
		"several lines": {"or many", "a\nb\nc\n", "a\nb\n", "z\n", false, "z\nc\n", "1 replacement at line 1 (exact match)"},
		"delete":        {"newString may be empty", "a\nb\nc\n", "b\n", "", false, "a\nc\n", "1 replacement at line 2 (exact match)"},
		"all":           {"every place", "a b a\na\n", "a", "x", true, "x b x\nx\n", "3 replacements at line 1, 1, 2 (exact match)"},
		"crlf":          {"the model writes LF", "a\r\nb\r\nc\r\n", "a\nb", "x\ny", false, "x\r\ny\r\nc\r\n", "1 replacement at line 1 (exact match)"},
		"crlf new":      {"a new line gets the file's end", "a\r\nb\r\n", "b", "b\nc", false, "a\r\nb\r\nc\r\n", "1 replacement at line 2 (exact match)"},
		"lf from crlf":  {"the model writes CRLF", "a\nb\n", "a\r\nb", "x\r\ny", false, "x\ny\n", "1 replacement at line 1 (exact match)"},
		"bom":           {"the mark stays", "\xef\xbb\xbfa\nb\n", "a", "x", false, "\xef\xbb\xbfx\nb\n", "1 replacement at line 1 (exact match)"},
		"latin1":        {"bytes elsewhere stay", "caf\xe9\nb\n", "b", "c", false, "caf\xe9\nc\n", "1 replacement at line 2 (exact match)"},
		"blanks":        {"trailing blanks in the file", "if x {  \n\ty()\t\n}\n", "if x {\n\ty()\n}", "if z {\n}", false, "if z {\n}\n", "1 replacement at line 1 (match without trailing blanks)"},
		"blanks closed": {"the end of the line goes with it", "a \nb\n", "a\n", "", false, "b\n", "1 replacement at line 1 (match without trailing blanks)"},
		"mixed ends":    {"line ends count as blanks", "a\r\nb\nc\n", "a\nb", "x", false, "x\nc\n", "1 replacement at line 1 (match without trailing blanks)"},
		"deeper":        {"the file is deeper", "\t\tif x {\n\t\t\ty()\n\t\t}\n", "if x {\n\ty()\n}\n", "if x {\n\n\tz()\n}\n", false, "\t\tif x {\n\n\t\t\tz()\n\t\t}\n", "1 replacement at line 1 (exact match)"},
		"flatter":       {"the file is flatter", "if x {\n  y()\n}\n", "    if x {\n      y()\n    }", "    if z {\n    }", false, "if z {\n}\n", "1 replacement at line 1 (match with another indentation)"},
		"no newline":    {"the last line has no end", "a\nb", "b", "c", false, "a\nc", "1 replacement at line 2 (exact match)"},
		"all indented":  {"each place keeps its own indentation", "  a\n  b\n\ta\n\tb\n", "a\nb\n", "x\n", true, "  x\n\tx\n", "2 replacements at line 1, 3 (match with another indentation)"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "deeper" {
				tc.said = "1 replacement at line 1 (match with another indentation)"
			}
			d := newDesk(t, map[string]string{"f": tc.file})
			d.ok("read", args{"path": "f"})
			got := d.ok("edit", args{"path": "f", "oldString": tc.before, "newString": tc.after, "replaceAll": tc.all})
			d.want(tc.reason, d.get("f"), tc.want)
			size := count(len(tc.want), "byte")
			d.want(tc.reason, got, fmt.Sprintf("edited f: %s; %s, sha256:%x", tc.said, size, sha256.Sum256([]byte(tc.want))))
		})
	}
}

func TestEditRefuses(t *testing.T) {
	d := newDesk(t, map[string]string{
		"f": "alpha beta\ngamma\n\nbeta\nif x {\n\ty()\n}\n", "dir/x": "x", "many": strings.Repeat("same\n", 12), "ro": "x\n", ".git/config": "[core]\n", "sub/.git/hooks/h": "x", "nul": "a\x00",
	})
	d.link(".git", "innocent")
	d.link(".git/config", "conf")
	if err := os.Chmod(filepath.Join(d.dir, "ro"), 0o444); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"f", "many", "ro", ".git/config", "conf", "sub/.git/hooks/h"} {
		d.ok("read", args{"path": f})
	}
	git := " is in git's own folder, which is not written to: its files run programs. Use git commands"
	for _, tc := range []struct{ reason, path, before, after, want string }{
		{"equal", "f", "a", "a", "oldString and newString are equal: nothing to change"},
		{"empty", "f", "", "a", "oldString is empty: quote the text to replace; use write to make a file or to replace all of it"},
		{"not found, nearest line", "f", "alpha bets\nmore", "x", "oldString was not found in f. The line most like its first one is\n1: alpha beta"},
		{"not found at all", "f", "zzzzzzzzzz", "x", "oldString was not found in f, and no line is like it: read the file again"},
		{"several", "f", "beta", "x", "oldString stands 2 times in f, at lines 1, 4: add lines around it until it is unique, or set replaceAll"},
		{"very many", "many", "same", "x", "oldString stands 12 times in many, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …: *"},
		{"uneven indentation is no match", "f", "\tif x {\n\ty()\n\t}", "x", "oldString was not found in f. *"},
		{"a line that cannot get flatter", "f", "\tif x {\n\t\ty()\n\t}", "\tif x {\nz", "oldString was not found in f. *"},
		{"blank lines are no place", "f", " \n ", "x", "oldString was not found in f, and no line is like it: read the file again"},
		{"not read", "dir/x", "x", "y", "dir/x was not read in this run: read it first, then edit"},
		{"a folder", "dir", "x", "y", "dir is a folder, not a file"},
		{"missing", "g", "x", "y", "g does not exist*"},
		{"read-only", "ro", "x", "y", "ro is read-only (mode -r--r--r--)"},
		{"binary", "nul", "a", "b", "nul is not text but binary data: it cannot be changed as text"},
		{"git", ".git/config", "core", "x", ".git/config" + git},
		{"git beneath", "sub/.git/hooks/h", "x", "y", "sub/.git/hooks/h" + git},
		{"git by a link to the folder", "innocent/config", "core", "x", "innocent/config" + git},
		{"git by a link to the file", "conf", "core", "x", "conf" + git},
	} {
		d.want(tc.reason, d.refused("edit", args{"path": tc.path, "oldString": tc.before, "newString": tc.after}), tc.want)
	}
	d.want("nothing changed", d.get("f"), "alpha beta\ngamma\n\nbeta\nif x {\n\ty()\n}\n")
	d.want("nothing changed", d.get(".git/config"), "[core]\n")
}

func TestEditNeedsTheFileAsItIs(t *testing.T) {
	d := newDesk(t, map[string]string{"f": "a\n"})
	d.ok("read", args{"path": "f"})
	d.put("f", "a\nb\n")
	d.want("changed since", d.refused("edit", args{"path": "f", "oldString": "a", "newString": "x"}), "f has changed since it was read: read it again, then edit")
	d.want("write too", d.refused("write", args{"path": "f", "content": "x"}), "f has changed since it was read: read it again, then write")
	d.ok("read", args{"path": "f", "limit": 1}) // a part is enough: the hash is of the whole
	d.ok("edit", args{"path": "f", "oldString": "a", "newString": "x"})
	d.ok("edit", args{"path": "f", "oldString": "x", "newString": "y"}) // what was written is known
	d.run = "r2"
	d.want("another run has not read it", d.refused("edit", args{"path": "f", "oldString": "y", "newString": "z"}), "f was not read in this run: *")
	d.run = "r1"
	d.link("f", "alias")
	d.ok("edit", args{"path": "alias", "oldString": "y", "newString": "z"})
	if info, err := os.Lstat(filepath.Join(d.dir, "alias")); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced")
	}
	d.want("through a link the file changes", d.get("f"), "z\nb\n")
}

func TestWriteMakesAndReplaces(t *testing.T) {
	d := newDesk(t, map[string]string{"f": "a\n", "win": "a\r\nb\r\n", "bom": "\xef\xbb\xbfa\n", "dir/x": "", "script": "#!/bin/sh\n"})
	sum := func(s string) string {
		return fmt.Sprintf("%s, sha256:%x", count(len(s), "byte"), sha256.Sum256([]byte(s)))
	}
	d.want("new, with folders", d.ok("write", args{"path": "n/e/w.txt", "content": "hi\n"}), "created n/e/w.txt; "+sum("hi\n"))
	d.want("what was written is known", d.ok("write", args{"path": "n/e/w.txt", "content": "ho\n"}), "wrote n/e/w.txt; "+sum("ho\n"))
	d.want("existing, not read", d.refused("write", args{"path": "f", "content": "x"}), "f was not read in this run: read it first, then write")
	d.ok("read", args{"path": "f"})
	d.want("the same", d.ok("write", args{"path": "f", "content": "a\n"}), "left f as it was; "+sum("a\n"))
	d.ok("read", args{"path": "win"})
	d.want("line ends stay", d.ok("write", args{"path": "win", "content": "x\ny\n"}), "wrote win (kept CRLF line ends); "+sum("x\r\ny\r\n"))
	d.ok("read", args{"path": "bom"})
	d.want("the mark stays", d.ok("write", args{"path": "bom", "content": "x\n"}), "wrote bom (kept the byte order mark); "+sum("\xef\xbb\xbfx\n"))
	for _, p := range []string{"dir", "dir/", ".", "new/"} {
		d.refused("write", args{"path": p, "content": "x"})
	}
	d.want("beneath a file", d.refused("write", args{"path": "f/x", "content": "x"}), "open f/x: a part of the path is a file, not a folder")
	for _, p := range []string{".git/hooks/pre-commit", ".git", "a/.git/x", ".GIT/x"} {
		d.want("git", d.refused("write", args{"path": p, "content": "x"}), p+" is in git's own folder, *")
	}
	if err := os.Mkdir(filepath.Join(d.dir, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	d.link(".git", "g")
	d.want("git by a link", d.refused("write", args{"path": "g/hooks/pre-commit", "content": "x"}), "g/hooks/pre-commit is in git's own folder, *")
	d.link("nowhere", "dangling")
	d.want("a link to nothing", d.refused("write", args{"path": "dangling", "content": "x"}), "dangling is a symlink to nothing")
	if names, err := os.ReadDir(filepath.Join(d.dir, ".git")); err != nil || len(names) > 0 {
		t.Errorf("git's folder holds %v", names)
	}
}

func TestWriteKeepsTheMode(t *testing.T) {
	d := newDesk(t, map[string]string{"script": "#!/bin/sh\n", "secret": "x\n", "linked": "x\n"})
	for name, mode := range map[string]os.FileMode{"script": 0o755, "secret": 0o600} {
		if err := os.Chmod(filepath.Join(d.dir, name), mode); err != nil {
			t.Fatal(err)
		}
		d.ok("read", args{"path": name})
		d.ok("write", args{"path": name, "content": "#!/bin/bash\n"})
		info, err := os.Stat(filepath.Join(d.dir, name))
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	outside := filepath.Join(t.TempDir(), "hard")
	if err := os.Link(filepath.Join(d.dir, "linked"), outside); err != nil {
		t.Fatal(err)
	}
	d.ok("read", args{"path": "linked"})
	d.ok("write", args{"path": "linked", "content": "y\n"})
	if b, err := os.ReadFile(outside); err != nil || string(b) != "x\n" {
		t.Errorf("a hard link outside was written through: %q, %v", b, err)
	}
}

func TestAResultHoldsTheDiff(t *testing.T) {
	d := newDesk(t, map[string]string{"f": "a\nb\nc\n"})
	d.ok("read", args{"path": "f"})
	res := d.call(t.Context(), "edit", args{"path": "f", "oldString": "b", "newString": "x"})
	data, ok := res.Metadata.(fileData)
	if !ok || data.Path != "f" || data.Size != 6 || !strings.HasPrefix(data.Hash, "sha256:") || !res.Writes || res.Title != "f" {
		t.Fatalf("got %+v", res)
	}
	d.want("unified", data.Diff, "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n")
	res = d.call(t.Context(), "write", args{"path": "big", "content": numbered(60_000)})
	if data, ok = res.Metadata.(fileData); !ok || !data.DiffCut || len(data.Diff) > maxDiff || data.Diff == "" {
		t.Errorf("a large diff: %d bytes, cut %v", len(data.Diff), data.DiffCut)
	}
	res = d.call(t.Context(), "write", args{"path": "huge", "content": strings.Repeat("x\n", 2<<20)})
	if data, ok = res.Metadata.(fileData); !ok || !data.DiffCut || data.Diff != "" {
		t.Errorf("a huge diff: %d bytes, cut %v", len(data.Diff), data.DiffCut)
	}
	d.want("too large", d.refused("write", args{"path": "larger", "content": strings.Repeat("x", maxEdit+1)}), "larger would have *")
	d.put("given", strings.Repeat("x\n", maxEdit/2+1))
	d.want("too large to edit", d.refused("edit", args{"path": "given", "oldString": "x", "newString": "y"}), "given has 16777218 bytes, more than the 16777216 that can be edited here; use a command such as sed")
}

func TestConcurrentEditsOfOneFileAllCount(t *testing.T) {
	const n = 40
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "<%d>\n", i)
	}
	d := newDesk(t, map[string]string{"f": text.String()})
	d.ok("read", args{"path": "f"})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			res := d.call(t.Context(), "edit", args{"path": "f", "oldString": fmt.Sprintf("<%d>", i), "newString": fmt.Sprintf("[%d]", i)})
			if res.IsError {
				t.Errorf("edit %d: %s", i, res.Text)
			}
		})
	}
	wg.Wait()
	d.want("every edit", d.get("f"), strings.NewReplacer("<", "[", ">", "]").Replace(text.String()))
	names, err := os.ReadDir(d.dir)
	if err != nil || len(names) != 1 {
		t.Errorf("left behind: %v", names)
	}
}
