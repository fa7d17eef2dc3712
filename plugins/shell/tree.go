package shell

import (
	"os/exec"
	"syscall"
	"time"
)

// tree is a command and every process that came of it.
type tree struct {
	forest *forest
	root   int
	mark   uint64
}

// wreckage is how long processes are killed again and again before we give up.
const wreckage = 3 * time.Second

// fell ends every process of the tree: it asks, waits for the grace time and
// kills. It returns how many processes outlived the command and how many
// outlived the kill. exited is closed when the command itself has ended.
func (t *tree) fell(exited <-chan struct{}, grace time.Duration) (ended, left int) {
	defer t.forest.forget(t)
	if closed(exited) && t.forest.bare() {
		return 0, 0
	}
	met := map[int]bool{}
	if t.ask(exited, grace, met) {
		return t.outlived(met), 0
	}
	limit := time.Now().Add(wreckage)
	for wait := time.Millisecond; ; wait = min(2*wait, 20*time.Millisecond) {
		pids := t.freeze(exited)
		for _, pid := range pids {
			met[pid] = true
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if len(pids) == 0 && closed(exited) {
			return t.outlived(met), 0
		}
		if time.Now().After(limit) {
			return t.outlived(met), len(pids)
		}
		pause(exited, wait)
	}
}

// ask sends TERM to every process, also to those that are started meanwhile, and reports
// whether all were gone within the grace time.
func (t *tree) ask(exited <-chan struct{}, grace time.Duration, met map[int]bool) bool {
	limit := time.Now().Add(grace)
	for wait := time.Millisecond; ; wait = min(2*wait, 20*time.Millisecond) {
		pids := t.living(closed(exited))
		if len(pids) == 0 && closed(exited) {
			return true
		}
		if !time.Now().Before(limit) {
			return false
		}
		for _, pid := range pids {
			if !met[pid] {
				met[pid] = true
				_ = syscall.Kill(pid, syscall.SIGTERM)
				_ = syscall.Kill(pid, syscall.SIGCONT) // a stopped process would not notice
			}
		}
		pause(exited, wait)
	}
}

// freeze stops every process until no new one is found, for something that
// forks faster than we look would never be caught by kills alone.
func (t *tree) freeze(exited <-chan struct{}) []int {
	stopped := map[int]bool{}
	for range 50 {
		pids := t.living(closed(exited))
		fresh := false
		for _, pid := range pids {
			if !stopped[pid] {
				stopped[pid], fresh = true, true
				_ = syscall.Kill(pid, syscall.SIGSTOP)
			}
		}
		if !fresh {
			return pids
		}
	}
	return t.living(closed(exited))
}

// outlived counts the processes met beside the command itself.
func (t *tree) outlived(met map[int]bool) int {
	delete(met, t.root)
	return len(met)
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// pause waits a little, shorter if the command ends meanwhile.
func pause(exited <-chan struct{}, d time.Duration) {
	if closed(exited) {
		exited = nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-exited:
	case <-t.C:
	}
}

// group is the process group of the command, where nothing better is known.
func (t *tree) group() []int {
	if syscall.Kill(-t.root, 0) == nil {
		return []int{-t.root}
	}
	return nil
}

// sown starts the command as the root of a tree.
func sown(f *forest, cmd *exec.Cmd, mark uint64, start func() error) (*tree, error) {
	if err := start(); err != nil {
		return nil, err
	}
	return &tree{forest: f, root: cmd.Process.Pid, mark: mark}, nil
}
