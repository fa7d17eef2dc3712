package embedded

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// irregular are things in the place of a file: what is waited for, what has no
// end, what leads elsewhere, what is too large to be read.
var irregular = map[string]func(path, victim string) error{
	"a FIFO":         func(path, _ string) error { return syscall.Mkfifo(path, 0o600) },
	"an endless one": func(path, _ string) error { return os.Symlink("/dev/zero", path) },
	"a link":         func(path, victim string) error { return os.Symlink(victim, path) },
	"a folder":       func(path, _ string) error { return os.MkdirAll(filepath.Join(path, "x"), 0o700) },
	"a huge one": func(path, _ string) error {
		return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<40))
	},
}

// TestWhatIsNoFileHangsNoStart puts something else in the place of the files of
// the folder. A start creates them again, or reports what to move away; it ends
// in any case, and the target of a link stays as it was.
func TestWhatIsNoFileHangsNoStart(t *testing.T) {
	t.Parallel()
	state := stateDir(t)
	start(t, state).kill(t)
	made := []string{portFile, kubeconfigFile, "ca.crt", "ca.key", "serving.crt", "serving.key", eventsFile}
	for what, put := range irregular {
		for name, c := range map[string]struct {
			files []string
			ready bool
		}{
			"what is made anew": {made, what != "a folder"},
			"the lock":          {[]string{lockFile}, what == "a huge one"}, // it is not read
			"the tokens":        {[]string{tokensFile}, false},
			"their lock":        {[]string{tokensFile + ".lock", kubeconfigFile}, what == "a huge one" || what == "a FIFO"},
			"the audit log":     {[]string{auditFile}, what == "a huge one"}, // put aside
		} {
			t.Run(name+" is "+what, func(t *testing.T) {
				victim := filepath.Join(t.TempDir(), "victim")
				if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
					t.Fatal(err)
				}
				for _, file := range c.files {
					path := control(state, file)
					if err := errors.Join(os.Rename(path, path+".kept"), put(path, victim)); err != nil {
						t.Fatal(err)
					}
				}
				child, ready := launch(t, state)
				if ready {
					child.kill(t)
				} else {
					_ = child.cmd.Wait()
				}
				if ready != c.ready || !ready && !strings.Contains(child.stderr.String(), control(state, "")) {
					t.Errorf("ready %v, want %v, or the path of the culprit\n%s", ready, c.ready, child.stderr)
				}
				if b, err := os.ReadFile(victim); err != nil || string(b) != "precious" {
					t.Errorf("what the link leads to has become %q, %v", b, err)
				}
				for _, file := range c.files {
					path := control(state, file)
					if err := errors.Join(os.RemoveAll(path), os.Rename(path+".kept", path)); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}
