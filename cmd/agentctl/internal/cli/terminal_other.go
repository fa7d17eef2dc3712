//go:build !linux

package cli

import "golang.org/x/sys/unix"

// The requests for a terminal's state: get it, set it at once, and set it and
// forget what was typed and not read yet.
const (
	terminalGet     = unix.TIOCGETA
	terminalSet     = unix.TIOCSETA
	terminalSetDrop = unix.TIOCSETAF
)
