//go:build !linux

package kubetest

import "syscall"

func endsWithUs() *syscall.SysProcAttr { return nil }
