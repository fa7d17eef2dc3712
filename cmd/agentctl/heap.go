package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

// startPercent lets the heap grow to 16 MB (the runtime's least heap of 4 MB,
// four times) before garbage is first looked for.
const startPercent = 400

// putOffCollection makes the first garbage collection come late. A heap of 3 MB,
// most of it alive, is collected again and again while a run begins: that costs
// more processor time than compiling its rules, and the run has to wait, because
// a collection cannot begin while a program is being forked. Most runs end
// before 16 MB; the others continue at the usual pace after the first collection, so
// that it costs no more memory than that. GOGC in the environment is obeyed.
func putOffCollection() {
	if os.Getenv("GOGC") != "" {
		return
	}
	usual := debug.SetGCPercent(startPercent)
	// This value has no reference: the first collection frees it.
	runtime.AddCleanup(new(*byte), func(percent int) { debug.SetGCPercent(percent) }, usual)
}
