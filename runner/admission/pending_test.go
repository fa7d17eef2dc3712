package admission

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestDocsTellWhatDoesNotWorkYet: who plans with a field reads it before its
// manifest is written.
func TestDocsTellWhatDoesNotWorkYet(t *testing.T) {
	text, err := os.ReadFile("../../docs/manifests.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## Not yet\n")
	section, _, _ = strings.Cut(section, "\n## ")
	if !found {
		t.Fatal("docs/manifests.md has no section Not yet")
	}
	rows := strings.Split(section, "\n")
	for _, n := range notYets {
		if !slices.ContainsFunc(rows, func(row string) bool { return tells(row, n) }) {
			t.Errorf("docs/manifests.md does not tell of %s %s %v", n.kind, n.path, n.values)
		}
	}
}

func tells(row string, n notYet) bool {
	unsaid := func(v string) bool { return !strings.Contains(row, v) }
	return strings.Contains(row, n.kind+" `") && strings.Contains(row, "`"+n.path) && !slices.ContainsFunc(n.values, unsaid)
}
