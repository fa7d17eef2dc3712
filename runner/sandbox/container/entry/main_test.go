//go:build linux

package entry

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain makes the test's own binary the program under test.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == Run || os.Args[1] == Hold) {
		os.Exit(Main(os.Args[1:], os.Stderr))
	}
	os.Exit(m.Run())
}

// begun starts a program behind agentctl-entry, with a greeting.
func begun(t *testing.T, g Greeting, input string, argv ...string) (c *exec.Cmd, out io.Reader, errs *bytes.Buffer) {
	t.Helper()
	greeting, err := g.Encode()
	if err != nil {
		t.Fatal(err)
	}
	c = exec.CommandContext(t.Context(), os.Args[0], append([]string{Run}, argv...)...)
	c.Env = []string{"PATH=/usr/bin:/bin", "BASE=1"}
	c.Stdin, errs = strings.NewReader(string(greeting)+input), &bytes.Buffer{}
	c.Stderr = errs
	if out, err = c.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c, out, errs
}

func TestTheProgramsEndIsItsOwn(t *testing.T) {
	for name, c := range map[string]struct {
		greeting Greeting
		input    string
		argv     []string
		out      string
		code     int
	}{
		"success":        {Greeting{Env: []string{"A=x", "BASE=2"}}, "", []string{"sh", "-c", `echo "$A $BASE"`}, "x 2\n", 0},
		"exit code":      {Greeting{}, "", []string{"sh", "-c", "exit 7"}, "", 7},
		"signal":         {Greeting{}, "", []string{"sh", "-c", "kill -9 $$"}, "", 137},
		"input":          {Greeting{Input: true}, `{"a": 1}`, []string{"cat"}, `{"a": 1}`, 0},
		"no input":       {Greeting{}, "not for the program", []string{"cat"}, "", 0},
		"no program":     {Greeting{}, "", []string{"no-such-program"}, "", exitNotFound},
		"not executable": {Greeting{}, "", []string{"/etc/hostname"}, "", exitCannotRun},
		"a folder":       {Greeting{}, "", []string{"/etc"}, "", exitCannotRun},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd, stdout, errs := begun(t, c.greeting, c.input, c.argv...)
			out, err := io.ReadAll(stdout)
			if err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != c.code || string(out) != c.out {
				t.Errorf("got %d, %q; want %d, %q; stderr %q", got, out, c.code, c.out, errs)
			}
			if c.code >= exitUsage && c.code < exitBySignal && !strings.Contains(errs.String(), "start "+c.argv[0]) {
				t.Errorf("stderr %q does not say what could not be started", errs)
			}
		})
	}
}

// told starts a shell that leaves a daemon and continues with the script once the daemon
// has printed its process id, and returns that id.
func told(t *testing.T, script string) (c *exec.Cmd, pids []int) {
	t.Helper()
	up := filepath.Join(t.TempDir(), "up")
	c, out, _ := begun(t, Greeting{}, "", "sh", "-c",
		`setsid sh -c 'echo $$; echo yes >`+up+`; exec sleep 30 >/dev/null 2>&1' & until [ -s `+up+` ]; do sleep 0.01; done; `+script)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		pid, err := strconv.Atoi(lines.Text())
		if err != nil {
			break
		}
		pids = append(pids, pid)
	}
	if len(pids) == 0 {
		t.Fatal("nobody said a process id")
	}
	return c, pids
}

func TestNothingOutlivesTheProgram(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		quit   bool
		code   int
	}{
		"its end":         {`echo end`, false, 0},
		"told to end all": {`echo end; exec sleep 30`, true, exitBySignal + int(syscall.SIGKILL)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd, pids := told(t, c.script)
			if c.quit {
				if err := cmd.Process.Signal(syscall.SIGQUIT); err != nil {
					t.Fatal(err)
				}
			}
			_ = cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != c.code {
				t.Errorf("exit code %d, want %d", got, c.code)
			}
			for _, pid := range pids {
				if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
					t.Errorf("process %d is left (%v)", pid, err)
				}
			}
		})
	}
}

func TestItCannotBeEndedOrLookedInto(t *testing.T) {
	cmd, out, _ := begun(t, Greeting{Env: []string{"TOKEN=secret"}}, "", "sh", "-c", `echo "$PPID"; exec sleep 30`)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || strings.TrimSpace(line) != strconv.Itoa(cmd.Process.Pid) {
		t.Fatalf("got %q, %v", line, err)
	}
	dir := filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid))
	for s := syscall.Signal(1); s <= lastSignal; s++ {
		switch s {
		case syscall.SIGKILL, syscall.SIGSTOP: // from inside they do not reach process 1
		case syscall.SIGQUIT:
		default:
			_ = syscall.Kill(cmd.Process.Pid, s)
		}
	}
	<-time.After(50 * time.Millisecond)
	stat, err := os.ReadFile(dir + "/stat")
	if f := strings.Fields(string(stat)); err != nil || len(f) < 3 || strings.ContainsAny(f[2], "ZT") {
		t.Errorf("a signal ended or stopped it: %s, %v", stat, err)
	}
	info, err := os.Stat(dir + "/environ")
	if err != nil {
		t.Fatal(err)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Uid != 0 {
		t.Errorf("its files in /proc belong to uid %d, and so to the program", st.Uid)
	}
	if err := cmd.Process.Signal(syscall.SIGQUIT); err != nil || t.Failed() {
		_ = cmd.Process.Kill()
	}
	_, _ = cmd.Process.Wait()
}

func TestAProgramThatAsksToBeTracedGoesOn(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3 on this host: a program that asks to be traced")
	}
	script := `import ctypes, os, signal
ctypes.CDLL(None).ptrace(0, 0, 0, 0)
os.kill(os.getpid(), signal.SIGWINCH)
print("went on")`
	cmd, out, errs := begun(t, Greeting{}, "", "python3", "-c", script)
	text, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if string(text) != "went on\n" || cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("got %q, exit code %d: %s", text, cmd.ProcessState.ExitCode(), errs)
	}
}

func TestAHolderReapsAndStays(t *testing.T) {
	c := exec.CommandContext(t.Context(), os.Args[0], Hold)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		_ = c.Process.Signal(syscall.SIGCHLD)
	}
	<-time.After(20 * time.Millisecond)
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if ws, ok := c.ProcessState.Sys().(syscall.WaitStatus); !ok || ws.Signal() != syscall.SIGKILL {
		t.Errorf("it ended with %v, not by the kill", c.ProcessState)
	}
}
