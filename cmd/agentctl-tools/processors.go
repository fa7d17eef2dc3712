package main

import (
	"os"
	"runtime"
)

// processors is how many threads of this program run Go code at once. Most of the
// time it waits for programs and files; with more, the runtime wakes threads that
// find nothing to do, which takes processor time from the other runs of the host.
const processors = 2

// limitProcessors sets the limit by a call and not by GOMAXPROCS: the programs
// that tools start, a compiler for example, would inherit the variable. A
// GOMAXPROCS in the environment is obeyed.
func limitProcessors() {
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) > processors {
		runtime.GOMAXPROCS(processors)
	}
}
