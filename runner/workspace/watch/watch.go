// Package watch says in which folders of a tree something was touched since the last time it
// was asked, so that the others need not be looked at again.
//
// It is exact about what is done through a name below a watched folder. It does not notice
// what a program writes into memory that it has mapped until the program unmaps it or ends,
// nor what is done to a file through another name of it that is in no watched folder: who
// must know that has to look at each file.
package watch

import "errors"

// Errors of a watch, after which every file has to be looked at.
var (
	// ErrUnsupported is a system or file system that does not report all changes.
	ErrUnsupported = errors.New("changes are not reported here")
	// ErrLost is a watch that may have missed something.
	ErrLost = errors.New("changes may have been missed")
)

// Touched are the folders in which something was touched. Paths are those that were given
// to Add, and names below them.
type Touched struct {
	// Folders are those in which a name was made, removed, renamed, written or given another
	// mode, time or owner.
	Folders map[string]bool
	// New are folders of which nothing is known: they are new, or were opened or closed to others.
	New map[string]bool
}
