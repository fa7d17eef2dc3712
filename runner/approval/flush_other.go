//go:build !linux

package approval

// flushInput does nothing here: agents run on Linux.
func flushInput(int) {}
