package shell

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"os/exec"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// forest knows which process belongs to which command.
//
// Parents are lost once a daemon has forked twice, process groups and sessions after
// setsid, and an environment can be cleared. Limits are inherited by every child and can
// be read from every process of the same user, so each command gets a number of its own as
// its limit of real-time CPU time (RLIMIT_RTTIME), which no ordinary process ever reaches.
// The hard limit is set too: it can only be lowered, which makes the process a stray. If
// the hard limit is already a mark, that of the runner that started this program, it is
// left unchanged: the numbers are below it, in the soft limit.
//
// Orphans become children of this process (PR_SET_CHILD_SUBREAPER): as long as it has no
// children, no command has left a process behind, and there is nothing to search.
type forest struct {
	mu sync.Mutex
	// own is the limit of this process and of everything that is not part of a command.
	own  unix.Rlimit
	base uint64
	last uint64
	live map[uint64]*tree
}

const (
	// leastMark is 12 days of real-time CPU, in microseconds.
	leastMark = 1 << 40
	mostMark  = 1 << 62
	// maxMarks is the number of commands after which the numbers begin again.
	maxMarks = 1 << 24
)

func newForest() *forest {
	f := &forest{live: map[uint64]*tree{}}
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	// The parent of this program may have left descriptors open that are not meant for
	// commands; Go's own are closed on exec anyway.
	_ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	if unix.Prlimit(0, unix.RLIMIT_RTTIME, nil, &f.own) != nil {
		return f // base stays 0: only process groups are known
	}
	room := min(f.own.Max, mostMark)
	if room < 2*leastMark {
		return f
	}
	// A second program of this kind may run beside us: numbers must differ.
	var r [8]byte
	_, _ = rand.Read(r[:]) // it never fails
	f.base = room/2 + binary.LittleEndian.Uint64(r[:])%(room/2-maxMarks)
	return f
}

// plant starts a command that bears a new mark, by its own start or another.
func (f *forest) plant(cmd *exec.Cmd, start func() error) (*tree, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var mark uint64
	if f.base != 0 {
		f.last = (f.last + 1) % maxMarks
		mark = f.base + f.last
		// The child must bear the mark before its first instruction. Only the
		// soft limit is changed here: it can be set back.
		if unix.Prlimit(0, unix.RLIMIT_RTTIME, &unix.Rlimit{Cur: mark, Max: f.own.Max}, nil) != nil {
			mark = 0
		}
		defer func() { _ = unix.Prlimit(0, unix.RLIMIT_RTTIME, &f.own, nil) }()
	}
	t, err := sown(f, cmd, mark, start)
	if err != nil {
		return nil, err
	}
	if mark != 0 {
		f.live[mark] = t
	}
	if mark != 0 && f.own.Max == unix.RLIM_INFINITY {
		_ = unix.Prlimit(t.root, unix.RLIMIT_RTTIME, &unix.Rlimit{Cur: mark, Max: mark}, nil)
	}
	return t, nil
}

func (f *forest) forget(t *tree) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.live, t.mark)
}

// bare reports whether this process has no children at all, ended ones included.
func (f *forest) bare() bool {
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return errors.Is(err, unix.ECHILD)
}

// living returns the processes of the tree and reaps those that have ended. The command
// itself is left to its own Wait until that has returned.
func (t *tree) living(exited bool) []int {
	if t.mark == 0 {
		return t.survivors(exited)
	}
	names, err := processes()
	if err != nil {
		return t.survivors(exited)
	}
	var pids []int
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || !t.owns(pid) || pid == t.root && exited {
			continue
		}
		if pid != t.root {
			if got, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); err == nil && got == pid {
				continue
			}
		}
		if _, state := parentage(pid); state != 'Z' && state != 'X' && state != 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// survivors returns the tree's process group. Its ended orphans must be reaped here, or
// the group would seem to exist. Before the command's own end they must not: its Wait
// would find nothing.
func (t *tree) survivors(exited bool) []int {
	for exited {
		if got, err := unix.Wait4(-t.root, nil, unix.WNOHANG, nil); err != nil || got <= 0 {
			break
		}
	}
	return t.group()
}

// owns reports whether a process bears the tree's mark, or that of no command that
// runs: this program starts nothing but commands, so what descends from it without
// such a mark has thrown its own away, by lowering a limit or by setting it back, or
// its command is over. It ends with the next call that ends.
func (t *tree) owns(pid int) bool {
	var has unix.Rlimit
	if unix.Prlimit(pid, unix.RLIMIT_RTTIME, nil, &has) != nil {
		return false
	}
	f := t.forest
	if has.Cur == t.mark || has.Max == t.mark {
		return true
	}
	f.mu.Lock() // a command that is being started is known when the lock is free
	bySoft, byHard := f.live[has.Cur], f.live[has.Max]
	f.mu.Unlock()
	return bySoft == nil && byHard == nil && has.Max <= f.own.Max && descends(pid)
}

// descends reports whether a process came of this one. Orphans are its children.
func descends(pid int) bool {
	for range maxDepth {
		parent, _ := parentage(pid)
		if parent == os.Getpid() {
			return true
		}
		if parent <= 1 {
			return false
		}
		pid = parent
	}
	return false
}

// maxDepth bounds the chain of parents that is followed.
const maxDepth = 1 << 10

// processes lists the names in /proc.
func processes() ([]string, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

// parentage reads the parent and the state of a process; 0 if it is gone.
func parentage(pid int) (parent int, state byte) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0
	}
	// The name before it is in parentheses and may hold anything.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0, 0
	}
	parent, _ = strconv.Atoi(string(fields[1]))
	return parent, fields[0][0]
}
