package record

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// A process can only lay a filter on itself, and one that is started by Go cannot have had
// one laid on it before: while its program is being executed, the thread that started it
// waits without giving up its processor, and so may the whole Go program, which would have
// to answer the notification of that execution. So a launcher comes between: a program of
// some fifty instructions, which is written here and has no file name.
//
// A shell that waits for its command has been started long before its rules are known. It
// has loaded a command (enable -f) with the same instructions, by which it binds itself.

// files are those that have been made and cannot be changed: they are kept.
type files struct {
	mu   sync.Mutex
	made map[string]*os.File
}

var kept = &files{made: map[string]*os.File{}}

// file returns a file without a name that holds what content returns. The caller closes it.
func (l *files) file(key string, content func() []byte) (*os.File, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.made[key]
	if f == nil {
		var sealed bool
		var err error
		if f, sealed, err = unnamed(content()); err != nil {
			return nil, fmt.Errorf("make a file without a name: %w", err)
		}
		if !sealed {
			return f, nil
		}
		l.made[key] = f
	}
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open a file without a name: %w", err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil //nolint:gosec // a descriptor
}

// file returns the file of a launcher. The caller closes it.
func (p plan) file() (*os.File, error) { return kept.file(fmt.Sprint("launcher", p), p.launcher) }

// Command returns a shared object with a command for bash, which the caller closes. The
// command lays the Landlock rules of a descriptor on the shell, and a filter if the scope is
// not 0; then it reports to the socket, which Attach reads. If the rules cannot be applied it
// ends the shell.
func Command(name string, scope Scope, rules, socket int) (*os.File, error) {
	p := plan{scope: scope, rules: rules, socket: socket, own: none}
	return kept.file(fmt.Sprint(name, p), func() []byte { return p.object(name) })
}
