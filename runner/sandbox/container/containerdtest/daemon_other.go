//go:build !linux

package containerdtest

import "syscall"

func attributes() *syscall.SysProcAttr { return nil }

func unmount(path string) error { return syscall.Unmount(path, 0) }
