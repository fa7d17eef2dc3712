package journal

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncFilesystem makes everything written to dir's file system durable.
func syncFilesystem(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(os.NewSyscallError("syncfs", unix.Syncfs(int(f.Fd()))), f.Close())
}
