package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// Spec is a program to start.
type Spec struct {
	// Argv is the program and its arguments. A name without a slash is looked
	// up in the PATH of Env, a relative path starts at Dir.
	Argv []string
	// Env is the whole environment, as NAME=value; nothing is inherited.
	Env []string
	// Dir is the working folder: an absolute path. Required.
	Dir string
	// Stdin is copied to the program; nil is an empty one.
	Stdin io.Reader
	// Stdout and Stderr receive what the program writes; nil drops it. Each is
	// called by one goroutine. An error drops the rest; the program never blocks.
	Stdout, Stderr io.Writer
	// Sha256 of the program's file in hex; "" checks nothing. A checked program
	// is started through the file that was read, not by its name.
	Sha256 string
	// Profile is the sandbox to run in; nil is level None. Dir, and the program,
	// are then those the sandbox shows: the launcher adds the files that Argv names
	// to the profile's mounts, read-only, and an empty folder at the HOME of Env.
	// What HTTP clients look for is added to Env for spec.NetworkProxy.
	Profile *spec.Profile
	// Fresh is a sandbox of its own, which ends with the program.
	Fresh bool
	// Tidy is set for a program that at a SIGTERM ends what it has started, and
	// then itself. It gets SIGTERM, and not SIGKILL, when the runner dies. Kill
	// is not affected.
	Tidy bool
}

// ExitInfo is how a program ended.
type ExitInfo struct {
	// Code is the exit code, -1 when a signal ended the program.
	Code int
	// Signal is its name, for example "killed", or "".
	Signal string
}

// String returns "exit code 3" or "signal killed".
func (e ExitInfo) String() string {
	if e.Signal != "" {
		return "signal " + e.Signal
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

// defaultPath is searched when a program's environment has no PATH.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// drainWait bounds the wait for the last output once the whole tree is gone:
// only a process that escaped the tree can still hold the pipe.
const drainWait = time.Second

// Process is a program that was started.
type Process struct {
	// proc and tag are those of a program at level None, inner that of one in a
	// sandbox.
	proc  *os.Process
	tag   uint64
	inner *inner
	pipes []*os.File
	copy  sync.WaitGroup
	stdin *os.File

	// dead is closed when the program itself has ended, done when its tree is
	// gone too and its output has been copied.
	dead chan struct{}
	done chan struct{}
	exit ExitInfo
}

// Start starts a program. The context bounds the start only; end the program by
// Kill. Start undoes everything when it returns an error.
func (l *Launcher) Start(ctx context.Context, s Spec) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r, err := l.house(ctx, &s)
	if err != nil {
		return nil, err
	}
	return l.startIn(ctx, r, s)
}

// house prepares the sandbox for a program; nil if it needs none.
func (l *Launcher) house(ctx context.Context, s *Spec) (*instance, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if s.Profile == nil {
		return nil, nil
	}
	path, err := s.program()
	if err != nil {
		return nil, err
	}
	return l.instance(ctx, s, path)
}

// startIn starts a program in an existing sandbox, or without a sandbox.
func (l *Launcher) startIn(ctx context.Context, r *instance, s Spec) (*Process, error) {
	path, err := s.program()
	if err != nil {
		return nil, err
	}
	p := &Process{dead: make(chan struct{}), done: make(chan struct{})}
	if err := p.start(ctx, l, r, s, path); err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return p, nil
}

func (s *Spec) check() error {
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return errors.New("start a program: the command is empty")
	}
	for _, a := range append(append([]string{s.Dir}, s.Argv...), s.Env...) {
		if strings.IndexByte(a, 0) >= 0 {
			return fmt.Errorf("start %q: a NUL byte in its arguments, environment or folder", s.Argv[0])
		}
	}
	if !filepath.IsAbs(s.Dir) {
		return fmt.Errorf("start %s: the working folder %q is not absolute", s.Argv[0], s.Dir)
	}
	if s.Profile != nil {
		return nil // the folder may exist only inside
	}
	if fi, err := os.Stat(s.Dir); err != nil {
		return fmt.Errorf("start %s: working folder: %w", s.Argv[0], err)
	} else if !fi.IsDir() {
		return fmt.Errorf("start %s: the working folder %s is not a folder", s.Argv[0], s.Dir)
	}
	return nil
}

// program returns the absolute path of the program; its errors are clearer than
// those of execve.
func (s *Spec) program() (string, error) {
	path, err := s.find()
	if err == nil {
		err = unchangeable(path)
	}
	for i := 1; i < len(s.Argv) && err == nil; i++ { // the path of a script follows its interpreter
		if info, look := os.Stat(s.Argv[i]); filepath.IsAbs(s.Argv[i]) && look == nil && info.Mode().IsRegular() {
			err = unchangeable(s.Argv[i])
		}
	}
	return path, err
}

// unchangeable refuses a program that every user of this machine can change or
// replace.
func unchangeable(path string) error {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("start %s: %w", path, err)
	}
	for at, file := resolved, true; ; at, file = filepath.Dir(at), false {
		info, err := os.Stat(at)
		if err != nil {
			return fmt.Errorf("start %s: %w", path, err)
		}
		switch mode := info.Mode(); {
		case mode&0o002 == 0:
		case file:
			return fmt.Errorf("start %s: every user of this machine can change it (mode %v); try chmod o-w %s", path, mode.Perm(), resolved)
		case mode&os.ModeSticky == 0:
			return fmt.Errorf("start %s: every user of this machine can replace it, because %s is writable for all (mode %v); try chmod o-w %s", path, at, mode.Perm(), at)
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}

// find returns the absolute path of the program.
func (s *Spec) find() (string, error) {
	name := s.Argv[0]
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(s.Dir, name)
		}
		return name, executable(name)
	}
	path := defaultPath
	for _, kv := range s.Env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue // a relative entry would run any file of that name in the workspace
		}
		if p := filepath.Join(dir, name); executable(p) == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("start %s: no such program in %s", name, path)
}

func executable(path string) error {
	fi, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("start %s: no such file", path)
	case err != nil:
		return fmt.Errorf("start %s: %w", path, err)
	case fi.IsDir():
		return fmt.Errorf("start %s: it is a folder, not a program", path)
	case !fi.Mode().IsRegular():
		return fmt.Errorf("start %s: it is not a regular file", path)
	case fi.Mode()&0o111 == 0:
		return fmt.Errorf("start %s: it is not executable (mode %v); try chmod +x", path, fi.Mode().Perm())
	}
	return nil
}

// PID returns the program's process id: for a program in a sandbox, the one it
// has there.
func (p *Process) PID() int {
	if p.inner != nil {
		return p.inner.pid
	}
	return p.proc.Pid
}

// Unenforced names the declared limits and the layers that this host does not
// enforce for the program, for example "cpu: no cgroup"; none at level None.
func (p *Process) Unenforced() []string {
	if p.inner == nil {
		return nil
	}
	return p.inner.instance.unenforced
}

// Done is closed when Wait would return.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait returns when the program has ended, what it left behind has been killed,
// and its output has been delivered.
func (p *Process) Wait() ExitInfo {
	<-p.done
	return p.exit
}

// output connects w to a file descriptor of the program.
func (p *Process) output(w io.Writer) (*os.File, error) {
	if w == nil {
		return os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	}
	r, child, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.pipes = append(p.pipes, r)
	p.copy.Go(func() {
		_, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, make([]byte, 32<<10))
		if err != nil {
			_, _ = io.Copy(io.Discard, struct{ io.Reader }{r}) // the program must not block on a reader that gave up
		}
	})
	return child, nil
}

// input connects r to the program's stdin.
func (p *Process) input(r io.Reader) (*os.File, error) {
	if r == nil {
		return os.Open(os.DevNull)
	}
	child, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.stdin = w
	return child, nil
}

// feed copies the caller's reader until it ends or the program stops reading.
// The reader may block for ever, so the goroutine is not waited for. It ends at
// the reader's next byte after the program's end.
func (p *Process) feed(r io.Reader) {
	if p.stdin == nil {
		return
	}
	go func() {
		_, _ = io.Copy(p.stdin, r)
		_ = p.stdin.Close()
	}()
}

// abandon closes everything of a start that did not come about.
func (p *Process) abandon() {
	for _, f := range p.pipes {
		_ = f.Close()
	}
	if p.stdin != nil {
		_ = p.stdin.Close()
	}
	p.copy.Wait()
}

// finish waits for the program, kills what it left, and collects the output.
func (p *Process) finish(l *Launcher) {
	p.exit = p.reap()
	close(p.dead)
	p.sweep(time.Now().Add(sweepTime))
	drained := make(chan struct{})
	go func() { p.copy.Wait(); close(drained) }()
	late := time.NewTimer(drainWait)
	defer late.Stop()
	select {
	case <-drained:
	case <-late.C:
	}
	for _, f := range p.pipes {
		_ = f.Close() // ends a copy that still reads
	}
	if p.stdin != nil {
		_ = p.stdin.Close()
	}
	l.mu.Lock()
	delete(l.live, p)
	l.mu.Unlock()
	if p.inner != nil && p.inner.fresh {
		p.inner.instance.stop()
	}
	close(p.done)
}

// Kill ends the program and all it started: SIGTERM first when grace is not 0,
// SIGKILL to what is left after it. It returns when no process of the tree is
// left, at most sweepTime after the grace. A second Kill is harmless.
func (p *Process) Kill(grace time.Duration) {
	if p.inner != nil && p.inner.last() {
		grace = 0
	}
	if grace > 0 {
		p.terminate()
		t := time.NewTimer(grace)
		select {
		case <-p.dead:
		case <-t.C:
		}
		t.Stop()
	}
	select {
	case <-p.dead: // finish sweeps what is left
	default:
		p.sweep(time.Now().Add(sweepTime))
	}
	t := time.NewTimer(sweepTime + drainWait)
	defer t.Stop()
	select {
	case <-p.done:
	case <-t.C:
	}
}

// sweepTime bounds a tree kill. 300 ms is the goal; only a fork bomb needs more.
const sweepTime = 2 * time.Second
