package record

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/plugins/sdk"
)

// A system call that is recorded continues whatever its arguments are.
func TestPointersThatLeadNowhereChangeNothing(t *testing.T) {
	a := newActor(t, t.TempDir(), nil, nil)
	for i := range calls {
		c := &calls[i]
		for _, pointer := range []uint32{0, 1, 0xfff, 1 << 20, 0xffffffff} {
			if c.does == execute && pointer == 0 {
				continue // an empty program, which is refused with another number
			}
			a.do(deedOf{Does: "wild", Flags: int(c.number), Mode: pointer})
			if a.calls == 0 && (c.does != open || c.flags == none) {
				t.Errorf("call %d with %#x was not reported", c.number, pointer)
			}
			if len(a.seen) > 0 {
				t.Errorf("call %d with %#x: seen %s", c.number, pointer, all(a.seen))
			}
		}
	}
	if errno, seen := a.do(deedOf{Does: "mkdir", Path: "after", Mode: 0o755}); errno != 0 || len(seen) != 1 {
		t.Errorf("after them: %v, seen %s", errno, all(seen))
	}
	if a.end(); a.watch.Recorded() && a.record.Omitted == 0 {
		t.Error("nothing of it counts as omitted")
	}
}

// A path, an argument or an environment can be as long as the kernel takes it.
func TestLongTextsAreBounded(t *testing.T) {
	root := t.TempDir()
	a := newActor(t, root, nil, nil)
	long := strings.Repeat("x", 200)
	deep := root
	for range 25 { // above what one path can name
		deep += "/" + long
		if errno, _ := a.do(deedOf{Does: "mkdir", Path: long, Mode: 0o755}); errno != 0 {
			t.Fatal(errno)
		}
		if errno, _ := a.do(deedOf{Does: "chdir", Path: long}); errno != 0 {
			t.Fatal(errno)
		}
	}
	for range 25 { // or t.TempDir could not remove it
		if errno, _ := a.do(deedOf{Does: "chdir", Path: ".."}); errno != 0 {
			t.Fatal(errno)
		}
		if errno, _ := a.do(deedOf{Does: "unlink", Path: long, Flags: unix.AT_REMOVEDIR}); errno != 0 {
			t.Fatal(errno)
		}
	}
	if errno, _ := a.do(deedOf{Does: "mkdir", Path: strings.Repeat("y/", 3000)}); errno != syscall.ENAMETOOLONG {
		t.Errorf("a path of 6,000 bytes: %v", errno)
	}
	a.end()
	size := 0
	for _, c := range a.record.Changes {
		size += len(c.Path)
	}
	if size == 0 || size > maxText || a.record.Omitted == 0 {
		t.Errorf("%d bytes of paths, %d omitted", size, a.record.Omitted)
	}
}

func TestArgumentsAreBounded(t *testing.T) {
	argv := []string{"program"}
	for i := range 3000 {
		argv = append(argv, strconv.Itoa(i))
	}
	record := recordOf(t, &exec.Cmd{Path: "/bin/true", Args: argv}, Options{Scope: Programs})
	if len(record.Programs) != 1 || len(record.Programs[0].Argv) != maxWords || record.Omitted != 1 {
		t.Errorf("many: %+v", record)
	}
	record = recordOf(t, &exec.Cmd{Path: "/bin/true", Args: []string{"program", strings.Repeat("x", 100_000), "last"}}, Options{Scope: Programs})
	if len(record.Programs) != 1 || len(record.Programs[0].Argv) != 2 || len(record.Programs[0].Argv[1]) > maxWordBytes || record.Omitted != 1 {
		t.Errorf("long: %d programs, %d omitted", len(record.Programs), record.Omitted)
	}
}

// recordOf runs a command to its end.
func recordOf(t testing.TB, cmd *exec.Cmd, o Options) *sdk.Record {
	t.Helper()
	if err := Check(); err != nil {
		t.Skip("nothing can be recorded here: ", err)
	}
	w, err := Prepare(cmd, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.Abort()
		t.Fatal(err)
	}
	if err := w.Begin(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // its end is not what is tested
	return w.End(10 * time.Second)
}

// However much a command does, its record and the memory of the tool stay small.
func TestManyAttemptsDoNotGrowTheTool(t *testing.T) {
	root := t.TempDir()
	rules, rights := newRules(t)
	addRule(t, rules, rights, root, rightsToFiles)
	bash, err := filepath.EvalSymlinks("/bin/bash")
	if err != nil {
		t.Fatal(err)
	}
	addRule(t, rules, rights, bash, run)
	// Each name is used once; every tenth is refused. Some jobs run side by side.
	script := `cd "$1"; for j in 1 2 3 4; do for ((i=0;i<1500;i++)); do : > f$j.$i; if ((i%10==0)); then : > /tmp/never/$j.$i; : > /refused$j.$i; fi; done 2>/dev/null & done; wait`
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	record := recordOf(t, &exec.Cmd{Path: "/bin/bash", Args: []string{"bash", "-c", script, "bash", root}}, Options{Scope: Everything, Shell: true, Rules: rules, Rights: rights})
	runtime.GC()
	runtime.ReadMemStats(&after)
	if n := len(record.Changes); n < 100 || n > maxChanges || len(record.Exceeded) != maxExceeded || n+len(record.Exceeded)+record.Omitted < 6600 {
		t.Errorf("%d changes, %d refused, %d omitted", n, len(record.Exceeded), record.Omitted)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 2<<20 {
		t.Errorf("%d bytes more in memory", grown)
	}
	left, err := filepath.Glob("/refused*")
	if err != nil || len(left) > 0 {
		t.Errorf("made in /: %v, %v", left, err)
	}
}

// A process that is killed while its system call is looked at leaves nothing behind.
func TestAProcessThatIsKilledMeanwhile(t *testing.T) {
	a := newActor(t, t.TempDir(), nil, nil)
	killed := make(chan error, 1)
	a.mu.Lock()
	a.meanwhile = func() {
		select {
		case killed <- a.Process.Kill():
		default:
		}
	}
	a.mu.Unlock()
	if err := a.in.Encode(deedOf{Does: "mkdir", Path: "new", Mode: 0o755}); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-killed:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("nothing was reported")
	}
	began := time.Now()
	a.end()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the end took %v", took)
	}
	if !a.watch.Gone() {
		t.Error("something of it is left")
	}
}

// What continues after the record has ended is not held up: its system calls fail.
func TestAProcessThatOutlivesItsRecordDoesNotHang(t *testing.T) {
	a := newActor(t, t.TempDir(), nil, nil)
	if record := a.watch.End(10 * time.Millisecond); record == nil {
		t.Fatal("no record")
	}
	if a.watch.Gone() != true { // what is closed knows nothing more
		t.Error("a record that has ended waits for processes")
	}
	if errno, _ := a.do(deedOf{Does: "mkdir", Path: "new", Mode: 0o755}); errno != syscall.ENOSYS {
		t.Errorf("got %v, want what the kernel answers without a listener", errno)
	}
}

// keeperEnv has the test program start an actor, and stop while a system call of it is
// looked at.
const keeperEnv = "RECORD_TEST_KEEPER"

func keepActor() {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := &exec.Cmd{Path: self, Args: []string{self}, Dir: os.Getenv(keeperEnv), Env: []string{actorEnv + "=1"}, Stdout: os.Stdout, Stderr: os.Stderr}
	in, err := cmd.StdinPipe()
	if err != nil {
		panic(err)
	}
	w, err := Prepare(cmd, Options{Scope: Everything, Shell: true})
	if err != nil {
		panic(err)
	}
	w.observe = func(l *look, _ *attempt, _ error) {
		if l.call.does == mkdir {
			fmt.Println("pending", cmd.Process.Pid)
			select {} // until this process is killed
		}
	}
	if err := errors.Join(cmd.Start(), w.Begin()); err != nil {
		panic(err)
	}
	fmt.Fprintln(in, `{"Does":"mkdir","Path":"new","Mode":493}`)
	_ = cmd.Wait()
}

// If the tool's process dies, what it has started must not hang, whatever ends it then.
func TestWhatAToolThatDiesHasStartedDoesNotHang(t *testing.T) {
	if err := Check(); err != nil {
		t.Skip("nothing can be recorded here: ", err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	keeper := exec.CommandContext(t.Context(), self)
	keeper.Env, keeper.Stderr = append(os.Environ(), keeperEnv+"="+t.TempDir()), os.Stderr
	out, err := keeper.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := keeper.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the keeper has ended: ", keeper.Wait())
	}
	pid, err := strconv.Atoi(strings.TrimPrefix(lines.Text(), "pending "))
	if err != nil {
		t.Fatal(err)
	}
	actor, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(actor) }()
	if err := keeper.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if !lines.Scan() || lines.Text() != strconv.Itoa(int(syscall.ENOSYS)) {
		t.Errorf("the actor answers %q, want error number %d", lines.Text(), syscall.ENOSYS)
	}
	_ = keeper.Wait()
	// Its input has ended with the keeper.
	ready := []unix.PollFd{{Fd: int32(actor), Events: unix.POLLIN}}
	if n, err := unix.Poll(ready, 10_000); n != 1 || err != nil {
		t.Errorf("the actor has not ended: %v", err)
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// A launcher waits for the answer to what it executes. If the tool has been killed before it
// took the listener, nobody answers.
func TestALauncherWhoseToolIsGoneEnds(t *testing.T) {
	cmd := exec.Command("/bin/true")
	w, err := Prepare(cmd, Options{Scope: Programs})
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(w.line.Fd()), Events: unix.POLLIN}}, 10_000); n != 1 || err != nil { //nolint:gosec // a descriptor
		t.Errorf("the launcher says nothing: %d, %v", n, err)
	}
	w.Abort() // what is on the way goes with the socket, as it does when a process is killed
	select {
	case err := <-ended:
		if err == nil {
			t.Error("its program was executed")
		}
	case <-time.After(10 * time.Second):
		_ = cmd.Process.Kill()
		t.Errorf("the launcher waits: %v", <-ended)
	}
}

func TestConnections(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	at := listener.Addr().String()
	outside := fmt.Sprintf("\x00agentctl-test-%d", os.Getpid())
	abstract, err := net.Listen("unix", "@"+outside[1:])
	if err != nil {
		t.Fatal(err)
	}
	defer abstract.Close()
	file, err := net.Listen("unix", root+"/socket")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, bound := range map[string]bool{"bound": true, "unbound": false} {
		t.Run(name, func(t *testing.T) {
			var rules *os.File
			var rights *Rights
			if bound {
				rules, rights = newRules(t)
			}
			a := newActor(t, root, rules, rights)
			for _, c := range []struct {
				deed deedOf
				want string
				// denied without rules, too, is nothing that counts.
				refused bool
			}{
				{deedOf{Does: "connect", Path: at, Flags: unix.SOCK_STREAM}, "connect " + at, true},
				{deedOf{Does: "connect", Path: "[::1]:9", Flags: unix.SOCK_STREAM}, "connect [::1]:9", true},
				{deedOf{Does: "connect", Path: "127.0.0.1:53", Flags: unix.SOCK_DGRAM}, "connect 127.0.0.1:53/udp", false},
				{deedOf{Does: "connect", Path: "127.0.0.1:0", Flags: unix.SOCK_DGRAM}, "", false},
				{deedOf{Does: "listen", Path: "127.0.0.1:0", Flags: unix.SOCK_STREAM}, map[bool]string{true: "listen 127.0.0.1:0"}[bound], true},
				{deedOf{Does: "listen", Path: "127.0.0.1:0", Flags: unix.SOCK_DGRAM}, "", false},
				{deedOf{Does: "local", Path: outside}, "connect unix:@" + outside[1:], true},
				{deedOf{Does: "local", Path: "\x00agentctl-nothing"}, "connect unix:@agentctl-nothing", false},
				{deedOf{Does: "bindlocal", Path: outside + "-own"}, "", false},
				{deedOf{Does: "local", Path: outside + "-own"}, "connect unix:@" + outside[1:] + "-own", false},
				{deedOf{Does: "local", Path: root + "/socket"}, "connect unix:" + root + "/socket", false},
				{deedOf{Does: "local", Path: root + "/nothing"}, "", false},
				{deedOf{Does: "bindlocal", Path: root + "/" + name}, "create " + root + "/" + name, true},
			} {
				errno, seen := a.do(c.deed)
				got := ""
				if len(seen) == 1 {
					got = seen[0].op + " " + seen[0].path + seen[0].address
				}
				if got != c.want || len(seen) > 1 {
					t.Errorf("%+v (%v): seen %q, want %q", c.deed, errno, got, c.want)
				}
				by := errno == syscall.EACCES || errno == syscall.EPERM
				if called := len(seen) == 1 && seen[0].refused; called != by || called != (c.refused && bound) {
					t.Errorf("%+v: the kernel says %v, the record that it is refused: %v", c.deed, errno, called)
				}
			}
		})
	}
}
