package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPoliciesThatAreNotReadAreNamed(t *testing.T) {
	dir, policies := repositoryWith(t)
	sub := filepath.Join(dir, "sub", "deeper")
	for _, d := range []string{policies + "/team", policies + "/empty", policies + "/.hidden", policies + "/notes", sub} {
		must(t, os.MkdirAll(d, 0o755))
	}
	writeText(t, policies+"/a.yaml", fmt.Sprintf(small, 1))
	writeText(t, policies+"/team/b.yaml", fmt.Sprintf(small, 2))
	writeText(t, policies+"/.hidden/c.yaml", fmt.Sprintf(small, 3))
	writeText(t, policies+"/notes/README.md", "x")
	if got := OverlookedPolicies(dir); len(got) != 1 || !strings.Contains(got[0], `"`+RepositoryPolicies+`/team"`) {
		t.Errorf("in a sub folder: %q", got)
	}
	if got := OverlookedPolicies(sub); len(got) > 0 {
		t.Errorf("in no repository: %q", got)
	}
	must(t, os.Mkdir(dir+"/.git", 0o755))
	if got := OverlookedPolicies(sub); len(got) != 1 || !strings.Contains(got[0], policies) {
		t.Errorf("above: %q", got)
	}
	must(t, os.Mkdir(sub+"/.git", 0o755))
	if got := OverlookedPolicies(sub); len(got) > 0 {
		t.Errorf("a repository of its own: %q", got)
	}
	must(t, os.RemoveAll(policies))
	must(t, os.Symlink(t.TempDir(), policies))
	if got := OverlookedPolicies(dir); len(got) > 0 {
		t.Errorf("a link: %q", got)
	}
}
