package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/view"
)

// patience bounds every wait of a story. Nothing is slow when it takes less:
// machines are busy.
const patience = time.Minute

// conforms holds stdout, and nothing else on it, against a published schema:
// "conforms result" wants one object, "conforms event" one on each line.
func conforms(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: conforms result|event")
	}
	schema := view.ResultSchema
	if args[0] == "event" {
		schema = event.JSONSchema
	}
	var s jsonschema.Schema
	ts.Check(json.Unmarshal(schema, &s))
	resolved, err := s.Resolve(nil)
	ts.Check(err)
	values := []string{ts.ReadFile("stdout")}
	if args[0] == "event" {
		values = strings.Split(strings.TrimSuffix(values[0], "\n"), "\n")
	}
	for _, text := range values {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			ts.Fatalf("not JSON: %v: %q", err, text)
		}
		if err := resolved.Validate(v); err != nil {
			ts.Fatalf("%s does not satisfy the schema: %v", text, err)
		}
	}
}

// serve starts a model server that answers each request alike and sets $URL:
// a status with a body of JSON, "html", "cut", "garbage", or "gone" for no server.
// Each request leaves a line in the file "requests".
func serve(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: serve STATUS|html|cut|garbage|gone")
	}
	if args[0] == "gone" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		ts.Check(err)
		ts.Setenv("URL", "http://"+l.Addr().String()+"/v1")
		ts.Check(l.Close())
		return
	}
	requests, err := os.Create(ts.MkAbs("requests"))
	ts.Check(err)
	ts.Defer(func() { _ = requests.Close() }) // it is only read by name
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = requests.WriteString(r.Method + " " + r.URL.Path + "\n") // the story counts them
		stream := func(text string) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte(text)) // a client that has gone is the story's point
		}
		switch args[0] {
		case "html":
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<html><body>Please sign in</body></html>"))
		case "garbage":
			stream("data: {not json\n\n")
		case "cut":
			stream(`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"half an ans"}}]}` + "\n\n")
		default:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(number(ts, args[0]))
			_, _ = w.Write([]byte(`{"error":{"message":"no","type":"test"}}`))
		}
	}))
	ts.Defer(server.Close)
	ts.Setenv("URL", server.URL+"/v1")
}

// command builds a command as the story's shell would.
func command(ts *testscript.TestScript, args []string) *exec.Cmd {
	path := args[0]
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if _, err := os.Stat(filepath.Join(dir, args[0])); err == nil {
			path = filepath.Join(dir, args[0])
			break
		}
	}
	cmd := exec.Command(path, args[1:]...) //nolint:noctx // bounded by finish
	cmd.Dir = ts.Getenv("WORK")
	cmd.Env = os.Environ()
	for _, name := range []string{
		"PATH", "HOME", "TOKEN", "AGENTCTL_STATE", "AGENTCTL_LIBEXEC", "AGENTCTL_OUTER_ISOLATION", "GIT_CONFIG_NOSYSTEM", "URL", "TESTSCRIPT_COMMAND",
	} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	cmd.WaitDelay = time.Second
	return cmd
}

// finish waits for a command and wants its exit code.
func finish(ts *testscript.TestScript, cmd *exec.Cmd, want int) {
	kill := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	if got := exitCode(ts, cmd.Wait()); got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// interrupt runs a command that writes events, sends it a signal as soon as a
// tool runs, and wants its exit code: interrupt INT 130 agentctl run -o jsonl.
// The events stand in the file "events" afterwards.
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

// terminal runs a command on a terminal of its own, types a line as soon as a
// text has come up, and wants the exit code. What was shown stands in "screen":
// terminal 'approve' 'y' 0 agentctl run. A \n in the line is a line break, and ^C
// alone is Ctrl-C. More pairs, each looked for behind the one before, follow "then":
// terminal 'approve' 'y' then 'answer' 'red' 0 agentctl run.
func terminal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: terminal TEXT LINE [then TEXT LINE...] CODE COMMAND [ARGUMENT...]")
	}
	lines := []typed{{args[0], args[1]}}
	args = args[2:]
	for len(args) > 4 && args[0] == "then" {
		lines, args = append(lines, typed{args[1], args[2]}), args[3:]
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
	go func() { shown <- typeInto(master, lines) }()
	kill := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	screen := <-shown
	ts.Check(os.WriteFile(ts.MkAbs("screen"), []byte(screen), 0o600))
	if got, want := exitCode(ts, cmd.Wait()), number(ts, args[0]); got != want {
		ts.Fatalf("exit code %d, want %d:\n%s", got, want, screen)
	}
}

// typed is a line that a person types once a text has come up.
type typed struct{ after, line string }

// typeInto types lines into a terminal and returns what was shown until its end.
func typeInto(master *os.File, lines []typed) string {
	var screen bytes.Buffer
	from := 0
	buf := make([]byte, 4096)
	for {
		n, err := master.Read(buf)
		screen.Write(buf[:n])
		for len(lines) > 0 && bytes.Contains(screen.Bytes()[from:], []byte(lines[0].after)) {
			line := strings.ReplaceAll(lines[0].line, `\n`, "\n") + "\n"
			if lines[0].line == "^C" {
				line = "\x03"
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
	master, slave, err := newTerminal(120)
	ts.Check(err)
	return master, slave
}

// newTerminal opens a pseudo-terminal.
func newTerminal(columns uint16) (master, slave *os.File, err error) {
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

// closed runs a command whose stdout nobody reads and wants its exit code.
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
