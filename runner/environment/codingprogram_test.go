package environment

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// The home folder of a program is what an earlier call of it has left: agentctl writes
// nothing through a link that leads out of it, and waits for no FIFO.
func TestTheHomeOfAProgramLeadsNowhere(t *testing.T) {
	const name = "codex/config.toml"
	files := map[string]string{name: "ours"}
	for what, leave := range map[string]func(home, outside string) error{
		"nothing": func(_, _ string) error { return nil },
		"a folder that is a link": func(home, outside string) error {
			return os.Symlink(outside, filepath.Join(home, "codex"))
		},
		"a file that is a link": func(home, outside string) error {
			if err := os.Mkdir(filepath.Join(home, "codex"), 0o700); err != nil {
				return err
			}
			return os.Symlink(filepath.Join(outside, "config.toml"), filepath.Join(home, name))
		},
		"a FIFO": func(home, _ string) error {
			if err := os.Mkdir(filepath.Join(home, "codex"), 0o700); err != nil {
				return err
			}
			return syscall.Mkfifo(filepath.Join(home, name), 0o600)
		},
		"a folder in place of the file": func(home, _ string) error {
			return os.MkdirAll(filepath.Join(home, name, "x"), 0o700)
		},
	} {
		home, outside := t.TempDir(), t.TempDir()
		theirs := filepath.Join(outside, "config.toml")
		if err := os.WriteFile(theirs, []byte("theirs"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := leave(home, outside); err != nil {
			t.Fatal(err)
		}
		refused := furnish(home, files) != nil
		if text, err := os.ReadFile(theirs); err != nil || string(text) != "theirs" {
			t.Errorf("%s: outside is %q, %v", what, text, err)
		}
		text, err := os.ReadFile(filepath.Join(home, name))
		if want := what == "a folder that is a link"; refused != want || !want && (err != nil || string(text) != "ours") {
			t.Errorf("%s: refused %v, written %q, %v", what, refused, text, err)
		}
	}
}
