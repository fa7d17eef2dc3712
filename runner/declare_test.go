package runner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/runner/manifest"
)

const declaredModel = "apiVersion: agentctl.dev/v1alpha1\nkind: Model\nmetadata: {name: %}\nspec: {provider: scripted, scripted: {steps: [{say: done}]}}\n"

func putDeclared(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDeclaredObjectsAreWhatTheAuthorWrote(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.yaml")
	putDeclared(t, file, `apiVersion: agentctl.dev/v1alpha1
kind: Agent
metadata: {name: a, resourceVersion: "7", managedFields: [], creationTimestamp: null, labels: {team: web}}
spec: {modelRef: {name: m}}
status: {anything: goes}
`)
	d, err := Declare(t.Context(), DeclareOptions{Paths: []string{file}})
	if err != nil {
		t.Fatal(err)
	}
	want := []Declared{{Kind: "Agent", Name: "a", Place: file + ":1:1", Object: map[string]any{
		"apiVersion": "agentctl.dev/v1alpha1", "kind": "Agent",
		"metadata": map[string]any{"name": "a", "labels": map[string]any{"team": "web"}},
		"spec":     map[string]any{"modelRef": map[string]any{"name": "m"}},
	}}}
	if diff := cmp.Diff(want, d.Objects); diff != "" {
		t.Errorf("neither defaults nor what a server counts belongs to it (-want +got)\n%s", diff)
	}
}

func TestFoldersAreSearchedWhenAsked(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b/c/one.yaml", "b/two.json.yaml", "a/three.yml", ".git/four.yaml"} {
		putDeclared(t, filepath.Join(dir, name), strings.Replace(declaredModel, "%", strings.TrimSuffix(filepath.Base(name)[:3], "."), 1))
	}
	putDeclared(t, filepath.Join(dir, "b", "README.md"), "no manifest")
	d, err := Declare(t.Context(), DeclareOptions{Paths: []string{dir}, Recursive: true})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range d.Objects {
		got = append(got, o.Name)
	}
	if diff := cmp.Diff([]string{"thr", "two", "one"}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := Declare(t.Context(), DeclareOptions{Paths: []string{dir}}); err == nil {
		t.Error("without -R the folder holds no manifest")
	}
	if _, err := Declare(t.Context(), DeclareOptions{Paths: []string{t.TempDir()}, Recursive: true}); err == nil {
		t.Error("nothing is not enough")
	}
}

func TestKustomizationsAreBuilt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "overlay")
	putDeclared(t, filepath.Join(dir, "kustomization.yaml"), "resources: [../base]\nnamespace: web\n")
	putDeclared(t, filepath.Join(dir, "patch.yaml"), "not a manifest")
	putDeclared(t, filepath.Join(dir, "../base/kustomization.yaml"), "resources: [run.yaml]\n")
	putDeclared(t, filepath.Join(dir, "../base/run.yaml"), `apiVersion: agentctl.dev/v1alpha1
kind: Run
metadata: {name: r}
spec: {agentRef: {name: a}, prompt: go, workspace: {source: {path: .}}}
`)
	for _, recursive := range []bool{false, true} {
		d, err := Declare(t.Context(), DeclareOptions{Paths: []string{dir}, Recursive: recursive, Absolute: true})
		if err != nil {
			t.Fatal(err)
		}
		got := mapping(mapping(mapping(d.Objects[0].Object["spec"])["workspace"])["source"])
		if len(d.Objects) != 1 || got["path"] != dir || d.Objects[0].Namespace != "web" {
			t.Errorf("got %v", d.Objects)
		}
	}
	putDeclared(t, filepath.Join(dir, "kustomization.yaml"), "resources: [../none]\n")
	_, err := Declare(t.Context(), DeclareOptions{Paths: []string{dir}})
	if invalid, ok := errors.AsType[*InvalidError](err); !ok || len(invalid.Findings) != 1 || invalid.Findings[0].Position.File != dir {
		t.Errorf("got %v", err)
	}
}

// TestARunKeepsItsKustomization has a run in the folder of its own manifests: no tool
// may change any file that they were built from.
func TestARunKeepsItsKustomization(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	putDeclared(t, filepath.Join(dir, "o/kustomization.yaml"), "resources: [../b]\npatches: [{path: p.yaml}]\n")
	putDeclared(t, filepath.Join(dir, "o/p.yaml"), "apiVersion: agentctl.dev/v1alpha1\nkind: Model\nmetadata: {name: m}\nspec: {scripted: {steps: [{say: patched}]}}\n")
	putDeclared(t, filepath.Join(dir, "b/kustomization.yaml"), "resources: [m.yaml]\n")
	putDeclared(t, filepath.Join(dir, "b/m.yaml"), strings.Replace(declaredModel, "%", "m", 1))
	set, found := manifest.Load(t.Context(), []string{filepath.Join(dir, "o")}, nil)
	if len(found) > 0 {
		t.Fatal(found)
	}
	p := &plan{}
	p.files.Source = dir
	got := p.own(set.Documents)
	slices.Sort(got)
	if diff := cmp.Diff([]string{"b/kustomization.yaml", "b/m.yaml", "o/kustomization.yaml", "o/p.yaml"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMistakesKeepEverythingBack(t *testing.T) {
	dir := t.TempDir()
	putDeclared(t, filepath.Join(dir, "a.yaml"), strings.Replace(declaredModel, "%", "a", 1))
	putDeclared(t, filepath.Join(dir, "b.yaml"), "apiVersion: agentctl.dev/v1alpha1\nkind: Model\nmetadata: {name: b}\nspec: {provider: scriptet}\n")
	d, err := Declare(t.Context(), DeclareOptions{Paths: []string{dir}})
	invalid, ok := errors.AsType[*InvalidError](err)
	if !ok || d != nil || invalid.Findings[0].Position.File != filepath.Join(dir, "b.yaml") {
		t.Errorf("got %v, %v", d, err)
	}
	if _, err := Declare(context.Background(), DeclareOptions{}); err == nil {
		t.Error("no manifests are no success")
	}
}
