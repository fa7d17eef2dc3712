package workspace

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// TestStateFollowsContents checks that only contents count: a file that is
// written again as it was leaves the state, and a state that comes back is the same.
func TestStateFollowsContents(t *testing.T) {
	source := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		file := filepath.Join(source, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("a/b.txt", "one")
	put(".git/HEAD", "ref: refs/heads/main\n")
	put(".git/refs/heads/main", "1111\n")
	w, err := Prepare(t.Context(), Spec{Strategy: v1alpha1.StrategyInPlace, Source: source, Home: "/nowhere"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close() //nolint:errcheck // of the test's own folder
	state := func() string {
		t.Helper()
		s, err := w.State(t.Context())
		if err != nil || s == "" {
			t.Fatalf("state %q, %v", s, err)
		}
		return s
	}
	first := state()
	put("a/b.txt", "one")
	if s := state(); s != first {
		t.Error("writing the same content again changed the state")
	}
	put(".git/index", "anything")
	if s := state(); s != first {
		t.Error("the index of a repository changed the state")
	}
	put("a/b.txt", "two")
	second := state()
	if second == first {
		t.Error("another content left the state")
	}
	put("a/b.txt", "one")
	if s := state(); s != first {
		t.Error("the content is the first one again, the state is not")
	}
	if err := os.Chmod(filepath.Join(source, "a/b.txt"), 0o755); err != nil {
		t.Fatal(err)
	}
	if s := state(); s == first {
		t.Error("another mode left the state")
	}
	before := state()
	put(".git/refs/heads/main", "2222\n")
	if s := state(); s == before {
		t.Error("a commit left the state")
	}
	// What a tool puts in the place of a reference is not opened.
	if err := os.Remove(filepath.Join(source, ".git/HEAD")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(source, ".git/HEAD"), 0o600); err != nil {
		t.Fatal(err)
	}
	state()
	if err := os.RemoveAll(filepath.Join(source, ".git")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/", filepath.Join(source, ".git")); err != nil {
		t.Fatal(err)
	}
	state()
}
