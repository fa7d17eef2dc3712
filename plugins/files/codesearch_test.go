package files

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/plugins/sdk"
)

// project writes files into a workspace.
func project(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// ranked returns the files that a search shows, the best first, and its text.
func ranked(t testing.TB, dir string, in codeSearchIn, hidden ...string) ([]string, string) {
	t.Helper()
	res, err := (&set{}).codesearch(t.Context(), &sdk.Call{Workspace: dir, Hidden: hidden}, in)
	if err != nil {
		t.Fatal(err)
	}
	return res.Metadata.(foundData).Files, res.Text //nolint:forcetypeassert // of this tool
}

func TestTheFileThatAQueryIsAboutComesFirst(t *testing.T) {
	filler := strings.Repeat("nothing of that kind here\n", 40)
	dir := project(t, map[string]string{
		"net/address.go":      filler + "// parseURL reads an address.\nfunc parseURL(text string) (*URL, error) {\n\treturn nil, nil\n}\n" + filler,
		"cmd/use.go":          filler + strings.Repeat("\tu, err := parseURL(text)\n", 6) + filler,
		"net/address_test.go": filler + strings.Repeat("\tparseURL(x)\n", 6) + filler,
		"py/reader.py":        filler + "def parse_url(text):\n    return text\n" + filler,
		"doc/notes.md":        filler + "We parse the URL of a page, and parse it well.\n",
		"retry/backoff.go":    "package retry\n\n// Wait doubles the pause after each attempt.\nfunc Wait(attempt int) {}\n",
		"retry/other.go":      "package retry\n\nfunc Other() {}\n",
		"c/list.c":            "#include <x.h>\nstatic int list_insert(struct list *l)\n{\n}\n",
		"c/use.c":             "int main(void)\n{\n\tlist_insert(l);\n\tlist_insert(l);\n\tlist_insert(l);\n}\n",
		"java/Cache.java":     "public final class LruCache extends Base {\n    public void evict() {}\n}\n",
		"java/Main.java":      "class Main { LruCache c = new LruCache(); LruCache d; LruCache e; }\n",
		"vendor/x/address.go": "func parseURL(text string) {}\n",
		"method.go":           "func (s *Server) HandleUpload(w Writer) {}\n",
		"calls.go":            "s.HandleUpload(w)\ns.HandleUpload(w)\n",
	})
	for query, want := range map[string]string{
		"parseURL": "net/address.go", "parse url": "net/address.go", "PARSE_URL": "net/address.go", "retry backoff": "retry/backoff.go", "list insert": "c/list.c",
		"lru cache": "java/Cache.java", "handle uploads": "method.go", "doubles the pause of an attempt": "retry/backoff.go",
	} {
		files, text := ranked(t, dir, codeSearchIn{Query: query})
		if len(files) == 0 || files[0] != want {
			t.Errorf("%s: got %v, want %s first\n%s", query, files, want, text)
		}
	}
	files, text := ranked(t, dir, codeSearchIn{Query: "parseURL"})
	if slices.Index(files, "net/address_test.go") < slices.Index(files, "cmd/use.go") || slices.Index(files, "vendor/x/address.go") < slices.Index(files, "net/address.go") {
		t.Errorf("order: %v", files)
	}
	if want := "net/address.go\n  41: // parseURL reads an address.\n  42: func parseURL(text string) (*URL, error) {\n"; !strings.Contains(text, want) {
		t.Errorf("lines: %s", text)
	}
}

func TestCodeSearchReadsOnlyWhatGrepWould(t *testing.T) {
	dir := project(t, map[string]string{
		".gitignore": "ignored/\n*.log\n", "ignored/a.go": "needle\n", "a.log": "needle\n", "b.go": "needle\n", "c.bin": "needle\x00\n", "secret.go": "needle\n", "sub/d.py": "needle\n",
		".git/config": "needle\n", "large.go": strings.Repeat("needle\n", maxCode/7+1),
	})
	outside := filepath.Join(t.TempDir(), "o.go")
	if err := os.WriteFile(outside, []byte("needle\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link.go")); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		in   codeSearchIn
		want []string
	}{
		"all":     {codeSearchIn{Query: "needle"}, []string{"b.go", "sub/d.py"}},
		"include": {codeSearchIn{Query: "needle", Include: "*.py"}, []string{"sub/d.py"}},
		"path":    {codeSearchIn{Query: "needle", Path: "sub"}, []string{"sub/d.py"}},
		"limit":   {codeSearchIn{Query: "needle", Limit: 1}, []string{"b.go"}},
		"none":    {codeSearchIn{Query: "absent"}, nil},
	} {
		files, text := ranked(t, dir, tc.in, "secret.go")
		if slices.Sort(files); !slices.Equal(files, tc.want) {
			t.Errorf("%s: got %v\n%s", name, files, text)
		}
	}
	for _, in := range []codeSearchIn{{Query: "..."}, {Query: "a", Path: "../"}, {Query: "a", Path: "b.go"}, {Query: "a", Include: "["}} {
		if _, err := (&set{}).codesearch(t.Context(), &sdk.Call{Workspace: dir}, in); err == nil {
			t.Errorf("%+v: no error", in)
		}
	}
}

func TestCodeSearchIsBounded(t *testing.T) {
	files := map[string]string{}
	for i := range 60 {
		files[fmt.Sprintf("f%02d.go", i)] = strings.Repeat("needle "+strings.Repeat("x", 3000)+"\n", 50)
	}
	dir := project(t, files)
	shown, text := ranked(t, dir, codeSearchIn{Query: "needle", Limit: 20})
	if len(shown) != 20 || len(text) > maxText || !strings.Contains(text, "(the best 20 of 60 files;") {
		t.Errorf("%d files, %d bytes: %s", len(shown), len(text), text[max(0, len(text)-200):])
	}
	s := &set{codeTime: time.Nanosecond}
	res, err := s.codesearch(t.Context(), &sdk.Call{Workspace: dir}, codeSearchIn{Query: "needle"})
	if err != nil || !strings.Contains(res.Text, "(not all was read: ") {
		t.Errorf("after its time: %v, %v", res, err)
	}
	if _, text := ranked(t, dir, codeSearchIn{Query: strings.Repeat("one two three ", 30)}); text == "" {
		t.Error("a long query has no answer")
	}
}

func TestPartsOfIdentifiers(t *testing.T) {
	for id, want := range map[string]string{
		"parseURL": "parse URL", "HTTPServer": "HTTP Server", "snake_case_2": "snake case 2", "__init__": "init", "getX1Y2": "get X1 Y2", "SCREAMING_CASE": "SCREAMING CASE", "größe": "größe", "A": "A",
	} {
		var parts []string
		eachPart([]byte(id), func(p []byte) { parts = append(parts, string(p)) })
		if got := strings.Join(parts, " "); got != want {
			t.Errorf("%s: got %q, want %q", id, got, want)
		}
	}
}

func TestNamesThatLinesDefine(t *testing.T) {
	for line, want := range map[string]string{
		"func Name(x int) {": "Name", "func (r *Recv[T]) Name() {": "Name", "type Name struct {": "Name", "    def name(self):": "name", "export default async function name() {": "name",
		"pub(crate) fn name<T>() {": "name", "  public static final class Name {": "Name", "#define NAME 1": "NAME", "const name = 1": "name", "static int name(void)": "name",
		"enum class Name {": "Name", "\tx := name(1)": "", "name(1)": "", "return name(1);": "", "int name(void);": "", "// func name": "", "if x == name(y) {": "", "": "",
	} {
		if got := string(definedName([]byte(line))); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}

func FuzzTerms(f *testing.F) {
	f.Add("parseURL of_it", []byte("func (a *B) parseURL(x)\n\x00\xff__A1b"))
	f.Fuzz(func(_ *testing.T, query string, text []byte) {
		t := newTerms(query)
		code := &codeFile{}
		code.scan(text, t)
		code.best(t)
	})
}

// BenchmarkCodeSearch is a search over 20 MB in 2,000 files.
func BenchmarkCodeSearch(b *testing.B) {
	files := map[string]string{}
	line := "\tif err := s.handleRequest(ctx, requestOf(user), maxRetries); err != nil { return fmt.Errorf(\"handle: %w\", err) }\n"
	for i := range 2000 {
		files[fmt.Sprintf("pkg%d/file%d.go", i%50, i)] = strings.Repeat(line, 90) + fmt.Sprintf("func parseURL%d() {}\n", i%7)
	}
	dir := project(b, files)
	b.SetBytes(int64(2000 * 90 * len(line)))
	for b.Loop() {
		if files, _ := ranked(b, dir, codeSearchIn{Query: "parse url3 retries"}); len(files) == 0 {
			b.Fatal("nothing was found")
		}
	}
}
