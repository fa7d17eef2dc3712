//go:build !linux

package cli

import "golang.org/x/sys/unix"

// The requests to a terminal: get its state, set it at once, set it and forget
// what was typed and not read yet, and how much that is.
const (
	terminalGet     = unix.TIOCGETA
	terminalSet     = unix.TIOCSETA
	terminalSetDrop = unix.TIOCSETAF
	terminalPending = 0x4004667f // FIONREAD, for which package unix has no name
)
