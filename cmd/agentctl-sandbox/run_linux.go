package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// run is the lifetime of a sandbox.
func run() int {
	if len(os.Args) == 3 && os.Args[1] == spec.ForkArg {
		return fork(os.Args[2])
	}
	if len(os.Args) > 1 || os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "agentctl-sandbox builds the sandboxes of agentctl and is started by agentctl.")
		return 2
	}
	// One thread of Go code at a time is enough: this process waits most of the
	// time, and with more the runtime wakes threads that find nothing to do.
	runtime.GOMAXPROCS(1)
	if err := harden(); err != nil {
		fmt.Fprintln(os.Stderr, "agentctl-sandbox:", err)
		return 1
	}
	line := &control{fd: spec.ControlFD}
	first, _, err := line.receive()
	if err != nil {
		return 1 // the runner is gone
	}
	boot, err := spec.DecodeBoot(first)
	if err != nil {
		line.send(&spec.Reply{Error: err.Error()})
		return 1
	}
	w, err := build(boot)
	if err != nil {
		line.send(&spec.Reply{Error: err.Error(), Errno: errnoOf(err)})
		return 1
	}
	w.line = line
	go w.reap()
	fds := []int{w.sockets}
	if w.listener >= 0 {
		fds = append(fds, w.listener)
	}
	line.send(&spec.Reply{Landlock: w.landlock, Unenforced: unenforced(boot)}, fds...)
	closeAll(fds)
	if limit := boot.Profile.Limits.Memory; limit > 0 { // a cgroup takes it out of the profile
		go w.watchMemory(limit) // until this process ends, and with it the sandbox
	}
	return w.serve()
}

// harden protects this process from the processes inside: it is not dumpable,
// so no process of its own user may trace it or read its /proc folder. And no
// program inherits a descriptor that the parent of the runner left open.
func harden() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("become undumpable: %w", err)
	}
	if err := unix.CloseRange(spec.ControlFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil { // the Go runtime may have its own by now
		return fmt.Errorf("keep descriptors from programs: %w", err)
	}
	unix.Umask(0o022)
	return nil
}

// serve answers requests until the runner is gone.
func (w *warden) serve() int {
	for {
		b, files, err := w.line.receive()
		switch {
		case errors.Is(err, io.EOF):
			return 0
		case err != nil:
			return 1
		}
		m, err := spec.DecodeRequest(b)
		if err != nil {
			if m != nil {
				w.line.send(&spec.Reply{ID: m.ID, Error: err.Error()})
			}
			closeAll(files)
			continue
		}
		w.answer(m, files)
	}
}

// answer does what is asked for. Only a sweep takes long enough to be done aside.
func (w *warden) answer(m *spec.Request, files []int) {
	defer closeAll(files)
	r := &spec.Reply{ID: m.ID}
	var err error
	switch m.Op {
	case spec.OpStart:
		w.start(m, files)
		return
	case spec.OpSignal:
		w.signal(m)
	case spec.OpSweep:
		go func() {
			w.sweep(m.Program)
			w.line.send(r)
		}()
		return
	case spec.OpProtect:
		r.Missing, err = protect(m.ReadOnly, m.Masked, w.writable)
	}
	if err != nil {
		r.Error, r.Errno = err.Error(), errnoOf(err)
	}
	w.line.send(r)
}

func closeAll(files []int) {
	for _, fd := range files {
		_ = unix.Close(fd)
	}
}

func errnoOf(err error) int {
	if e, ok := errors.AsType[unix.Errno](err); ok {
		return int(e)
	}
	return 0
}
