package skill

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestAFileIsReadWithItsHead(t *testing.T) {
	for name, c := range map[string]struct {
		reason, text string
		want         Skill
	}{
		"head":     {"name and description are the file's", "---\nname: fix\ndescription: Mends a bug.\nlicense: MIT\n---\n\n# Fix\n", Skill{Head: Head{Name: "fix", Description: "Mends a bug.", License: "MIT"}, Text: "# Fix"}},
		"headless": {"a head is optional", "# Fix\n---\n", Skill{Text: "# Fix\n---"}},
		"windows":  {"lines may end with CRLF", "---\r\nname: fix\r\n---\r\nDo.\r\n", Skill{Head: Head{Name: "fix"}, Text: "Do."}},
		"rule":     {"a rule in the text is no fence of the head", "---\nname: fix\n---\nDo.\n---\nMore.", Skill{Head: Head{Name: "fix"}, Text: "Do.\n---\nMore."}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(&c.want, got, cmpopts.IgnoreFields(Skill{}, "Digest", "Problems"), cmpopts.IgnoreUnexported(Skill{})); d != "" {
				t.Errorf("%s (-want +got)\n%s", c.reason, d)
			}
			if !strings.HasPrefix(got.Digest, "sha256:") {
				t.Errorf("the digest is %q", got.Digest)
			}
		})
	}
}

func TestWhatIsNoSkillIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ reason, text, want string }{
		"empty":       {"a model would read nothing", "", "no text"},
		"only a head": {"a model would read nothing", "---\nname: x\n---\n", "no text"},
		"open head":   {"the whole file would be a head", "---\nname: x\n", "no end"},
		"no YAML":     {"nobody knows what it is called", "---\n: [\n---\nx", "no YAML"},
		"list":        {"the head has fields", "---\n- a\n---\nx", "no YAML"},
		"binary":      {"a program is no text", "\x7fELF\x00\xff", "UTF-8"},
		"alias":       {"a few lines could stand for gigabytes", "---\nname: &a x\ndescription: *a\n---\nx", "alias"},
		"bomb":        {"ten lines could stand for gigabytes", "---\na: &a [x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nname: [*c,*c]\n---\nx", "alias"},
		"long head":   {"six fields need less", "---\nname: x\nlicense: " + strings.Repeat("x", maxHead) + "\n---\nx", "32 KiB"},
	} {
		if _, err := Parse([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s: %v, want %q", name, c.reason, err, c.want)
		}
	}
}

func TestAFolderIsReadWithinLimits(t *testing.T) {
	dir := t.TempDir()
	folder := func(name string, do func(path string) error) string {
		made := filepath.Join(dir, name)
		if err := os.Mkdir(made, 0o700); err != nil {
			t.Fatal(err)
		}
		if do != nil {
			if err := do(filepath.Join(made, File)); err != nil {
				t.Fatal(err)
			}
		}
		return made
	}
	write := func(n int) func(string) error {
		return func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte("x"), n), 0o600) }
	}
	if _, err := Read(folder("largest", write(MaxSize))); err != nil {
		t.Errorf("the largest one: %v", err)
	}
	for _, c := range []struct{ folder, want string }{
		{filepath.Join(dir, "nowhere"), "no such folder"},
		{filepath.Join(folder("a file", write(1)), File), "it is not a folder"},
		{folder("bare", nil), "no such file"},
		{folder("too large", write(MaxSize+1)), "more than 256 KiB"},
		{folder("pipe", func(path string) error { return syscall.Mkfifo(path, 0o600) }), "not a file"},
		{folder("folder", func(path string) error { return os.Mkdir(path, 0o700) }), "not a file"},
	} {
		if _, err := Read(c.folder); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.folder, err, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "---", "---\n---", "---\nname: x\n---\ny", "---\nname: &a [*a]\n---\ny", "\ufeff---\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Parse(text)
		if err == nil && (s.Text == "" || len(Brief(s.Description)) > 2*maxDescription) {
			t.Errorf("%q is read as %+v", text, s)
		}
	})
}
