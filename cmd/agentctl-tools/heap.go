package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

// startPercent lets the heap grow to 16 MB before garbage is first looked for.
const startPercent = 400

// putOffCollection does for the tools what agentctl does for itself: most runs
// end before the first collection, and those that do not go on at the usual
// pace after it. It is a twentieth of the time of a run of twenty commands.
func putOffCollection() {
	if os.Getenv("GOGC") != "" {
		return
	}
	usual := debug.SetGCPercent(startPercent)
	// Nobody holds this value: it goes with the first collection.
	runtime.AddCleanup(new(*byte), func(percent int) { debug.SetGCPercent(percent) }, usual)
}
