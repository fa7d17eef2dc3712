package prompt

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestContextFilesAreReadBeneathTheirFolder(t *testing.T) {
	top := t.TempDir()
	work := filepath.Join(top, "repo", "part")
	for _, dir := range []string{work + "/docs", top + "/repo/.git", top + "/repo/docs", top + "/elsewhere"} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"elsewhere/key": "CANARY", "repo/part/docs/in.md": "in the workspace", "repo/docs/up.md": "in the repository", "repo/part/binary": "a\x00b",
	} {
		if err := os.WriteFile(filepath.Join(top, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{
		"repo/part/inside.md": "docs/in.md", "repo/part/absolute.md": work + "/docs/in.md", "repo/part/out.md": "../../elsewhere/key", "repo/part/shadow.md": "/etc/shadow",
		"repo/part/environ.md": "/proc/self/environ", "repo/part/zero.md": "/dev/zero", "repo/part/folder": "../../elsewhere", "repo/part/parent.md": "../docs/up.md",
		"repo/above.md": "docs/up.md", "repo/aboveout.md": "../elsewhere/key", "repo/part/loop.md": "loop.md", "repo/part/dangling.md": "nothing", "repo/part/gone.md": "/nothing",
	} {
		if err := os.Symlink(to, filepath.Join(top, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(work+"/pipe.md", 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		text string
		err  error
	}{
		"inside.md": {"in the workspace", nil}, "above.md": {"in the repository", nil},
		"out.md": {"", errOutside}, "absolute.md": {"", errOutside}, "shadow.md": {"", errOutside}, "environ.md": {"", errOutside}, "zero.md": {"", errOutside},
		"folder/key": {"", errOutside}, "parent.md": {"", errOutside}, "aboveout.md": {"", errOutside}, "gone.md": {"", errOutside}, "loop.md": {"", syscall.ELOOP},
		"pipe.md": {"", errNone}, "dangling.md": {"", errNone}, "binary": {"", errNone}, "missing.md": {"", errNone}, "../repo/docs/up.md": {"", errNone}, "/etc/shadow": {"", errNone},
	} {
		_, text, err := contextFile(work, name)
		if text != want.text || !errors.Is(err, want.err) {
			t.Errorf("%s: %q, %v; want %q, %v", name, text, err, want.text, want.err)
		}
	}
	var unread []string
	text := System{Source: work, ContextFiles: []string{"out.md", "missing.md", "inside.md"}, Unread: func(file string, err error) { unread = append(unread, file+": "+err.Error()) }}.Text()
	if strings.Contains(text, "CANARY") || !strings.Contains(text, "in the workspace") {
		t.Error(text)
	}
	if len(unread) != 1 || !strings.Contains(unread[0], "/out.md: it is a link") {
		t.Errorf("told: %q", unread)
	}
}
