package approval

import "golang.org/x/sys/unix"

// flushInput throws away what was typed before a question was shown: a person
// answers what they have seen.
func flushInput(fd int) { _ = unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) }
