package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// etcShown is what programs need of /etc besides the files of etcFiles: the
// loader's cache, certificates, and settings that hold no secrets.
var etcShown = []string{
	"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ssl", "pki", "ca-certificates", "ca-certificates.conf", "crypto-policies",
	"alternatives", "localtime", "timezone", "os-release", "debian_version", "gitconfig", "services", "protocols", "mime.types",
}

// etcHidden are private keys, which root could read.
var etcHidden = []string{"/etc/ssl/private", "/etc/pki/tls/private"}

// procHidden are parts of /proc that speak of the whole machine. All of /proc is
// read-only: root of the host, even without capabilities, could write settings of
// the kernel.
var procHidden = []string{
	"kcore", "keys", "key-users", "kmsg", "kallsyms", "kpagecount", "kpageflags", "kpagecgroup",
	"timer_list", "sched_debug", "latency_stats", "vmallocinfo", "slabinfo", "sysrq-trigger",
}

// view is the file system that programs see.
type view struct {
	root folder
	boot *spec.Boot
	// writable are the paths that programs may change, for Landlock.
	writable []string
	// sockets is the file system of the plugins' sockets.
	sockets int
}

// show assembles the view and makes it the root of this namespace.
func show(b *spec.Boot) (*view, error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("make the mounts private: %w", err)
	}
	if err := unix.Mount("tmpfs", b.Root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=16m,mode=755"); err != nil {
		return nil, fmt.Errorf("mount the root: %w", err)
	}
	root, err := openFolder(b.Root)
	if err != nil {
		return nil, fmt.Errorf("open the root: %w", err)
	}
	defer root.close()
	v := &view{root: root, boot: b}
	for _, step := range []func() error{v.masks, v.system, v.etc, v.devices, v.processes, v.private, v.declared} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return v, v.enter()
}

// maskFile and maskDir are empty and unreadable. They are mounted over masked
// paths.
const (
	maskFolder = "/.masked"
	maskFile   = maskFolder + "/file"
	maskDir    = maskFolder + "/folder"
)

func (v *view) masks() error {
	file, err := v.root.place(maskFile, false)
	if err != nil {
		return fmt.Errorf("make a mask: %w", err)
	}
	_ = unix.Close(file)
	dir, err := v.root.place(maskDir, true)
	if err != nil {
		return fmt.Errorf("make a mask: %w", err)
	}
	_ = unix.Close(dir)
	for _, p := range []string{maskFile, maskDir} {
		if err := os.Chmod(v.boot.Root+p, 0); err != nil {
			return fmt.Errorf("make a mask: %w", err)
		}
	}
	return nil
}

// hide lays a mask over a path of the view, if there is one.
func (v *view) hide(name string) error {
	at, err := v.root.open(name)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) {
		return nil // a path that this process may not look up is hidden from all inside
	}
	if err != nil {
		return fmt.Errorf("mask %s: %w", name, err)
	}
	defer func() { _ = unix.Close(at) }()
	if err := mask(v.root, at); err != nil {
		return fmt.Errorf("mask %s: %w", name, err)
	}
	return nil
}

// mask covers what is open at at.
func mask(root folder, at int) error {
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return err
	}
	name := maskFile
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		name = maskDir
	}
	from, err := root.open(name)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(from) }()
	tree, err := clone(from, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(tree) }()
	return cover(tree, at, readOnly|unix.MOUNT_ATTR_NOEXEC)
}

// system shows the programs of the host.
func (v *view) system() error {
	if err := v.root.bind("/usr", "/usr", readOnly); err != nil {
		return err
	}
	for _, name := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		fi, err := os.Lstat(name)
		switch {
		case err != nil:
			continue
		case fi.Mode()&os.ModeSymlink != 0:
			to, err := os.Readlink(name)
			if err == nil {
				err = os.Symlink(to, v.boot.Root+name)
			}
			if err != nil {
				return fmt.Errorf("link %s: %w", name, err)
			}
		case fi.IsDir():
			if err := v.root.bind(name, name, readOnly); err != nil {
				return err
			}
		}
	}
	return nil
}

// etc shows what is harmless of /etc and writes the rest.
func (v *view) etc() error {
	if err := os.Mkdir(v.boot.Root+"/etc", 0o755); err != nil {
		return fmt.Errorf("make /etc: %w", err)
	}
	for name, text := range etcFiles(v.boot) {
		if err := os.WriteFile(v.boot.Root+"/etc/"+name, []byte(text), 0o644); err != nil {
			return fmt.Errorf("write /etc/%s: %w", name, err)
		}
	}
	for _, name := range etcShown {
		path := "/etc/" + name
		fi, err := os.Lstat(path)
		if err != nil {
			continue
		}
		if fi.Mode()&os.ModeSymlink != 0 {
			if to, err := os.Readlink(path); err == nil {
				_ = os.Symlink(to, v.boot.Root+path) // where it leads may not be shown
			}
			continue
		}
		if err := v.root.bind(path, path, readOnly); err != nil {
			return err
		}
	}
	for _, name := range etcHidden {
		if err := v.hide(name); err != nil {
			return err
		}
	}
	return os.Symlink("/proc/self/mounts", v.boot.Root+"/etc/mtab")
}

// devices shows those that are none.
func (v *view) devices() error {
	for _, name := range []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"} {
		// Read-only does not prevent writes to a device, but prevents root from
		// changing the host's file.
		if err := v.root.bind(name, name, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC); err != nil {
			return err
		}
	}
	for name, to := range map[string]string{"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"} {
		if err := os.Symlink(to, v.boot.Root+"/dev/"+name); err != nil {
			return fmt.Errorf("link /dev/%s: %w", name, err)
		}
	}
	v.writable = append(v.writable, "/dev")
	size := v.bounded(64 << 20)
	return v.root.fresh("tmpfs", "/dev/shm", data, map[string]string{"size": strconv.FormatInt(size, 10), "mode": "1777", "nr_inodes": inodes(size)})
}

// processes shows the processes of this namespace only.
func (v *view) processes() error {
	if err := v.root.fresh("proc", "/proc", data|unix.MOUNT_ATTR_RDONLY, nil); err != nil {
		if errors.Is(err, unix.EPERM) {
			return fmt.Errorf("%w (the /proc outside is masked, as it is inside a container)", err)
		}
		return err
	}
	for _, name := range procHidden {
		if err := v.hide("/proc/" + name); err != nil {
			return err
		}
	}
	return nil
}

// private gives programs places of their own.
func (v *view) private() error {
	scratch := v.bounded(cmp.Or(v.boot.Profile.Limits.Scratch, spec.DefaultScratch))
	size, files := strconv.FormatInt(scratch, 10), inodes(scratch)
	if err := v.root.fresh("tmpfs", "/tmp", readable, map[string]string{"size": size, "mode": "1777", "nr_inodes": files}); err != nil {
		return err
	}
	if err := v.again("/tmp", "/var/tmp"); err != nil {
		return fmt.Errorf("show /tmp at /var/tmp: %w", err)
	}
	v.writable = append(v.writable, "/tmp", "/var/tmp", spec.SocketDir)
	if err := v.socketFolder(); err != nil {
		return fmt.Errorf("make %s: %w", spec.SocketDir, err)
	}
	if home := v.boot.Profile.Home; home != "" && home != "/tmp" {
		v.writable = append(v.writable, home)
		return v.root.fresh("tmpfs", home, readable, map[string]string{"size": size, "nr_inodes": files, "mode": "700", "uid": strconv.Itoa(v.boot.UID), "gid": strconv.Itoa(v.boot.GID)})
	}
	return nil
}

// bounded is the size of a file system in memory: without a cgroup, which counts it
// as memory of the tool, it is not larger than that may have.
func (v *view) bounded(size int64) int64 {
	if most := v.boot.Profile.Limits.Memory; most > 0 {
		return min(size, max(most, spec.LeastMemory))
	}
	return size
}

// inodes is how many files a file system in memory may hold: each takes kernel
// memory, which without a cgroup is not limited.
func inodes(size int64) string { return strconv.FormatInt(max(size/2048, 16<<10), 10) }

// hiddenSockets is where the file system of the sockets is while it is made.
const hiddenSockets = "/.sockets"

// socketFolder creates the file system of the sockets and shows one folder of
// it. The runner gets all of it as a descriptor: before it checks a socket, it
// moves the socket out of that folder, to where no program can replace it.
func (v *view) socketFolder() error {
	owner := map[string]string{
		"size": strconv.Itoa(spec.SocketSpace), "nr_inodes": strconv.Itoa(spec.SocketFiles), "mode": "700",
		"uid": strconv.Itoa(v.boot.UID), "gid": strconv.Itoa(v.boot.GID),
	}
	if err := v.root.fresh("tmpfs", hiddenSockets, data, owner); err != nil {
		return err
	}
	shown := v.boot.Root + hiddenSockets + "/" + spec.SocketFolder
	if err := os.Mkdir(shown, 0o700); err != nil {
		return err
	}
	if v.boot.UID != os.Getuid() {
		if err := os.Chown(shown, v.boot.UID, v.boot.GID); err != nil {
			return err
		}
	}
	if err := v.root.bind(shown, spec.SocketDir, data); err != nil {
		return err
	}
	all, err := v.root.open(hiddenSockets)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(all) }()
	if v.sockets, err = clone(all, 0); err != nil {
		return err
	}
	if err := unix.Unmount(v.boot.Root+hiddenSockets, unix.MNT_DETACH); err != nil {
		return err
	}
	return os.Remove(v.boot.Root + hiddenSockets)
}

// again shows a folder of the view at a second place.
func (v *view) again(name, target string) error {
	at, err := v.root.open(name)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(at) }()
	tree, err := clone(at, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(tree) }()
	return v.root.attach(tree, target, readable)
}

// declared shows the workspace and the mounts, those above before those below.
func (v *view) declared() error {
	p := &v.boot.Profile
	type bound struct {
		spec.Mount
		bind func(source, target string, attrs uint64) error
	}
	var mounts []bound
	for _, m := range p.Mounts {
		mounts = append(mounts, bound{m, v.root.bindReal})
	}
	if p.Workspace != "" && p.Access != "" && p.Access != spec.AccessNone {
		mounts = append(mounts, bound{spec.Mount{Source: p.Workspace, Writable: p.Access == spec.AccessReadWrite}, v.root.bind})
	}
	slices.SortStableFunc(mounts, func(a, b bound) int { return strings.Compare(a.At(), b.At()) })
	for _, m := range mounts {
		attrs := uint64(readOnly)
		if m.Writable {
			attrs = readable
			v.writable = append(v.writable, m.At())
		}
		if m.NoExec {
			attrs |= unix.MOUNT_ATTR_NOEXEC
		}
		err := m.bind(m.Source, m.At(), attrs)
		if err != nil && (!m.Optional || !errors.Is(err, unix.ENOENT)) {
			return err
		}
	}
	return nil
}

// enter makes the view the root, detaches everything else and makes the root
// itself read-only.
func (v *view) enter() error {
	if err := unix.Fchdir(v.root.fd); err != nil {
		return fmt.Errorf("enter the root: %w", err)
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("detach the old root: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return fmt.Errorf("enter the root: %w", err)
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_set: readOnly}); err != nil {
		return fmt.Errorf("make the root read-only: %w", err)
	}
	return nil
}
