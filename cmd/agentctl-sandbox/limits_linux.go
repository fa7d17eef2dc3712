package main

import (
	"cmp"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// spareThreads are those of this process, which count as well.
const spareThreads = 16

// limit sets the limits that programs inherit. They hold for this process too,
// which needs little.
func limit(l *spec.Limits) error {
	set := func(what string, resource int, n int64) error {
		var cur syscall.Rlimit
		if err := syscall.Getrlimit(resource, &cur); err != nil {
			return fmt.Errorf("read the limit of %s: %w", what, err)
		}
		most := min(uint64(n), cur.Max) // it can only be lowered
		// The package remembers that the limit of open files is now meant.
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("limit %s: %w", what, err)
		}
		return nil
	}
	if err := set("core files", unix.RLIMIT_CORE, 0); err != nil {
		return err
	}
	if err := set("open files", unix.RLIMIT_NOFILE, cmp.Or(l.Files, spec.DefaultFiles)); err != nil {
		return err
	}
	if err := set("file size", unix.RLIMIT_FSIZE, cmp.Or(l.FileSize, spec.DefaultFileSize)); err != nil {
		return err
	}
	// RLIMIT_DATA counts what a process may write to privately. RLIMIT_AS would
	// also count what Go, Node and Java merely reserve, which is most of it.
	if l.Memory > 0 {
		if err := set("memory", unix.RLIMIT_DATA, max(l.Memory, spec.LeastMemory)); err != nil {
			return err
		}
	}
	// The kernel counts processes per user and user namespace: per sandbox.
	if l.Pids > 0 {
		return set("processes", unix.RLIMIT_NPROC, l.Pids+spareThreads)
	}
	return nil
}

// unenforced names what was declared and nothing enforces.
func unenforced(b *spec.Boot) (names []string) {
	l := &b.Profile.Limits
	if l.Memory > 0 {
		names = append(names, "memory: no cgroup, the sum of all processes is looked at ten times a second, and may exceed the limit for that long")
	}
	if l.CPU > 0 {
		names = append(names, "cpu: no cgroup")
	}
	if l.Pids > 0 && b.UID == 0 {
		names = append(names, "pids: no cgroup, and the kernel does not count the processes of root")
	}
	return names
}
