package container

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/tool"
)

func image() tool.Definition {
	return tool.Definition{Name: "x", Spec: v1alpha1.ToolSpec{
		Source:    v1alpha1.ToolSource{Container: &v1alpha1.ContainerSource{Image: "oci:/x.tar@sha256:12"}},
		Isolation: v1alpha1.Isolation{Minimum: v1alpha1.IsolationSandbox}, Network: v1alpha1.Network{Mode: v1alpha1.NetworkNone},
	}, Facts: tool.Facts{Level: v1alpha1.IsolationContainer}}
}

func TestWhatToDoAboutAnImageThatDoesNotServe(t *testing.T) {
	s, _ := open(tool.NewPool(tool.PoolOptions{})).(*source)
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
	pool := tool.NewPool(tool.PoolOptions{})
	pool.Unseen = []string{dir + "/home/state"}
	s, _ := open(pool).(*source)
	for path, want := range map[string]string{
		"/home/other": "", "/home": "lies in it", "/home/state": "no tool may see", "/home/state/runs": "no tool may see",
		"/link": "a link leads to it", "/run": "would open the sandbox", "/none": "no such file",
	} {
		d := image()
		d.Spec.Isolation.Mounts = []v1alpha1.Mount{{Path: dir + path}}
		if err := s.check(&d); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// On the files themselves the state folder may lie among them.
func TestAContainerIsShownNoStateFolderAmongTheFiles(t *testing.T) {
	pool := tool.NewPool(tool.PoolOptions{})
	pool.Dir, pool.Unseen = "/srv/files", []string{"/srv/files/.state", "/tmp/agentctl-0"}
	pool.Guard = func(context.Context) (readOnly, masked []string, err error) {
		return []string{"/srv/files/.git/config"}, []string{"/srv/files/.env"}, nil
	}
	s, _ := open(pool).(*source)
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
