//go:build linux

package container_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/pkg/namespaces"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/sandbox/container"
)

// leftovers counts what is there of a namespace of the test's daemon.
func leftovers(t testing.TB, namespace string) map[string]int {
	t.Helper()
	c, err := containerd.New(shared.daemon.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx := namespaces.WithNamespace(t.Context(), namespace)
	containers, err := c.Containers(ctx)
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]int{"containers": len(containers)}
	err = c.SnapshotService("overlayfs").Walk(ctx, func(_ context.Context, info snapshots.Info) error {
		if info.Kind == snapshots.KindActive {
			left["snapshots"]++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"/sys/fs/cgroup/*/" + namespace + "/*", "/sys/fs/cgroup/" + namespace + "/*"} {
		found, _ := filepath.Glob(pattern)
		for _, f := range found {
			if info, err := os.Stat(f); err == nil && info.IsDir() {
				left["cgroups"]++
			}
		}
	}
	states, _ := filepath.Glob(filepath.Join(shared.daemon.State, "io.containerd.runtime.v2.task", namespace, "*"))
	left["bundles"] = len(states)
	for _, pid := range shared.daemon.Shims() {
		if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && strings.Contains(string(text), "\x00"+namespace+"\x00") {
			left["shims"]++
		}
	}
	for k, v := range left {
		if v == 0 {
			delete(left, k)
		}
	}
	return left
}

// leavesNothing waits for deletions that are under way.
func leavesNothing(t testing.TB, r *container.Runtime) {
	t.Helper()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	var left map[string]int
	for end := time.Now().Add(patience); time.Now().Before(end); { // a shim ends after it has answered
		if left = leftovers(t, r.Namespace()); len(left) == 0 {
			return
		}
		<-time.After(20 * time.Millisecond)
	}
	t.Errorf("left: %v", left)
}

func TestWhatAKilledRunnerLeftIsSwept(t *testing.T) {
	r := newRuntime(t, alone(t))
	state := filepath.Join(shared.dir, "state")
	root := workspace(t, 0) // by a mount of the runner's
	shims, mounts := len(shared.daemon.Shims()), mountsIn(t, shared.dir)
	var dirs []string
	for i := range 5 {
		c := exec.Command(os.Args[0], "be-a-runner", shared.daemon.Address, state, shared.entry, r.Namespace(), shared.layout, root)
		c.Stderr = os.Stderr
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if dir, ok := strings.CutPrefix(lines.Text(), "ready "); ok {
				dirs = append(dirs, strings.Fields(dir)[0])
				break
			}
			if strings.HasPrefix(lines.Text(), "error") {
				t.Error(lines.Text())
			}
			if i >= 3 && strings.HasPrefix(lines.Text(), "started") { // killed in the middle of its second start
				break
			}
		}
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait()
	}
	alive := waiting(t, r, container.Spec{})
	swept, err := r.Sweep(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if swept.Containers < 8 || swept.Folders < 5 {
		t.Errorf("swept %+v, want at least 8 containers and 5 folders", swept)
	}
	for _, dir := range dirs {
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s is left (%v)", dir, err)
		}
	}
	select {
	case <-alive.Done():
		t.Error("the sweep killed a container of a runner that lives")
	default:
	}
	if text, err := os.ReadFile(filepath.Join(root, "file")); err != nil || string(text) != "from the host\n" {
		t.Errorf("the workspace of a killed runner: %q, %v", text, err)
	}
	alive.Kill(0)
	leavesNothing(t, r)
	if n := len(shared.daemon.Shims()); n > shims {
		t.Errorf("%d shims, %d before", n, shims)
	}
	if m := mountsIn(t, shared.dir); m != mounts {
		t.Errorf("%d mounts, %d before", m, mounts)
	}
}

// TestAShimNobodyKnowsOfIsSwept kills runners at every moment of a start, so
// that some die while containerd makes their container.
func TestAShimNobodyKnowsOfIsSwept(t *testing.T) {
	r := newRuntime(t, alone(t))
	runs(t, r, shared.layout) // the image is there
	mine := func() (n int) {
		for _, pid := range shared.daemon.Shims() {
			if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && strings.Contains(string(text), "\x00"+r.Namespace()+"\x00") {
				n++
			}
		}
		return n
	}
	for after := 5 * time.Millisecond; after < 120*time.Millisecond; after += 5 * time.Millisecond {
		c := exec.Command(os.Args[0], "be-a-runner", shared.daemon.Address, filepath.Join(shared.dir, "state"), shared.entry, r.Namespace(), shared.layout, "")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		<-time.After(after)
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait()
	}
	alive := waiting(t, r, container.Spec{})
	var swept container.Swept
	// containerd may still be at it: what a sweep does not see yet the next one does.
	for end, quiet := time.Now().Add(patience), 0; time.Now().Before(end) && quiet < 5; {
		s, err := r.Sweep(t.Context())
		if err != nil {
			t.Error(err)
		}
		swept.Containers += s.Containers
		swept.Shims += s.Shims
		if quiet++; s != (container.Swept{}) || mine() > 1 {
			quiet = 0
		}
		<-time.After(50 * time.Millisecond)
	}
	t.Logf("swept %+v", swept)
	if n := mine(); n != 1 {
		t.Errorf("%d shims are left, want that of the container that lives", n)
	}
	select {
	case <-alive.Done():
		t.Error("the sweep ended a container of a runner that lives")
	default:
	}
	alive.Kill(0)
	for end := time.Now().Add(patience); time.Now().Before(end) && len(leftovers(t, r.Namespace())) > 0; <-time.After(50 * time.Millisecond) {
		if _, err := r.Sweep(t.Context()); err != nil {
			t.Error(err)
		}
	}
	leavesNothing(t, r)
}

func TestAnEmptyCgroupNobodyKnowsOfIsSwept(t *testing.T) {
	r := newRuntime(t, alone(t))
	alive := waiting(t, r, container.Spec{})
	before := leftovers(t, r.Namespace())["cgroups"]
	found, _ := filepath.Glob("/sys/fs/cgroup/*/" + r.Namespace())
	more, _ := filepath.Glob("/sys/fs/cgroup/" + r.Namespace())
	for _, dir := range append(found, more...) {
		if err := os.Mkdir(filepath.Join(dir, "left"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if n := leftovers(t, r.Namespace())["cgroups"]; n <= before {
		t.Fatalf("%d cgroups, want more than the %d of the container", n, before)
	}
	if _, err := r.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	if n := leftovers(t, r.Namespace())["cgroups"]; n != before {
		t.Errorf("%d cgroups, want the %d of the container that lives", n, before)
	}
	if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", alive.PID())); err != nil || len(text) == 0 {
		t.Errorf("the container does not live: %v", err)
	}
	alive.Kill(0)
	leavesNothing(t, r)
}

func mountsIn(t testing.TB, dir string) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), " "+dir)
}

func TestTwentyLaunchesLeaveNothing(t *testing.T) {
	r := newRuntime(t, alone(t))
	dir := workspace(t, 0)
	for i := range 20 {
		p := waiting(t, r, container.Spec{Workspace: dir, Access: v1alpha1.AccessReadWrite})
		if i%2 == 0 {
			p.Kill(0)
		}
	}
	leavesNothing(t, r)
	if m := mountsIn(t, shared.dir); m != 0 {
		t.Errorf("%d mounts are left", m)
	}
	if left, _ := filepath.Glob(filepath.Join(shared.dir, "state", "containers", "*")); len(left) != 0 {
		t.Errorf("folders are left: %v", left)
	}
}
