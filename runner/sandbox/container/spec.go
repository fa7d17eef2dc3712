package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// Spec is a container to start.
type Spec struct {
	// Run and Tool are in the labels of the container and in its errors.
	Run, Tool string
	// Image is a reference with a digest, see reference.Parse. Required.
	Image string
	// Argv is the program and its arguments. Default: the image's own.
	Argv []string
	// Dir is the working folder. Default: the workspace, else the image's, else /.
	Dir string
	// Env are the declared variables as NAME=value. They may be secrets: they go
	// to the program over a pipe and never into the spec containerd keeps.
	Env []string
	// Stdin is copied to the program; nil is an empty one.
	Stdin io.Reader
	// Stdout and Stderr receive what the program writes; nil drops it. Each is
	// called by one goroutine. An error drops the rest; the program never blocks.
	Stdout, Stderr io.Writer
	// Workspace is the folder of the run's files, mounted at the same path; "":
	// there is none. The program runs as its owner.
	Workspace string
	// Access to the workspace. Default ReadOnly.
	Access v1alpha1.WorkspaceAccess
	// ReadOnly are paths inside the workspace that stay as they are, Masked
	// those that cannot be read. What does not exist is left out.
	ReadOnly, Masked []string
	// Mounts are other files and folders, seen under the same path.
	Mounts []v1alpha1.Mount
	// Network of the program. Default None. Proxy needs Egress.
	Network v1alpha1.NetworkMode
	// Egress serves the one address the program reaches, 127.0.0.1:3128 inside its
	// own empty network, until the listener is closed or the context ends. The
	// process waits for it.
	Egress func(context.Context, net.Listener)
	// Limits of everything in the container together.
	Limits Limits
	// RuntimeClass is containerd's name of another runtime, for example
	// io.containerd.kata.v2. Default runc.
	RuntimeClass string

	// socketDir is bound at pluginDir, hold leaves the container without a
	// program of its own.
	socketDir string
	hold      bool
}

// Limits of a container. Zero is the default.
type Limits struct {
	// Memory in bytes, without any swap. Default 512 MiB.
	Memory int64
	// CPU in thousandths of a core. Default 1000.
	CPU int64
	// Pids bounds processes and threads. Default 128.
	Pids int64
}

func (l Limits) withDefaults() Limits {
	if l.Memory <= 0 {
		l.Memory = 512 << 20
	}
	if l.CPU <= 0 {
		l.CPU = 1000
	}
	if l.Pids <= 0 {
		l.Pids = 128
	}
	return l
}

// check refuses what no container could be made of, and what would undo its
// containment.
func (s *Spec) check() error {
	for _, a := range append(append([]string{s.Dir, s.Workspace}, s.Argv...), s.Env...) {
		if strings.IndexByte(a, 0) >= 0 {
			return errors.New("a NUL byte in its arguments, environment or folders")
		}
	}
	if len(s.Argv) > 0 && s.Argv[0] == "" {
		return errors.New("the command is empty")
	}
	if s.Dir != "" && !filepath.IsAbs(s.Dir) {
		return fmt.Errorf("the working folder %q is not absolute", s.Dir)
	}
	if s.Workspace != "" {
		if err := mountable(s.Workspace); err != nil {
			return fmt.Errorf("workspace: %w", err)
		}
	}
	for _, m := range s.Mounts {
		if err := mountable(m.Path); err != nil {
			return fmt.Errorf("mount: %w", err)
		}
	}
	for _, p := range append(append([]string{}, s.ReadOnly...), s.Masked...) {
		if !filepath.IsAbs(p) || s.Workspace == "" || !within(p, s.Workspace) {
			return fmt.Errorf("path %q is not inside the workspace", p)
		}
	}
	return s.checkNetwork()
}

func (s *Spec) checkNetwork() error {
	switch s.Network {
	case "", v1alpha1.NetworkNone, v1alpha1.NetworkHost:
		return nil
	case v1alpha1.NetworkProxy:
		if s.Egress == nil {
			return errors.New("network mode Proxy without a proxy")
		}
		return nil
	}
	return reason.New(reason.IsolationUnavailable, "network mode %q is unknown", s.Network).
		WithHint("spec.network.mode is None, Proxy or Host")
}

// reserved are folders of the container that belong to the runner or the
// kernel.
var reserved = []string{"/proc", "/sys", "/dev", "/run", "/etc/passwd", "/etc/group", "/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf"}

// mountable returns an error if a file or folder of the host may not be
// mounted: a socket would be a way out of the container, and so would a folder
// mounted over one of the kernel's.
func mountable(path string) error {
	switch {
	case !filepath.IsAbs(path) || filepath.Clean(path) != path:
		return fmt.Errorf("%q is not an absolute, clean path", path)
	case path == "/" || path == "/tmp" || path == "/etc":
		return fmt.Errorf("%s as a whole cannot be seen inside a container", path)
	}
	for _, dir := range reserved {
		if within(path, dir) {
			return fmt.Errorf("%s lies in %s, which the container has of its own", path, dir)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is neither a file nor a folder", path)
	}
	return nil
}

// within reports whether a clean path is dir or below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
