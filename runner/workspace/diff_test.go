package workspace

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// patched applies the diff of c with a real program to a copy of before.
func patched(t *testing.T, before files, diff []byte, command ...string) files {
	t.Helper()
	if _, err := exec.LookPath(command[0]); err != nil {
		t.Skipf("%s is not installed: whether it takes our diffs cannot be tested", command[0])
	}
	dir := t.TempDir()
	before.write(t, dir)
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(string(diff))
	// Outside of any repository git apply works as a better patch.
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s\n%s", command, err, out, diff)
	}
	return read(t, dir)
}

func runTo(t *testing.T, before, after files) *Change {
	t.Helper()
	w, _ := setup(t, before)
	ready(t, w)
	entries, err := os.ReadDir(w.Dir())
	must(t, err)
	for _, e := range entries {
		must(t, os.RemoveAll(filepath.Join(w.Dir(), e.Name())))
	}
	after.write(t, w.Dir())
	return changes(t, w)
}

func TestGitAppliesTheDiff(t *testing.T) {
	long := strings.Repeat("line\n", 50)
	tests := map[string]struct{ reason, before, after string }{
		"modified":        {"the plain case", "a\nb\nc\n", "a\nB\nc\n"},
		"end gained":      {"the final newline is content", "a\nb", "a\nb\n"},
		"end lost":        {"the final newline is content", "a\nb\n", "a\nb"},
		"no ends":         {"neither has a final newline", "a\nb", "a\nc"},
		"carriage return": {"it belongs to the line", "a\r\nb\r\n", "a\nb\r\nc\r\n"},
		"emptied":         {"an empty file is no deleted file", "a\n", ""},
		"filled":          {"from nothing", "", "a\n"},
		"latin-1":         {"bytes that are not UTF-8", "caf\xe9\nx\n", "caf\xe9\ny\xff\n"},
		"far apart":       {"several hunks", "x\n" + long + "y\n", "X\n" + long + "Y\n"},
		"header look":     {"content that looks like a diff", "-- a/x\n++ b/x\n@@ -1 +1 @@\n", "-- a/y\ndiff --git a/q b/q\n@@ -1 +1 @@\n"},
		"form feed":       {"only newlines end lines", "a\x0bb\x0c\u2028c\n", "a\x0bb\x0c\u2028d\n"},
		"long line":       {"no newline for a long time", strings.Repeat("x", 100_000), strings.Repeat("x", 100_000) + "y"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			before, after := files{"f": tt.before, "keep": "k\n"}, files{"f": tt.after, "keep": "k\n"}
			c := runTo(t, before, after)
			for _, command := range [][]string{{"git", "apply", "-"}, {"patch", "-p1", "-s", "--binary"}} {
				if command[0] == "patch" && name == "emptied" {
					continue // patch -p1 deletes a file that becomes empty unless an option forbids it
				}
				if diff := cmp.Diff(after, patched(t, before, c.Diff, command...)); diff != "" {
					t.Errorf("%s: %s: (-want +got):\n%s\n%s", tt.reason, command[0], diff, c.Diff)
				}
			}
		})
	}
}

func TestGitAppliesFilesThatComeGoAndTurn(t *testing.T) {
	before := files{
		"gone": "g\n", "gone-empty": "", "deep/er/gone": "x\n", "exec": "e\n", "unexec": "!u\n", "exec-and-edit": "a\n",
		"link": "->a", "link-gone": "->b", "to-link": "text\n", "to-file": "->text", "with blank": "1\n", "quote\"d": "1\n", "ünï": "1\n", "tab\there": "1\n",
	}
	after := files{
		"come": "c\n", "come-empty": "", "come-exec": "!c\n", "new/er/come": "x", "exec": "!e\n", "unexec": "u\n", "exec-and-edit": "!b\n",
		"link": "->c", "link-come": "->d", "to-link": "->text", "to-file": "text\n", "with blank": "2\n", "quote\"d": "2\n", "ünï": "2\n", "tab\there": "2\n",
		"new blank": "n\n", "back\\slash": "b\n", "new\nline": "n\n",
	}
	c := runTo(t, before, after)
	if diff := cmp.Diff(after, patched(t, before, c.Diff, "git", "apply", "-")); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, c.Diff)
	}
}

func TestGitAppliesRandomEdits(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 25 {
		before, after := files{}, files{}
		for i := range 4 {
			name := fmt.Sprint("f", i)
			old := randomLines(random, 60)
			before[name], after[name] = strings.Join(old, ""), strings.Join(edit(random, old), "")
		}
		c := runTo(t, before, after)
		if c.Empty() {
			continue
		}
		if diff := cmp.Diff(after, patched(t, before, c.Diff, "git", "apply", "-")); diff != "" {
			t.Fatalf("round %d (-want +got):\n%s\n%s", round, diff, c.Diff)
		}
	}
}

// randomLines have few different texts, so that there is much to confuse, and
// perhaps no newline at the end.
func randomLines(random *rand.Rand, most int) []string {
	var out []string
	for range random.IntN(most) {
		out = append(out, string(rune('a'+random.IntN(4)))+"\n")
	}
	if len(out) > 0 && random.IntN(2) == 0 {
		out[len(out)-1] = "end"
	}
	return out
}

func edit(random *rand.Rand, lines []string) []string {
	var out []string
	for _, l := range lines {
		switch random.IntN(12) {
		case 0:
		case 1:
			out = append(out, "new\n", l)
		case 2:
			out = append(out, "changed\n")
		default:
			out = append(out, l)
		}
	}
	for i := range out[:max(len(out)-1, 0)] {
		if !strings.HasSuffix(out[i], "\n") {
			out[i] += "\n"
		}
	}
	return out
}

func TestBinaryAndHugeFilesAreNamedOnly(t *testing.T) {
	before := files{"bin": "a\x00b", "huge": strings.Repeat("x\n", maxText), "to-bin": "text\n"}
	after := files{"bin": "a\x00c", "huge": strings.Repeat("y\n", maxText), "to-bin": "\x00", "new-bin": "\x00"}
	w, spec := setup(t, before)
	ready(t, w)
	after.write(t, w.Dir())
	c := changes(t, w)
	for _, line := range []string{
		"Binary files a/bin and b/bin differ\n", "Binary files a/huge and b/huge differ\n",
		"Binary files a/to-bin and b/to-bin differ\n", "Binary files /dev/null and b/new-bin differ\n",
	} {
		if !strings.Contains(string(c.Diff), line) {
			t.Errorf("the diff lacks %q", line)
		}
	}
	if len(c.Diff) > 4096 {
		t.Errorf("%d bytes of diff", len(c.Diff))
	}
	must(t, Apply(context.Background(), application(spec, c)))
	if diff := cmp.Diff(after, read(t, spec.Source)); diff != "" {
		t.Error("applied something else")
	}
}

func TestContentTooLargeToRecordIsNotApplicable(t *testing.T) {
	w, spec := setup(t, files{"a": "a\n"})
	ready(t, w)
	p := filepath.Join(w.Dir(), "big")
	must(t, os.WriteFile(p, nil, 0o644))
	must(t, os.Truncate(p, maxApply+1))
	c := changes(t, w)
	if len(c.Files) != 1 || c.Files[0].NotApplicable == "" {
		t.Fatalf("%+v", c.Files)
	}
	if err := Apply(context.Background(), application(spec, c)); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("got %v", err)
	}
}

func TestModeThatGitDoesNotKnowIsSaid(t *testing.T) {
	w, _ := setup(t, files{"a": "a\n"})
	ready(t, w)
	must(t, os.Chmod(filepath.Join(w.Dir(), "a"), 0o600))
	if c := changes(t, w); !strings.Contains(string(c.Diff), "# mode of a: 0644, now 0600\n") {
		t.Errorf("diff:\n%s", c.Diff)
	}
}

func TestNoNameForgesALineOfTheDiff(t *testing.T) {
	for name, want := range map[string]string{
		"plain": "plain", "with blank": "with blank", "a\nb": `"a\012b"`, `q"\`: `"q\"\\"`, "\x1b[2J": `"\033[2J"`, "ü": `"\303\274"`, "\xff": `"\377"`, "\u202e": `"\342\200\256"`,
	} {
		if got := quote(name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}

func FuzzChangeIsRefusedOrMade(f *testing.F) {
	f.Add([]byte(`{"files":[{"path":"a","change":"added","new":{"type":"link","target":"/etc"}}]}`))
	f.Add([]byte(`{"files":[{"path":"../a","new":{"type":"link","target":"x"}},{"path":{"base64":"/w=="},"old":{"type":"file"}}]}`))
	f.Add([]byte(`{"addedDirs":[{"path":"d/e","type":"dir","mode":493}],"removedDirs":[{"path":"keep","mode":511}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		blobs := &memory{}
		id, err := blobs.PutBlob(b)
		must(t, err)
		c, err := ReadChange(blobs, id)
		if err != nil {
			return
		}
		dir := t.TempDir()
		source, outside := filepath.Join(dir, "a", "source"), files{"secret": "s"}
		files{"keep/k": "k", "link": "->../../outside"}.write(t, source)
		outside.write(t, filepath.Join(dir, "outside"))
		before := read(t, source)
		err = Apply(context.Background(), Application{Source: source, Record: filepath.Join(dir, "apply.json"), Change: c, Blobs: &memory{}})
		if err != nil && !cmp.Equal(before, read(t, source)) {
			t.Errorf("failed with %v but left %v", err, read(t, source))
		}
		if got := read(t, filepath.Join(dir, "outside")); !cmp.Equal(outside, got) {
			t.Errorf("outside is now %v", got)
		}
	})
}

func BenchmarkDiffOfUnlikeFiles(b *testing.B) {
	random := rand.New(rand.NewPCG(3, 4))
	var texts [2]string
	for i := range texts {
		var t strings.Builder
		for t.Len() < maxText-64 {
			fmt.Fprintf(&t, "line %d\n", random.IntN(1000))
		}
		texts[i] = t.String()
	}
	for b.Loop() {
		var d differ
		d.hunks("a/f", "b/f", texts[0], texts[1])
	}
}
