package files

import (
	"fmt"
	"math/rand/v2"
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

// FuzzHits compares the search of whole texts with that of each line.
func FuzzHits(f *testing.F) {
	for _, seed := range hitSeeds {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(text) <= 4096 {
			sameHits(t, pattern, text)
		}
	})
}

var hitSeeds = [][2]string{
	{"a+", "ba\na\n\naab"},
	{"^$", "\n\nx\n"},
	{`\s*x`, "\n\n  x\nx"},
	{`[^a]b`, "a\nb\ncb"},
	{"a", "a\n"},
	{"(?i)kiss", "\u212ai\u017fs\nKISS\nkiss\nks"},
	{"(?i)stroke", "STRO\u212aE\nstroke\n"},
	{"[\ufffd]x|\ufffdy", "\xe9x\n\xe9y\n\xe2\x82\ny"},
	{"(?i)straße|naïve", "STRAßE\nNAÏVE\nnaive"},
	{"end$", "the end\r\nend\r\r\nend\r"},
	{"\r", "a\rb\r\nc\r"},
	{`\bfoo\b`, "foo\nfood\n_foo foo-bar\nfo\u00e9foo"},
	{`x\B.\B`, "xyz\nx y\nxy"},
	{"colou?r|(gr[ae]y)", "color\ncolour\ngrey\ngry"},
	{"(?:ab|cd|ef|gh|ij)k", "abk\ncd\nijk"},
	{"a.c|ac{2,3}", "abc\na\u00e9c\na\xffc\nacc"},
	{"", "x"},
	{`\x{D800}`, "\xed\xa0\x80"},
	{"(?s)a.b", "a\nb\na b"},
	{"(?U)a+?b", "aab"},
	{"x*", ""},
	{"(?:a|b)*a(?:a|b){8}", "abababaaababab\nbbbbbbbbbbbb\nabbbbbbbb"},
	{"e", strings.Repeat("the needle\n", 200)},
	{"ne9", strings.Repeat("one ne8 ne7\n", 300) + "ne9\n"},
}

// sameHits searches text whole, in pieces, and line by line with regexp alone.
func sameHits(t *testing.T, pattern, text string) {
	t.Helper()
	q, err := newQuery(grepIn{Pattern: pattern})
	if err != nil {
		return
	}
	want := eachLine(q.line, text)
	if got := q.scanner().hits([]byte(text), maxFound+1); !slices.Equal(got, want) {
		t.Errorf("pattern %q in %q: got %v, want %v", pattern, text, got, want)
	}
	if binary([]byte(text)[:min(len(text), sniffLen)]) || strings.HasPrefix(text, string(bom)) {
		return
	}
	s := q.scanner()
	s.buffer = make([]byte, max(sniffLen, len(text)/3))
	if got, err := s.scan(t.Context(), strings.NewReader(text), 0); err != nil || !slices.Equal(got, want) {
		t.Errorf("pattern %q in pieces of %q: got %v, %v, want %v", pattern, text, got, err, want)
	}
}

// eachLine is what a search finds, by regexp alone.
func eachLine(re *regexp.Regexp, text string) []hit {
	var all []hit
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if m := re.FindStringIndex(line); m != nil && len(all) <= maxFound {
			shown := readable([]byte(line))
			if len(line) > maxShown {
				shown = around([]byte(line), m[0])
			}
			all = append(all, hit{n, shown})
		}
	}
	return all
}

// TestSearchIsThatOfEachLine asks many small expressions about texts made of the same characters.
func TestSearchIsThatOfEachLine(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(all ...string) string { return all[random.IntN(len(all))] }
	var expression func(depth int) string
	expression = func(depth int) string {
		if depth == 0 {
			return pick("a", "b", "k", "S", "ab", "zq", "é", ".", "[ab]", "[^a]", `\w`, `\s`, `\b`, `\B`, "^", "$", `\A`, `\z`, "\ufffd", `\x{212a}`, "(?i:sk)", "(?i:Zé)")
		}
		switch random.IntN(6) {
		case 0:
			return "(?:" + expression(depth-1) + "|" + expression(depth-1) + ")"
		case 1:
			return "(" + expression(depth-1) + ")" + pick("*", "+", "?", "{2}", "{0,3}", "*?")
		default:
			return expression(depth-1) + expression(depth-1)
		}
	}
	for range 4000 {
		var text strings.Builder
		for range random.IntN(60) {
			text.WriteString(pick("a", "b", "ab", "k", "K", "s", "S", "zq", "Zq", "é", "É", "\u212a", "\u017f", "\xe9", "\xe2\x84", " ", "_", "\n", "\n", "\r\n", "\r", "aaaa"))
		}
		sameHits(t, pick("", "", "(?i)", "(?m)", "(?s)")+expression(3), text.String())
	}
}

func TestSearchOfLongLinesAndManyFalseTraces(t *testing.T) {
	long := strings.Repeat("x", stretch) + "needle" + strings.Repeat("y", 2*stretch)
	for _, text := range []string{
		long, "a\n" + long + "\nneedle\n", strings.Repeat("needle in a line\n", 40000) + "needle9\r\n" + long, strings.Repeat("ab", stretch) + "\nneedle9",
	} {
		for _, pattern := range []string{"needle", "needle9", "(?i)NEEDLE", "[n]eedl.y", "(?:a|b)*a(?:a|b){16}c|needle9"} {
			sameHits(t, pattern, text)
		}
	}
}
