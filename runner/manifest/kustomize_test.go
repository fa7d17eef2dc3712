package manifest

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"sigs.k8s.io/kustomize/api/types"
)

// unpack writes the files of a txtar archive to a new folder.
func unpack(t *testing.T, archive string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range txtar.Parse([]byte(archive)).Files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const base = `
-- base/kustomization.yaml --
resources: [model.yaml, agent.yaml]
-- base/model.yaml --
apiVersion: agentctl.dev/v1alpha1
kind: Model
metadata: {name: m}
spec: {provider: openai, model: small}
-- base/agent.yaml --
apiVersion: agentctl.dev/v1alpha1
kind: Agent
metadata: {name: a}
spec: {modelRef: {name: m}, instructions: Work.}
`

func TestAKustomizationIsBuilt(t *testing.T) {
	dir := unpack(t, base+`
-- overlay/kustomization.yaml --
resources: [../base]
components: [../more]
namespace: web
labels: [{pairs: {team: web}}]
patches:
- path: patch.yaml
- target: {kind: Model, name: m}
  patch: |-
    - op: replace
      path: /spec/model
      value: large
-- overlay/patch.yaml --
apiVersion: agentctl.dev/v1alpha1
kind: Agent
metadata: {name: a}
spec: {instructions: Work hard.}
-- more/kustomization.yaml --
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
resources: [second.yaml]
-- more/second.yaml --
apiVersion: agentctl.dev/v1alpha1
kind: Model
metadata: {name: second}
spec: {provider: openai, model: tiny}
`)
	set, found := Load(t.Context(), []string{filepath.Join(dir, "overlay")}, nil)
	if len(found) > 0 {
		t.Fatal(found)
	}
	got := map[string]any{}
	for _, d := range set.Documents {
		spec, _ := d.Value["spec"].(map[string]any)
		got[d.Namespace+"/"+d.Kind+"/"+d.Name] = spec["model"]
		if d.Kind == "Agent" {
			got["instructions"] = spec["instructions"]
		}
		if d.Dir != filepath.Join(dir, "overlay") {
			t.Errorf("relative paths of %s start from %s", d.Name, d.Dir)
		}
		for _, name := range []string{"overlay/kustomization.yaml", "overlay/patch.yaml", "base/agent.yaml", "more/second.yaml"} {
			if !slices.Contains(d.Files, filepath.Join(dir, name)) {
				t.Errorf("%s is not among the files of %s: a run could change it", name, d.Name)
			}
		}
	}
	want := map[string]any{"web/Agent/a": nil, "instructions": "Work hard.", "web/Model/m": "large", "web/Model/second": "tiny"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestABuildReadsLocalFilesOnly has a web server and a program git that must not be
// used, for every field that can name something remote.
func TestABuildReadsLocalFilesOnly(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		fmt.Fprint(w, "apiVersion: agentctl.dev/v1alpha1\nkind: Model\nmetadata: {name: m}\n")
	}))
	defer server.Close()
	bin := t.TempDir()
	called := filepath.Join(bin, "called")
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\necho \"$@\" >> "+called+"\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	url := server.URL + "/m.yaml"
	for _, c := range []struct{ kustomization, want string }{
		{"resources: [" + url + "]", "only local files"},
		{"bases: [" + url + "]", "only local files"},
		{"resources: [HTTPS://example.com/o/r]", "only local files"},
		{"resources: [github.com/o/r]", "only local files"},
		{"resources: ['GitHub.com/o/r//p?ref=v1']", "only local files"},
		{"resources: ['git@example.com:o/r.git']", "only local files"},
		{"resources: [git@example.com/o/r]", "only local files"},
		{"resources: ['git::github.com/o/r']", "only local files"},
		{"resources: ['ssh://git@h/o/r']", "only local files"},
		{"resources: ['file:///tmp/r']", "only local files"},
		{"RESOURCES: [" + url + "]", "only local files"},
		{"components: [github.com/o/r]", "only local files"},
		{"crds: [" + url + "]", "only local files"},
		{"configurations: [" + url + "]", "only local files"},
		{"openapi: {path: " + url + "}", "only local files"},
		{"patches: [{path: " + url + "}]", "only local files"},
		{"patchesJson6902: [{path: " + url + ", target: {kind: Model, name: m, version: v1}}]", "only local files"},
		{"patchesStrategicMerge: [" + url + "]", "only local files"},
		{"replacements: [{path: " + url + "}]", "only local files"},
		{"generators: [g.yaml]", "plugins are not executed"},
		{"transformers: [g.yaml]", "plugins are not executed"},
		{"validators: [g.yaml]", "plugins are not executed"},
		{"helmCharts: [{name: c, repo: " + url + "}]", "helm charts are not rendered"},
		{"helmGlobals: {chartHome: c}", "helm charts are not rendered"},
		{"helmChartInflationGenerator: [{chartName: c}]", "helm charts are not rendered"},
		{"configMapGenerator: [{name: c, files: [" + url + "]}]", "not kinds of agentctl"},
		{"secretGenerator: [{name: c, envs: [" + url + "]}]", "not kinds of agentctl"},
		{"resources: [../outside.yaml]", "is not in or below"},
		{"resources: [link.yaml]", "is not in or below"},
		{"resources: [/etc/passwd]", "is not in or below"},
		{"patches: [{path: ../outside.yaml}]", "is not in or below"},
		{"resources: [../below]", "only local files"},
		{"resources: [../linked]", "only local files"},
		{"resources: [missing.yaml]", "missing.yaml"},
		{"resources: [fifo]", "not a regular file"},
		{"resources: [.]", "cycle"},
		{"namePrefix: x-", "no object"},
		{"", "kustomization.yaml is empty"},
		{"reosurces: [a.yaml]", `unknown field "reosurces"`},
		{"a: &a [x]\nresources: *b", "unknown anchor"},
	} {
		dir := unpack(t, base+"-- outside.yaml --\nkind: Model\n-- o/kustomization.yaml --\n"+c.kustomization+"\n-- o/g.yaml --\nkind: X\n"+
			"-- below/kustomization.yaml --\nresources: ["+url+"]\n-- linked/k.txt --\nresources: ["+url+"]\n")
		for name, to := range map[string]string{"o/link.yaml": "../outside.yaml", "linked/kustomization.yaml": "k.txt"} {
			if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := syscall.Mkfifo(filepath.Join(dir, "o/fifo"), 0o600); err != nil {
			t.Fatal(err)
		}
		set, found := Load(t.Context(), []string{filepath.Join(dir, "o")}, nil)
		if len(set.Documents) > 0 || len(found) != 1 || !found.HasErrors() || !strings.Contains(found[0].Message, c.want) {
			t.Errorf("%s: %d documents, %v; want %q", c.kustomization, len(set.Documents), found, c.want)
			continue
		}
		if at := found[0].Position.File; !strings.HasPrefix(at, dir) || strings.Contains(found[0].Message, "\n") {
			t.Errorf("%s: %q at %s", c.kustomization, found[0].Message, at)
		}
		if strings.HasPrefix(c.want, "only") && found[0].Position.Line == 0 {
			t.Errorf("%s: no line", c.kustomization)
		}
	}
	if text, err := os.ReadFile(called); err == nil || asked.Load() > 0 {
		t.Errorf("git was called: %s; the server was asked %d times", text, asked.Load())
	}
}

// TestEveryFieldOfAKustomizationIsKnown fails when a new version of the library has
// a field that could name something that must not be read.
func TestEveryFieldOfAKustomizationIsKnown(t *testing.T) {
	harmless := []string{
		"TypeMeta", "MetaData", "NamePrefix", "NameSuffix", "Namespace", "CommonLabels", "Labels", "CommonAnnotations",
		"Images", "ImageTags", "Replicas", "Vars", "SortOptions", "BuildMetadata",
	}
	for field := range reflect.TypeFor[types.Kustomization]().Fields() {
		if slices.Contains(harmless, field.Name) {
			continue
		}
		var k types.Kustomization
		fill(reflect.ValueOf(&k).Elem().FieldByIndex(field.Index), "https://example.com/x")
		if refused, _ := unsupported(&k); refused == "" && !slices.ContainsFunc(references(&k), func(r reference) bool { return remote(r.path) }) {
			t.Errorf("%s is neither refused, nor are its paths checked, nor is it known as harmless", field.Name)
		}
	}
}

// fill sets every string of a value, and one element of every list.
func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), text)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("path"), reflect.ValueOf(text))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() && v.Type().Field(i).Name != "Target" {
				fill(v.Field(i), text)
			}
		}
	}
}

func TestABuildIsBounded(t *testing.T) {
	// Each level names the one below twice, with other names: 2^40 objects.
	var deep strings.Builder
	for i := range 40 {
		fmt.Fprintf(&deep, "-- l%d/kustomization.yaml --\nresources: [../p%d, ../q%d]\n", i, i, i)
		for _, side := range []string{"p", "q"} {
			fmt.Fprintf(&deep, "-- %s%d/kustomization.yaml --\nresources: [../l%d]\nnamePrefix: %s\n", side, i, i+1, side)
		}
	}
	dir := unpack(t, deep.String()+"-- l40/kustomization.yaml --\nresources: [m.yaml]\n-- l40/m.yaml --\napiVersion: v1\nkind: Model\nmetadata: {name: m}\n")
	_, found := Load(t.Context(), []string{filepath.Join(dir, "l0")}, nil)
	if len(found) != 1 || !strings.Contains(found[0].Message, "more than 2000 files") {
		t.Errorf("a tree that doubles at each level: %v", found)
	}

	dir = unpack(t, "-- kustomization.yaml --\nresources: [large.yaml]\n-- large.yaml --\n"+strings.Repeat("# a comment\n", MaxFile/12+1))
	if _, found = Load(t.Context(), []string{dir}, nil); len(found) != 1 || !strings.Contains(found[0].Message, "too large") {
		t.Errorf("a large file: %v", found)
	}

	var bomb bytes.Buffer
	bomb.WriteString("apiVersion: agentctl.dev/v1alpha1\nkind: Model\nmetadata: {name: m}\na0: &a0 [x, x, x, x, x, x, x, x, x]\n")
	for i := range 12 {
		fmt.Fprintf(&bomb, "a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), ", "))
	}
	dir = unpack(t, "-- kustomization.yaml --\nresources: [bomb.yaml]\nnamePrefix: x\n-- bomb.yaml --\n"+bomb.String())
	if _, found = Load(t.Context(), []string{dir}, nil); len(found) != 1 || !strings.Contains(found[0].Message, "aliases stand for more") {
		t.Errorf("aliases that stand for 9^12 values: %v", found)
	}
	dir = unpack(t, "-- kustomization.yaml --\nresources: [m.yaml]\n-- m.yaml --\napiVersion: v1\nkind: Model\nmetadata: {name: m}\nspec: &s {a: [*s]}\n")
	if _, found = Load(t.Context(), []string{dir}, nil); len(found) != 1 || !strings.Contains(found[0].Message, "aliases stand for more") {
		t.Errorf("a value that is part of itself: %v", found)
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fmt.Errorf("enough"))
	if _, found = Load(ctx, []string{unpack(t, base) + "/base"}, nil); len(found) == 0 || !strings.Contains(found[0].Message, "enough") {
		t.Errorf("a build that was cancelled: %v", found)
	}
}
