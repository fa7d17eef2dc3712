package patch

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func wrap(body string) string { return "*** Begin Patch\n" + body + "\n*** End Patch" }

func TestParse(t *testing.T) {
	got, err := Parse("\n" + strings.ReplaceAll(wrap(`*** Add File: notes/new.txt
+first
+
*** Update File: main.go
*** Move to: cmd/main.go
@@ func main() {
@@ -3,4 +3,4 @@ if x {
 	a()
-	b()

+	c()
*** End of File
@@
+last
*** Delete File: a name.txt
*** Update File: b
*** Move to: c`), "\n", "\r\n") + "\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []Change{
		{Kind: Add, Path: "notes/new.txt", Content: "first\n\n"},
		{Kind: Update, Path: "main.go", MoveTo: "cmd/main.go", Hunks: []Hunk{
			{At: []string{"func main() {", "if x {"}, Lines: []Line{{' ', "\ta()"}, {'-', "\tb()"}, {' ', ""}, {'+', "\tc()"}}, AtEnd: true, Number: 7},
			{Lines: []Line{{'+', "last"}}, Number: 14},
		}},
		{Kind: Delete, Path: "a name.txt"},
		{Kind: Update, Path: "b", MoveTo: "c"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if h := got[1].Hunks[0]; h.Old() != "\ta()\n\tb()\n\n" || h.New() != "\ta()\n\n\tc()\n" {
		t.Errorf("old %q, new %q", h.Old(), h.New())
	}
}

func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ reason, text, want string }{
		"empty":         {"nothing", "", "begins with"},
		"no begin":      {"another format", "--- a\n+++ b\n", "line 1 of the patch: a patch begins with"},
		"no end":        {"a patch that was cut must not half apply", "*** Begin Patch\n*** Delete File: a\n", "ends with"},
		"one line":      {"an end is not a beginning", "*** Begin Patch", "ends with"},
		"nothing":       {"no section", wrap(""), "changes nothing"},
		"two patches":   {"text behind the first one", wrap("*** Delete File: a\n*** End Patch\n*** Begin Patch\n*** Delete File: b"), "begins no section"},
		"stray":         {"text between sections", wrap("hello"), "begins no section"},
		"no path":       {"a section without a file", wrap("*** Delete File:  "), "names no file"},
		"no target":     {"a move to nowhere", wrap("*** Update File: a\n*** Move to:  "), "names no file to move to"},
		"no change":     {"an update of nothing", wrap("*** Update File: a"), "the update of a changes nothing"},
		"context":       {"a hunk of context alone", wrap("*** Update File: a\n@@\n x"), "the hunk changes nothing"},
		"bare line":     {"a line without its mark", wrap("*** Update File: a\n@@\n-x\ny"), "each line of a hunk begins with"},
		"bare added":    {"a line without its mark", wrap("*** Add File: a\nx"), "begins with +"},
		"twice":         {"two sections for a file", wrap("*** Delete File: a\n*** Add File: ./x/../a\n+x"), "names ./x/../a twice"},
		"onto itself":   {"a move to the same file", wrap("*** Update File: a\n*** Move to: ./a"), "twice"},
		"swapped":       {"a file that is moved and overwritten", wrap("*** Update File: a\n*** Move to: b\n*** Update File: b\n*** Move to: c"), "names b twice"},
		"bytes":         {"no text", "*** Begin Patch\n\xff", "UTF-8"},
		"nul":           {"no text", wrap("*** Delete File: a\x00b"), "UTF-8"},
		"huge":          {"too long", wrap("*** Add File: a\n" + strings.Repeat("+x\n", MaxBytes/3)), "bytes, at most"},
		"many":          {"too many files", wrap(manyDeletes(MaxFiles + 1)), "more than 100 files"},
		"delete a body": {"a deletion has no lines", wrap("*** Delete File: a\n-x"), "begins no section"},
	} {
		got, err := Parse(c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) || got != nil {
			t.Errorf("%s (%s): %v, %v", name, c.reason, got, err)
		}
	}
}

func manyDeletes(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("*** Delete File: f" + strings.Repeat("x", i) + "\n")
	}
	return b.String()
}

func FuzzParse(f *testing.F) {
	f.Add(wrap("*** Add File: a\n+x"))
	f.Add(wrap("*** Update File: a\n*** Move to: b\n@@ f\n a\n-b\n+c\n*** End of File"))
	f.Add(wrap("@@ -1,2 +3 @@ x"))
	f.Fuzz(func(t *testing.T, text string) {
		changes, err := Parse(text)
		if err != nil {
			return
		}
		for _, c := range changes {
			if c.Path == "" || c.Kind == Update && c.MoveTo == "" && len(c.Hunks) == 0 {
				t.Errorf("%+v", c)
			}
		}
	})
}
