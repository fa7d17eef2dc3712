package control

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/runs"
)

func workspaceYAML(spec string) string {
	return head + "kind: Workspace\nmetadata: {name: repo}\nspec: {" + spec + "}\n"
}

func TestARunWorksOnItsWorkspace(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply(workerYAML + sep + runYAML("early", ", workspaceRef: {name: repo}"))
	await(s, &v1alpha1.Run{}, &v1alpha1.RunList{}, "early", func(r *v1alpha1.Run) bool {
		return len(r.Status.Conditions) > 0 && strings.HasPrefix(r.Status.Conditions[0].Message, `workspace "repo" not found`)
	})
	dir := filepath.Join(t.TempDir(), "src")
	s.apply(workspaceYAML("source: {path: " + dir + "}"))
	s.awaitReady("Workspace", "repo", "False", "SpecInvalid")
	await(s, &v1alpha1.Run{}, &v1alpha1.RunList{}, "early", func(r *v1alpha1.Run) bool {
		return r.Status.Phase == v1alpha1.PhasePending && strings.HasPrefix(r.Status.Conditions[0].Message, `workspace "repo" is not ready`)
	})
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.apply(workspaceYAML("source: {path: " + dir + "}, exclude: [nothing]"))
	run := s.awaitPhase("early", v1alpha1.PhaseSucceeded, v1alpha1.PhaseFailed)
	if run.Status.Phase != v1alpha1.PhaseSucceeded {
		t.Fatalf("%+v", run.Status.Conditions)
	}
	seen, err := runs.View(t.Context(), shared.dir, RunID(run))
	if err != nil {
		t.Fatal(err)
	}
	if w := seen.Started.Workspace; w.Source != dir || w.Strategy != "Copy" {
		t.Errorf("it worked on %+v, want a copy of %s", w, dir)
	}
}

func TestAWorkspaceSaysWhetherItCanBeUsed(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(dir, "state")
	if err := os.MkdirAll(filepath.Join(state, "control"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		reason, spec string
		status       metav1.ConditionStatus
		why, message string
		again        bool
	}{
		"folder":   {"it is there", "source: {path: " + dir + "}", "True", "Accepted", "", true},
		"in place": {"it is there", "source: {path: " + dir + "}, strategy: InPlace", "True", "Accepted", "", true},
		"empty":    {"nothing is needed", "strategy: Empty", "True", "Accepted", "", false},
		"relative": {"there is no current folder", "source: {path: repo}", "False", "PathNotAbsolute", "spec.source.path", false},
		"no path":  {"there is no current folder", "strategy: Copy", "False", "PathNotAbsolute", "spec.source.path", false},
		"nowhere":  {"it may come", "source: {path: " + dir + "/no}", "False", "SpecInvalid", "no such file", true},
		"file":     {"a file is no folder", "source: {path: " + file + "}", "False", "SpecInvalid", "not a folder", true},
		"system":   {"a copy of everything is nobody's wish", "source: {path: /}", "False", "SpecInvalid", "the whole file system", true},
		"keys":     {"tools would read tokens", "source: {path: " + state + "/control}, strategy: InPlace", "False", "SpecInvalid", "lies in the state folder", true},
		"git":      {"only runs ask the server", "source: {git: {url: \"https://x/y\"}}", "True", "Accepted", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, workspaceYAML(c.spec))
			result, err := (&workspaceReconciler{base: b.base, state: state}).Reconcile(t.Context(), request("repo"))
			if err != nil || (result.RequeueAfter > 0) != c.again {
				t.Errorf("%+v, %v", result, err)
			}
			w := &v1alpha1.Workspace{}
			if err := b.Get(t.Context(), request("repo").NamespacedName, w); err != nil {
				t.Fatal(err)
			}
			got := w.Status.Conditions[0]
			if got.Status != c.status || got.Reason != c.why || !strings.Contains(got.Message, c.message) {
				t.Errorf("%s: %+v", c.reason, got)
			}
		})
	}
}
