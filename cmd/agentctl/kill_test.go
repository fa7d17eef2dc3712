package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestAKilledRunnerLeavesNoCommandBehind kills agentctl as nothing can be caught,
// while a command runs that has a process in the background.
func TestAKilledRunnerLeavesNoCommandBehind(t *testing.T) {
	libexec := buildTools(t)
	t.Run("in a sandbox", func(t *testing.T) { leavesNothing(t, libexec) })
	t.Run("without one", func(t *testing.T) { leavesNothing(t, withoutSandbox(t, libexec)) })
}

func leavesNothing(t *testing.T, libexec string) {
	t.Helper()
	work, files := t.TempDir(), t.TempDir()
	fifo, manifest := filepath.Join(files, "pids"), filepath.Join(work, "agent.yaml")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	text := `apiVersion: agentctl.dev/v1alpha1
kind: Agent
metadata: {name: a}
spec: {modelRef: {name: m}, tools: [{name: bash}]}
---
apiVersion: agentctl.dev/v1alpha1
kind: Model
metadata: {name: m}
spec:
  provider: scripted
  scripted: {steps: [{calls: [{tool: bash, args: {command: "sleep 300 & echo $! $$ >pids; wait; true"}}]}]}
`
	if err := os.WriteFile(manifest, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), "agentctl", "run", "-f", manifest, "-p", "go", "--approve", "all", "--in-place", "--workspace", files)
	run.Env = append(os.Environ(), "AGENTCTL_STATE="+filepath.Join(work, "state"), "AGENTCTL_LIBEXEC="+libexec, "AGENTCTL_OUTER_ISOLATION=container")
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	limit := time.AfterFunc(patience, func() { // nobody wrote: the read ends
		if f, err := os.OpenFile(fifo, os.O_RDWR, 0); err == nil {
			_ = f.Close()
		}
	})
	defer limit.Stop()
	told, err := os.ReadFile(fifo)
	if err != nil {
		t.Fatal(err)
	}
	var inner []int
	for text := range strings.FieldsSeq(string(told)) {
		pid, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		inner = append(inner, pid)
	}
	if len(inner) != 2 {
		t.Fatalf("the command told %q", told)
	}
	pids := outside(t, run.Process.Pid, inner)
	if err := run.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = run.Wait() // it was killed
	awaitGone(t, pids)
}

// awaitGone waits for processes that are no children of ours.
func awaitGone(t *testing.T, pids []int) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	living := func(pid int) bool { return !ended(pid) }
	for end := time.Now().Add(patience); slices.ContainsFunc(pids, living) && time.Now().Before(end); <-tick.C {
	}
	gone(t, pids)
}

// ended says whether a process has ended that is no child of ours.
func ended(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return true // its new parent has reaped it in between
	}
	return err == nil && strings.Contains(string(stat), ") Z ") // its new parent has not reaped it yet
}
