package manifest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/reason"
)

func TestAPathStandsForWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.yaml", "below/b.yml", "below/.hidden/c.yaml", "text/d.md", "built/kustomization.yaml", "built/below/e.yaml"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, c := range map[string]struct {
		reason, path string
		recursive    bool
		want         []string
	}{
		"stdin":     {"it is read as it comes", "-", true, []string{"-"}},
		"missing":   {"Load reports it", at("none"), true, []string{at("none")}},
		"file":      {"it stands for itself", at("a.yaml"), true, []string{at("a.yaml")}},
		"folder":    {"not what is below it, unless asked", dir, false, []string{dir}},
		"recursive": {"no hidden folder, and nothing below a kustomization", dir, true, []string{dir, at("below"), at("built")}},
		"kustomize": {"recursive or not", at("built"), true, []string{at("built")}},
	} {
		got, err := Find(c.path, c.recursive)
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %s: %v (-want +got):\n%s", name, c.reason, err, diff)
		}
	}
	if _, err := Find(at("text"), true); !errors.As(err, new(*reason.UsageError)) || !strings.Contains(err.Error(), "hold no manifest") {
		t.Errorf("a folder without manifests: %v", err)
	}
}
