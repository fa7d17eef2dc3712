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

// counter is a number the kernel keeps for each cgroup.
type counter struct{ controller, v1, v2, key string }

var (
	killedForMemory  = counter{"memory", "memory.oom_control", "memory.events", "oom_kill"}
	processesRefused = counter{"pids", "pids.events", "pids.events", "max"}
)

// counts are the counters at the start of a program: a container that is kept
// has had other programs before.
type counts struct{ memory, refused int }

func (p *Process) counts() counts {
	return counts{memory: max(p.kernelSays(killedForMemory), 0), refused: max(p.kernelSays(processesRefused), 0)}
}

// kernelSays reads a counter of the container; -1 is unknown.
func (p *Process) kernelSays(c counter) int {
	name := filepath.Join(p.rt.opts.Namespace, p.group)
	for _, file := range []string{filepath.Join(cgroups, c.controller, name, c.v1), filepath.Join(cgroups, name, c.v2)} {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) == 2 && f[0] == c.key {
				if n, err := strconv.Atoi(f[1]); err == nil {
					return n
				}
			}
		}
	}
	return -1
}

// count is the number of processes in the container, or 1 if it cannot be read.
func (p *Process) count() int {
	name := filepath.Join(p.rt.opts.Namespace, p.group, "cgroup.procs")
	for _, file := range []string{filepath.Join(cgroups, "pids", name), filepath.Join(cgroups, name)} {
		if text, err := os.ReadFile(file); err == nil {
			return max(bytes.Count(text, []byte("\n"))-1, 1) // agentctl-entry is not the tool's
		}
	}
	return 1
}

// groups counts the cgroups of a namespace, by the container's id.
func groups(namespace string) map[string]int {
	out := map[string]int{}
	for _, pattern := range []string{filepath.Join(cgroups, "*", namespace, "*"), filepath.Join(cgroups, namespace, "*")} {
		found, _ := filepath.Glob(pattern)
		for _, path := range found {
			if info, err := os.Lstat(path); err == nil && info.IsDir() {
				out[filepath.Base(path)]++
			}
		}
	}
	return out
}

// removeGroups removes the cgroups of a container that has been deleted. runc
// does so itself unless it was killed half-way. A cgroup with processes in it
// stays.
func removeGroups(namespace, id string) {
	for _, pattern := range []string{filepath.Join(cgroups, "*", namespace, id), filepath.Join(cgroups, namespace, id)} {
		found, _ := filepath.Glob(pattern)
		for _, dir := range found {
			_ = os.Remove(dir) // by rmdir, the only way to remove a cgroup
		}
	}
}
