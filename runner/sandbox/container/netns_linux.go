package container

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/api/reason"
)

// listenIn opens a listener inside the network namespace of a process that has
// been created and not yet started. The namespace stays empty: the listener
// belongs to this process, and so does everything it dials.
func listenIn(ctx context.Context, pid uint32, address string) (net.Listener, error) {
	type outcome struct {
		l   net.Listener
		err error
	}
	out := make(chan outcome, 1)
	go func() {
		// Never unlocked: the thread is in a foreign namespace and ends with the goroutine.
		runtime.LockOSThread()
		l, err := func() (net.Listener, error) {
			ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
			if err != nil {
				return nil, err
			}
			defer func() { _ = ns.Close() }()
			if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
				return nil, os.NewSyscallError("setns", err)
			}
			var c net.ListenConfig
			c.SetMultipathTCP(false)
			return c.Listen(ctx, "tcp4", address)
		}()
		out <- outcome{l, err}
	}()
	o := <-out
	if errors.Is(o.err, fs.ErrPermission) {
		return nil, reason.New(reason.IsolationUnavailable, "network mode Proxy of a container: uid %d may not enter its network: %w", os.Geteuid(), o.err).
			WithHint("run agentctl as root, or give the Tool a source.plugin or source.exec: its sandbox has a proxy without root")
	}
	if o.err != nil {
		return nil, fmt.Errorf("listen inside the container's network: %w", o.err)
	}
	return o.l, nil
}
