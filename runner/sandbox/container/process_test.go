//go:build linux

package container_test

import (
	"testing"

	"agentctl.dev/agentctl/runner/sandbox/container"
)

func TestAProgramRunsAndItsOutputComesBack(t *testing.T) {
	r := newRuntime(t)
	out, info := output(t, r, container.Spec{Argv: []string{"/tool", "echo", "GREETING", "FROM_IMAGE"}, Env: []string{"GREETING=hello"}})
	if want := "GREETING=hello\nFROM_IMAGE=yes\n"; out != want || info != (container.ExitInfo{}) {
		t.Errorf("got %q, %+v; want %q and exit code 0", out, info, want)
	}
}
