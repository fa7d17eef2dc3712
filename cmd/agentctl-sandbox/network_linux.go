package main

import (
	"fmt"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// hostName is what programs think the machine is called.
const hostName = "sandbox"

// proxyPort is that of spec.ProxyAddress.
const proxyPort = 3128

// backlog of the proxy's listener.
const backlog = 256

// network brings the loopback of an empty network up, and opens the proxy's
// listener: a socket stays in the network it was opened in, whichever process
// serves it. Without a proxy it returns -1.
func network(mode spec.Network) (listener int, err error) {
	if err := unix.Sethostname([]byte(hostName)); err != nil {
		return -1, fmt.Errorf("set the host name: %w", err)
	}
	if mode == spec.NetworkHost {
		return -1, nil
	}
	if err := loopback(); err != nil {
		return -1, fmt.Errorf("bring the loopback up: %w", err)
	}
	if mode != spec.NetworkProxy {
		return -1, nil
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open the proxy's listener: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: proxyPort, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return -1, fmt.Errorf("bind the proxy's listener: %w", err)
	}
	if err := unix.Listen(fd, backlog); err != nil {
		return -1, fmt.Errorf("listen for the proxy: %w", err)
	}
	return fd, nil
}

func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, lo); err != nil {
		return err
	}
	lo.SetUint16(lo.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}
