//go:build unix && !linux

package lineedit

import "golang.org/x/sys/unix"

// The requests to a terminal: get its state, set it at once, and set it when everything is
// written.
const (
	terminalGet      = unix.TIOCGETA
	terminalSet      = unix.TIOCSETA
	terminalSetDrain = unix.TIOCSETAW
)
