package record

import (
	"bufio"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/plugins/sdk"
)

// deedOf is a system call for the actor: what it does, with paths and numbers.
type deedOf struct {
	Does string
	// Dir and Dir2 are names of folders that the actor has open; "" is the current one.
	Dir, Dir2   string
	Path, Path2 string
	Flags       int
	Mode        uint32
}

// act carries out what comes on its input, one line each, and answers with the error number.
func act() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	open := map[string]int{"": unix.AT_FDCWD}
	answers := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var d deedOf
		if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
			panic(err)
		}
		var number syscall.Errno
		if err := d.carryOut(open); err != nil && !errors.As(err, &number) {
			panic(err)
		}
		if err := answers.Encode(int(number)); err != nil {
			panic(err)
		}
	}
}

func (d *deedOf) carryOut(held map[string]int) error {
	dir, dir2 := held[d.Dir], held[d.Dir2]
	switch d.Does {
	case "hold": // keeps a folder or file open under the name path2
		fd, err := unix.Open(d.Path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err == nil {
			held[d.Path2] = fd
		}
		return err
	case "keep": // the same, open to read
		fd, err := unix.Open(d.Path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err == nil {
			held[d.Path2] = fd
		}
		return err
	case "chdir":
		return unix.Chdir(d.Path)
	case "open":
		fd, err := unix.Openat(dir, d.Path, d.Flags|unix.O_NONBLOCK|unix.O_CLOEXEC, d.Mode)
		if err == nil {
			_ = unix.Close(fd)
		}
		return err
	case "openhow":
		fd, err := unix.Openat2(dir, d.Path, &unix.OpenHow{Flags: uint64(d.Flags | unix.O_NONBLOCK | unix.O_CLOEXEC), Mode: uint64(d.Mode)})
		if err == nil {
			_ = unix.Close(fd)
		}
		return err
	case "truncate":
		return unix.Truncate(d.Path, 0)
	case "unlink":
		return unix.Unlinkat(dir, d.Path, d.Flags)
	case "rename":
		return unix.Renameat2(dir, d.Path, dir2, d.Path2, uint(d.Flags))
	case "link":
		return unix.Linkat(dir, d.Path, dir2, d.Path2, d.Flags)
	case "symlink":
		return unix.Symlinkat(d.Path2, dir, d.Path)
	case "mkdir":
		return unix.Mkdirat(dir, d.Path, d.Mode)
	case "mknod":
		return unix.Mknodat(dir, d.Path, d.Mode, 0)
	case "chmod":
		return unix.Fchmodat(dir, d.Path, d.Mode, 0)
	case "execute":
		cmd := &exec.Cmd{Path: d.Path, Args: []string{"program", "one", "two words"}, Dir: "."}
		err := cmd.Run()
		if _, ended := errors.AsType[*exec.ExitError](err); ended {
			return nil
		}
		return err
	case "connect", "listen":
		return d.internet()
	case "local", "bindlocal", "datagram":
		return d.local()
	case "wild": // a system call with arguments that are nonsense
		_, _, errno := unix.Syscall6(uintptr(d.Flags), uintptr(d.Mode), uintptr(d.Mode)<<20, ^uintptr(0), 1, uintptr(unsafe.Pointer(new(int))), 0)
		if errno != 0 {
			return errno
		}
		return nil
	}
	panic("unknown deed " + d.Does)
}

func (d *deedOf) internet() error {
	at, err := net.ResolveTCPAddr("tcp", d.Path)
	if err != nil {
		return err
	}
	var to unix.Sockaddr
	family := unix.AF_INET
	if four := at.IP.To4(); four != nil {
		to = &unix.SockaddrInet4{Port: at.Port, Addr: [4]byte(four)}
	} else {
		family, to = unix.AF_INET6, &unix.SockaddrInet6{Port: at.Port, Addr: [16]byte(at.IP)}
	}
	fd, err := unix.Socket(family, d.Flags|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if d.Does == "listen" {
		return unix.Bind(fd, to)
	}
	return unix.Connect(fd, to)
}

func (d *deedOf) local() error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if d.Does == "bindlocal" { // it stays open
		if err := unix.Bind(fd, &unix.SockaddrUnix{Name: d.Path}); err != nil {
			return err
		}
		return unix.Listen(fd, 1)
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.Connect(fd, &unix.SockaddrUnix{Name: d.Path})
}

// actor is a process that carries out system calls and is recorded.
type actor struct {
	*exec.Cmd
	t       testing.TB
	watch   *Watch
	in      *json.Encoder
	out     *bufio.Scanner
	endings []func()
	// record is set by end.
	record *sdk.Record

	mu sync.Mutex
	// seen are the attempts since the last deed, calls how many system calls.
	seen   []*attempt
	calls  int
	unread int
	// meanwhile is called while a system call is looked at.
	meanwhile func()
}

// newActor starts an actor in a folder, bound by a ruleset and compared with rights.
func newActor(t testing.TB, dir string, rules *os.File, rights *Rights) *actor {
	t.Helper()
	if err := Check(); err != nil {
		t.Skip("nothing can be recorded here: ", err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	a := &actor{Cmd: &exec.Cmd{Path: self, Args: []string{self}, Dir: dir, Env: []string{actorEnv + "=1"}, Stderr: os.Stderr}, t: t}
	in, err := a.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := a.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	a.in, a.out = json.NewEncoder(in), bufio.NewScanner(out)
	if a.watch, err = Prepare(a.Cmd, Options{Scope: Everything, Shell: true, Rules: rules, Rights: rights}); err != nil {
		t.Fatal(err)
	}
	a.watch.observe = func(_ *look, got *attempt, err error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.calls++
		if errors.Is(err, errUnread) {
			a.unread++
		}
		if got != nil {
			a.seen = append(a.seen, got)
		}
		if a.meanwhile != nil {
			a.meanwhile()
		}
	}
	if err := a.Start(); err != nil {
		t.Fatal(err)
	}
	if err := a.watch.Begin(); err != nil {
		t.Fatal(err)
	}
	a.endings = append(a.endings, func() { _ = in.Close() })
	t.Cleanup(func() { a.end() })
	return a
}

// end ends the actor.
func (a *actor) end() {
	if a.record != nil {
		return
	}
	for _, f := range a.endings {
		f()
	}
	a.endings = nil
	_ = a.Wait()
	a.record = a.watch.End(10 * time.Second)
}

// do has the actor carry out a deed, and returns its error number and what was seen of it.
func (a *actor) do(d deedOf) (syscall.Errno, []*attempt) {
	a.t.Helper()
	a.mu.Lock()
	a.seen, a.calls, a.unread = nil, 0, 0
	a.mu.Unlock()
	if err := a.in.Encode(d); err != nil {
		a.t.Fatal(err)
	}
	if !a.out.Scan() {
		a.t.Fatalf("%+v: the actor has ended: %v", d, a.out.Err())
	}
	var number int
	if err := json.Unmarshal(a.out.Bytes(), &number); err != nil {
		a.t.Fatal(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return syscall.Errno(number), a.seen
}
