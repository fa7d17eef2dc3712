package main

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// Without a cgroup the kernel bounds the memory of each process, and not their sum
// nor what they share. This process adds it up and kills what takes too much.
const (
	memoryEvery = 100 * time.Millisecond
	// dyingTime is how long the killed are waited for before the next look.
	dyingTime = time.Second
)

// watchMemory keeps the sum of what all processes inside take below a limit, as far
// as a look every tenth of a second can.
func (w *warden) watchMemory(limit int64) {
	for {
		time.Sleep(memoryEvery)
		procs := processes()
		// The cheap sum counts twice what processes share.
		if sum(procs, resident) <= limit {
			continue
		}
		taken := sum(procs, proportional)
		if taken <= limit {
			continue
		}
		killed := w.relieve(procs)
		w.line.send(&spec.Reply{Exceeded: taken})
		for deadline := time.Now().Add(dyingTime); time.Now().Before(deadline) && alive(killed); {
			time.Sleep(memoryEvery / 10)
		}
	}
}

func sum(procs []process, of func(pid int) int64) (total int64) {
	for _, q := range procs {
		total += of(q.pid)
	}
	return total
}

// relieve kills what the program that takes most has started, and the program as well
// when it takes most of that by itself: a server of many calls survives one of them.
func (w *warden) relieve(procs []process) (killed []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	trees, total := map[uint64][]int{}, map[uint64]int64{}
	var largest uint64
	for _, q := range procs {
		id := w.programOf(q.pid, procs)
		trees[id] = append(trees[id], q.pid)
		if total[id] += proportional(q.pid); total[id] > total[largest] {
			largest = id
		}
	}
	root := 0
	if p := w.programs[largest]; p != nil && !p.gone && proportional(p.pid) <= total[largest]/2 {
		root = p.pid
	}
	for _, pid := range trees[largest] {
		if pid != root {
			_ = unix.Kill(pid, unix.SIGKILL)
			killed = append(killed, pid)
		}
	}
	return killed
}

// programOf returns the program whose tree a process belongs to, by its parents
// or by its mark; 0 if there is none.
func (w *warden) programOf(pid int, procs []process) uint64 {
	parents := map[int]int{}
	for _, q := range procs {
		parents[q.pid] = q.parent
	}
	for at := pid; at > 1; at = parents[at] {
		for id, p := range w.programs {
			if p.pid == at && !p.gone {
				return id
			}
		}
	}
	var lim unix.Rlimit
	if unix.Prlimit(pid, unix.RLIMIT_RTTIME, nil, &lim) == nil {
		for id, p := range w.programs {
			if p.mark != 0 && p.mark == lim.Max {
				return id
			}
		}
	}
	return 0
}

func alive(pids []int) bool {
	for _, q := range processes() {
		for _, pid := range pids {
			if q.pid == pid && q.state != 'Z' && q.state != 'X' {
				return true
			}
		}
	}
	return false
}

// resident is the memory of a process that is not that of files, with all that it
// shares.
func resident(pid int) int64 {
	return fields("/proc/"+strconv.Itoa(pid)+"/status", "RssAnon:", "RssShmem:", "VmSwap:")
}

// proportional is the same with its part of what it shares. Where this may not be
// read, all of it counts.
func proportional(pid int) int64 {
	if n := fields("/proc/"+strconv.Itoa(pid)+"/smaps_rollup", "Pss_Anon:", "Pss_Shmem:", "SwapPss:"); n > 0 {
		return n
	}
	return resident(pid)
}

// fields adds up lines such as "RssAnon:  12 kB".
func fields(file string, names ...string) (total int64) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(b) {
		words := bytes.Fields(line)
		if len(words) != 3 {
			continue
		}
		for _, name := range names {
			if string(words[0]) == name {
				if n, err := strconv.ParseInt(string(words[1]), 10, 64); err == nil {
					total += n << 10
				}
			}
		}
	}
	return total
}
