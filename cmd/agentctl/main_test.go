package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/runner/storytest"
)

// patience bounds every wait. Nothing is slow when it takes less: machines are busy.
const patience = time.Minute

var update = flag.Bool("update", false, "write the expected output in the scripts anew")

func TestMain(m *testing.M) {
	programs := map[string]func(){"agentctl": main, "mcp-client": mcpClient, "mcp-oauth": mcpOAuth, "mcp-server": mcpServer, "xdg-open": webBrowser, "suite-server": suiteServer}
	maps.Copy(programs, storytest.Programs())
	testscript.Main(m, programs)
}

// TestScripts plays the stories in testdata/script with the real main as
// agentctl and the shipped tools beside it.
func TestScripts(t *testing.T) {
	tools := buildTools(t)
	bare := withoutSandbox(t, tools)
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("AGENTCTL_STATE", filepath.Join(env.WorkDir, ".state"))
			env.Setenv("AGENTCTL_LIBEXEC", tools)
			env.Setenv("LIBEXEC_WITHOUT_SANDBOX", bare)
			// Where there are no user namespaces, the tools of these stories touch
			// nothing but the story's own folder.
			env.Setenv("AGENTCTL_OUTER_ISOLATION", "container")
			env.Setenv("HOME", filepath.Join(env.WorkDir, ".home"))
			env.Setenv("GIT_CONFIG_NOSYSTEM", "1")
			env.Setenv("NO_COLOR", "")
			env.Setenv("GORACE", os.Getenv("GORACE"))
			env.Setenv("REPOSITORY", repository)
			storytest.Forge(env)
			return os.Mkdir(filepath.Join(env.WorkDir, ".home"), 0o700)
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "sandbox":
				return canSandbox(), nil
			case "cgroup2": // perhaps delegated, and then limits hold
				_, err := os.Stat("/sys/fs/cgroup/cgroup.controllers")
				return err == nil, nil
			case "record": // what bound calls do is bound, and recorded
				return canRecord(), nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: storytest.Commands(),
	})
}

// buildTools builds the programs that agentctl starts.
func buildTools(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", dir,
		"agentctl.dev/agentctl/cmd/agentctl-tools", "agentctl.dev/agentctl/cmd/agentctl-sandbox", "agentctl.dev/agentctl/cmd/agentctl-entry", "agentctl.dev/agentctl/cmd/agentctl-escape")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the programs beside agentctl: %v\n%s", err, out)
	}
	return dir
}

// canSandbox says whether this host gives user namespaces. Where the whole gate
// runs it must: what is shown there is not to be skipped.
func canSandbox() bool {
	try := exec.Command("true") //nolint:noctx // ends by itself
	try.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	return try.Run() == nil || os.Getenv("CI") == "true"
}

// canRecord says whether this host binds calls to their facts, and records what they do.
// Where the whole gate runs it must, as with sandboxes.
func canRecord() bool {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	actions, err := os.ReadFile("/proc/sys/kernel/seccomp/actions_avail")
	return errno == 0 && abi >= 4 && err == nil && strings.Contains(string(actions), "user_notif") || os.Getenv("CI") == "true"
}

// needSandbox skips a test on a host without user namespaces.
func needSandbox(t *testing.T) {
	t.Helper()
	if !canSandbox() {
		t.Skip("this host gives no user namespaces (user.max_user_namespaces, or an outer container)")
	}
}

// withoutSandbox returns a folder with the shipped tools alone, as on a host that
// gives no sandbox.
func withoutSandbox(t *testing.T, libexec string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(libexec, "agentctl-tools"), filepath.Join(dir, "agentctl-tools")); err != nil {
		t.Fatal(err)
	}
	return dir
}
