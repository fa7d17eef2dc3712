//go:build linux

package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"agentctl.dev/agentctl/plugins/sdk"
	"agentctl.dev/agentctl/plugins/sdktest"
	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// TestMain makes the test's own binary the programs under test, and builds the
// helper.
func TestMain(m *testing.M) {
	mode := ""
	if len(os.Args) > 1 {
		mode = os.Args[1]
	}
	switch mode {
	case "serve-fixtures":
		sdk.Serve(sdktest.Fixtures()...)
	case "be-a-runner":
		beARunner(nil)
	case "be-a-sandboxed-runner":
		beARunner(&spec.Profile{})
	case "share":
		share()
	case "hoard":
		hoard(os.Args[2])
	case "exchange":
		exchange(os.Args[2], os.Args[3])
	case "be-without-namespaces":
		beWithoutNamespaces()
	case "swap-links":
		swapLinks(os.Args[2])
	default:
		// Other users start this program, and what it builds.
		syscall.Umask(0o022)
		_ = os.Chmod("/proc/self/exe", 0o755) //nolint:gosec // who may not has been let in already
		// No program of any test may see it.
		if err := os.Setenv("AGENTCTL_TEST_SECRET", "must not leak"); err != nil {
			panic(err)
		}
		remove, err := buildHelper()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
			remove()
			os.Exit(code)
		}))
	}
}

// builtHelper is where a test's own process finds the helper, when another one
// has built it.
const builtHelper = "SANDBOX_TEST_LIBEXEC"

// buildHelper builds agentctl-sandbox and agentctl-escape where the launcher looks for them.
func buildHelper() (remove func(), err error) {
	if dir := os.Getenv(builtHelper); dir != "" {
		return func() {}, os.Setenv("AGENTCTL_LIBEXEC", dir)
	}
	sources, err := filepath.Glob("../../cmd/agentctl-[es]*/*.go")
	for _, f := range sources { // so that go test knows what the answer depends on
		if _, err := os.Stat(f); err != nil {
			return nil, err
		}
	}
	if err != nil || len(sources) == 0 {
		return nil, fmt.Errorf("find the helper's source: %d files, %w", len(sources), err)
	}
	dir, err := os.MkdirTemp("", "agentctl-helper-")
	if err != nil {
		return nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // other users of the tests start what lies there
		return nil, err
	}
	build := exec.Command("go", "build", "-o", dir, "agentctl.dev/agentctl/cmd/agentctl-sandbox", "agentctl.dev/agentctl/cmd/agentctl-escape") //nolint:noctx // the tests' own deadline ends it
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		remove()
		return nil, fmt.Errorf("build the helper and its attacker: %w\n%s", err, out)
	}
	return remove, os.Setenv("AGENTCTL_LIBEXEC", dir)
}

// beARunner starts a program, says its process id, and waits to be killed.
func beARunner(p *spec.Profile) {
	argv := []string{"sleep", "300"}
	if p != nil { // with daemons, in three sandboxes; their marker is their environment
		argv = []string{"/bin/sh", "-c", `setsid sleep 300 & (setsid sh -c "sleep 300 & sleep 300" &); sleep 300 & wait`}
	}
	l := New(Options{})
	var last *Process
	for i := range 3 {
		s := Spec{Argv: argv, Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}}
		if p != nil {
			s.Profile = &spec.Profile{Group: fmt.Sprint(i)}
			s.Env = append(s.Env, "MARKER="+os.Args[2])
		}
		proc, err := l.Start(context.Background(), s)
		if err != nil {
			fmt.Println(err)
			return
		}
		last = proc
	}
	fmt.Println(last.PID())
	last.Wait()
}

// missing is the reason why this host does not support a sandbox.
var missing = sync.OnceValue(func() string { return New(Options{}).probe().Missing })

// needed skips a test of sandboxes on a host that gives none.
func needed(t testing.TB) {
	t.Helper()
	if why := missing(); why != "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("this host gives no sandbox, and the gate must have one: " + why)
		}
		t.Skip("this host gives no sandbox: " + why)
	}
}

// sandboxed is a launcher on a host that gives sandboxes.
func sandboxed(t testing.TB) *Launcher {
	t.Helper()
	needed(t)
	return launcher(t)
}

func launcher(t testing.TB) *Launcher {
	t.Helper()
	l := New(Options{})
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return l
}

func self(t testing.TB) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}
