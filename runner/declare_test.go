package runner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
