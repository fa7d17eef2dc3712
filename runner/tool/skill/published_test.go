package skill

import (
	"os"
	"path/filepath"
	"testing"
)

// TestPublishedSkillsAreReadUnchanged reads skills of npm packages as .ci/npm-skills has
// fetched them: each folder package/skills of a package.
func TestPublishedSkillsAreReadUnchanged(t *testing.T) {
	dir := os.Getenv("AGENTCTL_NPM_SKILLS")
	if dir == "" {
		t.Skip("AGENTCTL_NPM_SKILLS names no folder: .ci/npm-skills fetches some")
	}
	packages, err := filepath.Glob(filepath.Join(dir, "*", "package"))
	if err != nil || len(packages) == 0 {
		t.Fatalf("no packages in %s: %v", dir, err)
	}
	for _, p := range packages {
		found, notes := Find(p, []string{"skills"})
		if len(found) == 0 || len(notes) > 0 {
			t.Errorf("%s: %d skills; left out: %q", p, len(found), notes)
		}
		for _, e := range found {
			s, f, err := e.Load()
			if err != nil {
				t.Errorf("%s: %v", e.Dir, err)
				continue
			}
			if text := e.Describe(s, f, nil); e.Description == "" || len(text) < 200 {
				t.Errorf("%s: %q, a text of %d bytes", e.Dir, e.Description, len(text))
			}
			files, _ := f.Files()
			for _, file := range files {
				if _, err := f.Text(file.Name); err != nil {
					t.Errorf("%s: %s: %v", e.Dir, file.Name, err)
				}
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
		t.Logf("%s: %d skills", p, len(found))
	}
}
