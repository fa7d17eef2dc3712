// Package storytest has the commands that stories of the command line add to those of
// testscript, and the programs that they start. The tests of agentctl play the stories,
// and so does the comparison of two builds (bench/golden).
package storytest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// patience bounds every wait of a story. Nothing is slow when it takes less:
// machines are busy.
const patience = 2 * time.Minute

// Commands are the commands by their names.
func Commands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"exits":     exits,
		"conforms":  conforms,
		"serve":     serve,
		"web":       web,
		"forge":     forge,
		"model":     model,
		"requests":  requests,
		"interrupt": interrupt,
		"terminal":  terminal,
		"closed":    closed,
		"collector": collector,
	}
}

// Programs are the programs that a test program is under another name.
func Programs() map[string]func() {
	return map[string]func(){"asking-tool": askingTool, "login-tool": loginTool}
}

// exits runs a command and expects its exit code: exits 2 agentctl run.
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

// command builds a command as the story's shell would.
func command(ts *testscript.TestScript, args []string) *exec.Cmd {
	path := args[0]
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if _, err := os.Stat(filepath.Join(dir, args[0])); err == nil {
			path = filepath.Join(dir, args[0])
			break
		}
	}
	cmd := exec.Command(path, args[1:]...) //nolint:noctx // bounded by finish
	cmd.Dir = ts.Getenv("WORK")
	cmd.Env = os.Environ()
	for _, name := range []string{
		"PATH", "HOME", "TOKEN", "AGENTCTL_STATE", "AGENTCTL_LIBEXEC", "AGENTCTL_OUTER_ISOLATION", "GIT_CONFIG_NOSYSTEM", "URL", "TESTSCRIPT_COMMAND",
	} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	cmd.WaitDelay = time.Second
	return cmd
}

// finish waits for a command and expects its exit code.
func finish(ts *testscript.TestScript, cmd *exec.Cmd, want int) {
	kill := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	if got := exitCode(ts, cmd.Wait()); got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}
