package storytest

import (
	"bufio"
	"bytes"
	"os"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// interrupt runs a command that writes events, sends it a signal as soon as a
// tool runs, and expects its exit code: interrupt INT 130 agentctl run -o jsonl.
// The events are in the file "events" afterwards.
func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: interrupt INT|TERM|HUP|QUIT CODE COMMAND [ARGUMENT...]")
	}
	signals := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT}
	cmd := command(ts, args[2:])
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	var events bytes.Buffer
	lines := bufio.NewReader(out)
	sent := false
	for {
		line, err := lines.ReadString('\n')
		events.WriteString(line)
		if !sent && strings.Contains(line, `"type":"tool.call"`) {
			sent = true
			ts.Check(cmd.Process.Signal(signals[args[0]]))
		}
		if err != nil {
			break
		}
	}
	finish(ts, cmd, number(ts, args[1]))
	if !sent {
		ts.Fatalf("no tool was called:\n%s%s", events.String(), stderr.String())
	}
	ts.Check(os.WriteFile(ts.MkAbs("events"), events.Bytes(), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("stderr.txt"), stderr.Bytes(), 0o600))
}

// closed runs a command whose stdout has no reader and expects its exit code.
func closed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: closed CODE COMMAND [ARGUMENT...]")
	}
	read, write, err := os.Pipe()
	ts.Check(err)
	ts.Check(read.Close())
	cmd := command(ts, args[1:])
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = write, &stderr
	ts.Check(cmd.Start())
	ts.Check(write.Close())
	finish(ts, cmd, number(ts, args[0]))
	ts.Check(os.WriteFile(ts.MkAbs("stderr.txt"), stderr.Bytes(), 0o600))
}
