// Command tool is the program in the images of the tests: a plugin, and by its
// first argument a few things a program in a container may do.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"agentctl.dev/agentctl/plugins/sdk"
	"agentctl.dev/agentctl/plugins/sdktest"
)

func main() {
	if len(os.Args) < 2 {
		sdk.Serve(sdktest.Fixtures()...)
		return
	}
	if f := commands[os.Args[1]]; f != nil {
		f(os.Args[2:])
		return
	}
	fmt.Fprintln(os.Stderr, "unknown command", os.Args[1])
	os.Exit(2)
}

var commands = map[string]func([]string){
	"inside": inside, "eat": eat, "fork": fork, "wait": wait, "flood": flood, "echo": echo, "get": get, "exit": exit, "orphans": orphans,
}

// Inside is what the program sees of its container.
type Inside struct {
	Status   map[string]string
	Env      []string
	Args     []string
	Dir      string
	Mounts   []string
	Links    []string
	Hostname string
	Attempts map[string]string
	Files    map[string]string
	Owners   map[string][2]uint32
	Parent   string // the environment of process 1
}

// inside prints what it sees. Arguments: write:PATH, read:PATH, stat:PATH, dial:ADDRESS.
func inside(args []string) {
	in := Inside{Status: map[string]string{}, Env: os.Environ(), Args: os.Args, Attempts: map[string]string{}, Files: map[string]string{}, Owners: map[string][2]uint32{}}
	text, _ := os.ReadFile("/proc/self/status")
	for _, line := range strings.Split(string(text), "\n") {
		name, value, _ := strings.Cut(line, ":")
		in.Status[name] = strings.TrimSpace(value)
	}
	in.Dir, _ = os.Getwd()
	in.Hostname, _ = os.Hostname()
	text, _ = os.ReadFile("/proc/self/mountinfo")
	in.Mounts = strings.Split(strings.TrimSpace(string(text)), "\n")
	text, _ = os.ReadFile("/proc/net/dev") // net.Interfaces asks by netlink
	for _, line := range strings.Split(string(text), "\n") {
		if name, _, ok := strings.Cut(line, ":"); ok {
			in.Links = append(in.Links, strings.TrimSpace(name))
		}
	}
	text, _ = os.ReadFile("/proc/1/environ")
	in.Parent = string(text)
	for _, a := range args {
		verb, what, _ := strings.Cut(a, ":")
		in.Attempts[a] = attempt(&in, verb, what)
	}
	_ = json.NewEncoder(os.Stdout).Encode(in)
}

func attempt(in *Inside, verb, what string) string {
	var err error
	switch verb {
	case "write":
		err = os.WriteFile(what, []byte("written inside\n"), 0o644)
	case "read":
		var text []byte
		text, err = os.ReadFile(what)
		in.Files[what] = string(text)
	case "stat":
		var info os.FileInfo
		if info, err = os.Stat(what); err == nil {
			st := info.Sys().(*syscall.Stat_t)
			in.Owners[what] = [2]uint32{st.Uid, st.Gid}
		}
	case "list":
		var names []os.DirEntry
		names, err = os.ReadDir(what)
		in.Files[what] = fmt.Sprint(len(names))
	case "dial":
		var c net.Conn
		if c, err = net.DialTimeout("tcp", what, time.Second); err == nil {
			c.Close()
		}
	case "setuid":
		if err = os.WriteFile(what, nil, 0o755); err == nil {
			err = syscall.Chmod(what, 0o4755)
		}
	case "setuidopen":
		var fd int
		if fd, err = syscall.Open(what, syscall.O_CREAT|syscall.O_WRONLY, 0o6755); err == nil {
			syscall.Close(fd)
		}
	case "mount":
		err = syscall.Mount("none", "/tmp", "tmpfs", 0, "")
	case "unshare":
		err = syscall.Unshare(syscall.CLONE_NEWUSER)
	case "socket":
		var fd, family int
		fmt.Sscan(what, &family)
		if fd, err = syscall.Socket(family, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0); err == nil {
			syscall.Close(fd)
		}
	case "syscall":
		var nr uintptr
		fmt.Sscan(what, &nr)
		if _, _, errno := syscall.RawSyscall(nr, 0, 0, 0); errno != 0 {
			err = errno
		}
	case "mknod":
		err = syscall.Mknod(what, syscall.S_IFBLK|0o600, 8<<8)
	case "setid":
		err = syscall.Setuid(0)
	case "exec":
		var out []byte
		out, err = exec.Command(what).CombinedOutput()
		in.Files[what] = string(out)
	}
	if err != nil {
		return err.Error()
	}
	return "ok"
}

// eat takes memory until it is killed, in a child when asked to.
func eat(args []string) {
	if len(args) > 0 && args[0] == "child" {
		out, err := exec.Command("/tool", "eat").CombinedOutput()
		fmt.Println("child:", err, string(out))
		os.Exit(3)
	}
	fmt.Fprintln(os.Stderr, "eating")
	var all [][]byte
	for range 1024 {
		all = append(all, bytes.Repeat([]byte{1}, 1<<20))
	}
	fmt.Println(len(all), "MiB")
}

// fork starts programs until none more can be started.
func fork([]string) {
	for i := range 1000 {
		if err := exec.Command("/tool", "wait").Start(); err != nil {
			fmt.Fprintln(os.Stderr, "after", i, err)
			os.Exit(9)
		}
	}
}

func wait(args []string) {
	if len(args) > 0 && args[0] == "deaf" {
		signal.Ignore(syscall.SIGTERM)
	}
	fmt.Println("waiting")
	time.Sleep(time.Hour)
}

// orphans leaves grandchildren, reports that, and waits or ends.
func orphans(args []string) {
	c := exec.Command("/tool", "wait")
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if len(args) > 1 {
		c = exec.Command("/tool", "orphans", args[0])
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
	_ = c.Start()
	fmt.Println("orphaned")
	if args[0] == "wait" {
		time.Sleep(time.Hour)
	}
}

func flood(args []string) {
	var n int
	fmt.Sscan(args[0], &n)
	chunk := bytes.Repeat([]byte("0123456789abcde\n"), 4<<10)
	for ; n > 0; n -= len(chunk) {
		os.Stdout.Write(chunk[:min(n, len(chunk))])
	}
}

// echo is protocol Exec: standard input comes back, with the environment asked for.
func echo(args []string) {
	text, err := io.ReadAll(os.Stdin)
	fmt.Printf("%s", text)
	for _, name := range args {
		fmt.Printf("%s=%s\n", name, os.Getenv(name))
	}
	if err != nil {
		os.Exit(4)
	}
}

func exit(args []string) {
	var code int
	fmt.Sscan(args[0], &code)
	for i := range 30 {
		fmt.Fprintf(os.Stderr, "line %d \x1b[31mred\n", i)
	}
	os.Exit(code)
}

// get asks for each URL by the proxy of its environment.
func get(args []string) {
	for _, url := range args {
		resp, err := http.Get(url)
		if err != nil {
			fmt.Println(err)
			continue
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		fmt.Println(resp.StatusCode, strings.TrimSpace(string(text)))
	}
}
