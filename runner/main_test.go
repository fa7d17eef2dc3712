package runner

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"agentctl.dev/agentctl/plugins/files"
	"agentctl.dev/agentctl/plugins/sdk"
	"agentctl.dev/agentctl/plugins/shell"
	"agentctl.dev/agentctl/runner/tool/builtin"
)

// TestMain lets the test program be the shipped tools as well: a link to it
// with their name, started as a plugin, serves them. With an errand it is a
// runner that will die (crash_test.go).
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == builtin.Program {
		sdk.Serve(slices.Concat(files.Tools(), shell.Tools())...)
		return
	}
	if filepath.Base(os.Args[0]) == askingProgram {
		sdk.Serve(askingTools()...)
		return
	}
	if errand := os.Getenv(errandVar); errand != "" {
		doErrand(errand)
		return
	}
	dir, err := os.MkdirTemp("", "libexec-")
	if err != nil {
		panic(err)
	}
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	if err := os.Symlink(exe, filepath.Join(dir, builtin.Program)); err != nil {
		panic(err)
	}
	if err := os.Symlink(exe, filepath.Join(dir, askingProgram)); err != nil {
		panic(err)
	}
	os.Setenv("AGENTCTL_LIBEXEC", dir)
	code := m.Run()
	_ = os.RemoveAll(dir)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			println("goroutines are left: " + err.Error())
			code = 1
		}
	}
	os.Exit(code)
}
