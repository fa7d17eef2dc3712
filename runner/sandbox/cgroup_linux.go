package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// group is a cgroup (version 2) of one sandbox, where this process may make one.
// It bounds the sum of all processes inside, which rlimits cannot.
type group struct {
	dir string
	fd  *os.File
}

// knob is one limit as a file of a cgroup.
type knob struct {
	controller, file, value string
	// enforced takes the limit from those that the helper still has to set.
	enforced func(*spec.Limits)
}

// helperTasks are the threads of the helper, which count as well.
const helperTasks = 16

// cpuPeriod is the kernel's usual one, in microseconds.
const cpuPeriod = 100_000

func knobs(l spec.Limits) (list []knob) {
	if l.Memory > 0 {
		list = append(list, knob{"memory", "memory.max", strconv.FormatInt(l.Memory, 10), func(l *spec.Limits) { l.Memory = 0 }})
	}
	if l.Pids > 0 {
		list = append(list, knob{"pids", "pids.max", strconv.FormatInt(l.Pids+helperTasks, 10), func(l *spec.Limits) { l.Pids = 0 }})
	}
	if l.CPU > 0 {
		quota := max(l.CPU*cpuPeriod/1000, 1000) // the kernel's least
		list = append(list, knob{"cpu", "cpu.max", fmt.Sprintf("%d %d", quota, cpuPeriod), func(l *spec.Limits) { l.CPU = 0 }})
	}
	return list
}

// groupName is how the groups are called; the process id of the runner follows.
const groupName = "agentctl-"

// newGroup creates a group in the first place that accepts any of the limits,
// and removes from l those that the group enforces. nil: there is no group, and
// rlimits are used.
func newGroup(places []string, list []knob, l *spec.Limits) *group {
	if len(list) == 0 {
		return nil
	}
	for _, place := range places {
		sweepGroups(place)
		delegate(place, list)
		dir, err := os.MkdirTemp(place, groupName+strconv.Itoa(os.Getpid())+"-")
		if err != nil {
			continue
		}
		held := 0
		for _, k := range list {
			if set(filepath.Join(dir, k.file), k.value) == nil {
				k.enforced(l)
				held++
			}
		}
		if held > 0 {
			if fd, err := os.Open(dir); err == nil {
				_ = set(filepath.Join(dir, "memory.swap.max"), "0") // where swap is counted
				return &group{dir, fd}
			}
		}
		_ = os.Remove(dir)
	}
	return nil
}

// set writes a setting that the kernel has; it does not create a file.
func set(file, value string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// delegate enables the controllers for the child groups of a place. The kernel
// refuses it where processes are, but then another process may have done it.
func delegate(place string, list []knob) {
	b, err := os.ReadFile(filepath.Join(place, "cgroup.subtree_control"))
	if err != nil {
		return
	}
	on := strings.Fields(string(b))
	for _, k := range list {
		if !slices.Contains(on, k.controller) {
			_ = set(filepath.Join(place, "cgroup.subtree_control"), "+"+k.controller)
		}
	}
}

// sweepGroups removes the cgroups of runners that have ended. A cgroup with
// processes in it cannot be removed.
func sweepGroups(place string) {
	dirs, _ := filepath.Glob(filepath.Join(place, groupName+"*-*"))
	for _, dir := range dirs {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), groupName), "-")
		if n, err := strconv.Atoi(pid); err == nil && errors.Is(syscall.Kill(n, 0), syscall.ESRCH) {
			_ = syscall.Rmdir(dir)
		}
	}
}

// remove removes the group. No process is in it any more.
func (g *group) remove() {
	if g == nil {
		return
	}
	_ = g.fd.Close()
	_ = syscall.Rmdir(g.dir)
}

// groupPlaces are where this process may be allowed to create cgroups: below
// its own cgroup, and next to it, where systemd's user manager runs programs.
func groupPlaces() []string {
	mount := cgroupMount("/proc/self/mountinfo")
	own := cgroupPath("/proc/self/cgroup")
	if mount == "" || own == "" {
		return nil
	}
	dir := filepath.Join(mount, own)
	if dir == mount {
		return []string{dir}
	}
	return []string{dir, filepath.Dir(dir)}
}

// cgroupMount returns where the file system of version 2 is mounted, or "".
func cgroupMount(file string) string {
	return scan(file, func(line string) string {
		before, after, ok := strings.Cut(line, " - ")
		if f := strings.Fields(before); ok && strings.HasPrefix(after, "cgroup2 ") && len(f) > 4 && f[3] == "/" {
			return f[4]
		}
		return ""
	})
}

// cgroupPath returns the group of this process in version 2, or "".
func cgroupPath(file string) string {
	return scan(file, func(line string) string {
		path, ok := strings.CutPrefix(line, "0::/")
		if !ok || strings.Contains(path, "..") {
			return ""
		}
		return "/" + path
	})
}

// scan returns the first word that pick finds in a line of a file.
func scan(file string, pick func(string) string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if found := pick(lines.Text()); found != "" {
			return found
		}
	}
	return ""
}
