//go:build !linux

package container

import (
	"context"
	"net"
)

func listenIn(context.Context, uint32, string) (net.Listener, error) { return nil, errNotLinux }
