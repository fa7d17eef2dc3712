package main

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A program's tree is found by its mark, a number in the realtime CPU limit that
// fork and exec hand down and that can only be lowered, and by the chain of
// parents. A process that escapes both is an orphan without a mark, which no program
// has a reason to be: it ends with the next program that ends.
const (
	leastMark = uint64(1) << 41 // microseconds: 25 days of realtime CPU, and room below for the shell tool's own marks
	mostMark  = uint64(1) << 62
)

// firstMark is the mark of the first program; each next mark is smaller by one.
// 0 means that there is no room below the mark of a runner around this one.
func firstMark() uint64 {
	var cur syscall.Rlimit
	if err := syscall.Getrlimit(unix.RLIMIT_RTTIME, &cur); err != nil {
		return 0
	}
	if most := min(cur.Max, mostMark); most > 2*leastMark {
		return most - 1
	}
	return 0
}

// nextMark lays the next mark on this process, whose children inherit it before
// their first instruction.
func (w *warden) nextMark() uint64 {
	m := w.mark
	if m <= leastMark || syscall.Setrlimit(unix.RLIMIT_RTTIME, &syscall.Rlimit{Cur: m, Max: m}) != nil {
		return 0
	}
	w.mark--
	return m
}

// sweepTime bounds a sweep; only a fork bomb needs more than a few rounds.
const sweepTime = 2 * time.Second

// sweep kills a program and all it started, until no process is left.
func (w *warden) sweep(program uint64) {
	deadline := time.Now().Add(sweepTime)
	for wait := 200 * time.Microsecond; ; wait = min(2*wait, 20*time.Millisecond) {
		left, over := w.round(program)
		if !left || over || time.Now().After(deadline) {
			return
		}
		time.Sleep(wait) // killed processes need a moment; new ones are found in the next round
	}
}

// round kills the processes that are left; over reports that the program is not
// known any more.
func (w *warden) round(program uint64) (left, over bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.programs[program]
	if p == nil {
		return false, true
	}
	if w.alone(p) {
		// All processes may be killed: so those that lowered their mark end, too.
		left = unix.Kill(-1, unix.SIGKILL) == nil
	} else {
		for _, pid := range w.members(p) {
			left = true
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	if !left && p.gone {
		delete(w.programs, program)
	}
	return left || !p.gone, false
}

// alone reports that no other program runs.
func (w *warden) alone(p *inmate) bool {
	for _, q := range w.programs {
		if q != p && !q.gone {
			return false
		}
	}
	return true
}

// members lists the running processes of a program's tree. It adds those of no
// tree: processes whose parents have ended and whose mark is that of no running
// program. They have lowered their mark, and are killed with the next program
// that ends. What a command of the shell tool leaves is not among them: its
// orphans are children of that tool.
func (w *warden) members(p *inmate) []int {
	procs := processes()
	roots, marks := map[int]bool{}, map[uint64]bool{}
	for _, q := range w.programs {
		if !q.gone {
			roots[q.pid], marks[q.mark] = true, true
		}
	}
	in := map[int]bool{}
	if !p.gone {
		in[p.pid] = true
	}
	for _, q := range procs {
		var lim unix.Rlimit
		if p.mark == 0 || unix.Prlimit(q.pid, unix.RLIMIT_RTTIME, nil, &lim) != nil {
			continue
		}
		stray := q.parent == 1 && !roots[q.pid] && !marks[lim.Max]
		if lim.Max == p.mark || stray {
			in[q.pid] = true
		}
	}
	for grown := true; grown; {
		grown = false
		for _, q := range procs {
			if !in[q.pid] && in[q.parent] {
				in[q.pid], grown = true, true
			}
		}
	}
	var out []int
	for _, q := range procs {
		if in[q.pid] && q.state != 'Z' && q.state != 'X' {
			out = append(out, q.pid)
		}
	}
	return out
}

type process struct {
	pid, parent int
	state       byte
}

// processes lists those inside but for this one.
func processes() []process {
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = d.Close() }()
	names, _ := d.Readdirnames(-1)
	var out []process
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == 1 {
			continue
		}
		b, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue
		}
		if q, ok := parseStat(b); ok {
			q.pid = pid
			out = append(out, q)
		}
	}
	return out
}

// parseStat reads state and parent. The name before them is in parentheses and
// may itself hold spaces and parentheses.
func parseStat(b []byte) (q process, ok bool) {
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return q, false
	}
	f := bytes.Fields(b[i+1:])
	if len(f) < 2 || len(f[0]) != 1 || f[0][0] < 'A' || f[0][0] > 'z' {
		return q, false
	}
	parent, err := strconv.Atoi(string(f[1]))
	return process{parent: parent, state: f[0][0]}, err == nil
}
