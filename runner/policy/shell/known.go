package shell

// Known says whether the analysis knows what a program does with its arguments:
// what an unknown one is told may be anything, also a file that it writes.
func Known(name string) bool { return isKnown(name) }
