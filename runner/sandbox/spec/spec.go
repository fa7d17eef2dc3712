// Package spec is the contract between the runner and agentctl-sandbox: the description of a sandbox, and the messages between the two while it runs.
//
// Both sides decode strictly: an unknown field, a relative path or an invalid
// value is an error, because a helper that ignores a restriction would not
// contain the program.
package spec

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"
)

// Version of the contract. Both programs come from one build; another version
// is refused.
const Version = 1

// Access is what programs may do with the workspace.
type Access string

// The kinds of access, spelt as in a manifest.
const (
	AccessNone      Access = "None"
	AccessReadOnly  Access = "ReadOnly"
	AccessReadWrite Access = "ReadWrite"
)

// Network is what programs can reach.
type Network string

// The network modes, spelt as in a manifest.
const (
	// NetworkNone is an empty network namespace: only its own loopback.
	NetworkNone Network = "None"
	// NetworkProxy is the same with one listener on 127.0.0.1:3128, which is
	// served from outside.
	NetworkProxy Network = "Proxy"
	// NetworkHost is the host's own network.
	NetworkHost Network = "Host"
)

// ProxyAddress is where programs of a sandbox with NetworkProxy find the proxy.
const ProxyAddress = "127.0.0.1:3128"

// SocketDir is where programs see the folder for their sockets.
const SocketDir = "/run/plugin"

// SocketFolder is the folder of the file system of the sockets that programs see.
const SocketFolder = "in"

// The file system of the sockets is in memory and contains nothing else.
// Otherwise programs could write to the host without a bound.
const (
	SocketSpace = 1 << 20
	SocketFiles = 1024
)

// Profile is what a sandbox is. Programs whose profiles are equal by value share
// a sandbox, and with it a file system view, a network and one another's signals.
type Profile struct {
	// Workspace is bound at its own path; "": there is none. Everything else a
	// program sees is /usr, some of /etc, /proc, /dev, an empty /tmp and Home,
	// and Mounts.
	Workspace string `json:"workspace,omitempty"`
	// Access to the workspace; "" is None.
	Access Access `json:"access,omitempty"`
	// Network; "" is None.
	Network Network `json:"network,omitempty"`
	// Allow lists host:port patterns for NetworkProxy. The helper ignores them:
	// the proxy behind the listener enforces them.
	Allow []string `json:"allow,omitempty"`
	// Mounts are further files and folders of the host.
	Mounts []Mount `json:"mounts,omitempty"`
	// Home is an empty writable folder that exists as long as the sandbox; "":
	// there is none.
	Home string `json:"home,omitempty"`
	// ReadOnly and Masked are paths inside the workspace or a mount that no
	// program may change, or read. Those that do not exist are left out; see
	// OpProtect for paths that come later.
	ReadOnly []string `json:"readOnly,omitempty"`
	Masked   []string `json:"masked,omitempty"`
	// Limits of the programs.
	Limits Limits `json:"limits,omitzero"`
	// Group separates profiles that are equal otherwise. Programs with different
	// secrets belong into different groups: within a sandbox all share one user,
	// who can read /proc/<pid>/environ.
	Group string `json:"group,omitempty"`
	// Tools are the tools that the sandbox is for, by call name, where it is reported
	// on. They do not distinguish profiles, and the helper does not receive them.
	Tools []string `json:"-"`
}

// Mount is a file or folder of the host that programs see.
type Mount struct {
	// Source on the host and Target inside; "" as target is the source's path. A
	// source with a link on its way is refused: a link that a program may have
	// put there must not lead elsewhere. The author of a profile resolves links
	// beforehand.
	Source string `json:"source"`
	Target string `json:"target,omitempty"`
	// Writable mounts can be changed; others are read-only with all below them.
	Writable bool `json:"writable,omitempty"`
	// NoExec forbids to run programs from the mount.
	NoExec bool `json:"noExec,omitempty"`
	// Optional ignores a source which does not exist.
	Optional bool `json:"optional,omitempty"`
}

// Limits bound the programs of a sandbox. 0 is the default of the field, or none.
type Limits struct {
	// Memory in bytes. Without a cgroup it bounds each process by itself
	// (RLIMIT_DATA), not their sum.
	Memory int64 `json:"memory,omitempty"`
	// Pids bounds processes and threads of the sandbox.
	Pids int64 `json:"pids,omitempty"`
	// CPU in thousandths of a core. Without a cgroup nothing enforces it.
	CPU int64 `json:"cpu,omitempty"`
	// Files bounds the open files of a process; default 4096.
	Files int64 `json:"files,omitempty"`
	// FileSize bounds the size of a file that a process writes; default 1 GiB.
	FileSize int64 `json:"fileSize,omitempty"`
	// Scratch bounds each of /tmp and Home; default 512 MiB. They live in memory.
	Scratch int64 `json:"scratch,omitempty"`
}

// Defaults of Limits, and the least memory in which programs still start.
const (
	DefaultFiles    = 4096
	DefaultFileSize = 1 << 30
	DefaultScratch  = 512 << 20
	LeastMemory     = 64 << 20
)

// maxPaths bounds each list of a profile.
const maxPaths = 4096

// maxPath is the longest path Linux takes, without its final NUL.
const maxPath = 4095

// Check validates the profile.
func (p *Profile) Check() error {
	switch p.Access {
	case "", AccessNone, AccessReadOnly, AccessReadWrite:
	default:
		return fmt.Errorf("access %q is not None, ReadOnly or ReadWrite", p.Access)
	}
	switch p.Network {
	case "", NetworkNone, NetworkProxy, NetworkHost:
	default:
		return fmt.Errorf("network %q is not None, Proxy or Host", p.Network)
	}
	var errs []error
	if p.Workspace != "" {
		errs = append(errs, CheckPath("workspace", p.Workspace))
	}
	if p.Home != "" {
		errs = append(errs, CheckPath("home", p.Home))
	}
	if len(p.Mounts) > maxPaths || len(p.ReadOnly) > maxPaths || len(p.Masked) > maxPaths || len(p.Allow) > maxPaths {
		return fmt.Errorf("a list has more than %d entries", maxPaths)
	}
	for _, m := range p.Mounts {
		errs = append(errs, m.check())
	}
	for _, l := range []struct {
		name  string
		paths []string
	}{{"readOnly", p.ReadOnly}, {"masked", p.Masked}} {
		for _, one := range l.paths {
			errs = append(errs, CheckPath(l.name, one))
		}
	}
	errs = append(errs, p.Limits.check())
	return errors.Join(errs...)
}

func (m *Mount) check() error {
	err := CheckPath("mount source", m.Source)
	if m.Target != "" {
		err = errors.Join(err, CheckPath("mount target", m.Target))
	}
	return err
}

// At is the path of the mount inside.
func (m *Mount) At() string {
	if m.Target != "" {
		return m.Target
	}
	return m.Source
}

func (l *Limits) check() error {
	for name, n := range map[string]int64{
		"memory": l.Memory, "pids": l.Pids, "cpu": l.CPU, "files": l.Files, "fileSize": l.FileSize, "scratch": l.Scratch,
	} {
		if n < 0 {
			return fmt.Errorf("limit %s is negative", name)
		}
	}
	return nil
}

// CheckPath validates a path of a profile: it must be absolute, clean, not the
// root, and no longer than Linux takes.
func CheckPath(what, p string) error {
	switch {
	case !strings.HasPrefix(p, "/"):
		return fmt.Errorf("%s %q is not absolute", what, p)
	case len(p) > maxPath:
		return fmt.Errorf("%s is longer than %d bytes", what, maxPath)
	case strings.IndexByte(p, 0) >= 0:
		return fmt.Errorf("%s %q has a NUL byte", what, p)
	case !utf8.ValidString(p): // JSON would replace invalid UTF-8
		return fmt.Errorf("%s %q is not UTF-8", what, p)
	case p == "/":
		return fmt.Errorf("%s is the root of the file system", what)
	case path.Clean(p) != p:
		return fmt.Errorf("%s %q is not clean", what, p)
	}
	return nil
}
