package statedir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/reason"
)

func TestTheFlagCountsBeforeTheEnvironment(t *testing.T) {
	t.Setenv("AGENTCTL_STATE", "/env")
	t.Setenv("XDG_STATE_HOME", "/xdg")
	for flag, want := range map[string]string{"/flag": "/flag", "": "/env"} {
		if got, err := Find(flag); err != nil || got != want {
			t.Errorf("%q: got %s, %v; want %s", flag, got, err, want)
		}
	}
	t.Setenv("AGENTCTL_STATE", "")
	if got, err := Find(""); err != nil || got != "/xdg/agentctl" {
		t.Errorf("got %s, %v", got, err)
	}
	t.Setenv("XDG_STATE_HOME", "relative")
	t.Setenv("HOME", "/home/x")
	if got, err := Find(""); err != nil || got != "/home/x/.local/state/agentctl" {
		t.Errorf("got %s, %v", got, err)
	}
}

// The folder is kept from tools by its path: a link to it must not be another one.
func TestLinksAreFollowedAsFarAsTheyLead(t *testing.T) {
	dir := Resolve(t.TempDir())
	if err := os.Symlink(dir, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"link": dir, "link/not/there": dir + "/not/there", "not/there": dir + "/not/there"} {
		if got := Resolve(filepath.Join(dir, path)); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

// Other users could plant runs there, and move those away that are there.
func TestAFolderThatOthersCanChangeIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		mode   os.FileMode
		runs   os.FileMode
		owner  int
		want   string
	}{
		"private":             {"nobody else", 0o700, 0, -1, ""},
		"readable":            {"others can read, which each file forbids", 0o755, 0, -1, ""},
		"world-writable":      {"anybody can plant a run", 0o777, 0, -1, "chmod go-w "},
		"sticky":              {"a run can still be planted", 0o1777, 0, -1, "chmod go-w "},
		"runs world-writable": {"the folder of runs counts as well", 0o700, 0o777, -1, "/runs"},
		"another user's":      {"its owner can change everything", 0o700, 0, 65534, "chown -R "},
	} {
		t.Run(name, func(t *testing.T) {
			dir := Resolve(t.TempDir())
			if c.runs != 0 {
				if err := errors.Join(os.Mkdir(dir+"/runs", 0o700), os.Chmod(dir+"/runs", c.runs)); err != nil {
					t.Fatal(err)
				}
			}
			mode := c.mode.Perm()
			if c.mode&0o1000 != 0 {
				mode |= os.ModeSticky
			}
			if err := os.Chmod(dir, mode); err != nil {
				t.Fatal(err)
			}
			if c.owner >= 0 {
				if os.Getuid() != 0 {
					t.Skip("only root can give a folder to another user")
				}
				if err := os.Chown(dir, c.owner, c.owner); err != nil {
					t.Fatal(err)
				}
			}
			_, err := Find(dir)
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			e, ok := errors.AsType[*reason.UsageError](err)
			if !ok || !strings.Contains(e.Error()+e.Hint, c.want) {
				t.Errorf("%v, want %q: %s", err, c.want, c.reason)
			}
		})
	}
}
