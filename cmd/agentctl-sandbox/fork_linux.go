package main

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// fork starts a helper in namespaces of its own, as a child of the runner, and
// returns its pid. This process is small, so that little is copied.
func fork(text string) int {
	line := &control{fd: spec.ControlFD}
	m, err := spec.DecodeFork([]byte(text))
	if err != nil {
		line.send(&spec.Reply{Error: err.Error()})
		return 1
	}
	self, err := os.Executable() // by its name, which the kernel shows for process 1
	pid := 0
	if err == nil {
		pid, err = syscall.ForkExec(self, []string{os.Args[0]}, &syscall.ProcAttr{
			Dir: "/", Env: []string{}, Files: []uintptr{0, 1, 2, spec.ControlFD}, Sys: namespaces(m),
		})
	}
	if err != nil {
		line.send(&spec.Reply{Error: err.Error(), Errno: errnoOf(err)})
		return 1
	}
	line.send(&spec.Reply{PID: pid})
	return 0
}

// namespaces are those of a sandbox. User ids are the same inside and outside,
// so that files have the same owners. Only the helper has capabilities, for its
// own mounts; programs have none.
func namespaces(m *spec.Fork) *syscall.SysProcAttr {
	flags := uintptr(unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP)
	if m.Network != spec.NetworkHost {
		flags |= unix.CLONE_NEWNET
	}
	return &syscall.SysProcAttr{
		// Its parent is that of this process, which ends: the runner waits for it, and
		// the end of the runner's thread is its end.
		Cloneflags: flags | unix.CLONE_PARENT, Setsid: true, Pdeathsig: syscall.SIGKILL,
		UidMappings: maps(m.Users), GidMappings: maps(m.Groups), GidMappingsEnableSetgroups: os.Getuid() == 0,
		// Without ambient capabilities a user other than root has none after
		// execve.
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_NET_ADMIN},
	}
}

func maps(ranges []spec.Range) []syscall.SysProcIDMap {
	out := make([]syscall.SysProcIDMap, len(ranges))
	for i, r := range ranges {
		out[i] = syscall.SysProcIDMap{ContainerID: r.First, HostID: r.First, Size: r.Count}
	}
	return out
}
