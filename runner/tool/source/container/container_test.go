package container

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/tool"
)

func image() tool.Definition {
	return tool.Definition{Name: "x", Spec: v1alpha1.ToolSpec{
		Source:    v1alpha1.ToolSource{Container: &v1alpha1.ContainerSource{Image: "oci:/x.tar@sha256:12"}},
		Isolation: v1alpha1.Isolation{Minimum: v1alpha1.IsolationSandbox}, Network: v1alpha1.Network{Mode: v1alpha1.NetworkNone},
	}, Facts: tool.Facts{Level: v1alpha1.IsolationContainer}}
}

// opened is the source of a pool that has started nothing.
func opened(at tool.SiteOptions, o tool.PoolOptions) *source {
	o.Site = tool.NewSite(at)
	s, _ := isolate(o.Site).Source(tool.NewPool(o)).(*source)
	return s
}

func TestWhatToDoAboutAnImageThatDoesNotServe(t *testing.T) {
	s := opened(tool.SiteOptions{}, tool.PoolOptions{})
	d := image()
	if p := s.program(&d); !strings.Contains(p.Hint(), "protocol: Exec") || p.Name != "oci:/x.tar@sha256:12" {
		t.Errorf("%s: %s", p.Name, p.Hint())
	}
}

// Nothing can be hidden of what a container is shown by a mount.
func TestAContainerIsShownNothingOfAgentctl(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir+"/home/state/runs", 0o700); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"link": dir + "/home/other", "run": "/run"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(dir+"/home/other", 0o700); err != nil {
		t.Fatal(err)
	}
	s := opened(tool.SiteOptions{Unseen: []string{dir + "/home/state"}}, tool.PoolOptions{})
	for path, want := range map[string]string{
		"/home/other": "", "/home": "lies in it", "/home/state": "no tool may see", "/home/state/runs": "no tool may see",
		"/link": "a link leads to it", "/run": "would open the sandbox", "/none": "no such file",
	} {
		d := image()
		d.Spec.Isolation.Mounts = []v1alpha1.Mount{{Path: dir + path}}
		if err := s.at.check(&d); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// On the files themselves the state folder may lie among them.
func TestAContainerIsShownNoStateFolderAmongTheFiles(t *testing.T) {
	guard := func(context.Context) (readOnly, masked []string, err error) {
		return []string{"/srv/files/.git/config"}, []string{"/srv/files/.env"}, nil
	}
	s := opened(tool.SiteOptions{Unseen: []string{"/srv/files/.state", "/tmp/agentctl-0"}}, tool.PoolOptions{Dir: "/srv/files", Guard: guard})
	for access, want := range map[v1alpha1.WorkspaceAccess][]string{
		v1alpha1.AccessReadWrite: {"/srv/files/.state", "/srv/files/.env"}, v1alpha1.AccessNone: nil,
	} {
		d := image()
		d.Spec.WorkspaceAccess = access
		got, err := s.spec(t.Context(), &d)
		if err != nil || !slices.Equal(got.Masked, want) {
			t.Errorf("access %s: hidden are %v, want %v: %v", access, got.Masked, want, err)
		}
	}
}

// A container shows the files of the run only where a guard says what it must not show.
func TestAContainerWithoutAGuardIsShownNoFiles(t *testing.T) {
	s := opened(tool.SiteOptions{}, tool.PoolOptions{Dir: "/srv/files"})
	d := image()
	d.Spec.WorkspaceAccess = v1alpha1.AccessReadOnly
	if got, err := s.spec(t.Context(), &d); reason.Of(err) != reason.Internal || got.Workspace != "" {
		t.Errorf("it is shown %q: %v", got.Workspace, err)
	}
}

// Nothing can be hidden of a mount: one that shows what a policy hides is refused.
func TestAContainerIsShownNoHiddenFileByAMount(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/own/private", "/own/notes", "/files"} {
		if err := os.MkdirAll(dir+name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	guard := func(context.Context) (readOnly, masked []string, err error) {
		return nil, []string{dir + "/files/.env", dir + "/own/private"}, nil
	}
	s := opened(tool.SiteOptions{}, tool.PoolOptions{Dir: dir + "/files", Guard: guard})
	const none, reads = v1alpha1.AccessNone, v1alpha1.AccessReadOnly
	for _, c := range []struct {
		mount   string
		access  v1alpha1.WorkspaceAccess
		refused bool
	}{
		{"/own", reads, true},
		{"/own", none, true},
		{"/own/private", reads, true},
		{"/own/notes", reads, false},
		{"/own/notes", none, false},
		{"/files", reads, false},
		{"/files", none, true}, // with the files of the run, what is hidden in them is
	} {
		d := image()
		d.Spec.WorkspaceAccess, d.Spec.Isolation.Mounts = c.access, []v1alpha1.Mount{{Path: dir + c.mount}}
		got, err := s.spec(t.Context(), &d)
		if refused := reason.Of(err) == reason.IsolationUnavailable; err != nil && !refused || refused != c.refused {
			t.Errorf("mount %s, access %s: %v", c.mount, c.access, err)
		}
		if err == nil && c.access == reads && !slices.Equal(got.Masked, []string{dir + "/files/.env"}) {
			t.Errorf("mount %s: hidden are %v", c.mount, got.Masked)
		}
	}
}
