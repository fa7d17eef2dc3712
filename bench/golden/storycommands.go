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
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
	"sigs.k8s.io/yaml"

	"agentctl.dev/agentctl/runner/model/modeltest"
)

// storyCommands are the commands that the command line's stories add to those of
// testscript (cmd/agentctl/*_test.go).
func storyCommands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"exits":     exits,
		"conforms":  func(*testscript.TestScript, bool, []string) {}, // the command line's tests hold output against the schemas
		"serve":     serve,
		"model":     model,
		"requests":  requests,
		"interrupt": interrupt,
		"terminal":  terminal,
		"closed":    closed,
	}
}

// exits runs a command and wants its exit code: exits 2 agentctl run.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want := number(ts, args[0])
	if got := exitCode(ts, ts.Exec(args[1], args[2:]...)); got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func exitCode(ts *testscript.TestScript, err error) int {
	if err == nil {
		return 0
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		ts.Fatalf("run: %v", err)
	}
	return exit.ExitCode()
}

func number(ts *testscript.TestScript, text string) int {
	n, err := strconv.Atoi(text)
	ts.Check(err)
	return n
}

// serve starts a server that answers each request alike.
func serve(ts *testscript.TestScript, _ bool, args []string) {
	if args[0] == "gone" {
		l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // returns at once
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
			status, err := strconv.Atoi(args[0])
			if err != nil {
				status = http.StatusTeapot
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(`{"error":{"message":"no","type":"test"}}`))
		}
	}))
	ts.Defer(server.Close)
	ts.Setenv("URL", server.URL+"/v1")
}

// storyAnswers are the lines of a model server's part in a story: an answer each, or
// a refusal.
type storyAnswers []struct {
	modeltest.Answer
	Status int
	Code   string
}

// storyModels are the model servers of the stories that are played.
var storyModels sync.Map // of *modeltest.Server by URL

// model starts a server that speaks a wire format: model anthropic answers.yaml.
func model(ts *testscript.TestScript, _ bool, args []string) {
	var all storyAnswers
	ts.Check(yaml.Unmarshal([]byte(ts.ReadFile(args[1])), &all))
	for _, wire := range modeltest.Wires() {
		if wire.Name() != args[0] {
			continue
		}
		var steps []modeltest.Step
		for _, a := range all {
			if a.Status != 0 {
				steps = append(steps, modeltest.Refuse(a.Status, nil, wire.Fault(a.Status, "no", a.Code)))
				continue
			}
			steps = append(steps, a.Step())
		}
		server, err := modeltest.Options{Wire: wire}.Serve(steps...)
		ts.Check(err)
		ts.Defer(server.Close)
		ts.Setenv("URL", server.URL)
		storyModels.Store(server.URL, server)
		return
	}
	ts.Fatalf("no wire format %s", args[0])
}

// requests writes the bodies that the newest model server was sent to requests.jsonl.
func requests(ts *testscript.TestScript, _ bool, _ []string) {
	server, ok := storyModels.Load(ts.Getenv("URL"))
	if !ok {
		ts.Fatalf("no model server has been started")
	}
	var b strings.Builder
	for _, r := range server.(*modeltest.Server).Requests() {
		line, err := json.Marshal(json.RawMessage(r.Body))
		ts.Check(err)
		b.Write(line)
		b.WriteByte('\n')
	}
	ts.Check(os.WriteFile(ts.MkAbs("requests.jsonl"), []byte(b.String()), 0o600))
}

// storyCommand builds a command as the story's shell would.
func storyCommand(ts *testscript.TestScript, args []string) *exec.Cmd {
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
	for _, name := range []string{"PATH", "HOME", "AGENTCTL_STATE", "AGENTCTL_LIBEXEC", "AGENTCTL_OUTER_ISOLATION", "GIT_CONFIG_NOSYSTEM", "URL"} {
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

// interrupt sends a command a signal as soon as a tool runs.
func interrupt(ts *testscript.TestScript, _ bool, args []string) {
	signals := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT}
	cmd := storyCommand(ts, args[2:])
	var stderr, events bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	lines := bufio.NewReader(out)
	for sent := false; ; {
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
	ts.Check(os.WriteFile(ts.MkAbs("events"), events.Bytes(), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("stderr.txt"), stderr.Bytes(), 0o600))
}

// terminal runs a command on a terminal of its own and types a line as soon as a
// text has come up.
func terminal(ts *testscript.TestScript, _ bool, args []string) {
	master, slave := openTerminal(ts)
	defer master.Close()
	cmd := storyCommand(ts, args[3:])
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	cmd.Env = append(cmd.Env, "TERM=xterm")
	ts.Check(cmd.Start())
	ts.Check(slave.Close())
	shown := make(chan string)
	go func() {
		var screen bytes.Buffer
		typed := false
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			screen.Write(buf[:n])
			if !typed && strings.Contains(screen.String(), args[0]) {
				typed = true
				_, _ = master.WriteString(strings.ReplaceAll(args[1], `\n`, "\n") + "\n") // the missing answer shows in the screen
			}
			if err != nil { // EIO: nothing has the other end open
				shown <- screen.String()
				return
			}
		}
	}()
	kill := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	screen := <-shown
	ts.Check(os.WriteFile(ts.MkAbs("screen"), []byte(screen), 0o600))
	if got, want := exitCode(ts, cmd.Wait()), number(ts, args[2]); got != want {
		ts.Fatalf("exit code %d, want %d:\n%s", got, want, screen)
	}
}

func openTerminal(ts *testscript.TestScript) (master, slave *os.File) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	ts.Check(err)
	fd := int(master.Fd())
	ts.Check(unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	ts.Check(err)
	ts.Check(unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 120}))
	slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	ts.Check(err)
	return master, slave
}

// closed runs a command whose stdout has no reader.
func closed(ts *testscript.TestScript, _ bool, args []string) {
	read, write, err := os.Pipe()
	ts.Check(err)
	ts.Check(read.Close())
	cmd := storyCommand(ts, args[1:])
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = write, &stderr
	ts.Check(cmd.Start())
	ts.Check(write.Close())
	finish(ts, cmd, number(ts, args[0]))
	ts.Check(os.WriteFile(ts.MkAbs("stderr.txt"), stderr.Bytes(), 0o600))
}
