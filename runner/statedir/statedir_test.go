package statedir

import (
	"os"
	"path/filepath"
	"testing"
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
