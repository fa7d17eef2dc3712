package sdk

import (
	"os"

	"golang.org/x/sys/unix"
)

// shield keeps the handshake and the process from the tools' own doings: file
// descriptor 1 becomes stderr, so that neither a print nor a program started
// by a tool writes into the handshake, and processes of the same user can
// neither read this one's memory nor its first environment.
func (p *process) shield() {
	p.handshake, p.stderr = os.Stdout, os.Stderr
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	fd, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return // stdout is closed: no handshake will come of it
	}
	p.handshake = os.NewFile(uintptr(fd), "handshake")
	_ = unix.Dup3(2, 1, 0)
}
