package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/runner"
)

// longestLine is what a terminal takes as a line; it cuts a longer one without a
// word.
const longestLine = 4095

// hidden reads a line from a terminal that does not show it. Ask is called when
// nothing is shown any more: somebody may type at once. However it ends, the
// terminal is as it was, and what was pasted behind the line is no command for
// the shell.
func hidden(ctx context.Context, terminal *os.File, ask func()) ([]byte, error) {
	fd := int(terminal.Fd())
	before, err := unix.IoctlGetTermios(fd, terminalGet)
	if err != nil {
		return nil, usagef("read the value from the terminal: %w", err)
	}
	ctx, signals := watch(ctx, func(int) {})
	defer signals.stop()
	quiet := *before
	quiet.Lflag &^= unix.ECHO
	// Lines end with Enter, and Ctrl-C is a signal, whatever was there before.
	quiet.Lflag |= unix.ICANON | unix.ISIG
	quiet.Iflag |= unix.ICRNL
	if err := unix.IoctlSetTermios(fd, terminalSet, &quiet); err != nil {
		return nil, usagef("read the value from the terminal: %w", err)
	}
	defer func() { _ = unix.IoctlSetTermios(fd, terminalSetDrop, before) }() // the error cannot be shown
	ask()
	type line struct {
		text []byte
		err  error
	}
	read := make(chan line, 1)
	// A read of a terminal cannot be ended: after a signal it ends with the program.
	go func() {
		b, err := bufio.NewReaderSize(terminal, longestLine+1).ReadBytes('\n')
		read <- line{b, err}
	}()
	select {
	case <-ctx.Done():
		if s, ok := errors.AsType[runner.SignalError](context.Cause(ctx)); ok {
			return nil, exit(s.ExitCode())
		}
		return nil, context.Cause(ctx)
	case l := <-read:
		switch {
		case len(l.text) == 0 && errors.Is(l.err, io.EOF):
			return nil, usagef("no value was typed")
		case l.err != nil && !errors.Is(l.err, io.EOF):
			return nil, usagef("read the value from the terminal: %w", l.err)
		case len(l.text) >= longestLine:
			return nil, usagef("a terminal cuts a line of this length: pipe the value into stdin")
		}
		if more, err := unix.IoctlGetInt(fd, terminalPending); err == nil && more > 0 {
			return nil, usagef("more than one line was pasted, and a key is one line")
		}
		return l.text, nil
	}
}
