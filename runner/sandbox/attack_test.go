//go:build linux

package sandbox

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// The folder of a plugin's socket belongs to programs inside, who can put a link
// to a folder of the host in its place.
func TestTheSocketFolderLeadsNowhereElse(t *testing.T) {
	l := sandboxed(t)
	s := Spec{Argv: []string{"/bin/sleep", "300"}, Dir: "/", Profile: &spec.Profile{}, Stdout: io.Discard, Stderr: io.Discard}
	r, err := l.house(t.Context(), &s)
	if err != nil {
		t.Fatal(err)
	}
	p := &plugin{launcher: l, spec: s}
	if p.folder, err = r.plugin(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.folder.close)
	p.socketDir = p.folder.inside
	host, err := os.MkdirTemp(r.dir.dir, "host") // on one file system with the folder of sockets
	if err != nil {
		t.Fatal(err)
	}
	write(t, host+"/id", "mine\n")
	run(t, l, shell(&spec.Profile{}, "mv "+p.socketDir+" "+p.socketDir+".away && ln -s "+host+" "+p.socketDir))
	if _, got, err := p.PluginToHost("unix", p.socketDir+"/id"); err == nil {
		t.Errorf("a file of the host was taken for the socket: %s", got)
	}
	if got := read(t, host+"/id"); got != "mine\n" {
		t.Errorf("the file is %q", got)
	}
}

// What a manifest names may lie where another tool can write.
func TestASourceOfAMountCannotBeExchanged(t *testing.T) {
	host := workspace(t)
	write(t, host+"/id", "secret\n")
	for name, c := range map[string]struct {
		swap string
		spec func(dir string) Spec
	}{
		"a folder": {"rm -r lib && ln -s " + host + " lib", func(dir string) Spec {
			return shell(&spec.Profile{Mounts: []spec.Mount{{Source: dir + "/lib"}}}, "cat "+dir+"/lib/id")
		}},
		"a folder above": {"mv sub x && mkdir sub && ln -s " + host + " sub/lib", func(dir string) Spec {
			return shell(&spec.Profile{Mounts: []spec.Mount{{Source: dir + "/sub/lib"}}}, "cat "+dir+"/sub/lib/id")
		}},
		"a file": {"ln -sf " + host + "/id data", func(dir string) Spec {
			return shell(&spec.Profile{Mounts: []spec.Mount{{Source: dir + "/data"}}}, "cat "+dir+"/data")
		}},
		"a file of the command": {"ln -sf " + host + "/id data", func(dir string) Spec {
			p := &spec.Profile{}
			Name(p, []string{dir + "/data"})
			return Spec{Argv: []string{"/bin/cat", dir + "/data"}, Dir: "/", Profile: p}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			l := sandboxed(t)
			dir := workspace(t)
			for _, f := range []string{"/lib/id", "/sub/lib/id", "/data"} {
				write(t, dir+f, "own\n")
			}
			s := c.spec(dir) // as it is made when the run begins
			run(t, l, shell(&spec.Profile{Workspace: dir, Access: spec.AccessReadWrite}, "cd "+dir+" && "+c.swap))
			var out buffer
			s.Stdout, s.Stderr = &out, &out
			if p, err := l.Start(t.Context(), s); err == nil {
				p.Wait()
			}
			if strings.Contains(out.String(), "secret") {
				t.Errorf("a file of the host was read: %s", out.String())
			}
		})
	}
}

// exchange lets two names change places as fast as it can.
func exchange(a, b string) {
	for range swaps {
		if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
			fmt.Println(err)
			return
		}
		runtime.Gosched()
	}
	fmt.Println("done")
}

// A program exchanges a folder of the workspace with a link to the host's while
// sandboxes are built around it.
func TestNoRaceLeadsOutOfTheWorkspace(t *testing.T) {
	l := sandboxed(t)
	host, dir := workspace(t), workspace(t)
	for _, d := range []string{host, dir + "/lib"} {
		write(t, d+"/id", map[bool]string{true: "secret\n", false: "own\n"}[d == host])
		write(t, d+"/sub/id", map[bool]string{true: "secret\n", false: "own\n"}[d == host])
	}
	if err := os.Symlink(host, dir+"/link"); err != nil {
		t.Fatal(err)
	}
	var said buffer
	racer, err := l.Start(t.Context(), Spec{
		Argv: []string{self(t), "exchange", dir + "/lib", dir + "/link"}, Dir: "/", Stdout: &said,
		Profile: &spec.Profile{Workspace: dir, Access: spec.AccessReadWrite},
	})
	if err != nil {
		t.Fatal(err)
	}
	tries, refused := 0, 0
	for raced := true; raced; tries++ {
		select {
		case <-racer.Done():
			raced = false
		default:
		}
		var out buffer
		s := shell(&spec.Profile{Mounts: []spec.Mount{{Source: dir + "/lib", Writable: true}, {Source: dir + "/lib/sub/id", Target: "/opt/id"}}},
			"cat "+dir+"/lib/id "+dir+"/lib/sub/id /opt/id; echo x > "+dir+"/lib/sub/new")
		s.Fresh, s.Stdout, s.Stderr = true, &out, &out
		if p, err := l.Start(t.Context(), s); err != nil {
			refused++
		} else {
			p.Wait()
		}
		if strings.Contains(out.String(), "secret") {
			t.Fatalf("after %d sandboxes a file of the host was read", tries)
		}
	}
	if got := racer.Wait(); said.String() != "done\n" || got != (ExitInfo{}) {
		t.Fatalf("the racer said %q, %v", said.String(), got)
	}
	if _, err := os.Lstat(host + "/sub/new"); err == nil {
		t.Error("a file of the host was made")
	}
	t.Logf("%d swaps, %d rounds, %d sandboxes refused", swaps, tries, refused)
}

// share takes memory that no limit of a process counts, in every way, and says
// which worked.
func share() {
	const size = 256 << 20
	if fd, err := unix.MemfdCreate("x", 0); err == nil {
		fmt.Println("memfd", unix.Ftruncate(fd, size) == nil)
	}
	if _, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_SHARED); err == nil {
		fmt.Println("shared mapping")
	}
	if _, err := unix.SysvShmGet(unix.IPC_PRIVATE, size, unix.IPC_CREAT|0o600); err == nil {
		fmt.Println("segment")
	}
	for _, dir := range []string{"/dev/shm", "/tmp", "/home/agent"} {
		f, err := os.Create(dir + "/x")
		if err == nil && unix.Fallocate(int(f.Fd()), 0, 0, size) == nil {
			fmt.Println("file in", dir)
		}
	}
	fmt.Println("done")
}

// Without a cgroup, the kernel accounts shared memory to no process.
func TestSharedMemoryHasABoundWhereMemoryHasOne(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		limit  int64
		want   string
	}{
		"no limit": {"it works where nothing is said", 0, "memfd true\nshared mapping\nsegment\nfile in /tmp\nfile in /home/agent\ndone\n"},
		"128 MiB":  {"none of it would be counted", 128 << 20, "done\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if raceDetector && c.limit > 0 {
				t.Skip("this program is the one that is limited, and the race detector needs more memory than the limit; make test runs it")
			}
			l := sandboxed(t)
			p := &spec.Profile{Home: "/home/agent", Limits: spec.Limits{Memory: c.limit}}
			var out, errs buffer
			proc, err := l.Start(t.Context(), Spec{Argv: []string{self(t), "share"}, Dir: "/", Profile: p, Stdout: &out, Stderr: &errs})
			if err != nil {
				t.Fatal(err)
			}
			proc.Wait()
			if c.limit > 0 && !strings.Contains(strings.Join(proc.Unenforced(), " "), "memory") {
				t.Skip("a cgroup bounds all memory here")
			}
			if out.String() != c.want {
				t.Errorf("%q (%s), want %q: %s", out.String(), errs.String(), c.want, c.reason)
			}
		})
	}
}

// hoard takes 32 MiB of memory, of its own or as a shared mapping of a device, and
// keeps it until it is killed.
func hoard(how string) {
	fd, flags := -1, unix.MAP_ANON|unix.MAP_PRIVATE
	if how == "shared" {
		var err error
		if fd, err = unix.Open("/dev/zero", unix.O_RDWR, 0); err != nil {
			fmt.Println(err)
			return
		}
		flags = unix.MAP_SHARED
	}
	b, err := unix.Mmap(fd, 0, 32<<20, unix.PROT_READ|unix.PROT_WRITE, flags)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	for {
		_ = unix.Pause()
	}
}

// What processes take together is more than the limit, and each of them less.
func TestTheSumOfAllProcessesHasABoundWhereMemoryHasOne(t *testing.T) {
	if raceDetector {
		t.Skip("this program is the one that is limited, and the race detector needs more memory than the limit; make test runs it")
	}
	for _, how := range []string{"private", "shared"} {
		t.Run(how, func(t *testing.T) {
			l := sandboxed(t)
			told := make(chan int64, 10)
			l.opts.Exceeded = func(_ *spec.Profile, taken int64) { told <- taken }
			s := shell(&spec.Profile{Limits: spec.Limits{Memory: 150 << 20}}, "for i in 1 2 3 4 5 6 7 8; do "+self(t)+" hoard "+how+" & done; wait; echo ended")
			s.Argv = append(s.Argv, self(t)) // which shows it
			var out buffer
			s.Stdout, s.Stderr = &out, &out
			proc, err := l.Start(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(strings.Join(proc.Unenforced(), " "), "memory") {
				proc.Kill(0)
				t.Skip("a cgroup bounds all memory here")
			}
			if end := proc.Wait(); end != (ExitInfo{}) || !strings.HasSuffix(out.String(), "ended\n") {
				t.Fatalf("%v: %s", end, out.String())
			}
			select {
			case taken := <-told:
				if taken <= 150<<20 {
					t.Errorf("killed at %d MiB", taken>>20)
				}
			case <-time.After(patience):
				t.Errorf("nobody was told: %s", out.String())
			}
		})
	}
}

// An open device is the host's own, whatever the view shows: its owner could
// change its mode.
func TestNoDeviceOfTheHostIsInheritedOpen(t *testing.T) {
	l := sandboxed(t)
	mode := func() os.FileMode {
		fi, err := os.Stat(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		return fi.Mode()
	}
	before := mode()
	t.Cleanup(func() { _ = os.Chmod(os.DevNull, before.Perm()) })
	p, err := l.Start(t.Context(), shell(&spec.Profile{}, "chmod 0600 /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2"))
	if err != nil {
		t.Fatal(err)
	}
	p.Wait()
	if after := mode(); after != before {
		t.Errorf("%s of the host was %v and is %v", os.DevNull, before, after)
	}
}

// Who has opened a folder before it was protected still has it.
func TestAFolderThatWasOpenedBeforeIsProtectedToo(t *testing.T) {
	l := sandboxed(t)
	dir := workspace(t)
	write(t, dir+"/.git/hooks/old", "")
	write(t, dir+"/.git/config", "[core]\n")
	p := &spec.Profile{Workspace: dir, Access: spec.AccessReadWrite}
	s := shell(p, "cd "+dir+"/.git && echo ready && read go && { echo evil > hooks/new; echo evil >> config; mv hooks h; } 2>/dev/null; true")
	in, feed := io.Pipe()
	ready := &signalled{on: make(chan struct{})}
	s.Stdin, s.Stdout, s.Stderr = in, ready, io.Discard
	proc, err := l.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	<-ready.on
	if err := l.Protect(t.Context(), []string{dir + "/.git/config", dir + "/.git/hooks"}, nil); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(feed, "go\n")
	_ = feed.Close()
	proc.Wait()
	if _, err := os.Lstat(dir + "/.git/hooks/new"); err == nil || read(t, dir+"/.git/config") != "[core]\n" {
		t.Error("the files were changed through a folder that was opened before")
	}
}

// signalled closes on at the first write.
type signalled struct{ on chan struct{} }

func (s *signalled) Write(b []byte) (int, error) {
	select {
	case <-s.on:
	default:
		close(s.on)
	}
	return len(b), nil
}
