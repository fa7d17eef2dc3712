//go:build linux

package container_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/plugins/sdktest"
	"agentctl.dev/agentctl/runner/image/reference"
	"agentctl.dev/agentctl/runner/sandbox/container"
)

// begin starts the tool of the tests as a plugin.
func begin(t testing.TB, r *container.Runtime, spec container.Spec) *host.Plugin {
	t.Helper()
	dir, err := r.SocketDir()
	if err != nil {
		t.Fatal(err)
	}
	if spec.Image == "" {
		spec.Image = shared.layout
	}
	p, err := host.Start(t.Context(), host.Options{Name: "tool", Launch: r.PluginRunner(spec), TempDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return p
}

func TestPluginsInContainersKeepEveryPromise(t *testing.T) {
	needs(t)
	if shared.shell == "" {
		t.Skip("no static busybox on this host (apt-get install busybox-static): the fixtures start programs")
	}
	t.Setenv("AGENTCTL_TEST_SECRET", "must not leak")
	r := newRuntime(t, alone(t))
	t.Run("fixtures", func(t *testing.T) {
		sdktest.RunFixtures(t, sdktest.Program{
			Command: []string{"/tool"},
			Env:     []string{"DECLARED=yes", "FROM_IMAGE=yes", "HOME=/tmp", "LANG=C.UTF-8", "PATH=/bin:/", "TMPDIR=/tmp"},
			Launch:  r.PluginRunner(container.Spec{Image: shared.shell, Env: []string{"DECLARED=yes"}}),
			Alive:   func(pid int) bool { return sleeps(r.Namespace(), pid) },
		})
	})
	leavesNothing(t, r)
}

// sleeps reports whether a sleep with this process id runs in a container of a
// namespace: ids are those of the container.
func sleeps(namespace string, pid int) bool {
	found, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range found {
		group, _ := os.ReadFile(p + "/cgroup")
		command, _ := os.ReadFile(p + "/cmdline")
		status, _ := os.ReadFile(p + "/status")
		if !strings.Contains(string(group), "/"+namespace+"/") || !strings.HasPrefix(string(command), "sleep\x00") {
			continue
		}
		for line := range strings.Lines(string(status)) {
			if ids, ok := strings.CutPrefix(line, "NSpid:"); ok {
				if f := strings.Fields(ids); f[len(f)-1] == fmt.Sprint(pid) {
					return true
				}
			}
		}
	}
	return false
}

func call(t testing.TB, p *host.Plugin, tool string, args any, timeout time.Duration) (*host.CallResult, error) {
	t.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return p.Call(t.Context(), host.CallRequest{Tool: tool, Args: text, Timeout: timeout}, nil)
}

func TestACrashOfAPluginIsReportedAsWhatItWas(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	p := begin(t, r, container.Spec{Limits: container.Limits{Memory: 96 << 20}})
	_, err := call(t, p, "large", map[string]int{"bytes": 1 << 30}, time.Minute)
	bad, ok := errors.AsType[*host.Error](err)
	if !ok || bad.Kind != host.KindCrashed || !strings.Contains(err.Error(), "out of memory: exceeded 96Mi (spec.limits.memory)") {
		t.Errorf("got %v, want a crash for memory", err)
	}
}

func TestPluginsThatDoNotStartAreExplained(t *testing.T) {
	t.Parallel()
	r := newRuntime(t, alone(t))
	dir, err := r.SocketDir()
	if err != nil {
		t.Fatal(err)
	}
	for want, spec := range map[string]container.Spec{
		"exit code 7":       {Image: shared.layout, Argv: []string{"/tool", "exit", "7"}},
		"exit code 127":     {Image: shared.layout, Argv: []string{"/none"}},
		"image not found":   {Image: reference.LayoutPrefix + "/no/such/layout@sha256:" + strings.Repeat("0", 64)},
		"reserved":          {Image: shared.layout, Env: []string{"PLUGIN_UNIX_SOCKET_DIR=/tmp"}},
		"has no digest":     {Image: "docker.io/library/busybox:latest"},
		"no runtime \"io.c": {Image: shared.layout, RuntimeClass: "io.containerd.absent.v2"},
	} {
		p, err := host.Start(t.Context(), host.Options{Name: "x", Launch: r.PluginRunner(spec), TempDir: dir})
		if err == nil {
			_ = p.Close(context.Background())
			t.Errorf("%v started", spec)
			continue
		}
		if _, ok := errors.AsType[*host.Error](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	leavesNothing(t, r)
}

func TestOnlySocketsInItsOwnFolderAreAPluginsAddress(t *testing.T) {
	above, err := os.MkdirTemp("/tmp", "cts-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(above)
	dir := filepath.Join(above, "p")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(dir, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "sock"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	o := container.Options{StateDir: dir, Entry: "/entry"}
	rt, err := container.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	r, err := rt.PluginRunner(container.Spec{})(nil, &exec.Cmd{Env: []string{"HOME=/root"}}, dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, got, err := r.PluginToHost("unix", "/run/plugin/sock"); err != nil || filepath.Dir(got) != above {
		t.Errorf("got %s, %v, want it out of the program's reach", got, err)
	}
	for _, c := range [][2]string{
		{"tcp", "127.0.0.1:80"},
		{"unix", "/run/plugin/../../etc/passwd"},
		{"unix", "/run/plugin/.."},
		{"unix", "/run/plugin/"},
		{"unix", "/run/plugin"},
		{"unix", "/run/pluginsock"},
		{"unix", "sock"},
		{"unix", dir + "/sock"},
		{"unix", "/run/plugin/a/b"},
		{"unix", "/run/plugin/file"},
		{"unix", "/run/plugin/link"},
		{"unix", "/run/plugin/absent"},
		{"unix", "/run/plugin/s\x00"},
	} {
		if _, got, err := r.PluginToHost(c[0], c[1]); err == nil {
			t.Errorf("%q was taken for %s", c, got)
		}
	}
	if r.ID() == "" || r.Diagnose(t.Context()) != "" || r.Kill(t.Context()) != nil || r.Wait(t.Context()) == nil {
		t.Error("a runner that did not start answers wrongly")
	}
	if _, _, err := r.HostToPlugin("unix", "x"); err == nil {
		t.Error("plugins do not call back")
	}
}

func FuzzPluginToHost(f *testing.F) {
	dir := f.TempDir()
	rt, err := container.New(container.Options{StateDir: dir, Entry: "/entry"})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = rt.Close() })
	r, err := rt.PluginRunner(container.Spec{})(nil, &exec.Cmd{}, dir)
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{"/run/plugin/sock", "/run/plugin/../x", "/run/plugin/", "", "/etc/passwd", "/run/plugin/\x00", "/run/plugin/./a"} {
		f.Add("unix", s)
	}
	f.Fuzz(func(t *testing.T, network, address string) {
		if _, got, err := r.PluginToHost(network, address); err == nil {
			t.Errorf("%q %q was taken for %s in an empty folder", network, address, got)
		}
	})
}

func TestTwoHundredMegabytesDoNotGrowTheRunner(t *testing.T) {
	r := newRuntime(t)
	var out bytes.Buffer
	n := 0
	out.Reset()
	before := resident(t)
	spec := container.Spec{Image: shared.layout, Argv: []string{"/tool", "flood", "200000000"}, Stdout: counter{&n}}
	p, err := r.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	wait(t, p)
	if grown := resident(t) - before; grown > 16<<10 || n != 200_000_000 {
		t.Errorf("grew by %d KiB for %d bytes, want less than 16 MiB", grown, n)
	}
}

// resident is what this process holds in memory, in KiB.
func resident(t testing.TB) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	var kib int
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			if _, err := fmt.Sscan(v, &kib); err != nil {
				t.Fatal(err)
			}
		}
	}
	return kib
}

// The folder is shown to programs, who may write to it.
func TestTheFolderOfSocketsHasABound(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a file system over the folder")
	}
	r := newRuntime(t)
	dir, err := r.SocketDir()
	if err != nil {
		t.Fatal(err)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	if size := int64(st.Blocks) * st.Bsize; size > 4<<20 || st.Files > 4096 {
		t.Errorf("%s holds %d bytes and %d files", dir, size, st.Files)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(dir); err == nil {
		t.Errorf("%s is left", dir)
	}
}
