package environment

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/tool"
	"github.com/google/go-cmp/cmp"
)

func TestTheProgramsOfToolsAreThoseThatOthersCanReach(t *testing.T) {
	root, cache := t.TempDir(), t.TempDir()
	for _, name := range []string{root + "/bin/tool", root + "/lib/main.js", cache + "/x/tool"} {
		write(t, name, "")
	}
	if err := errors.Join(os.Mkdir(root+"/links", 0o700), os.Symlink("../lib/main.js", root+"/links/tool")); err != nil {
		t.Fatal(err)
	}
	exec := func(command ...string) tool.Definition {
		return tool.Definition{Facts: tool.Facts{Command: command}}
	}
	builder := exec("/usr/bin/env", "--flag", "relative")
	builder.Spec.Isolation.Mounts = []v1alpha1.Mount{{Path: cache, Access: v1alpha1.MountReadWrite}}
	own, mounted := programs([]tool.Definition{
		builder, exec(root+"/bin/tool", "-v"), exec("/usr/bin/env", root+"/links/tool", root+"/bin", root+"/none"), exec(cache + "/x/tool"),
	}, root)
	if diff := cmp.Diff([]string{root + "/bin/tool", root + "/lib/main.js", root + "/links"}, own); diff != "" {
		t.Error(diff)
	}
	script := exec("python3", "lib/main.js", "--", "../elsewhere", ".", "", "links/tool", "bin/none")
	own, _ = programs([]tool.Definition{script}, root)
	if diff := cmp.Diff([]string{root + "/lib/main.js", root + "/lib/main.js", root + "/links"}, own); diff != "" {
		t.Errorf("relative to the files of the run: %s", diff)
	}
	reads := func(path string, access v1alpha1.MountAccess) tool.Definition {
		d := exec("true")
		d.Spec.Isolation.Mounts = []v1alpha1.Mount{{Path: path, Access: access}}
		return d
	}
	for _, c := range []struct {
		reason string
		tools  []tool.Definition
		want   []string
	}{
		{"a folder of libraries", []tool.Definition{reads(root+"/lib", v1alpha1.MountReadOnly)}, []string{root + "/lib"}},
		{"a folder elsewhere, and all files of the run", []tool.Definition{reads(cache, v1alpha1.MountReadOnly), reads(root, v1alpha1.MountReadOnly)}, nil},
		{"another tool may write there", []tool.Definition{reads(root+"/lib", v1alpha1.MountReadOnly), reads(root+"/lib", v1alpha1.MountReadWrite)}, nil},
	} {
		if own, _ := programs(c.tools, root); !slices.Equal(own, c.want) {
			t.Errorf("%s: %v, want %v", c.reason, own, c.want)
		}
	}
	if diff := cmp.Diff([]string{cache + "/x/tool"}, mounted); diff != "" {
		t.Error(diff)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}
