package container

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// cgroups is where the kernel counts, in version 1 by controller and in
// version 2 all in one tree.
const cgroups = "/sys/fs/cgroup"

// counter reads a number of a container's cgroup.
func (p *Process) counter(controller, v1, v2, key string) (int, bool) {
	name := filepath.Join(p.rt.opts.Namespace, p.group)
	for _, file := range []string{filepath.Join(cgroups, controller, name, v1), filepath.Join(cgroups, name, v2)} {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) == 2 && f[0] == key {
				n, err := strconv.Atoi(f[1])
				return n, err == nil
			}
		}
	}
	return 0, false
}

// count is how many processes the container has; 1 where nobody can say.
func (p *Process) count() int {
	name := filepath.Join(p.rt.opts.Namespace, p.group, "cgroup.procs")
	for _, file := range []string{filepath.Join(cgroups, "pids", name), filepath.Join(cgroups, name)} {
		if text, err := os.ReadFile(file); err == nil {
			return max(bytes.Count(text, []byte("\n"))-1, 1) // agentctl-entry is not the tool's
		}
	}
	return 1
}

// removeGroups removes the cgroups of a container that is no more. runc does so
// itself unless it was killed half-way; one with processes in it stays.
func removeGroups(namespace, id string) {
	for _, pattern := range []string{filepath.Join(cgroups, "*", namespace, id), filepath.Join(cgroups, namespace, id)} {
		found, _ := filepath.Glob(pattern)
		for _, dir := range found {
			_ = os.Remove(dir) // by rmdir; nothing else can be done to a cgroup
		}
	}
}
