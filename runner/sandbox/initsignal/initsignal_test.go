//go:build linux && (amd64 || arm64)

package initsignal

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
)

// TestMain makes the test's own binary the process that gets the signals.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "signals" {
		os.Exit(signals())
	}
	os.Exit(m.Run())
}

// signals sends this process what Handle is for, a thousand times each.
func signals() int {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGUSR1)
	if err := Handle(); err != nil {
		return 1
	}
	for range 1000 {
		for s := syscall.Signal(32); s <= 34; s++ {
			if err := syscall.Kill(os.Getpid(), s); err != nil {
				return 2
			}
		}
	}
	return 0
}

func TestTheSignalsOfThreadsDoNothing(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), os.Args[0], "signals").CombinedOutput()
	if err != nil {
		t.Errorf("the process ended with %v: %s", err, out)
	}
}

func TestTheHandlerIsNotInherited(t *testing.T) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGUSR1)
	if err := Handle(); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"32", "33", "34"} {
		c := exec.CommandContext(t.Context(), "sh", "-c", "kill -"+s+" $$; sleep 10")
		_ = c.Run()
		if status, ok := c.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
			t.Errorf("signal %s did not end a program that was started afterwards: %v", s, c.ProcessState)
		}
	}
}
