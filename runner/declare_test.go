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

// TestKustomizationsAreBuilt uses a program that stands for kustomize: which one
// a user has makes no difference.
func TestKustomizationsAreBuilt(t *testing.T) {
	bin, dir := t.TempDir(), filepath.Join(t.TempDir(), "overlay")
	putDeclared(t, filepath.Join(dir, "kustomization.yaml"), "resources: [../base]\n")
	putDeclared(t, filepath.Join(dir, "patch.yaml"), "no manifest")
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	program := func(name, script string) {
		putDeclared(t, filepath.Join(bin, name), "#!/bin/sh\n"+script)
		if err := os.Chmod(filepath.Join(bin, name), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	program("kustomize", `[ "$1" = build ] || exit 3; cat <<END
apiVersion: agentctl.dev/v1alpha1
kind: Run
metadata: {name: r}
spec: {agentRef: {name: a}, prompt: go, workspace: {source: {path: .}}}
END
`)
	for _, recursive := range []bool{false, true} {
		d, err := Declare(t.Context(), DeclareOptions{Paths: []string{dir}, Recursive: recursive, Absolute: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := mapping(mapping(mapping(d.Objects[0].Object["spec"])["workspace"])["source"]); len(d.Objects) != 1 || got["path"] != dir {
			t.Errorf("got %v", d.Objects)
		}
	}
	program("kustomize", "echo it is broken >&2; exit 1")
	if _, err := Declare(t.Context(), DeclareOptions{Paths: []string{dir}}); err == nil || !strings.Contains(err.Error(), "it is broken") {
		t.Errorf("got %v", err)
	}
	program("kustomize", "exec yes aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
	if _, err := Declare(t.Context(), DeclareOptions{Paths: []string{dir}}); err == nil || !strings.Contains(err.Error(), "larger than 16 MiB") {
		t.Errorf("got %v", err)
	}
	if err := os.Remove(filepath.Join(bin, "kustomize")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	if _, err := Declare(t.Context(), DeclareOptions{Paths: []string{dir}}); err == nil || !strings.Contains(err.Error(), "neither kustomize nor kubectl is installed") {
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
