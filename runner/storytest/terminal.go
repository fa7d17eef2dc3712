package storytest

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// terminal runs a command on a terminal of its own, types a line as soon as a
// text has come up, and expects the exit code. What was shown is in "screen":
// terminal 'approve' 'y' 0 agentctl run. A \n in the line is a line break, \t the key Tab, \e
// Escape, and ^C or ^D alone is Ctrl-C or Ctrl-D. More pairs, each looked for behind the one before, follow "then":
// terminal 'approve' 'y' then 'answer' 'red' 0 agentctl run.
func terminal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: terminal TEXT LINE [then TEXT LINE...] CODE COMMAND [ARGUMENT...]")
	}
	lines := []Line{{args[0], args[1]}}
	args = args[2:]
	for len(args) > 4 && args[0] == "then" {
		lines, args = append(lines, Line{args[1], args[2]}), args[3:]
	}
	master, slave := openTerminal(ts)
	defer master.Close()
	cmd := command(ts, args[1:])
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	cmd.Env = append(cmd.Env, "TERM=xterm")
	ts.Check(cmd.Start())
	ts.Check(slave.Close())
	shown := make(chan string)
	go func() { shown <- TypeInto(master, lines...) }()
	kill := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	screen := <-shown
	ts.Check(os.WriteFile(ts.MkAbs("screen"), []byte(screen), 0o600))
	if got, want := exitCode(ts, cmd.Wait()), number(ts, args[0]); got != want {
		ts.Fatalf("exit code %d, want %d:\n%s", got, want, screen)
	}
}

// Line is a line that a person types once a text has come up.
type Line struct{ After, Text string }

// TypeInto types lines into a terminal and returns what was shown until its end.
func TypeInto(master *os.File, lines ...Line) string {
	var screen bytes.Buffer
	from := 0
	buf := make([]byte, 4096)
	for {
		n, err := master.Read(buf)
		screen.Write(buf[:n])
		for len(lines) > 0 && bytes.Contains(screen.Bytes()[from:], []byte(lines[0].After)) {
			line := strings.NewReplacer(`\n`, "\n", `\e`, "\x1b", `\t`, "\t").Replace(lines[0].Text) + "\r" // the key Enter
			switch lines[0].Text {
			case "^C":
				line = "\x03"
			case "^D":
				line = "\x04"
			}
			from, lines = screen.Len(), lines[1:]
			_, _ = master.WriteString(line) // the missing answer shows in the screen
		}
		if err != nil { // EIO: the other end is closed
			return screen.String()
		}
	}
}

func openTerminal(ts *testscript.TestScript) (master, slave *os.File) {
	master, slave, err := NewTerminal(120)
	ts.Check(err)
	return master, slave
}

// NewTerminal opens a pseudo-terminal.
func NewTerminal(columns uint16) (master, slave *os.File, err error) {
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	fd := int(master.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	err = errors.Join(err, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0),
		unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: columns}))
	if err == nil {
		slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, master.Close())
	}
	return master, slave, nil
}
