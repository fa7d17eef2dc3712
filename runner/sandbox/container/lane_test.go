//go:build linux

package container_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/sandbox/container"
	"agentctl.dev/agentctl/runner/sandbox/container/containerdtest"
)

// somebody is a user of this host who is not root and owns nothing.
const somebody = 12345

// asSomebody copies this test's program to where somebody can run it.
func asSomebody(t testing.TB, dir, run string, env ...string) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "test")
	if err := os.WriteFile(binary, text, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, somebody, somebody); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), binary, "-test.run=^"+run+"$")
	c.Env, c.Dir = append(env, "TEST_AS_SOMEBODY="+dir), dir
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: somebody, Gid: somebody}}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	return string(out)
}

// TestARunnerThatIsNotRoot has the socket and nothing else.
func TestARunnerThatIsNotRoot(t *testing.T) {
	if dir := os.Getenv("TEST_AS_SOMEBODY"); dir != "" {
		shared.daemon = &containerdtest.Daemon{Address: os.Getenv("TEST_SOCKET")}
		shared.dir, shared.entry, shared.layout = dir, os.Getenv("TEST_ENTRY"), os.Getenv("TEST_LAYOUT")
		withoutRoot(t)
		return
	}
	needs(t)
	dir, err := os.MkdirTemp("/tmp", "cts-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for _, d := range []string{filepath.Dir(shared.daemon.Address), shared.dir} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "chmod", "-R", "a+rX", filepath.Join(shared.dir, "layout")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Chown(shared.daemon.Address, 0, somebody); err != nil { // mode 0660
		t.Fatal(err)
	}
	out := asSomebody(t, dir, "TestARunnerThatIsNotRoot", "TEST_SOCKET="+shared.daemon.Address, "TEST_ENTRY="+shared.entry, "TEST_LAYOUT="+shared.layout)
	if !strings.Contains(out, "all of it ran") {
		t.Errorf("it did not run: %s", out)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "state", "containers", "*")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func withoutRoot(t *testing.T) {
	t.Helper()
	r := newRuntime(t, alone(t))
	dir := workspace(t, somebody)
	in := look(t, r, container.Spec{Workspace: dir, Access: v1alpha1.AccessReadWrite, Env: []string{"TOKEN=x"}}, "write:"+dir+"/new")
	if in.Attempts["write:"+dir+"/new"] != "ok" || !strings.HasPrefix(in.Status["Uid"], fmt.Sprint(somebody)) || in.Status["CapEff"] != zeros {
		t.Errorf("in its own workspace: %v, uid %s, capabilities %s", in.Attempts, in.Status["Uid"], in.Status["CapEff"])
	}
	p := begin(t, r, container.Spec{})
	if res, err := p.Call(t.Context(), host.CallRequest{Tool: "echo", Args: []byte(`{"text":"hi"}`)}, nil); err != nil || res.Text != "hi" {
		t.Errorf("plugin: %+v, %v", res, err)
	}
	var bad *reason.Error
	_, err := r.Start(t.Context(), container.Spec{Image: shared.layout, Network: v1alpha1.NetworkProxy, Egress: func(context.Context, net.Listener) {}})
	if !errors.As(err, &bad) || bad.Reason != reason.IsolationUnavailable || !strings.Contains(err.Error(), "may not enter its network") {
		t.Errorf("a proxy without root: %v", err)
	}
	_, err = r.Start(t.Context(), container.Spec{Image: shared.layout, Workspace: "/usr"})
	if !errors.As(err, &bad) || bad.Reason != reason.IsolationUnavailable || !strings.Contains(err.Error(), "belongs to uid 0 and agentctl runs as uid 12345") {
		t.Errorf("a workspace of root: %v", err)
	}
	if !t.Failed() {
		fmt.Println("all of it ran")
	}
}

func TestADaemonWithoutOverlay(t *testing.T) {
	t.Parallel()
	needs(t)
	d, err := containerdtest.Start(containerdtest.NoOverlay)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Stop(); err != nil {
			t.Error(err)
		}
	}()
	r := newRuntime(t, func(o *container.Options) { o.Address = d.Address })
	info, err := r.Probe(t.Context())
	if err != nil || info.Snapshotter != "native" {
		t.Fatalf("got %+v, %v", info, err)
	}
	runs(t, r, shared.layout)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestADaemonThatIsRestartedLosesNothing(t *testing.T) {
	t.Parallel()
	needs(t)
	d, err := containerdtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Stop(); err != nil {
			t.Error(err)
		}
	}()
	r := newRuntime(t, func(o *container.Options) { o.Address = d.Address })
	p := waiting(t, r, container.Spec{})
	if err := d.Restart(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Done():
		t.Fatalf("the program ended with the daemon: %v", p.Wait())
	default:
	}
	runs(t, r, shared.layout)
	p.Kill(0)
	if got := p.Wait().String(); got != "signal killed" {
		t.Errorf("it ended with %q", got)
	}
	_, info := output(t, r, container.Spec{Argv: []string{"/tool", "eat"}, Limits: container.Limits{Memory: 64 << 20}})
	if info.Cause != container.OutOfMemory {
		t.Errorf("after a restart, memory is not noticed: %v", info)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
