package shell

// Known reports whether the analysis knows what a program does with its arguments. An
// argument of an unknown program may be anything, also a file that it writes.
func Known(name string) bool { return isKnown(name) }
