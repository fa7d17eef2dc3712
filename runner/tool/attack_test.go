package tool

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/sandbox"
	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// A mount must not show what no tool may see, by whatever name it is asked for.
func TestNoMountShowsWhatIsHidden(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir+"/home/state/runs", 0o700); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"link": dir + "/home", "in": dir + "/home/state/runs"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		"/home": dir + "/home/state", "/link": dir + "/link/state", "": dir + "/home/state",
		"/home/state": "", "/home/state/runs": "", "/in": "",
	} {
		d := held("x", hostProgram)
		d.Spec.Isolation.Mounts = []v1alpha1.Mount{{Path: dir + path}}
		all, err := Profiles([]Definition{d}, Place{Workspace: "/srv/files", Masked: []string{dir + "/home/state"}})
		switch {
		case want == "":
			if err == nil || !strings.Contains(err.Error(), "which no tool may see") {
				t.Errorf("%q: %v", path, err)
			}
		case err != nil:
			t.Errorf("%q: %v", path, err)
		case !slices.Contains(all["x"].Masked, want):
			t.Errorf("%q: hidden are %v, want %s", path, all["x"].Masked, want)
		}
	}
}

// What is hidden would hide the copy of the files that lies in it.
func TestAMountThatWouldHideTheFilesIsRefused(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for access, want := range map[v1alpha1.WorkspaceAccess]string{v1alpha1.AccessReadOnly: "the files of the run lie in it", v1alpha1.AccessNone: ""} {
		d := held("x", hostProgram)
		d.Spec.WorkspaceAccess, d.Spec.Isolation.Mounts = access, []v1alpha1.Mount{{Path: dir}}
		_, err = Profiles([]Definition{d}, Place{Workspace: dir + "/state/runs/1/files", Masked: []string{dir + "/state"}})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("access %s: %v", access, err)
		}
	}
}

// Another tool may be able to write where a command's files lie.
func TestFilesOfACommandAreThoseOfTheBeginning(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/real", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", dir+"/tool.py"); err != nil {
		t.Fatal(err)
	}
	for name, source := range map[string]v1alpha1.ToolSource{
		"exec":   {Exec: &v1alpha1.ExecSource{Command: []string{"python3", dir + "/tool.py"}}},
		"plugin": {Plugin: &v1alpha1.PluginSource{Command: []string{dir + "/tool.py"}}},
	} {
		d := held("x", func(s *v1alpha1.ToolSpec) { s.Source, s.WorkspaceAccess = source, v1alpha1.AccessNone })
		all, err := Profiles([]Definition{d}, Place{Workspace: dir})
		if err != nil {
			t.Fatal(err)
		}
		if want := (spec.Mount{Source: dir + "/real", Target: dir + "/tool.py"}); !slices.Contains(all["x"].Mounts, want) {
			t.Errorf("%s: mounts are %v, want %v", name, all["x"].Mounts, want)
		}
	}
}

// A sandbox that cannot be built is not an error of the tool, and never less
// than a sandbox.
func TestAToolWhoseSandboxCannotBeBuiltDoesNotRun(t *testing.T) {
	ran := filepath.Join(t.TempDir(), "ran")
	source := map[string]v1alpha1.ToolSource{
		"exec":   {Exec: &v1alpha1.ExecSource{Command: []string{"/bin/sh", "-c", "touch " + ran}}},
		"plugin": {Plugin: &v1alpha1.PluginSource{Command: []string{"/bin/sh", "-c", "touch " + ran}}},
	}
	for name, profiles := range map[string]map[string]*spec.Profile{
		"a helper that is none": {"x": {}}, "a tool without a profile": {"y": {}},
	} {
		for kind, src := range source {
			launcher := sandbox.New(sandbox.Options{Helper: "/bin/true", TempDir: t.TempDir()})
			pool := NewPool(PoolOptions{Site: testSite(launcher), Profiles: profiles, Dir: t.TempDir()})
			d := held("x", func(s *v1alpha1.ToolSpec) { s.Source = src })
			server, err := pool.Serve(t.Context(), &d, Outside{})
			if err == nil {
				_, err = server.Call(t.Context(), host.CallRequest{Timeout: time.Minute}, func(string) {})
			}
			if got := reason.Of(err); got != reason.IsolationUnavailable {
				t.Errorf("%s, %s: %s: %v", name, kind, got, err)
			}
			if err := pool.Close(); err != nil {
				t.Error(err)
			}
			if err := launcher.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := os.Lstat(ran); err == nil {
		t.Error("a program has run")
	}
}
