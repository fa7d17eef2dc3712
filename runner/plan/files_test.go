package plan

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"agentctl.dev/agentctl/runner/manifest"
	"github.com/google/go-cmp/cmp"
)

// TestARunKeepsItsKustomization has a run in the folder of its own manifests: no tool
// may change any file that they were built from.
func TestARunKeepsItsKustomization(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "o/kustomization.yaml"), "resources: [../b]\npatches: [{path: p.yaml}]\n")
	put(t, filepath.Join(dir, "o/p.yaml"), "apiVersion: agentctl.dev/v1alpha1\nkind: Model\nmetadata: {name: m}\nspec: {scripted: {steps: [{say: patched}]}}\n")
	put(t, filepath.Join(dir, "b/kustomization.yaml"), "resources: [m.yaml]\n")
	put(t, filepath.Join(dir, "b/m.yaml"), "apiVersion: agentctl.dev/v1alpha1\nkind: Model\nmetadata: {name: m}\nspec: {provider: scripted, model: m, scripted: {steps: [{say: hello}]}}\n")
	set, found := manifest.Load(t.Context(), []string{filepath.Join(dir, "o")}, nil)
	if len(found) > 0 {
		t.Fatal(found)
	}
	p := &Plan{}
	p.Workspace.Source = dir
	got := p.inWorkspace(set.Documents, nil)
	slices.Sort(got)
	if diff := cmp.Diff([]string{"b/kustomization.yaml", "b/m.yaml", "o/kustomization.yaml", "o/p.yaml"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}
