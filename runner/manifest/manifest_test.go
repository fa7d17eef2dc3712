package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/v1alpha1"
)

const agentText = `apiVersion: agentctl.dev/v1alpha1
kind: Agent
metadata:
  name: a
spec:
  modelRef: {name: fast}
`

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// load reads one text from standard input.
func load(t *testing.T, text string) (*Set, Findings) {
	t.Helper()
	return Load(t.Context(), []string{"-"}, strings.NewReader(text))
}

func messages(f Findings) []string {
	var all []string
	for _, x := range f {
		all = append(all, fmt.Sprintf("%s %d:%d %s: %s", x.Severity, x.Position.Line, x.Position.Col, x.Path, x.Message))
	}
	return all
}

func TestLoadFillsInDefaultsAndTypes(t *testing.T) {
	set, found := load(t, agentText)
	if len(found) > 0 {
		t.Fatal(messages(found))
	}
	d := set.Documents[0]
	agent, ok := d.Object.(*v1alpha1.Agent)
	if !ok {
		t.Fatalf("object is %T", d.Object)
	}
	if agent.Spec.Limits.MaxSteps != 50 || agent.Spec.Limits.Timeout.Duration != 15*time.Minute || agent.Spec.Mode != v1alpha1.ModeAll {
		t.Errorf("defaults are missing: %+v", agent.Spec)
	}
	if !strings.Contains(string(d.JSON), `"maxSteps":50`) {
		t.Errorf("JSON has no defaults: %s", d.JSON)
	}
	if d.String() != "agent/a" || d.APIVersion != "agentctl.dev/v1alpha1" || d.File != StdinName {
		t.Errorf("document = %+v", d)
	}
	if wd, _ := os.Getwd(); d.Dir != wd {
		t.Errorf("relative paths start in %q, not %q", d.Dir, wd)
	}
}

func TestLoadTakesAFolderInTheOrderOfNames(t *testing.T) {
	dir := t.TempDir()
	named := func(name string) string { return strings.Replace(agentText, "name: a", "name: "+name, 1) }
	write(t, filepath.Join(dir, "b.yml"), named("second"))
	write(t, filepath.Join(dir, "a.yaml"), named("first"))
	write(t, filepath.Join(dir, "c.JSON"), `{"apiVersion":"agentctl.dev/v1alpha1","kind":"Agent","metadata":{"name":"third"},"spec":{"modelRef":{"name":"m"}}}`)
	write(t, filepath.Join(dir, "notes.txt"), "not: [a manifest")
	write(t, filepath.Join(dir, ".hidden.yaml"), "not: [a manifest")
	if err := os.MkdirAll(filepath.Join(dir, "sub.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	elsewhere := write(t, filepath.Join(t.TempDir(), "x"), named("linked"))
	if err := os.Symlink(elsewhere, filepath.Join(dir, "d.yaml")); err != nil {
		t.Fatal(err)
	}
	set, found := Load(t.Context(), []string{dir}, nil)
	if len(found) > 0 {
		t.Fatal(messages(found))
	}
	var got []string
	for _, d := range set.Documents {
		got = append(got, d.Name)
		if d.Dir != dir {
			t.Errorf("%s: relative paths start in %s", d.Name, d.Dir)
		}
	}
	if diff := cmp.Diff([]string{"first", "second", "third", "linked"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestJSONMayBeIndentedWithTabs(t *testing.T) {
	set, found := load(t, "{\n\t\"apiVersion\": \"agentctl.dev/v1alpha1\",\n\t\"kind\": \"Agent\",\n\t\"metadata\": {\"name\": \"a\"},\n\t\"spec\": {\n\t\t\"modelRef\": {\"name\": \"m\"}\n\t}\n}\n")
	if len(found) > 0 || len(set.Documents) != 1 || set.Documents[0].Object == nil {
		t.Fatal(messages(found))
	}
}

func TestSourcesThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	folders := filepath.Join(dir, "folders", "sub")
	fifos := filepath.Join(dir, "fifos")
	for _, d := range []string{empty, folders, fifos} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	fifo := filepath.Join(fifos, "pipe.yaml")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s.yaml")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	write(t, filepath.Join(dir, "agent.yaml"), agentText)
	huge := filepath.Join(dir, "huge.yaml")
	write(t, huge, "")
	if err := os.Truncate(huge, MaxFile+1); err != nil {
		t.Fatal(err)
	}
	loop := filepath.Join(dir, "loop.yaml")
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct{ reason, path, want, suggest string }{
		"missing":   {"a slip in a file name is offered", filepath.Join(dir, "agnet.yaml"), "no such file", `agent.yaml"?`},
		"empty":     {"an empty folder is a mistake, not an empty set", empty, "holds no manifest", ""},
		"folders":   {"sub folders are not searched, and the user is told", filepath.Dir(folders), "holds no manifest", "sub folders are not searched"},
		"fifo":      {"opening a FIFO would wait for a writer", fifo, "named pipe", ""},
		"fifo in":   {"the same inside a folder", fifos, "named pipe", ""},
		"socket":    {"a socket cannot be read", socket, "socket", ""},
		"device":    {"a device never ends", "/dev/zero", "device", ""},
		"huge":      {"a file has a limit", huge, "larger than 16 MiB", ""},
		"link loop": {"a link may lead nowhere", loop, "too many levels of symbolic links", ""},
		"no text":   {"an empty file is a mistake", write(t, filepath.Join(dir, "e.yaml"), ""), "holds no document", "apiVersion"},
		"comments":  {"a file of comments is, too", write(t, filepath.Join(dir, "c.yaml"), "# a\n---\n# b\n"), "holds no document", ""},
		"no stdin":  {"there may be no standard input", "-", "no standard input", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			set, found := Load(t.Context(), []string{c.path}, nil)
			if len(set.Documents) > 0 || len(found) != 1 || !found.HasErrors() {
				t.Fatalf("%s: %d documents, findings %v", c.reason, len(set.Documents), messages(found))
			}
			if !strings.Contains(found[0].Message, c.want) || !strings.Contains(found[0].Suggestion, c.suggest) {
				t.Errorf("%s: %q, suggestion %q", c.reason, found[0].Message, found[0].Suggestion)
			}
		})
	}
}

func TestDocumentsThatAreRefused(t *testing.T) {
	deep := strings.Repeat("[", 70) + strings.Repeat("]", 70)
	lol := "a: &a [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n"
	for c := 'b'; c < 'l'; c++ {
		lol += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c, ", c-1), 10), ", "))
	}
	quadratic := "a: &a " + strings.Repeat("x", 500_000) + "\nb: [" + strings.Repeat("*a, ", 1000) + "*a]\n"
	cases := map[string]struct{ reason, text, want string }{
		"billion laughs": {"aliases of aliases grow without bound", lol, "with its aliases written out"},
		"quadratic":      {"one long text repeated is a bomb as well", quadratic, "with its aliases written out"},
		"self alias":     {"an alias must not stand inside its anchor", "a: &a [*a]\n", "stands inside what it refers to"},
		"merge bomb":     {"merging goes through aliases, too", "a: &a {k: " + strings.Repeat("y", 400_000) + "}\nb: [" + strings.Repeat("{<<: *a}, ", 100) + "]\n", "with its aliases written out"},
		"one MiB":        {"a document has a limit", "a: " + strings.Repeat("x", MaxDocument), "larger than 1 MiB"},
		"deep":           {"nesting has a limit", agentText + "  x: " + deep, "nested deeper than 64"},
		"very deep":      {"also far beyond the limit", "x: " + strings.Repeat("[", 20_000), "YAML"},
		"NUL":            {"a NUL ends names in C", "a: \"b\x00c\"\n", "U+0000"},
		"escape":         {"a terminal would obey it", "a: \x1b]0;title\x07\n", "U+001B"},
		"not UTF-8":      {"other encodings are not guessed", "a: b\nc: \xff\xfe\n", "0xFF is not UTF-8"},
		"bidi name":      {"a name must not look like another", strings.Replace(agentText, "name: a", "name: \"a\\u202Eb\"", 1), "invisible or control"},
		"bidi key":       {"a key neither", "\"a\\u2066\": 1\n", "invisible or control"},
		"NUL escaped":    {"escapes reach the same characters", "kind: \"A\\0\"\n", "invisible or control"},
		"scalar":         {"a document is a mapping", "just text\n", "a manifest is a mapping"},
		"null":           {"and not nothing", "~\n", "a manifest is a mapping"},
		"map key":        {"JSON has only text as keys", "? {a: b}\n: c\n", "YAML"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			_, found := load(t, c.text)
			if !found.HasErrors() || !strings.Contains(found[0].Message, c.want) {
				t.Errorf("%s: %v", c.reason, messages(found))
			}
			if spent := time.Since(begin); spent > 30*time.Second {
				t.Errorf("%s: refused only after %v", c.reason, spent)
			}
			var b strings.Builder
			if err := found.Write(&b, 0); err != nil || strings.ContainsFunc(strings.ReplaceAll(b.String(), "\n", ""), hidden) {
				t.Errorf("%s: the text holds control characters: %q", c.reason, b.String())
			}
		})
	}
}

func TestOneThousandDocumentsAndNoMore(t *testing.T) {
	text := strings.Repeat("a: 1\n---\n", MaxDocuments+5)
	set, found := load(t, text)
	if len(set.Documents) != MaxDocuments {
		t.Errorf("%d documents", len(set.Documents))
	}
	if !found.HasErrors() || !strings.Contains(found[0].Message, "more than 1000 documents") || found[0].Position.Line != 2*MaxDocuments {
		t.Errorf("findings: %v", messages(found))
	}
}

func TestLinesCountFromTheFile(t *testing.T) {
	text := "# header\n%YAML 1.1\n---\n" + agentText + "  tols: []\n---\n---\n# only a comment\n--- # next\n" + agentText + "  lmits: {}\n...\n\n" + agentText + "  contxt: {}\n"
	set, found := load(t, text)
	if len(set.Documents) != 3 {
		t.Fatalf("%d documents: %v", len(set.Documents), messages(found))
	}
	lines := strings.Split(text, "\n")
	if len(found) != 3 {
		t.Fatal(messages(found))
	}
	for i, word := range []string{"tols", "lmits", "contxt"} {
		f := found[i]
		if !strings.HasPrefix(lines[f.Position.Line-1], "  "+word) || f.Position.Col != 3 || f.Snippet != "  "+word+": "+map[bool]string{true: "[]", false: "{}"}[i == 0] {
			t.Errorf("%s is shown in line %d as %q", word, f.Position.Line, f.Snippet)
		}
	}
}

func TestLocate(t *testing.T) {
	set, found := load(t, `apiVersion: agentctl.dev/v1alpha1
kind: Agent
metadata:
  name: a
  labels: {"a.b/c": x, "it's": y1}
spec:
  modelRef:
    name: fast
  tools:
  - name: read
  - {name: "grep"}
  instructions: |
    long
`)
	if len(found) > 0 {
		t.Fatal(messages(found))
	}
	d := set.Documents[0]
	for path, want := range map[string]string{
		"":                               "1:1",
		"kind":                           "2:7",
		"metadata.name":                  "4:9",
		`metadata.labels["a.b/c"]`:       "5:21",
		Join("metadata.labels", "it's"):  "5:32",
		"spec.tools[1].name":             "11:12",
		"spec.tools[0]":                  "10:5",
		"spec.tools":                     "9:3",
		"spec.modelRef":                  "7:3",
		"spec.instructions":              "12:17",
		"spec.tools[7].name":             "9:3",
		"spec.nothing.here":              "6:1",
		"spec.tools[x":                   "9:3",
		`metadata.labels["unterminated`:  "5:11",
		"metadata.labels.gone":           "5:3",
		"spec.tools[99999999999999999]":  "9:3",
		"spec.modelRef.name.deeper.than": "8:5",
	} {
		p := d.Locate(path)
		if got := fmt.Sprintf("%d:%d", p.Line, p.Col); got != want {
			t.Errorf("Locate(%q) = %s, want %s", path, got, want)
		}
	}
}

func TestPathsSurviveARoundTrip(t *testing.T) {
	for _, key := range []string{"a", "a.b", "a[0]", `a"b`, "", "日本", "x-y_z$", "\n"} {
		path := Index(Join(Join("spec", key), "z"), 3)
		want := []step{{key: "spec"}, {key: key}, {key: "z"}, {index: 3, list: true}}
		if diff := cmp.Diff(want, parsePath(path), cmp.AllowUnexported(step{})); diff != "" {
			t.Errorf("%q: %s", path, diff)
		}
	}
}

func TestReadingStopsWithItsContext(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, found := Load(ctx, []string{"-"}, r)
	if !found.HasErrors() {
		t.Error("a pipe without an end was read to its end")
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yaml"), agentText)
	if _, found = Load(ctx, []string{dir}, nil); !found.HasErrors() {
		t.Error("the deadline was not seen")
	}
	_, found = Load(t.Context(), []string{"-"}, io.MultiReader(strings.NewReader("a: 1\n"), broken{}))
	if !found.HasErrors() || !strings.Contains(found[0].Message, "cable") {
		t.Error(messages(found))
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("cable cut") }

func TestBooleansMayBeWords(t *testing.T) {
	set, found := load(t, agentText+"  context: {pruneToolOutput: no}\n")
	if len(found) > 0 {
		t.Fatal(messages(found))
	}
	if p := set.Documents[0].Object.(*v1alpha1.Agent).Spec.Context.PruneToolOutput; p == nil || *p {
		t.Error("plain no is false where a boolean is wanted, as kubectl reads it")
	}
}

func TestStatusIsLeftOut(t *testing.T) {
	set, found := load(t, agentText+"status: {conditions: 7, whatever: x}\n")
	if len(found) > 0 || set.Documents[0].Broken {
		t.Fatal(messages(found))
	}
}

func TestABrokenDocumentKeepsItsGoodFields(t *testing.T) {
	set, found := load(t, agentText+"  tools: [{name: read}, 7, {name: grep}]\n  limits: {maxSteps: x, maxTokens: 9}\n")
	if len(found) != 2 {
		t.Fatal(messages(found))
	}
	d := set.Documents[0]
	a := d.Object.(*v1alpha1.Agent)
	if !d.Broken || len(a.Spec.Tools) != 3 || a.Spec.Tools[2].Name != "grep" || a.Spec.Limits.MaxTokens != 9 || a.Spec.Limits.MaxSteps != 50 {
		t.Errorf("broken %t, spec %+v", d.Broken, a.Spec)
	}
	if !d.Faulty("spec.tools") || !d.Faulty("spec.limits.maxSteps") || d.Faulty("spec.tool") || d.Faulty("spec.modelRef") {
		t.Error("Faulty does not tell the fields apart")
	}
}

func TestManyMistakesCostBoundedWork(t *testing.T) {
	fields := strings.Builder{}
	for i := range 30_000 {
		fmt.Fprintf(&fields, "  x%d: 1\n", i)
	}
	for name, text := range map[string]string{
		"unknown fields": agentText + fields.String(),
		"wrong entries":  agentText + "  contextFiles: [" + strings.Repeat("1, ", 60_000) + "1]\n",
		"no fields":      agentText + "  tools: [" + strings.Repeat("{}, ", 120) + "{}]\n",
		"duplicates":     agentText + strings.Repeat("  x: 1\n", 30_000),
		"odd names":      agentText + strings.ReplaceAll(fields.String(), "x", "\u200b"),
		"words":          agentText + "  inputs: {schema: {a: [" + strings.Repeat("on, ", 60_000) + "no]}}\n",
	} {
		begin := time.Now()
		_, found := load(t, text)
		if len(found) == 0 || len(found) > MaxFindings+2 {
			t.Errorf("%s: %d findings", name, len(found))
		}
		if spent := time.Since(begin); spent > 30*time.Second {
			t.Errorf("%s: took %v", name, spent)
		} else {
			t.Logf("%s: %d findings in %v", name, len(found), spent)
		}
	}
}

func TestCredentialsAreNeverShown(t *testing.T) {
	const secret = "sk-proj-0123456789abcdef"
	model := "apiVersion: agentctl.dev/v1alpha1\nkind: Model\nmetadata: {name: m}\nspec:\n  provider: openai\n  model: x\n"
	for name, text := range map[string]string{
		"plain":      model + "  apiKey: " + secret + "\n",
		"flow":       model + "  apiKey: {valueFrom: " + secret + ", other: 1}\n",
		"as a name":  model + "  apiKey: {valueFrom: {env: " + secret + "}, x: y}\n",
		"value":      model + "  apiKey: {x: 1, value: " + secret + ", y: 2}\n",
		"twice":      model + "  apiKey: " + secret + "\n  apiKey: " + secret + "\n",
		"syntax":     model + "  apiKey: " + secret + "\n apiKey: " + secret + "\n",
		"quoted":     model + "  apiKey: \"" + secret + "\"\n",
		"wrong kind": strings.Replace(model, "kind: Model", "kind: Agent", 1) + "  apiKey: " + secret + "\n",
		"long":       model + "  apiKey: " + strings.Repeat(secret, 300) + "\n",
		"header": "apiVersion: agentctl.dev/v1alpha1\nkind: Tool\nmetadata: {name: t}\nspec: {sourc: 1, source: {mcp: {http: {url: 7, headers: [{name: a, value: " +
			secret + "}]}}}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, found := load(t, text)
			var b strings.Builder
			if err := found.Write(&b, 0); err != nil {
				t.Fatal(err)
			}
			if !found.HasErrors() || strings.Contains(b.String(), "0123456789") {
				t.Errorf("the key is shown, or nothing is said:\n%s", b.String())
			}
		})
	}
}

func TestNumbersOfTokensAreShown(t *testing.T) {
	_, found := load(t, agentText+"  limits: {maxToken: 5000, token: sk-abcdefgh, my_token: 1234567890123, password: 1234}\n")
	var b strings.Builder
	if err := found.Write(&b, 0); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "limits: {maxToken: 5000, token: ***, my_token: ***, password: ***}") {
		t.Errorf("got\n%s", b.String())
	}
}
