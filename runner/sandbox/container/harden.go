package container

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/sandbox/container/entry"
)

// Folders and addresses inside a container.
const (
	pluginDir    = "/run/plugin"
	entryPath    = "/run/agentctl/entry"
	tmpDir       = "/tmp"
	proxyAddress = "127.0.0.1:3128"
)

// defaultPath is searched when the image has no PATH.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// baseEnv are the variables of a program, unless its image sets others.
var baseEnv = []string{"PATH=" + defaultPath, "HOME=" + tmpDir, "TMPDIR=" + tmpDir, "LANG=C.UTF-8"}

// plan is all that decides what the container's spec holds.
type plan struct {
	spec      *Spec
	image     *image
	id        string
	namespace string
	entry     string
	etc       string // folder of the generated files
	who       runAs
	workspace string // where the host has the workspace, perhaps by another mount
	swap      bool   // whether the kernel counts swap
}

// oci builds the container's spec. Everything that contains the program is in
// this function and those it calls; from the image come only variables, command
// and working folder. Values that may be secret are not here.
func (p *plan) oci() *specs.Spec {
	limits := p.spec.Limits.withDefaults()
	period := uint64(100_000)
	quota := limits.CPU * int64(period) / 1000
	memory := &specs.LinuxMemory{Limit: &limits.Memory}
	if p.swap {
		memory.Swap = &limits.Memory // memory and swap together: no swap
	}
	s := &specs.Spec{
		Version:  specs.Version,
		Root:     &specs.Root{Path: "rootfs", Readonly: true},
		Hostname: "agentctl",
		Process: &specs.Process{
			Args: p.args(), Env: p.env(), Cwd: p.cwd(),
			User:            specs.User{UID: p.who.uid, GID: p.who.gid},
			Capabilities:    &specs.LinuxCapabilities{}, // of every set, none
			NoNewPrivileges: true,
			Rlimits: []specs.POSIXRlimit{
				{Type: "RLIMIT_NOFILE", Hard: 1024, Soft: 1024},
				{Type: "RLIMIT_CORE"},
			},
		},
		Mounts: p.mounts(),
		Linux: &specs.Linux{
			CgroupsPath: filepath.Join("/", p.namespace, p.id),
			Namespaces:  p.namespaces(),
			Resources: &specs.LinuxResources{
				Devices: []specs.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}}, // but for /dev/null and its like
				Memory:  memory,
				Pids:    &specs.LinuxPids{Limit: &limits.Pids},
				CPU:     &specs.LinuxCPU{Quota: &quota, Period: &period},
			},
			MaskedPaths:   append(slices.Clone(maskedPaths), p.spec.Masked...),
			ReadonlyPaths: append(slices.Clone(readonlyPaths), p.spec.ReadOnly...),
		},
	}
	// Last, because the profile depends on the capabilities, and there are none
	// by now.
	s.Linux.Seccomp = profile(s)
	return s
}

// maskedPaths of the kernel show or change more than a container's own
// resources. /sys is not mounted at all.
var maskedPaths = []string{
	"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
	"/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi",
}

var readonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}

func (p *plan) namespaces() []specs.LinuxNamespace {
	kinds := []specs.LinuxNamespaceType{specs.PIDNamespace, specs.IPCNamespace, specs.UTSNamespace, specs.MountNamespace, specs.CgroupNamespace}
	if p.spec.Network != v1alpha1.NetworkHost {
		kinds = append(kinds, specs.NetworkNamespace) // empty but for lo
	}
	out := make([]specs.LinuxNamespace, len(kinds))
	for i, k := range kinds {
		out[i] = specs.LinuxNamespace{Type: k}
	}
	return out
}

func (p *plan) args() []string {
	if p.spec.hold {
		return []string{entryPath, entry.Hold}
	}
	return append([]string{entryPath, entry.Run}, p.argv()...)
}

func (p *plan) argv() []string {
	if len(p.spec.Argv) > 0 {
		return p.spec.Argv
	}
	return p.image.command
}

// env returns the variables that are not secret: the base, the image's own, and
// the address of the proxy.
func (p *plan) env() []string {
	env := slices.Clone(baseEnv)
	set := func(kv string) {
		name, _, _ := strings.Cut(kv, "=")
		env = slices.DeleteFunc(env, func(old string) bool { return strings.HasPrefix(old, name+"=") })
		env = append(env, kv)
	}
	for _, kv := range p.image.config.Env {
		if !isHandshake(kv) {
			set(kv)
		}
	}
	if p.spec.Network == v1alpha1.NetworkProxy {
		for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
			set(name + "=http://" + proxyAddress)
		}
	}
	return env
}

func (p *plan) cwd() string {
	for _, dir := range []string{p.spec.Dir, p.spec.Workspace, p.image.config.WorkingDir} {
		if filepath.IsAbs(dir) {
			return dir
		}
	}
	return "/"
}

// mounts are those of the kernel, the runner's, and the declared ones, in this
// order: a workspace below /tmp must be mounted over the empty /tmp of the
// runner.
func (p *plan) mounts() []specs.Mount {
	tmpfs := func(at string, options ...string) specs.Mount {
		return specs.Mount{Destination: at, Type: "tmpfs", Source: "tmpfs", Options: append([]string{"nosuid", "nodev"}, options...)}
	}
	out := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "noexec", "strictatime", "mode=755", "size=64k"}},
		{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"}},
		tmpfs("/dev/shm", "noexec", "mode=1777", "size=64m"),
		tmpfs("/run", "mode=755", "size=1m"),
		tmpfs(tmpDir, "noexec", "mode=1777", "size=64m"),
		bind(p.entry, entryPath, "ro"),
	}
	for _, name := range etcNames {
		if name == "resolv.conf" && p.spec.Network == v1alpha1.NetworkHost {
			out = append(out, bind("/etc/resolv.conf", "/etc/resolv.conf", "ro", "noexec"))
			continue
		}
		out = append(out, bind(filepath.Join(p.etc, name), "/etc/"+name, "ro", "noexec"))
	}
	if p.spec.socketDir != "" {
		out = append(out, bind(p.spec.socketDir, pluginDir, "rw", "noexec"))
	}
	if p.spec.Workspace != "" {
		access := writable(p.spec.Access == v1alpha1.AccessReadWrite)
		out = append(out, bind(p.workspace, p.spec.Workspace, access))
		for _, folder := range p.pinned() {
			out = append(out, bind(filepath.Join(p.workspace, folder), filepath.Join(p.spec.Workspace, folder), access))
		}
	}
	for _, m := range p.spec.Mounts {
		out = append(out, bind(m.Path, m.Path, writable(m.Access == v1alpha1.MountReadWrite)))
	}
	return out
}

// pinned are the parent folders of protected files, relative to the workspace,
// the outer ones first. Each is mounted upon itself. Otherwise a program could
// rename such a folder, with the protected file in it, and create another in
// its place.
func (p *plan) pinned() []string {
	var out []string
	for _, path := range slices.Concat(p.spec.ReadOnly, p.spec.Masked) {
		rel, err := filepath.Rel(p.spec.Workspace, path)
		if err != nil {
			continue
		}
		for dir := filepath.Dir(rel); dir != "." && !slices.Contains(out, dir); dir = filepath.Dir(dir) {
			if info, err := os.Lstat(filepath.Join(p.spec.Workspace, dir)); err == nil && info.IsDir() {
				out = append(out, dir)
			}
		}
	}
	slices.Sort(out) // a path sorts before the paths below it
	return out
}

func bind(from, to string, options ...string) specs.Mount {
	return specs.Mount{Destination: to, Type: "bind", Source: from, Options: append([]string{"bind", "nosuid", "nodev", "rprivate"}, options...)}
}

func writable(yes bool) string {
	if yes {
		return "rw"
	}
	return "ro"
}

// countsSwap reports whether a limit of swap can be set: runc fails on a kernel
// that does not count swap. With cgroup v2 the limit can always be set.
func countsSwap() bool {
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		return true
	}
	_, err := os.Stat("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes")
	return err == nil
}
