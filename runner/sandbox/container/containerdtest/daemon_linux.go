package containerdtest

import "syscall"

func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

func unmount(path string) error { return syscall.Unmount(path, syscall.MNT_DETACH) }
