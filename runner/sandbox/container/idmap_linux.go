package container

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/sandbox/container/entry"
)

// idmaps are user namespaces, held by a file, that define how the kernel
// translates owners in a mount.
type idmaps struct {
	mu  sync.Mutex
	fds map[runAs]*os.File
}

// mapping returns the namespace that maps root's files to who. A namespace is
// created by starting a process in it; an idle agentctl-entry is that process.
func (m *idmaps) mapping(program string, who runAs) (*os.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.fds[who]; f != nil {
		return f, nil
	}
	hold := exec.Command(program, entry.Hold) //nolint:noctx // killed below
	hold.Env = []string{}
	hold.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER, Pdeathsig: syscall.SIGKILL,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: int(who.uid), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: int(who.gid), Size: 1}},
	}
	if err := hold.Start(); err != nil {
		return nil, fmt.Errorf("make a user namespace: %w", err)
	}
	f, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", hold.Process.Pid))
	_ = hold.Process.Kill()
	_ = hold.Wait()
	if err != nil {
		return nil, fmt.Errorf("open a user namespace: %w", err)
	}
	m.fds[who] = f
	return f, nil
}

func (m *idmaps) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for who, f := range m.fds {
		_ = f.Close()
		delete(m.fds, who)
	}
}

// remount mounts folder at a path of the runner, where root's files appear as
// who's, and returns that path. Once a container has bound it, detach it.
func (r *Runtime) remount(d *dirs, id, folder string, who runAs) (string, error) {
	place := filepath.Join(d.mounts(), id)
	err := func() error {
		ns, err := r.maps.mapping(r.opts.Entry, who)
		if err != nil {
			return err
		}
		tree, err := unix.OpenTree(unix.AT_FDCWD, folder, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			return fmt.Errorf("clone the mount: %w", err)
		}
		defer func() { _ = unix.Close(tree) }()
		attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Propagation: unix.MS_PRIVATE, Userns_fd: uint64(ns.Fd())}
		if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, attr); err != nil {
			return fmt.Errorf("map its owners: %w", err)
		}
		if err := os.Mkdir(place, 0o700); err != nil {
			return err
		}
		if err := unix.MoveMount(tree, "", unix.AT_FDCWD, place, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return errors.Join(fmt.Errorf("mount it: %w", err), os.Remove(place))
		}
		return nil
	}()
	if err != nil {
		return "", reason.New(reason.IsolationUnavailable, "workspace %s belongs to root, and this kernel or file system cannot show it as another's: %w", folder, err).
			WithHint("give the workspace to another user, or run agentctl as one")
	}
	return place, nil
}

// detach removes a mount of the runner. It ignores a mount that does not exist.
func detach(place string) error {
	if err := unix.Unmount(place, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("unmount %s: %w", place, err)
	}
	if err := os.Remove(place); err != nil && !errors.Is(err, os.ErrNotExist) { // not RemoveAll: the mount has the user's files
		return err
	}
	return nil
}

// socketSpace bounds what the programs of all containers of a run may write
// next to their sockets.
const socketSpace = "size=4m,nr_inodes=4096,mode=700"

// boundSockets mounts a file system in memory over the folder for sockets,
// which programs can write to. This needs root, and a client of containerd
// nearly always is root; for others the folder is on the host's disk.
func boundSockets(dir string) {
	_ = unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, socketSpace)
}
