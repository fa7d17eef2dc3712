package kubetest

import "syscall"

// endsWithUs kills a program when this process ends without having stopped it,
// as a test does that takes too long.
func endsWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
