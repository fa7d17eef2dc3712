//go:build !linux

package container

import (
	"errors"
	"os"
	"sync"
)

var errNotLinux = errors.New("containers run on Linux only")

// idmaps has nothing to hold elsewhere.
type idmaps struct {
	mu  sync.Mutex
	fds map[runAs]*os.File
}

func (m *idmaps) close() {}

func (r *Runtime) remount(*dirs, string, string, runAs) (string, error) { return "", errNotLinux }

func detach(string) error { return nil }

func boundSockets(string) {}
