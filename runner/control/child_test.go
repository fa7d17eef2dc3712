package control

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/control/controltest"
	"agentctl.dev/agentctl/runner/control/embedded"
	"agentctl.dev/agentctl/runner/journal"
)

// child makes a test binary an agentd: it serves and executes runs until its standard
// input ends, or until it is killed.
func child(state string) int {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	server, err := embedded.Start(context.Background(), embedded.Options{State: state, Log: log})
	if err != nil {
		log.Error("start", "error", err)
		return 1
	}
	p, err := New(Options{Config: server.Loopback(), State: state, Log: log, Limit: 8, Collect: true, AllowUnsandboxed: true, Version: "test"})
	if err != nil {
		log.Error("prepare", "error", err)
		return 1
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	_, _ = io.WriteString(os.Stdout, server.Kubeconfig()+"\n")
	_, _ = io.Copy(io.Discard, os.Stdin)
	cancel()
	if err := <-ended; err != nil {
		log.Error("stop the controllers", "error", err)
		return 1
	}
	if err := server.Stop(); err != nil {
		log.Error("stop the server", "error", err)
		return 1
	}
	return 0
}

// agentd is such a process.
type agentd struct {
	space
	cmd   *exec.Cmd
	stdin io.Closer
}

func startAgentd(t *testing.T, state string) *agentd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d := &agentd{cmd: exec.CommandContext(context.Background(), exe)}
	d.cmd.Env = append(os.Environ(), childEnv+"="+state)
	var log controltest.Log
	d.cmd.Stderr = &log
	if d.stdin, err = d.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = d.cmd.Process.Kill()
		_ = d.cmd.Wait()
		if t.Failed() {
			t.Logf("the log of a process:\n%s", log.String())
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("agentd does not come up: %v\n%s", err, log.String())
	}
	config, err := clientcmd.BuildConfigFromFlags("", strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	c, err := newClient(config)
	if err != nil {
		t.Fatal(err)
	}
	d.space = space{c, t, "default"}
	return d
}

func (d *agentd) kill() {
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
}

// freeCalls is how many calls of a holding agent end at once. The first of 20 runs
// with two calls each have then ended, the last have not begun.
const freeCalls = 24

// holding is an agent whose tool records each of its calls. All but the first calls
// wait until release is called: some runs are then in progress.
func holding(t *testing.T) (manifests string, awaitHeld, release func()) {
	t.Helper()
	dir := t.TempDir()
	marks, free := filepath.Join(dir, "marks"), filepath.Join(dir, "free")
	program := filepath.Join(dir, "mark")
	// A line is written at once: appends of one write do not mix.
	text := fmt.Sprintf(`#!/bin/sh
read -r args
echo "$args" >>%[1]s
[ "$(wc -l <%[1]s)" -le %[2]d ] || until [ -e %[3]s ]; do sleep 0.05; done
echo marked
`, marks, freeCalls, free)
	if err := os.WriteFile(program, []byte(text), 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	release = func() {
		if err := os.WriteFile(free, nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	latest := time.Now().Add(2 * time.Minute)
	awaitHeld = func() {
		t.Helper()
		for ; ; time.Sleep(10 * time.Millisecond) {
			b, _ := os.ReadFile(marks) //nolint:gosec // a folder of the test
			if bytes.Count(b, []byte("\n")) > freeCalls {
				return
			}
			if t.Context().Err() != nil || time.Now().After(latest) {
				t.Fatalf("no more than %d calls", freeCalls)
			}
		}
	}
	t.Cleanup(release)
	return strings.Replace(workerYAML, "[cat]", "["+program+"]", 1), awaitHeld, release
}

func TestRunsOutliveAProcessThatIsKilled(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, d *agentd, release func()){
		"killed": func(_ *testing.T, d *agentd, release func()) {
			d.kill()
			release()
		},
		"stopped": func(t *testing.T, d *agentd, release func()) {
			t.Helper()
			_ = d.stdin.Close()
			release()
			if err := d.cmd.Wait(); err != nil {
				t.Errorf("agentd does not stop in order: %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const many = 20
			state := t.TempDir()
			manifests, awaitHeld, release := holding(t)
			d := startAgentd(t, state)
			d.apply(manifests)
			d.awaitReady("Agent", "worker", "True", "Accepted")
			d.startMany(many)
			awaitHeld() // some have ended, some run, some wait
			end(t, d, release)

			d = startAgentd(t, state)
			taken := 0
			for _, run := range d.awaitAll(many) {
				if run.Status.Phase != v1alpha1.PhaseSucceeded {
					t.Errorf("run %s is %s: %+v", run.Name, run.Status.Phase, run.Status.Conditions)
					continue
				}
				taken += attempts(t, run) - 1
			}
			// A process that is stopped lets the calls in progress end: on a slow machine each
			// run that it executes may end with them, and those that wait begin later.
			if taken == 0 && name == "killed" {
				t.Error("no run was resumed: the process was killed when no run was in progress")
			}
			folders, err := os.ReadDir(filepath.Join(state, "runs"))
			if err != nil || len(folders) != many {
				t.Errorf("there are %d folders of runs (%v), want %d: a run was begun twice", len(folders), err, many)
			}
		})
	}
}

// attempts holds the journal of a run against its chain and returns how many
// processes have worked on it.
func attempts(t *testing.T, run *v1alpha1.Run) int {
	t.Helper()
	report, err := journal.Verify(t.Context(), run.Status.Journal.Path)
	if err != nil {
		t.Errorf("the journal of run %s: %v", run.Name, err)
		return 1
	}
	if run.Status.Journal.HeadHash != report.Head {
		t.Errorf("run %s shows another head than its journal has", run.Name)
	}
	begun, resumed, ended := 0, 0, 0
	results := map[string]int{}
	for e, err := range journal.Read(t.Context(), run.Status.Journal.Path, 0) {
		if err != nil {
			t.Fatal(err)
		}
		switch e.Data.(type) {
		case event.RunStarted:
			begun++
		case event.RunResumed:
			resumed++
		case event.RunFinished:
			ended++
		case event.ToolResult:
			results[e.Call]++
		}
	}
	if begun != 1 || ended != 1 {
		t.Errorf("run %s was begun %d times and ended %d times", run.Name, begun, ended)
	}
	for call, n := range results {
		if n != 1 {
			t.Errorf("call %s of run %s has %d results", call, run.Name, n)
		}
	}
	if len(results) != 2 {
		t.Errorf("run %s has results of %d calls, want 2", run.Name, len(results))
	}
	return begun + resumed
}
