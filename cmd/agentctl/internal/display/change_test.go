package display

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
)

// twoFiles holds lines that look like headers inside a hunk.
const twoFiles = `diff --git a/a.sql b/a.sql
--- a/a.sql
+++ b/a.sql
@@ -1,3 +1,3 @@
 select
--- an old comment
+++ a new one
 from
@@ -9 +9,2 @@
-x
+y
+z
\ No newline at end of file
diff --git "a/t\303\274r.txt" "b/t\303\274r.txt"
new file mode 100644
--- /dev/null
+++ "b/t\303\274r.txt"
@@ -0,0 +1 @@
+hello
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1,2 +0,0 @@
-a
-b
`

func changeOfTwo() Change {
	return Change{Run: "r1", Diff: []byte(twoFiles), Files: []event.FileChange{
		{Path: "a.sql", Change: "modified"},
		{Path: "gone.txt", Change: "deleted"},
		{Path: "logo.png", Change: "added"},
		{Path: "tür.txt", Change: "added"},
	}}
}

func TestStatCountsByHunks(t *testing.T) {
	var b bytes.Buffer
	if err := changeOfTwo().WriteStat(&Screen{w: &b}); err != nil {
		t.Fatal(err)
	}
	want := "M a.sql     +3 -2\nD gone.txt  +0 -2\nA logo.png\nA tür.txt   +1 -0\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestDiffInAPipeIsUntouched(t *testing.T) {
	var b bytes.Buffer
	c := Change{Diff: []byte("+a\x1b[31m\r\n+\xff")}
	if err := c.WriteDiff(&Screen{w: &b}); err != nil || b.String() != string(c.Diff) {
		t.Errorf("got %q, %v", b.String(), err)
	}
}

func TestDiffOnATerminalIsCleanedAndColoured(t *testing.T) {
	var b bytes.Buffer
	c := Change{Diff: []byte("--- a/x\n@@ -1 +1 @@\n-old\x1b[2J\n+new\rpart\n same\n")}
	if err := c.WriteDiff(&Screen{w: &b, TTY: true, Color: true}); err != nil {
		t.Fatal(err)
	}
	want := "<1m--- a/x<0m\n<36m@@ -1 +1 @@<0m\n<31m-old<U+001B>[2J<0m\n<32m+new<U+000D>part<0m\n same\n"
	if diff := cmp.Diff(want, visible(b.String())); diff != "" {
		t.Error(diff)
	}
}

func TestListsInObjectsAreNeverNull(t *testing.T) {
	var b bytes.Buffer
	s := &Screen{w: &b}
	if err := (Change{Run: "r"}).WriteJSON(s); err != nil {
		t.Fatal(err)
	}
	if err := (Applied{Run: "r"}).WriteJSON(s); err != nil {
		t.Fatal(err)
	}
	if strings.Count(b.String(), `"files": []`) != 2 {
		t.Errorf("got %s", b.String())
	}
}

func TestAppliedFilesAreListed(t *testing.T) {
	var b bytes.Buffer
	s := &Screen{w: &b}
	if err := (Applied{Run: "r", Source: "/src", Files: changeOfTwo().Files[:2]}).WriteText(s); err != nil {
		t.Fatal(err)
	}
	if err := (Applied{Run: "r"}).WriteText(s); err != nil {
		t.Fatal(err)
	}
	want := "applied 2 changed files to /src\n  M a.sql\n  D gone.txt\nrun/r changed nothing\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestFindingsAreAnObject(t *testing.T) {
	var b bytes.Buffer
	s := &Screen{w: &b}
	if err := WriteFindings(s, NewFindings[string](2, 1, 0, nil)); err != nil {
		t.Fatal(err)
	}
	if err := Valid(s, 1); err != nil {
		t.Fatal(err)
	}
	want := "{\n  \"documents\": 2,\n  \"errors\": 1,\n  \"warnings\": 0,\n  \"findings\": []\n}\n1 document valid\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}
