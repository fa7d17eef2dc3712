package client

import (
	"math"

	"golang.org/x/sys/unix"
)

// closeOnExec keeps files that a caller left open in us from those we start: a
// lock of a script, or the end of its pipe, must not live as long as a control
// plane.
func closeOnExec() error { return unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) }
