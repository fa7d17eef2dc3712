package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "write the expected output in the scripts anew")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"agentctl": main, "asking-tool": askingTool})
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
			env.Setenv("REPOSITORY", repository)
			return os.Mkdir(filepath.Join(env.WorkDir, ".home"), 0o700)
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "sandbox":
				return canSandbox(), nil
			case "cgroup2": // perhaps delegated, and then limits hold
				_, err := os.Stat("/sys/fs/cgroup/cgroup.controllers")
				return err == nil, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":     exits,
			"conforms":  conforms,
			"serve":     serve,
			"model":     model,
			"requests":  requests,
			"interrupt": interrupt,
			"terminal":  terminal,
			"closed":    closed,
		},
	})
}

// buildTools builds the programs that agentctl starts.
func buildTools(t *testing.T) string {
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

// exits runs a command and wants its exit code: exits 2 agentctl run.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARGUMENT...]")
	}
	want := number(ts, args[0])
	err := ts.Exec(args[1], args[2:]...)
	if got := exitCode(ts, err); got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func exitCode(ts *testscript.TestScript, err error) int {
	if err == nil {
		return 0
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		ts.Fatalf("run: %v", err)
	}
	return exit.ExitCode()
}

func number(ts *testscript.TestScript, text string) int {
	n, err := strconv.Atoi(text)
	ts.Check(err)
	return n
}
