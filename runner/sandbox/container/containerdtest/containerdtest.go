// Package containerdtest runs a containerd of its own for tests: its root, its state, its socket, and nothing of the host's.
package containerdtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Missing returns the reason why containerd cannot be started here, as one line
// for t.Skip; "" if it can.
func Missing() string {
	if os.Geteuid() != 0 {
		return "no containerd: starting one needs root"
	}
	for _, program := range []string{"containerd", "containerd-shim-runc-v2", "runc"} {
		if _, err := exec.LookPath(program); err != nil {
			return "no " + program + " on this host (apt-get install containerd runc)"
		}
	}
	return ""
}

// Daemon is a containerd that runs.
type Daemon struct {
	// Address of its socket.
	Address string
	// Root is what it keeps, State what it forgets at a reboot.
	Root, State string

	dir  string
	cmd  *exec.Cmd
	log  *os.File
	dead chan struct{}
}

// config leaves out what a test does not need, or must not have: the Kubernetes
// service, network plugins, and snapshotters that need disks of their own.
const config = `version = 2
root = %q
state = %q
disabled_plugins = [
  "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime",
  "io.containerd.nri.v1.nri", "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing",
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.blockfile",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.erofs"%s
]

[grpc]
  address = %q

[ttrpc]
  address = %q

[plugins."io.containerd.internal.v1.opt"]
  path = %q
`

// NoOverlay is an option: only the snapshotter native is there.
const NoOverlay = `, "io.containerd.snapshotter.v1.overlayfs"`

// Start starts a daemon below a new short folder and waits until it listens.
func Start(options ...string) (*Daemon, error) {
	dir, err := os.MkdirTemp("/tmp", "cdt-") // sockets need a short path
	if err != nil {
		return nil, err
	}
	d := &Daemon{
		Address: filepath.Join(dir, "c.sock"), Root: filepath.Join(dir, "root"), State: filepath.Join(dir, "state"),
		dir: dir,
	}
	text := fmt.Sprintf(config, d.Root, d.State, strings.Join(options, ""), d.Address, d.Address+".ttrpc", filepath.Join(dir, "opt"))
	file := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if d.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := d.run(); err != nil {
		return nil, errors.Join(err, d.log.Close(), os.RemoveAll(dir))
	}
	if err := d.await(time.Minute); err != nil {
		return nil, errors.Join(err, d.Stop())
	}
	return d, nil
}

// run starts the daemon so that it ends with the test, even when the test
// panics. The parent-death signal belongs to a thread, so one thread is kept
// for it.
func (d *Daemon) run() error {
	cmd := exec.Command("containerd", "--config", filepath.Join(d.dir, "config.toml")) //nolint:noctx // ended by Stop
	cmd.Stdout, cmd.Stderr = d.log, d.log
	// runc then leaves no file of a test in /tmp; the shims use the variable,
	// too.
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+d.dir)
	cmd.SysProcAttr = attributes()
	started, dead := make(chan error), make(chan struct{})
	d.cmd, d.dead = cmd, dead
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		defer close(dead)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	return <-started
}

// Restart ends the daemon and starts it again; its containers go on.
func (d *Daemon) Restart() error {
	d.end()
	if err := d.run(); err != nil {
		return err
	}
	return d.await(time.Minute)
}

// end ends the daemon alone.
func (d *Daemon) end() {
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	select {
	case <-d.dead:
	case <-late.C:
		_ = d.cmd.Process.Kill()
		<-d.dead
	}
}

// await dials until the daemon answers.
func (d *Daemon) await(most time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		var dialer net.Dialer
		if conn, err := dialer.DialContext(ctx, "unix", d.Address); err == nil {
			return conn.Close()
		}
		select {
		case <-tick.C:
		case <-d.dead:
			return fmt.Errorf("containerd ended: %s", d.Log())
		case <-ctx.Done():
			return fmt.Errorf("containerd did not listen within %v: %s", most, d.Log())
		}
	}
}

// Log returns the end of what the daemon wrote.
func (d *Daemon) Log() string {
	f, err := os.Open(d.log.Name())
	if err != nil {
		return err.Error()
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err == nil && info.Size() > 4096 {
		_, _ = f.Seek(-4096, io.SeekEnd)
	}
	text, _ := io.ReadAll(f)
	return string(text)
}

// Shims lists the process ids of the shims of this daemon that live.
func (d *Daemon) Shims() []int {
	var out []int
	found, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range found {
		text, err := os.ReadFile(f)
		if err != nil || !strings.Contains(string(text), "containerd-shim") || !strings.Contains(string(text), d.Address) {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(f, "/proc/%d/cmdline", &pid); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

// Mounts lists what is mounted below the daemon's folders.
func (d *Daemon) Mounts() []string {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], d.dir+"/") {
			out = append(out, f[4])
		}
	}
	return out
}

// removeGroups removes the cgroups of the daemon's namespaces, which runc
// creates and does not remove; a cgroup with processes in it stays.
func (d *Daemon) removeGroups() {
	namespaces, _ := filepath.Glob(filepath.Join(d.State, "io.containerd.runtime.v2.task", "*"))
	for _, n := range namespaces {
		for _, pattern := range []string{"/sys/fs/cgroup/*/", "/sys/fs/cgroup/"} {
			groups, _ := filepath.Glob(pattern + filepath.Base(n))
			for _, g := range groups {
				_ = syscall.Rmdir(g)
			}
		}
	}
}

// Stop ends the daemon, every container it still has, and removes its folders.
func (d *Daemon) Stop() error {
	for _, pid := range d.Shims() { // shims outlive their daemon by design
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	d.end()
	d.removeGroups()
	mounts := d.Mounts()
	for _, m := range slices.Backward(mounts) { // inner ones last in the list
		_ = unmount(m)
	}
	if left := d.Mounts(); len(left) > 0 { // deleting through a mount would delete the files of the host
		return fmt.Errorf("still mounted: %v", left)
	}
	return errors.Join(d.log.Close(), os.RemoveAll(d.dir))
}
