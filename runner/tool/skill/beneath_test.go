package skill

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree writes files, and links where the text begins with "-> ".
func tree(t *testing.T, top string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		var err error
		if to, link := strings.CutPrefix(text, "-> "); link {
			err = os.Symlink(to, file)
		} else {
			err = os.WriteFile(file, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestNoLinkIsFollowedWithinASkill(t *testing.T) {
	dir := t.TempDir()
	tree(t, dir, map[string]string{
		"SKILL.md": "x", "references/a.md": "A", "private/f.txt": "CANARY", "private/sub/g.txt": "CANARY",
		"latest": "-> private/sub", "pub.txt": "-> private/f.txt", "same": "-> references",
	})
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if text, err := f.Text("references/a.md"); err != nil || text != "A" {
		t.Errorf("%q, %v", text, err)
	}
	for name, want := range map[string]string{
		"latest/../f.txt": "without . or ..", "./references/a.md": "without . or ..", "references//a.md": "without . or ..", "references/a.md/": "without . or ..",
		"latest/g.txt": "it is a link", "pub.txt": "it is a link", "same/a.md": "it is a link", "../x": "not in the folder",
	} {
		if text, err := f.Text(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v, want %q", name, text, err, want)
		}
	}
	tree(t, dir, map[string]string{"linked/SKILL.md": "-> ../SKILL.md", "runs/bin/execute.sh": "x", "runs/scripts": "-> bin"})
	runs, err := Open(filepath.Join(dir, "runs"))
	if err != nil {
		t.Fatal(err)
	}
	defer runs.Close()
	if script, err := runs.Script(); err == nil || !strings.Contains(err.Error(), "it is a link") {
		t.Errorf("a script behind a link: %q, %v", script, err)
	}
	if _, err := Read(filepath.Join(dir, "linked")); err == nil || !strings.Contains(err.Error(), "it is a link") {
		t.Errorf("a SKILL.md that is a link: %v", err)
	}
}

// TestWhatIsExchangedForALinkIsNotRead: a program of a run exchanges a folder for a link
// again and again, while it is opened.
func TestWhatIsExchangedForALinkIsNotRead(t *testing.T) {
	dir := t.TempDir()
	tree(t, dir, map[string]string{"SKILL.md": "x", "open/f.txt": "A", "secret/f.txt": "CANARY"})
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	stop, stopped := make(chan struct{}), make(chan error)
	go func() {
		open, kept := filepath.Join(dir, "open"), filepath.Join(dir, "kept")
		for {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			for _, do := range []func() error{
				func() error { return os.Rename(open, kept) }, func() error { return os.Symlink("secret", open) },
				func() error { return os.Remove(open) }, func() error { return os.Rename(kept, open) },
			} {
				if err := do(); err != nil {
					<-stop
					stopped <- err
					return
				}
			}
		}
	}()
	for range 60000 {
		if text, err := f.Text("open/f.txt"); err == nil && text != "A" {
			t.Errorf("read %q through a link", text)
			break
		}
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestAFileIsJudgedWhereItLies(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tree(t, top, map[string]string{"p/w/s/SKILL.md": "x", "p/w-2/SKILL.md": "x", "to": "-> p/w/s", "up": "-> p"})
	work := filepath.Join(top, "p", "w")
	for name, c := range map[string]struct{ reason, dir, file, want string }{
		"in it":         {"a skill of the workspace", "p/w/s", "a/b.md", "s/a/b.md"},
		"the workspace": {"the folder is the workspace", "p/w", ".env", ".env"},
		"around it":     {"the folder holds the workspace", "p", "w/.env", ".env"},
		"high above":    {"the folder holds it deeply", ".", "p/w/s/SKILL.md", "s/SKILL.md"},
		"beside it":     {"a file of the folder outside of the workspace", "p", "w-2/SKILL.md", ""},
		"elsewhere":     {"a folder whose name begins like that of the workspace", "p/w-2", ".env", ""},
		"by a link":     {"a link to a skill of the workspace", "to", "a.md", "s/a.md"},
		"above by one":  {"a link to a folder around it", "up", "w/.env", ".env"},
	} {
		e := Entry{Dir: filepath.Join(top, c.dir)}
		if err := e.Locate(work); err != nil {
			t.Fatal(err)
		}
		if got := e.Path(c.file); got != c.want {
			t.Errorf("%s: %s: %q, want %q", name, c.reason, got, c.want)
		}
		if c.want != "" {
			if judged, err := os.Stat(filepath.Dir(filepath.Join(work, c.want))); err == nil {
				opened, err := os.Stat(filepath.Dir(filepath.Join(e.Dir, c.file)))
				if err != nil || !os.SameFile(judged, opened) {
					t.Errorf("%s: judged is %s, opened %s: %v", name, c.want, c.file, err)
				}
			}
		}
	}
	gone := Entry{Dir: filepath.Join(top, "nowhere")}
	if err := gone.Locate(work); err == nil {
		t.Error("nobody knows where a folder lies that is not there")
	}
}
