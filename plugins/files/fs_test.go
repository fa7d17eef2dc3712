package files

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestWorkspaceFS(t *testing.T) {
	d := newDesk(t, map[string]string{"a.txt": "x\n", "pic.png": "\x89PNG\r\n\x1a\n\x00\x00", "nul": "a\x00", "big": strings.Repeat("x", maxFSRead+1), ".git/config": "[core]\n"})
	d.link("/etc", "out")
	d.want("read", d.ok("workspace_fs", args{"op": "read", "path": "a.txt"}), `{"ok":true,"op":"read","path":"a.txt","size":2,"mtime":"2*`)
	if got := d.ok("workspace_fs", args{"op": "read", "path": "a.txt"}); !strings.HasSuffix(got, "}\nx\n") {
		t.Errorf("read: %q", got)
	}
	d.ok("edit", args{"path": "a.txt", "oldString": "x", "newString": "y"}) // it was read
	d.want("append", d.ok("workspace_fs", args{"op": "append", "path": "a.txt", "content": "z\n"}), `{"ok":true,"op":"append","path":"a.txt","size":4,"mtime":"2*`)
	d.want("append to nothing", d.ok("workspace_fs", args{"op": "append", "path": "new/b.txt", "content": "b"}), `{"ok":true,"op":"append","path":"new/b.txt","size":1,*`)
	d.ok("workspace_fs", args{"op": "write", "path": "c.json", "content": `{"a":1}`, "validate": "json"})
	d.want("contents", d.get("a.txt")+d.get("new/b.txt")+d.get("c.json"), "y\nz\nb"+`{"a":1}`)
	before := d.tree()
	for name, c := range map[string]struct {
		reason string
		in     args
		want   string
	}{
		"json":         {"the whole file has to be valid", args{"op": "append", "path": "c.json", "content": "}", "validate": "json"}, "c.json would not be valid: JSON:"},
		"two values":   {"one value", args{"op": "append", "path": "c.json", "content": "1", "validate": "json"}, "more than one value"},
		"yaml":         {"invalid YAML", args{"op": "write", "path": "d.yaml", "content": "a: [", "validate": "yaml"}, "YAML: "},
		"key twice":    {"readers refuse it", args{"op": "write", "path": "d.yaml", "content": "a: 1\nb: {c: 1, c: 2}\n", "validate": "yaml"}, `the key \"c\" is there twice`},
		"no front":     {"it has to begin so", args{"op": "write", "path": "e.md", "content": "# x\n", "validate": "frontmatter"}, "the first line is not ---"},
		"open front":   {"it has to end", args{"op": "write", "path": "e.md", "content": "---\na: 1\n", "validate": "frontmatter"}, "not closed"},
		"bad front":    {"it is YAML", args{"op": "write", "path": "e.md", "content": "---\na: [\n---\n", "validate": "frontmatter"}, "YAML: "},
		"list":         {"it is a mapping", args{"op": "write", "path": "e.md", "content": "---\n- a\n---\n", "validate": "frontmatter"}, "not a mapping"},
		"image":        {"an image is no text", args{"op": "read", "path": "pic.png"}, "is not text but image/png"},
		"binary":       {"nor are these bytes", args{"op": "read", "path": "nul"}, "is not text but binary data"},
		"over image":   {"it would be lost", args{"op": "write", "path": "pic.png", "content": "x"}, "cannot be changed as text"},
		"write binary": {"only text is written", args{"op": "write", "path": "f", "content": "a\x00"}, "is not text"},
		"large":        {"a result shows all", args{"op": "read", "path": "big"}, "use read with offset"},
		"missing":      {"nothing is there", args{"op": "read", "path": "nothing"}, "does not exist"},
		"a folder":     {"no file", args{"op": "write", "path": "new", "content": "x"}, "is a folder"},
		"outside":      {"not in the workspace", args{"op": "write", "path": "../x", "content": "x"}, "outside the workspace"},
		"link out":     {"not in the workspace", args{"op": "read", "path": "out/passwd"}, "outside the workspace"},
		"git":          {"git's files run programs", args{"op": "append", "path": ".git/config", "content": "x"}, "git's own folder"},
		"no content":   {"nothing to write", args{"op": "write", "path": "a.txt"}, "write and append have a content"},
		"content":      {"a read writes nothing", args{"op": "read", "path": "a.txt", "content": "x"}, "write and append have a content"},
	} {
		got := d.refused("workspace_fs", c.in)
		if !strings.HasPrefix(got, `{"ok":false,`) || !strings.Contains(got, c.want) {
			t.Errorf("%s (%s): %s", name, c.reason, got)
		}
	}
	if after := d.tree(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("a refused call has changed something:\n%v\n%v", before, after)
	}
	d.ok("workspace_fs", args{"op": "write", "path": "g.md", "content": "\xef\xbb\xbf---\r\na: &x 1\r\nb: *x\r\n---\r\ntext", "validate": "frontmatter"})
	d.ok("workspace_fs", args{"op": "write", "path": "h.yaml", "content": "a: 1\n---\nb: 2\n", "validate": "yaml"})
}

func TestAppendsAreOneAfterTheOther(t *testing.T) {
	d := newDesk(t, nil)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() { d.ok("workspace_fs", args{"op": "append", "path": "log", "content": fmt.Sprintln(i)}) })
	}
	wg.Wait()
	if n := strings.Count(d.get("log"), "\n"); n != 50 {
		t.Errorf("%d of 50 lines are there", n)
	}
	names, err := os.ReadDir(filepath.Join(d.dir))
	if err != nil || len(names) != 1 {
		t.Errorf("left behind: %v, %v", names, err)
	}
}

func TestYAMLBombsAreNotExpanded(t *testing.T) {
	bomb := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c <= 'z'; c++ {
		bomb += fmt.Sprintf("%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
	}
	if err := validYAML([]byte(bomb)); err != nil {
		t.Errorf("it is valid, and read without its copies: %v", err)
	}
	if err := validYAML([]byte("a: &a 1\nb: [" + strings.Repeat("*a, ", maxAliases+1) + "]\n")); err == nil {
		t.Error("too many aliases are accepted")
	}
}
