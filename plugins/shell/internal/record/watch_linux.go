package record

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/plugins/sdk"
)

// Options are how a command is started.
type Options struct {
	Scope Scope
	// Rules are a Landlock ruleset that binds the command from the start; nil for none.
	Rules *os.File
	// Shell leaves the program that is started out of the record: it is that of the caller.
	Shell bool
	// Rights are what Rules allow, and Excess, which may be nil, is called with what they
	// refuse. It must not block: the process that is refused waits for it.
	Rights *Rights
	Excess func(sdk.Excess)
}

// Watch is a command whose record is in the making.
type Watch struct {
	// skip is how many executions are left out.
	skip int
	// line is the way to the launcher, listener what the kernel reports by; nil where the
	// kernel made none.
	line     *os.File
	listener *listener
	files    []*os.File
	// noListener is why the kernel made none.
	noListener error
	// observe is called with each system call and what was found of it; nil for nothing.
	observe func(l *look, a *attempt, err error)

	mu     sync.Mutex
	draft  *draft
	rights *Rights
	excess func(sdk.Excess)
}

// Prepare changes a command that has not been started, so that it is started by a launcher.
// Call Begin when it has been started, or Abort.
func Prepare(cmd *exec.Cmd, o Options) (*Watch, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make the way to a launcher: %w", err)
	}
	_ = unix.SetNonblock(pair[0], true) // so that its reads can have a deadline
	w := &Watch{line: os.NewFile(uintptr(pair[0]), "launcher"), draft: newDraft(), rights: o.Rights, excess: o.Excess}
	if o.Shell {
		w.skip = 1
	}
	theirs := os.NewFile(uintptr(pair[1]), "launcher")
	w.files = append(w.files, theirs)
	const first = 3 // the descriptor of the first of ExtraFiles
	p := plan{scope: o.Scope, rules: none, own: first + len(cmd.ExtraFiles)}
	files := append([]*os.File(nil), cmd.ExtraFiles...)
	if o.Rules != nil {
		p.rules = first + len(files)
		files = append(files, o.Rules)
	}
	p.socket = first + len(files)
	launcher, err := p.file()
	if err != nil {
		w.Abort()
		return nil, err
	}
	w.files = append(w.files, launcher)
	cmd.ExtraFiles = append(files, theirs, launcher)
	cmd.Args = append([]string{"launcher", cmd.Path}, cmd.Args...)
	cmd.Path = fmt.Sprintf("/proc/self/fd/%d", p.socket+1)
	return w, nil
}

// Abort gives up a command that was not started.
func (w *Watch) Abort() {
	w.closeFiles()
	_ = w.line.Close()
}

func (w *Watch) closeFiles() {
	for _, f := range w.files {
		_ = f.Close()
	}
	w.files = nil
}

// launchTime bounds the time that a launcher takes.
const launchTime = 10 * time.Second

// Begin waits until a command that has been started is executed, with the record begun. An
// error is that of the start: nothing was executed. Where the kernel makes no listener there
// is none: the command runs, and Recorded reports false.
func (w *Watch) Begin() error {
	w.closeFiles()
	defer w.line.Close()
	if err := w.bound(); err != nil {
		return err
	}
	// The way is closed by the execution. Otherwise the error comes by it.
	last, _, err := receive(w.line)
	switch {
	case err != nil:
		return fmt.Errorf("start by a launcher: %w", err)
	case last != nil:
		return fmt.Errorf("execute: %w", unix.Errno(-last[0])) //nolint:gosec // a number of the kernel
	}
	return nil
}

// Attach returns the watch of a shell that has been told to bind itself by its command. An
// error means that the shell has ended, and has done nothing. Where the kernel makes no
// listener, or was not asked for one, Recorded reports false.
func Attach(line *os.File, o Options) (*Watch, error) {
	w := &Watch{line: line, draft: newDraft(), rights: o.Rights, excess: o.Excess}
	return w, w.bound()
}

// bound waits until the rules are applied, and listens if there is a listener.
func (w *Watch) bound() error {
	_ = w.line.SetReadDeadline(time.Now().Add(launchTime))
	first, fd, err := receive(w.line)
	switch {
	case err != nil:
		return fmt.Errorf("bind a command: %w", err)
	case first == nil:
		return errors.New("bind a command: it ended before it was bound")
	case first[0] != 0:
		return fmt.Errorf("apply the landlock rules: %w", unix.Errno(-first[0])) //nolint:gosec // a number of the kernel
	case fd >= 0:
		return w.listen(fd)
	default:
		w.noListener = unix.Errno(-first[1]) //nolint:gosec // a number of the kernel
	}
	return nil
}

// receive reads results, and a listener, -1 for none. No results are the end of the process.
func receive(from *os.File) (results *[2]int32, fd int, err error) {
	raw, err := from.SyscallConn()
	if err != nil {
		return nil, -1, err
	}
	results, fd = &[2]int32{}, -1
	var n int
	var control [64]byte
	var controls int
	var failed error
	err = raw.Read(func(line uintptr) bool {
		b := unsafe.Slice((*byte)(unsafe.Pointer(results)), unsafe.Sizeof(*results)) //nolint:gosec // the kernel's structure
		n, controls, _, _, failed = unix.Recvmsg(int(line), b, control[:], unix.MSG_CMSG_CLOEXEC)
		return failed != unix.EAGAIN //nolint:errorlint // a number of the kernel
	})
	if err = errors.Join(err, failed); err != nil {
		return nil, -1, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:controls])
	for i := range messages {
		if fds, err := unix.ParseUnixRights(&messages[i]); err == nil {
			for _, each := range fds {
				if fd >= 0 {
					_ = unix.Close(fd)
				}
				fd = each
			}
		}
	}
	if n == 0 || err != nil {
		results = nil
	}
	return results, fd, err
}

// Recorded reports whether the kernel reports what the command does.
func (w *Watch) Recorded() bool { return w != nil && w.listener != nil }

// Gone reports whether no process of the command is left, which only a listener knows for
// certain: a process cannot leave its filter.
func (w *Watch) Gone() bool { return w.Recorded() && w.listener.gone() }

// End waits until no process of the command is left, and returns the record; nil if there is
// none. A process that is left after that time is not waited for, nor recorded further: what
// it does fails from now on.
func (w *Watch) End(wait time.Duration) *sdk.Record {
	if !w.Recorded() {
		return nil
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	select {
	case <-w.listener.over:
	case <-late.C:
		w.listener.stop()
		late.Reset(wait)
		select {
		case <-w.listener.over:
		case <-late.C: // a look at a file system that does not answer
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	record := w.draft.record
	w.draft = newDraft() // what is still written goes there
	return &record
}
