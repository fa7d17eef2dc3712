package files

import (
	"runtime"
	"sync"
)

// manyFiles is the number of files from which a search takes every processor: most
// searches have ended by then.
const manyFiles = 256

// processors lets long searches use every processor in a program that otherwise
// limits itself to fewer. The limit is one of the process, and so is this.
var processors wide

type wide struct {
	mu       sync.Mutex
	searches int
	before   int
}

// enter lifts the limit until leave has been called as often.
func (w *wide) enter() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.searches++; w.searches > 1 {
		return
	}
	if w.before = runtime.GOMAXPROCS(0); w.before < runtime.NumCPU() {
		runtime.SetDefaultGOMAXPROCS() // as many as the host, or its control group, gives
	}
}

func (w *wide) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.searches--; w.searches == 0 && w.before < runtime.GOMAXPROCS(0) {
		runtime.GOMAXPROCS(w.before)
	}
}
