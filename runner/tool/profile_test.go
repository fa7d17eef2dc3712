package tool

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/sandbox/spec"
)

func held(name string, change func(*v1alpha1.ToolSpec)) Definition {
	d := Definition{Name: name, Spec: v1alpha1.ToolSpec{
		Source: v1alpha1.ToolSource{Builtin: &v1alpha1.BuiltinSource{Name: name}}, WorkspaceAccess: v1alpha1.AccessReadOnly,
		Isolation: v1alpha1.Isolation{Minimum: v1alpha1.IsolationSandbox}, Network: v1alpha1.Network{Mode: v1alpha1.NetworkNone},
	}}
	change(&d.Spec)
	return of(d)
}

func hostProgram(s *v1alpha1.ToolSpec) {
	s.Source = v1alpha1.ToolSource{Exec: &v1alpha1.ExecSource{Command: []string{"true"}}}
}

func TestShippedToolsAreHeldTogether(t *testing.T) {
	memory := func(text string) func(*v1alpha1.ToolSpec) {
		q := resource.MustParse(text)
		return func(s *v1alpha1.ToolSpec) { s.Limits.Memory = &q }
	}
	tools := []Definition{
		held("read", memory("64Mi")),
		held("bash", func(s *v1alpha1.ToolSpec) { s.WorkspaceAccess = v1alpha1.AccessReadWrite; memory("256Mi")(s) }),
		held("grep", memory("128Mi")),
		held("edit", func(s *v1alpha1.ToolSpec) { s.Env = []v1alpha1.EnvVar{{Name: "A"}}; memory("1Mi")(s) }),
		held("list", func(s *v1alpha1.ToolSpec) { s.Isolation.Minimum = v1alpha1.IsolationNone }),
		held("glob", func(s *v1alpha1.ToolSpec) { s.Network.Mode = v1alpha1.NetworkHost; memory("1Mi")(s) }),
		held("mine", hostProgram),
	}
	all, err := Profiles(tools, Place{Workspace: "/srv/files"})
	if err != nil {
		t.Fatal(err)
	}
	if all["read"] != all["bash"] || all["grep"] != all["bash"] || all["bash"].Access != spec.AccessReadWrite || all["bash"].Limits.Memory != 256<<20 {
		t.Errorf("read %+v, bash %+v, grep %+v", all["read"], all["bash"], all["grep"])
	}
	if all["list"] != nil {
		t.Error("a tool that asks for None is held")
	}
	if p := all["edit"]; p == all["read"] || p.Access != spec.AccessReadOnly || p.Group == "" {
		t.Errorf("a tool with variables of its own: %+v", p)
	}
	if p := all["glob"]; p == all["read"] || p.Network != spec.NetworkHost || all["read"].Network != spec.NetworkNone {
		t.Errorf("a tool with another network: %+v", p)
	}
	if p := all["mine"]; p.Access != spec.AccessReadOnly || p.Workspace != "/srv/files" {
		t.Errorf("a program: %+v", p)
	}
}

func TestWhatAMountLeadsTo(t *testing.T) {
	dir := t.TempDir()
	for name, target := range map[string]string{"proc": "/proc/self", "root": "/", "run": "/run", "fine": "lib", "nothing": "gone"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "lib"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"lib": "", "fine": "", "proc": "would open the sandbox", "root": "would open the sandbox", "run": "would open the sandbox", "nothing": "there is no such file or folder",
	} {
		d := held("x", hostProgram)
		d.Spec.Isolation.Mounts = []v1alpha1.Mount{{Path: filepath.Join(dir, name)}}
		all, err := Profiles([]Definition{d}, Place{Workspace: "/srv/files"})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		wanted := []spec.Mount{{Source: filepath.Join(dir, "lib"), Target: filepath.Join(dir, name)}}
		if diff := cmp.Diff(wanted, all["x"].Mounts); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

func TestDeclaredVariableTakesThePlaceOfOurs(t *testing.T) {
	declared := []string{"PATH=/opt/go/bin", "A=b"}
	for name, env := range map[string][]string{
		"in a sandbox": contained(&spec.Profile{Workspace: "/srv/files"}, declared), "outside": Environment(declared),
	} {
		var paths []string
		for _, kv := range env {
			if strings.HasPrefix(kv, "PATH=") {
				paths = append(paths, kv)
			}
		}
		if !slices.Equal(paths, declared[:1]) || !slices.Contains(env, "A=b") {
			t.Errorf("%s: PATH is %v in %v", name, paths, env)
		}
	}
}

func TestEnvironmentOfAContainedProgram(t *testing.T) {
	t.Setenv("PATH", "/usr/bin:/opt/tools/bin:/opt/other:/srv/files/bin:rel")
	t.Setenv("HOME", "/home/jane")
	t.Setenv("AWS_SECRET", "x")
	env := contained(&spec.Profile{Workspace: "/srv/files", Mounts: []spec.Mount{{Source: "/opt/tools"}}}, []string{"A=b"})
	path := strings.TrimPrefix(env[0], "PATH=")
	if !strings.HasSuffix(path, ":/opt/tools/bin") || strings.Contains(path, "other") || strings.Contains(path, "files") {
		t.Errorf("it looks for programs in %s", path)
	}
	if !slices.Contains(env, "HOME="+home) || !slices.Contains(env, "A=b") || slices.ContainsFunc(env, func(v string) bool { return strings.Contains(v, "SECRET") || strings.Contains(v, "jane") }) {
		t.Errorf("environment %v", env)
	}
}

// One tool that cannot be contained as it asks takes the others' profiles along:
// without, it would be started like one that asks for no sandbox.
func TestNoToolRunsLooserThanItAsks(t *testing.T) {
	fine, lost := held("fine", hostProgram), held("lost", hostProgram)
	lost.Spec.Isolation.Mounts = []v1alpha1.Mount{{Path: filepath.Join(t.TempDir(), "gone")}}
	if all, err := Profiles([]Definition{fine, lost}, Place{Workspace: "/srv/files"}); err == nil || all != nil {
		t.Errorf("profiles %v, error %v", all, err)
	}
	pool := NewPool(PoolOptions{Site: testSite(nil), Profiles: map[string]*spec.Profile{"fine": {}}})
	for name, source := range map[string]v1alpha1.ToolSource{
		"a program per call": {Exec: &v1alpha1.ExecSource{Command: []string{"/bin/true"}}},
		"a plugin":           {Plugin: &v1alpha1.PluginSource{Command: []string{"/bin/true"}}},
	} {
		lost.Spec.Source = source
		lost = of(lost)
		if _, err := pool.Serve(t.Context(), &lost, Outside{}); reason.Of(err) != reason.IsolationUnavailable {
			t.Errorf("%s that lost its profile: %v", name, err)
		}
	}
}

// What a tool may do with the files is what it says, whatever runs beside it.
func TestNoToolTakesTheAccessOfAnother(t *testing.T) {
	access := func(name string, a v1alpha1.WorkspaceAccess) Definition {
		return held(name, func(s *v1alpha1.ToolSpec) { s.WorkspaceAccess = a })
	}
	const none, reads, writes = v1alpha1.AccessNone, v1alpha1.AccessReadOnly, v1alpha1.AccessReadWrite
	for _, c := range []struct {
		reason    string
		tools     []Definition
		want      map[string]spec.Access
		processes int
	}{
		{
			"as shipped, all are one process",
			[]Definition{access("read", reads), access("grep", reads), access("bash", writes), access("write", writes), access("patch", writes)},
			map[string]spec.Access{"read": spec.AccessReadWrite, "bash": spec.AccessReadWrite},
			1,
		},
		{
			"a shell that only reads",
			[]Definition{access("write", writes), access("bash", reads), access("grep", reads)},
			map[string]spec.Access{"write": spec.AccessReadWrite, "bash": spec.AccessReadOnly, "grep": spec.AccessReadWrite},
			2,
		},
		{
			"nothing writes",
			[]Definition{access("read", reads), access("bash", reads), access("write", reads)},
			map[string]spec.Access{"read": spec.AccessReadOnly, "bash": spec.AccessReadOnly, "write": spec.AccessReadOnly},
			1,
		},
		{
			"a shell without the files",
			[]Definition{access("bash", none), access("read", reads)},
			map[string]spec.Access{"bash": spec.AccessNone, "read": spec.AccessReadOnly},
			2,
		},
		{
			"a reader without the files",
			[]Definition{access("read", none), access("grep", reads), access("edit", writes)},
			map[string]spec.Access{"read": spec.AccessNone, "grep": spec.AccessReadWrite, "edit": spec.AccessReadWrite},
			2,
		},
		{
			"a shell that is shipped to read",
			[]Definition{access("workspace_fs", writes), access("workspace_shell", reads)},
			map[string]spec.Access{"workspace_fs": spec.AccessReadWrite, "workspace_shell": spec.AccessReadOnly},
			2,
		},
		{
			"three kinds of access",
			[]Definition{access("write", writes), access("bash", reads), access("edit", none), access("patch", reads)},
			map[string]spec.Access{"write": spec.AccessReadWrite, "bash": spec.AccessReadOnly, "edit": spec.AccessNone, "patch": spec.AccessReadOnly},
			3,
		},
	} {
		for range 2 { // in both orders
			all, err := Profiles(c.tools, Place{Workspace: "/srv/files"})
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range c.want {
				if got := all[name].Access; got != want {
					t.Errorf("%s: %s has %s, want %s", c.reason, name, got, want)
				}
			}
			processes := map[*spec.Profile]bool{}
			for _, p := range all {
				processes[p] = true
			}
			if len(processes) != c.processes {
				t.Errorf("%s: %d processes, want %d", c.reason, len(processes), c.processes)
			}
			slices.Reverse(c.tools)
		}
	}
}
