package client

import (
	"math"

	"golang.org/x/sys/unix"
)

// closeOnExec prevents processes that this one starts from inheriting files
// that its caller left open: a lock of a script, or the end of its pipe, must
// not stay open as long as a control plane runs.
func closeOnExec() error { return unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) }
