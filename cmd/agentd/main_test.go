package main

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"agentd": main})
}

// TestScripts plays the stories in testdata/script with the real main as agentd.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			// The folder of a story has too long a name for a unix socket.
			state, err := os.MkdirTemp("", "agentd-")
			if err != nil {
				return err
			}
			env.Defer(func() { _ = os.RemoveAll(state) })
			env.Setenv("AGENTCTL_STATE", state)
			env.Setenv("HOME", filepath.Join(env.WorkDir, ".home"))
			env.Setenv("GORACE", os.Getenv("GORACE"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"await": await,
			"exits": exits,
			"mode":  mode,
		},
	})
}

// exits CODE PROGRAM ARGS... runs a program and wants that exit code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		code = exitCode(err)
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

func exitCode(err error) int {
	if e, ok := err.(interface{ ExitCode() int }); ok {
		return e.ExitCode()
	}
	return -1
}

// await FILE waits until a file is there.
func await(ts *testscript.TestScript, _ bool, args []string) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	for {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-late.C:
			ts.Fatalf("%s does not come", args[0])
		}
	}
}

// mode PERM FILE wants a mode of a file.
func mode(ts *testscript.TestScript, _ bool, args []string) {
	info, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	want, err := strconv.ParseUint(args[0], 8, 32)
	ts.Check(err)
	if uint64(info.Mode().Perm()) != want {
		ts.Fatalf("%s has mode %v, want %s", args[1], info.Mode().Perm(), args[0])
	}
}
