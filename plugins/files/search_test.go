package files

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestListShowsSizesFoldersAndLinks(t *testing.T) {
	d := newDesk(t, map[string]string{"b.txt": "12345", "a/x": "1", "a/y/z": "", ".git/config": "x", ".hid": ""})
	d.link("b.txt", "l")
	d.link("/etc", "out")
	if err := syscall.Mkfifo(filepath.Join(d.dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	d.want("one level", d.ok("list", args{}), ".git/\n.hid 0\na/\nb.txt 5\nl -> b.txt\nout -> /etc\npipe (special file)\n")
	d.want("levels", d.ok("list", args{"path": "a", "depth": 2}), "x 1\ny/\ny/z 0\n")
	d.want("git's folder is not entered", d.ok("list", args{"depth": 9}), ".git/\n.hid 0\na/\na/x 1\na/y/\na/y/z 0\nb.txt 5\n*")
	d.want("a file", d.refused("list", args{"path": "b.txt"}), "b.txt is a file: list needs a folder")
	d.want("missing", d.refused("list", args{"path": "aa"}), "aa does not exist. Similar: a*")
	d.want("depth", d.refused("list", args{"depth": -1}), "depth counts from 1")
}

func TestListEndsAt500Entries(t *testing.T) {
	d := newDesk(t, nil)
	for i := range 510 {
		d.put(fmt.Sprintf("d/f%03d", i), "")
	}
	got := d.ok("list", args{"path": "d"})
	if n := strings.Count(got, "\n"); n != maxEntries || !strings.HasSuffix(got, "f499 0\n(the first 500 of 510 entries; name a folder within, or use glob)") {
		t.Errorf("%d lines, end %q", n, got[len(got)-90:])
	}
}

func TestGlobMatchesPaths(t *testing.T) {
	d := newDesk(t, map[string]string{
		"main.go": "", "a/b.go": "", "a/c/d.go": "", "a/c/e.ts": "", "a/c/f.tsx": "", ".github/w.yml": "", ".git/config": "", "a-b/x.go": "",
		".gitignore": "*.log\n/build/\nnode_modules/\n!keep.log\n# comment\n\n", "x.log": "", "keep.log": "", "build/out.go": "", "a/build/in.go": "",
		"node_modules/m/i.js": "", "a/.gitignore": "e.ts\r\n", "a/e.ts": "", "e.ts": "", "sub/.git": "gitdir: x", ".git/info/exclude": "secret.txt\n", "secret.txt": "",
	})
	d.link("a", "alink")
	for _, tc := range []struct {
		reason string
		in     args
		want   string
	}{
		{"** is real, sorted by path", args{"pattern": "**/*.go"}, "a-b/x.go\na/b.go\na/build/in.go\na/c/d.go\nmain.go\n"},
		{"* stays in a folder", args{"pattern": "*.go"}, "main.go\n"},
		{"braces", args{"pattern": "a/**/*.{ts,tsx}"}, "a/c/f.tsx\n"},
		{"dotfiles are found", args{"pattern": "**/*.yml"}, ".github/w.yml\n"},
		{"beneath a folder", args{"pattern": "**/*.go", "path": "a"}, "a/b.go\na/build/in.go\na/c/d.go\n"},
		{"a leading ./", args{"pattern": "./a/*.go"}, "a/b.go\n"},
		{"a plain path", args{"pattern": "a/b.go"}, "a/b.go\n"},
		{"ignored, and taken back", args{"pattern": "*.log"}, "keep.log\n"},
		{"ignored in a folder only", args{"pattern": "**/e.ts"}, "e.ts\n"},
		{"the clone's own exclusions", args{"pattern": "secret.*"}, "no file matches; to search all folders use **/secret.*"},
		{"git's own folder is not searched", args{"pattern": "**/config"}, "no file matches"},
		{"who names an ignored folder sees it", args{"pattern": "node_modules/**/*.js"}, "node_modules/m/i.js\n"},
		{"the same by path", args{"pattern": "*.go", "path": "build"}, "build/out.go\n"},
		{"nothing at this level", args{"pattern": "*.tsx"}, "no file matches; to search all folders use **/*.tsx"},
	} {
		d.want(tc.reason, d.ok("glob", tc.in), tc.want)
	}
	for _, tc := range []struct {
		reason string
		in     args
		want   string
	}{
		{"empty", args{"pattern": ""}, "pattern is empty"},
		{"malformed", args{"pattern": "[a"}, `pattern "[a" is no valid path pattern: *`},
		{"too long", args{"pattern": strings.Repeat("*", 1001)}, "pattern is longer than 1000 bytes"},
		{"a folder that is not there", args{"pattern": "*", "path": "nope"}, "nope does not exist*"},
		{"a file as folder", args{"pattern": "*", "path": "main.go"}, "main.go is a file: glob needs a folder"},
	} {
		d.want(tc.reason, d.refused("glob", tc.in), tc.want)
	}
}

func TestGlobSaysHowManyMore(t *testing.T) {
	d := newDesk(t, nil)
	for i := range 130 {
		d.put(fmt.Sprintf("f%03d", i), "")
	}
	got := d.ok("glob", args{"pattern": "f*"})
	if strings.Count(got, "\n") != maxFound || !strings.HasSuffix(got, "f099\n(30 more)") {
		t.Errorf("got %q", got)
	}
}

func TestGrepFindsLines(t *testing.T) {
	d := newDesk(t, map[string]string{
		"a.go": "package a\n\nfunc Foo() {}\n", "b/c.go": "func foo() {}\nx\n  func bar() {}", "b/crlf.txt": "one\r\nfoo end\r\nlast\r\n", "bin": "foo\x00foo\n",
		"long.js": strings.Repeat("é", 500) + "foo" + strings.Repeat("z", 500) + "\n", ".gitignore": "skip/\n", "skip/s.go": "func foo\n", ".git/hooks/x": "foo\n", "bom.txt": "\xef\xbb\xbffoo first\n", "latin": "foo \xe9\n",
	})
	if err := syscall.Mkfifo(filepath.Join(d.dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	d.link("a.go", "alias.go")
	for _, tc := range []struct {
		reason string
		in     args
		want   string
	}{
		{"file:line:text in order, links not twice", args{"pattern": "func [a-zA-Z]+"}, "a.go:3:func Foo() {}\nb/c.go:1:func foo() {}\nb/c.go:3:  func bar() {}\n"},
		{"flags", args{"pattern": "(?i)foo\\(", "include": "*.go"}, "a.go:3:func Foo() {}\nb/c.go:1:func foo() {}\n"},
		{"anchors are a line's", args{"pattern": "^x$"}, "b/c.go:2:x\n"},
		{"an end before CRLF", args{"pattern": "end$"}, "b/crlf.txt:2:foo end\n"},
		{"text anchors are a line's too", args{"pattern": `\Ax\z`}, "b/c.go:2:x\n"},
		{"a match never spans lines", args{"pattern": `x\s+func`}, "no line matches"},
		{"blanks may begin in the line before", args{"pattern": `\s*func bar`, "include": "*.go"}, "b/c.go:3:  func bar() {}\n"},
		{"a file", args{"pattern": "func", "path": "a.go"}, "a.go:3:func Foo() {}\n"},
		{"a folder", args{"pattern": "func", "path": "b"}, "b/c.go:1:func foo() {}\nb/c.go:3:  func bar() {}\n"},
		{"include by path", args{"pattern": "func", "include": "b/**"}, "b/c.go:1:func foo() {}\nb/c.go:3:  func bar() {}\n"},
		{"a long line is shown around the match", args{"pattern": "foo", "include": "*.js"}, "long.js:1:…" + strings.Repeat("é", 50) + "foo" + strings.Repeat("z", 247) + "…\n"},
		{"after the byte order mark", args{"pattern": "^foo", "include": "bom.txt"}, "bom.txt:1:foo first\n"},
		{"what is no UTF-8 is replaced", args{"pattern": "^foo", "include": "latin"}, "latin:1:foo \uFFFD\n"},
		{"ignored folders", args{"pattern": "func", "include": "s.go"}, "no line matches"},
		{"unless named", args{"pattern": "func", "path": "skip"}, "skip/s.go:1:func foo\n"},
		{"an empty line", args{"pattern": "^$", "path": "a.go"}, "a.go:2:\n"},
	} {
		d.want(tc.reason, d.ok("grep", tc.in), tc.want)
	}
	for _, tc := range []struct {
		reason string
		in     args
		want   string
	}{
		{"empty", args{"pattern": ""}, "pattern is empty"},
		{"malformed", args{"pattern": "a("}, "pattern is no valid regular expression (RE2: no lookaround, no backreferences): *"},
		{"lookahead", args{"pattern": "(?=a)"}, "pattern is no valid regular expression*"},
		{"malformed include", args{"pattern": "a", "include": "{"}, `include "{" is no valid path pattern: *`},
		{"binary, named", args{"pattern": "foo", "path": "bin"}, "grep bin: binary, or larger than 10 MiB: not searched"},
		{"a pipe", args{"pattern": "foo", "path": "pipe"}, "pipe is a named pipe, not a file"},
		{"missing", args{"pattern": "foo", "path": "b.go"}, "b.go does not exist. Similar: a.go*"},
	} {
		d.want(tc.reason, d.refused("grep", tc.in), tc.want)
	}
	res := d.call(t.Context(), "grep", args{"pattern": "func [a-z]+"})
	if m, ok := res.Metadata.(foundData); !ok || m.Matches != 2 || !slices.Equal(m.Files, []string{"b/c.go"}) {
		t.Errorf("got %+v", res.Metadata)
	}
}

func TestGrepIsTheSameEachTimeAndEndsAt100(t *testing.T) {
	d := newDesk(t, nil)
	for i := range 300 {
		d.put(fmt.Sprintf("d%d/f%03d.txt", i%7, i), strings.Repeat("pad\n", i)+"hit here\n")
	}
	d.put("d0/big", strings.Repeat("hit\n", 3<<20)) // more than is searched
	first := d.ok("grep", args{"pattern": "hit"})
	if strings.Count(first, ":hit here\n") != maxFound || !strings.HasSuffix(first, "(the first 100 matches; there are more: narrow pattern, path or include)") {
		t.Errorf("got %q", first)
	}
	for range 20 {
		if got := d.ok("grep", args{"pattern": "hit"}); got != first {
			t.Fatal("a second search found something else")
		}
	}
}

// FuzzHits holds the search of whole files against the search of each line.
func FuzzHits(f *testing.F) {
	f.Add("a+", "ba\na\n\naab")
	f.Add("^$", "\n\nx\n")
	f.Add(`\s*x`, "\n\n  x\nx")
	f.Add(`[^a]b`, "a\nb\ncb")
	f.Add("", "a\n")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(text) > 4096 || strings.Contains(text, "\r") {
			return
		}
		if _, err := regexp.Compile(pattern); err != nil {
			return
		}
		q, err := newQuery(grepIn{Pattern: pattern})
		if err != nil {
			return
		}
		got, err := q.search(t.Context(), []byte(text))
		want := q.byLine([]byte(text))
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("pattern %q in %q: got %v, want %v", pattern, text, got, want)
		}
	})
}
