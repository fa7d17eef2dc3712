package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"agentctl.dev/agentctl/runner/storytest"
)

// TestControlPlane plays the stories in testdata/control against one agentd,
// which the first command starts as it would for a user. Each story has a
// namespace of its own.
func TestControlPlane(t *testing.T) {
	libexec := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", libexec,
		"agentctl.dev/agentctl/cmd/agentd", "agentctl.dev/agentctl/cmd/agentctl-tools", "agentctl.dev/agentctl/cmd/agentctl-sandbox", "agentctl.dev/agentctl/cmd/agentctl-entry", "agentctl.dev/agentctl/cmd/agentctl-escape")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build agentd: %v\n%s", err, out)
	}
	t.Setenv("AGENTCTL_LIBEXEC", libexec)
	// Where there are no user namespaces, the tools of these stories touch nothing
	// but folders of their own.
	t.Setenv("AGENTCTL_OUTER_ISOLATION", "container")
	state := stateFolder(t)
	first := exec.CommandContext(t.Context(), "agentctl", "get", "agents", "--state", state)
	if out, err := first.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "starting the control plane in "+state+" (first start)\n") {
		t.Fatalf("the first command: %v\n%s", err, out)
	}
	t.Run("full disk", func(t *testing.T) { fullDisk(t, filepath.Join(libexec, "agentd")) })
	selfApproving(t, filepath.Join(libexec, "agentd"), state)
	commands := storytest.Commands()
	commands["killed"], commands["serves"] = killed, serves
	t.Run("stories", func(t *testing.T) {
		testscript.Run(t, testscript.Params{
			Dir:                 "testdata/control",
			RequireExplicitExec: true,
			RequireUniqueNames:  true,
			UpdateScripts:       *update,
			Setup: func(env *testscript.Env) error {
				env.Setenv("AGENTCTL_STATE", state)
				env.Setenv("AGENTCTL_LIBEXEC", libexec)
				env.Setenv("KUBECONFIG", "")
				env.Setenv("HOME", env.WorkDir)
				env.Setenv("NO_COLOR", "1")
				env.Setenv("GORACE", os.Getenv("GORACE"))
				env.Setenv("SHARED", filepath.Join(state, "control", "kubeconfig"))
				fresh := stateFolder(t)
				env.Setenv("FRESH", fresh)
				return nil
			},
			Cmds: commands,
		})
	})
}

// selfApproving replaces the control plane of a folder by one on which an identity
// may approve its own runs. The stories share it, and some of them make further
// identities, after which that is refused by default.
func selfApproving(t *testing.T, agentd, state string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), agentd, "stop", "--state", state).CombinedOutput(); err != nil {
		t.Fatalf("stop the first one: %v\n%s", err, out)
	}
	log, err := os.CreateTemp(t.TempDir(), "log")
	if err != nil {
		t.Fatal(err)
	}
	serve := exec.CommandContext(context.WithoutCancel(t.Context()), agentd, "serve", "--state", state, "--self-approval")
	serve.Stderr = log
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = serve.Wait() }() // stateFolder ends it
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(patience); ; {
		text, err := os.ReadFile(log.Name())
		if err == nil && strings.Contains(string(text), "msg=ready") {
			return
		}
		select {
		case <-late:
			t.Fatalf("agentd is not ready:\n%s", text)
		case <-tick.C:
		}
	}
}

// stateFolder makes a folder with a short path, for the sake of a socket, whose
// control plane is ended with the test.
func stateFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if pid := controlPID(dir); pid > 0 {
			_ = syscall.Kill(pid, syscall.SIGTERM)
			if err := awaitEnd(pid); err != nil {
				t.Error(err)
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// controlPID is the process that a control plane's lock names; 0: there is none.
func controlPID(state string) int {
	b, err := os.ReadFile(filepath.Join(state, "control", "lock"))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || syscall.Kill(pid, 0) != nil {
		return 0
	}
	return pid
}

// serves waits until a control plane has taken a folder: a command that comes before
// starts another one.
func serves(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: serves FOLDER")
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(patience); controlPID(args[0]) == 0; {
		select {
		case <-late:
			ts.Fatalf("no control plane in %s after %s", args[0], patience)
		case <-tick.C:
		}
	}
}

// awaitEnd waits for the end of a process that is nobody's child.
func awaitEnd(pid int) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(patience); ; {
		if alive, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err != nil || strings.Contains(string(alive), ") Z ") {
			return nil
		}
		select {
		case <-late:
			return fmt.Errorf("process %d does not end", pid)
		case <-tick.C:
		}
	}
}

// killed ends the control plane of a state folder with a signal: killed KILL DIR.
func killed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: killed SIGNAL FOLDER")
	}
	signal := map[string]syscall.Signal{"KILL": syscall.SIGKILL, "TERM": syscall.SIGTERM}[args[0]]
	pid := controlPID(args[1])
	if signal == 0 || pid == 0 {
		ts.Fatalf("no control plane in %s", args[1])
	}
	ts.Check(syscall.Kill(pid, signal))
	ts.Check(awaitEnd(pid))
}
