package sandbox

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A tree is found in three ways at once, because each alone misses processes:
//
//	the chain of parents   loses a daemon whose parent has ended
//	the session            loses a process that called setsid
//	the mark               loses a process that lowered its own rlimit
//
// The mark is a number of the runner in the realtime CPU limit. fork and exec
// inherit it, it has no effect on processes without realtime scheduling, and it
// can be lowered but never raised again. A subreaper would find daemons too,
// but it is an attribute of the whole runner process. The runner would then
// have to wait for processes that it cannot distinguish from its embedder's
// children.

const (
	leastMark = uint64(1) << 40 // microseconds: 12 days of realtime CPU
	mostMark  = uint64(1) << 62
)

// startMarked starts a program that has its mark before its first instruction.
// The program is traced until then, because a shell under load may fork before
// the runner can mark it. The thread that calls must be the thread that forks,
// hence the launcher's. Where tracing is forbidden the mark is set as soon as
// possible. A set-uid program started this way does not gain its owner's
// rights, which is intended for a tool.
func startMarked(target string, argv []string, attr *os.ProcAttr) (*os.Process, uint64, error) {
	attr.Sys.Ptrace = true
	p, err := os.StartProcess(target, argv, attr)
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSYS) {
		attr.Sys.Ptrace = false
		p, err = os.StartProcess(target, argv, attr)
	}
	if err != nil {
		return nil, 0, err
	}
	if !attr.Sys.Ptrace {
		return p, mark(p.Pid), nil
	}
	for { // it stops at the end of execve; WNOWAIT leaves its exit, if that came first, to Wait
		err := unix.Waitid(unix.P_PID, p.Pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	m := mark(p.Pid)
	_ = unix.PtraceDetach(p.Pid)
	return p, m, nil
}

// mark gives the tree below pid its number; 0 means that this host refused.
func mark(pid int) uint64 {
	var cur unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_RTTIME, nil, &cur); err != nil {
		return 0
	}
	most := min(cur.Max, mostMark) // below another runner's mark when one runs inside another's tool
	if most <= leastMark {
		return 0
	}
	m := leastMark + rand.Uint64N(most-leastMark)
	if err := unix.Prlimit(pid, unix.RLIMIT_RTTIME, &unix.Rlimit{Cur: m, Max: m}, nil); err != nil {
		return 0
	}
	return m
}

// sweep kills until no process of the tree is left or the deadline passes.
func (p *Process) sweep(deadline time.Time) {
	if p.inner != nil {
		p.inner.sweep(deadline)
		return
	}
	for wait := time.Millisecond; ; wait = min(2*wait, 20*time.Millisecond) {
		left := p.members()
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if len(left) == 0 || time.Now().After(deadline) {
			return
		}
		time.Sleep(wait) // killed processes need a moment; new ones are found in the next round
	}
}

// members lists the living processes of the tree.
func (p *Process) members() []int {
	all := pids()
	in := map[int]bool{}
	select {
	case <-p.dead: // its number may be reused by now
	default:
		in[p.proc.Pid] = true
	}
	for _, pid := range all {
		if p.marked(pid) {
			in[pid] = true
		}
	}
	if len(in) == 0 && p.tag != 0 {
		return nil // the usual end: no root, no marks, no chain to follow
	}
	procs := processes(all)
	for grown := true; grown; {
		grown = false
		for _, q := range procs {
			if !in[q.pid] && (in[q.parent] || p.sameSession(q)) {
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

func (p *Process) marked(pid int) bool {
	if p.tag == 0 {
		return false
	}
	var lim unix.Rlimit
	return unix.Prlimit(pid, unix.RLIMIT_RTTIME, nil, &lim) == nil && lim.Max == p.tag
}

// sameSession trusts the session number only where marks do not work: the
// kernel may hand a session's number out again once it is empty.
func (p *Process) sameSession(q process) bool {
	return p.tag == 0 && q.session == p.proc.Pid
}

type process struct {
	pid, parent, session int
	state                byte
}

// pids lists the processes of this host that can be seen.
func pids() []int {
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = d.Close() }()
	names, _ := d.Readdirnames(-1)
	out := make([]int, 0, len(names))
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

// processes reads the kernel's data about each process of the host. There are
// many, hence the plain system calls: they take half as long.
func processes(pids []int) []process {
	proc, err := unix.Open("/proc", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = unix.Close(proc) }()
	out := make([]process, 0, len(pids))
	buf := make([]byte, 2048) // a line of some 50 numbers and a short name
	for _, pid := range pids {
		n, err := readAt(proc, strconv.Itoa(pid)+"/stat", buf)
		if err != nil {
			continue
		}
		if q, ok := parseStat(buf[:n]); ok {
			q.pid = pid
			out = append(out, q)
		}
	}
	return out
}

// readAt reads a file of /proc, which the kernel generates in one piece.
func readAt(dir int, name string, buf []byte) (int, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(fd) }()
	for {
		n, err := unix.Read(fd, buf)
		if !errors.Is(err, unix.EINTR) {
			return max(n, 0), err
		}
	}
}

// parseStat reads state, parent and session. The name before them is in
// parentheses and may itself hold spaces and parentheses.
func parseStat(b []byte) (q process, ok bool) {
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return q, false
	}
	f := bytes.Fields(b[i+1:])
	if len(f) < 4 || len(f[0]) != 1 || f[0][0] < 'A' || f[0][0] > 'z' {
		return q, false
	}
	q.state = f[0][0]
	var err1, err2 error
	q.parent, err1 = strconv.Atoi(string(f[1]))
	q.session, err2 = strconv.Atoi(string(f[3]))
	return q, err1 == nil && err2 == nil
}
