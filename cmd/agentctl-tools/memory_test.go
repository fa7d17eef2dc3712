package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"agentctl.dev/agentctl/plugins/sdktest"
)

// TestTheProgramIsSmall: it is started with every run. The test's own binary
// would say little, so the real one is built.
func TestTheProgramIsSmall(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "agentctl-tools")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", exe, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p := sdktest.Program{Command: []string{exe}, Env: []string{"PATH=/usr/bin:/bin"}}.Start(t)
	ws := t.TempDir()
	for range 20 { // what a run does
		for tool, args := range map[string]string{
			"write": `{"path":"f","content":"one\ntwo\n"}`, "grep": `{"pattern":"t.o"}`, "glob": `{"pattern":"**"}`, "bash": `{"command":"cat f"}`,
		} {
			if res := call(t, p, ws, tool, args); res.IsError && tool != "write" { // the second write has not read the file
				t.Fatalf("%s: %s", tool, res.Text)
			}
		}
	}
	kb, err := strconv.Atoi(strings.TrimSpace(call(t, p, ws, "bash", `{"command":"awk '/VmRSS/{print $2}' /proc/$PPID/status"}`).Text))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("resident: %.1f MB", float64(kb)/1024)
	if kb > 25<<10 {
		t.Errorf("the program keeps %d kB resident, want at most 25 MB", kb)
	}
}
