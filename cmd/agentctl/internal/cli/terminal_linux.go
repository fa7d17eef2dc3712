package cli

import "golang.org/x/sys/unix"

// The requests to a terminal: get its state, set it at once, set it and forget
// what was typed and not read yet, and how much that is.
const (
	terminalGet     = unix.TCGETS
	terminalSet     = unix.TCSETS
	terminalSetDrop = unix.TCSETSF
	terminalPending = unix.TIOCINQ
)
