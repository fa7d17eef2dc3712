package approval

import (
	"os"

	"golang.org/x/term"
)

// Stdio returns the terminal of the process, or nil when standard input or
// standard error is none: then nobody can be asked.
func Stdio(stdin, stderr *os.File) *Terminal {
	if stdin == nil || stderr == nil || !term.IsTerminal(int(stdin.Fd())) || !term.IsTerminal(int(stderr.Fd())) {
		return nil
	}
	return NewTerminal(stdin, stderr, func() { flushInput(int(stdin.Fd())) })
}
