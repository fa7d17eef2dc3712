package measure

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// stubText is what a shell says that runs nothing.
const stubText = "this shell runs nothing"

// Stub reports whether this program was started in place of a shell, and then answers.
func Stub(name string, out io.Writer) bool {
	if !slices.Contains(shells, filepath.Base(name)) {
		return false
	}
	fmt.Fprintln(out, stubText)
	return true
}

// shielded is a program in a mount namespace of its own, where each shell of the host is
// this program, which runs nothing.
type shielded struct {
	cmd    *exec.Cmd
	cancel context.CancelFunc
	done   chan struct{}
	err    error
	log    *os.File
}

// shield prepares a program. Its environment is complete.
func (b *bench) shield(ctx context.Context, name string, env []string, args ...string) (*shielded, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	script := "set -e\n"
	seen := map[string]bool{}
	for _, dir := range []string{"/usr/bin", "/bin", "/usr/local/bin"} {
		for _, shell := range shells {
			path, err := filepath.EvalSymlinks(filepath.Join(dir, shell))
			if err == nil && !seen[path] {
				seen[path] = true
				script += "mount --bind '" + self + "' '" + path + "'\n"
			}
		}
	}
	script += `exec "$@"` + "\n"
	unshare := []string{"--mount", "--propagation", "private"}
	if os.Getuid() != 0 {
		unshare = append(unshare, "--user", "--map-root-user")
	}
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, "unshare", slices.Concat(unshare, []string{"bash", "-c", script, "shield"}, args)...)
	cmd.Env = append([]string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "TERM=dumb"}, env...)
	cmd.Dir = b.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	log, err := os.Create(filepath.Join(b.dir, name+".log"))
	if err != nil {
		cancel()
		return nil, err
	}
	cmd.Stderr = log
	return &shielded{cmd: cmd, cancel: cancel, done: make(chan struct{}), log: log}, nil
}

func (s *shielded) start() error {
	if err := s.cmd.Start(); err != nil {
		s.cancel()
		return err
	}
	go func() {
		s.err = s.cmd.Wait()
		close(s.done)
	}()
	return nil
}

// close kills the program with all that it has started.
func (s *shielded) close() error {
	s.cancel()
	<-s.done
	return s.log.Close()
}

// why is the end of what the program has said, for errors.
func (s *shielded) why() string {
	text, err := os.ReadFile(s.log.Name())
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text[max(0, len(text)-1000):]))
}
