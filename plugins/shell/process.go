package shell

import (
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"agentctl.dev/agentctl/plugins/sdk"
	"agentctl.dev/agentctl/plugins/shell/internal/record"
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
	// recorder records what it does; nil if nothing does.
	recorder *record.Watch
}

// terms are what a command is started under.
type terms struct {
	// rules bind it; nil for none.
	rules *rules
	// scope is what is recorded of it, 0 for nothing.
	scope record.Scope
	// shell is set where the command is a shell of ours: it is no part of the record.
	shell bool
	// excess is called with what the rules refuse.
	excess func(sdk.Excess)
}

// spawn starts a shell in a folder, with these variables and its own.
func (b *bash) spawn(dir *folder, env []string, files []*os.File, under terms, args ...string) (*process, error) {
	cmd := exec.Command(b.shell, args...) //nolint:noctx // the whole tree is ended, not the one process a context knows
	cmd.Dir = dir.enter()
	cmd.Env = b.environment(env, dir.path)
	cmd.ExtraFiles = files
	under.shell = true
	return b.forest.start(cmd, dir.path, under)
}

// start starts a command as the root of a tree, with an empty input and one pipe for both
// outputs.
func (f *forest) start(cmd *exec.Cmd, dir string, under terms) (*process, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, pipe: r, exited: make(chan struct{}), dir: dir}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	// Files, not writers: os/exec then copies nothing itself, and its Wait ends with the
	// process, even if another process still holds the pipe.
	p.cmd.Stdout, p.cmd.Stderr = w, w
	err = p.plant(f, under)
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
	if p.recorder != nil {
		if err := p.recorder.Begin(); err != nil {
			p.discard(f)
			return nil, err
		}
	}
	return p, nil
}

// plant starts the command under its terms.
func (p *process) plant(f *forest, under terms) (err error) {
	start := p.cmd.Start
	switch {
	case under.scope != 0 && recordable():
		o := record.Options{Scope: under.scope, Shell: under.shell, Excess: under.excess}
		if under.rules != nil {
			o.Rules, o.Rights = under.rules.File, &under.rules.rights
		}
		if p.recorder, err = record.Prepare(p.cmd, o); err != nil {
			return err
		}
	case under.rules != nil:
		start = func() error { return under.rules.start(p.cmd) }
	}
	if p.tree, err = f.plant(p.cmd, start); err != nil && p.recorder != nil {
		p.recorder.Abort()
	}
	return err
}

// discard ends a command that nobody waits for.
func (p *process) discard(f *forest) {
	_ = p.cmd.Process.Kill()
	<-p.exited
	f.forget(p.tree)
	_ = p.pipe.Close()
	p.recorder.End(drain)
}

// recordable reports whether commands can be recorded here. It is said once if they cannot.
var recordable = sync.OnceValue(func() bool {
	err := record.Check()
	if err != nil {
		slog.Warn("what commands do is not recorded", "error", err)
	}
	return err == nil
})

// environment is the given one, with what a shell would otherwise look up when
// it starts: where it is, and which shell the user has, for which bash asks the
// whole name service. That is a tenth of the time of its start.
func (b *bash) environment(given []string, dir string) []string {
	env := append([]string{"SHELL=" + b.shell}, given...) // what is given counts
	return append(env, "PWD="+dir)
}
