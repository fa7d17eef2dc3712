package shell

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// process is a shell that runs, or waits for what it shall run.
type process struct {
	cmd  *exec.Cmd
	tree *tree
	// pipe is what it writes, both outputs as they come.
	pipe *os.File
	// exited is closed when it has ended.
	exited chan struct{}
	// dir is the folder it began in.
	dir string
}

// spawn starts a shell in a folder, with these variables and its own, bound by rules unless
// they are nil.
func (b *bash) spawn(dir *folder, env []string, files []*os.File, bound *rules, args ...string) (*process, error) {
	cmd := exec.Command(b.shell, args...) //nolint:noctx // the whole tree is ended, not the one process a context knows
	cmd.Dir = dir.enter()
	cmd.Env = b.environment(env, dir.path)
	cmd.ExtraFiles = files
	return b.forest.start(cmd, dir.path, bound)
}

// start starts a command as the root of a tree, with an empty input and one pipe for both
// outputs. Rules that are not nil bind it.
func (f *forest) start(cmd *exec.Cmd, dir string, bound *rules) (*process, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, pipe: r, exited: make(chan struct{}), dir: dir}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	// Files, not writers: os/exec then copies nothing itself, and its Wait ends with the
	// process, even if another process still holds the pipe.
	p.cmd.Stdout, p.cmd.Stderr = w, w
	p.tree, err = f.plant(p.cmd, bound)
	if e := w.Close(); err == nil {
		err = e
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	go func() { // ends with the process, which is killed at the latest with ours
		defer close(p.exited)
		_ = p.cmd.Wait() // its state has all that the error has
	}()
	return p, nil
}

// environment is the given one, with what a shell would otherwise look up when
// it starts: where it is, and which shell the user has, for which bash asks the
// whole name service. That is a tenth of the time of its start.
func (b *bash) environment(given []string, dir string) []string {
	env := append([]string{"SHELL=" + b.shell}, given...) // what is given counts
	return append(env, "PWD="+dir)
}
