package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// machine tells what a reader of the figures must know: who is not alone on a
// machine measures the others as well.
func machine() string {
	text := fmt.Sprintf("%d CPUs", runtime.NumCPU())
	load, err := os.ReadFile("/proc/loadavg")
	if one, _, ok := strings.Cut(string(load), " "); err == nil && ok {
		text += ", load before the start " + one
	}
	return text
}

// treePeak is the most memory a process tree had at once, in bytes. RSS counts a
// page shared by two processes twice, PSS shares it out.
type treePeak struct {
	RSS, PSS  int64
	Processes int
	// Top is the most that the first process had, Tools that the program behind
	// the shipped tools had.
	Top, Tools int64
}

// toolsProgram is what the kernel calls the program behind the shipped tools.
const toolsProgram = "agentctl-tools"

// sampleEvery is how often the tree is looked at.
const sampleEvery = 2 * time.Millisecond

// becomeReaper makes orphans of measured programs children of this one, so that
// they are counted while they live and found when they stay.
func becomeReaper() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // without it only less is found
}

// watchTree samples the tree below pid until the returned function is called.
func watchTree(pid int) func() treePeak {
	var peak treePeak
	var done sync.WaitGroup
	stop := make(chan struct{})
	done.Go(func() {
		tick := time.NewTicker(sampleEvery)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				now := weigh(descendants(pid))
				peak.RSS = max(peak.RSS, now.RSS)
				peak.PSS = max(peak.PSS, now.PSS)
				peak.Processes = max(peak.Processes, now.Processes)
				peak.Top = max(peak.Top, now.Top)
				peak.Tools = max(peak.Tools, now.Tools)
			}
		}
	})
	return func() treePeak {
		close(stop)
		done.Wait()
		return peak
	}
}

// descendants are pid and all below it; those that end meanwhile are left out.
func descendants(pid int) []int {
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		all = append(all, children(all[i])...)
	}
	return all
}

func children(pid int) []int {
	var list []int
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil
	}
	for _, task := range tasks {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		if err != nil {
			continue
		}
		for field := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				list = append(list, child)
			}
		}
	}
	return list
}

func weigh(pids []int) treePeak {
	var sum treePeak
	for i, pid := range pids {
		if slices.ContainsFunc(pids[:i], func(other int) bool { return sameMemory(other, pid) }) {
			continue
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			continue
		}
		sum.Processes++
		rss := kilobytes(string(text), "Rss:")
		if i == 0 {
			sum.Top = rss
		}
		if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil && strings.TrimSpace(string(name)) == toolsProgram {
			sum.Tools = max(sum.Tools, rss)
		}
		sum.RSS += rss
		sum.PSS += kilobytes(string(text), "Pss:")
	}
	return sum
}

// sameMemory says that two processes have one and the same memory, as a child
// has with its parent between vfork and exec, which must not count twice.
func sameMemory(a, b int) bool {
	const kcmpVM = 1
	differ, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), kcmpVM, 0, 0, 0)
	return errno == 0 && differ == 0
}

func kilobytes(text, key string) int64 {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			fields := strings.Fields(rest)
			if len(fields) == 0 {
				return 0
			}
			n, err := strconv.ParseInt(fields[0], 10, 64)
			if err != nil {
				return 0
			}
			return n << 10
		}
	}
	return 0
}

// survivors are processes that were left behind. They are given a moment: an
// ended orphan stands in the table until it is reaped here.
func survivors() []string {
	deadline := time.Now().Add(300 * time.Millisecond)
	for {
		for {
			var status unix.WaitStatus
			pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
			if pid <= 0 || err != nil {
				break
			}
		}
		left := children(os.Getpid())
		if len(left) == 0 || time.Now().After(deadline) {
			var names []string
			for _, pid := range left {
				name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
				names = append(names, fmt.Sprintf("%d %s", pid, strings.TrimSpace(string(name))))
			}
			return names
		}
		time.Sleep(5 * time.Millisecond)
	}
}
