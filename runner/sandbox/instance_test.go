//go:build linux

package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/plugins/sdktest"
	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// shell is a script in a sandbox.
func shell(p *spec.Profile, script string) Spec {
	return Spec{Argv: sh(script), Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}, Profile: p}
}

// workspace is an empty folder at a path without links.
func workspace(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestASandboxedProgramIsAProgram(t *testing.T) {
	l := sandboxed(t)
	p := &spec.Profile{}
	out, errs, exit := run(t, l, Spec{Argv: sh("cat; echo err >&2; pwd; exit 3"), Dir: "/usr", Env: []string{"PATH=/usr/bin:/bin"}, Stdin: strings.NewReader("in\n"), Profile: p})
	if out != "in\n/usr\n" || errs != "err\n" || exit != (ExitInfo{Code: 3}) {
		t.Errorf("out %q, err %q, exit %v", out, errs, exit)
	}
	out, _, _ = run(t, l, shell(p, "wc -c; readlink /proc/self/fd/0; ls /proc/self/fd | wc -l"))
	if out != "0\n/dev/null\n4\n" {
		t.Errorf("without stdin: %q, want an empty one and three descriptors beside that of ls", out)
	}
	for _, env := range [][]string{nil, {"A=1", "B=x y"}} {
		out, _, _ = run(t, l, Spec{Argv: []string{"/usr/bin/env"}, Env: env, Profile: p})
		if want := strings.Join(append(append([]string{}, env...), ""), "\n"); out != want {
			t.Errorf("environment = %q, want %q", out, want)
		}
	}
	if _, _, exit = run(t, l, shell(p, "kill -SEGV $$")); exit.Signal != "segmentation fault" {
		t.Errorf("exit = %v", exit)
	}
	large := strings.Repeat("x", 3<<20)
	if out, _, _ = run(t, l, Spec{Argv: []string{"cat"}, Stdin: strings.NewReader(large), Profile: p}); out != large {
		t.Errorf("cat returned %d bytes of %d", len(out), len(large))
	}
}

func TestStartInASandboxSaysWhatIsWrong(t *testing.T) {
	l := sandboxed(t)
	dir := workspace(t)
	write(t, dir+"/garbage", "\x00\x01garbage")
	write(t, dir+"/orphan", "#!/no/such/interpreter\n")
	p := &spec.Profile{Workspace: dir, Access: spec.AccessReadOnly}
	for want, s := range map[string]Spec{
		"no such file":               {Argv: []string{"/no/such/program"}, Dir: "/", Profile: p},
		"exec format error":          {Argv: []string{dir + "/garbage"}, Dir: "/", Profile: p},
		"the interpreter it names":   {Argv: []string{dir + "/orphan"}, Dir: "/", Profile: p},
		"working folder /home/none":  {Argv: []string{"true"}, Dir: "/home/none", Profile: p},
		"NUL byte":                   {Argv: []string{"true", "a\x00b"}, Dir: "/", Profile: p},
		"not UTF-8":                  {Argv: []string{"true", "a\xff"}, Dir: "/", Profile: p},
		"too large":                  {Argv: []string{"true"}, Env: []string{"A=" + strings.Repeat("x", spec.MaxMessage)}, Dir: "/", Profile: p},
		`access "All"`:               {Argv: []string{"true"}, Dir: "/", Profile: &spec.Profile{Access: "All"}},
		`"relative" is not absolute`: {Argv: []string{"true"}, Dir: "/", Profile: &spec.Profile{Workspace: "relative", Access: spec.AccessReadOnly}},
		"bind /no/such/folder":       {Argv: []string{"true"}, Dir: "/", Profile: &spec.Profile{Workspace: "/no/such/folder", Access: spec.AccessReadOnly}},
		"nobody serves its proxy":    {Argv: []string{"true"}, Dir: "/", Profile: &spec.Profile{Network: spec.NetworkProxy}},
		"its sha256 is":              {Argv: []string{"/bin/true"}, Dir: "/", Profile: p, Sha256: strings.Repeat("0", 64)},
	} {
		proc, err := l.Start(t.Context(), s)
		if err == nil {
			proc.Kill(0)
			t.Errorf("%.60v started, want %q", s.Argv, want)
			continue
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%.60v: %q, want %q", s.Argv, err, want)
		}
	}
	if out, _, exit := run(t, l, shell(p, "echo alive")); out != "alive\n" {
		t.Errorf("the sandbox did not survive: %q %v", out, exit)
	}
}

// inside returns the identity of a sandbox.
const inside = "readlink /proc/self/ns/pid"

func TestEqualProfilesShareASandbox(t *testing.T) {
	l := sandboxed(t)
	dir := workspace(t)
	of := func(s Spec) string {
		out, errs, exit := run(t, l, s)
		if exit.Code != 0 || out == "" {
			t.Fatalf("%v: %v %s", s.Argv, exit, errs)
		}
		return out
	}
	one := of(shell(&spec.Profile{Workspace: dir, Access: spec.AccessReadOnly}, inside))
	if two := of(shell(&spec.Profile{Workspace: dir, Access: spec.AccessReadOnly}, inside)); one != two {
		t.Errorf("equal profiles have two sandboxes, %q and %q", one, two)
	}
	for name, s := range map[string]Spec{
		"access":  shell(&spec.Profile{Workspace: dir, Access: spec.AccessReadWrite}, inside),
		"network": shell(&spec.Profile{Workspace: dir, Access: spec.AccessReadOnly, Network: spec.NetworkHost}, inside),
		"group":   shell(&spec.Profile{Workspace: dir, Access: spec.AccessReadOnly, Group: "a"}, inside),
		"fresh":   {Argv: sh(inside), Dir: "/", Profile: &spec.Profile{Workspace: dir, Access: spec.AccessReadOnly}, Fresh: true},
		"none":    {Argv: sh(inside), Dir: "/"},
	} {
		if other := of(s); other == one {
			t.Errorf("another %s has the same sandbox", name)
		}
	}
}

func TestManyStartInOneSandbox(t *testing.T) {
	l := sandboxed(t)
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			out, _, exit := run(t, l, shell(&spec.Profile{}, "echo "+strconv.Itoa(i)+"; exit "+strconv.Itoa(i)))
			if out != strconv.Itoa(i)+"\n" || exit.Code != i {
				t.Errorf("%d: %q, %v", i, out, exit)
			}
		})
	}
	wg.Wait()
	if n := len(l.instances); n != 1 {
		t.Errorf("%d sandboxes, want one", n)
	}
}

func TestTheWorkspaceIsSeenAsDeclared(t *testing.T) {
	l := sandboxed(t)
	dir := workspace(t)
	other := workspace(t)
	write(t, dir+"/file", "content\n")
	write(t, other+"/tool", "#!/bin/sh\necho tool\n")
	for name, c := range map[string]struct {
		profile spec.Profile
		script  string
		want    string
	}{
		"none":       {spec.Profile{Workspace: dir}, "cat file", ""},
		"read-only":  {spec.Profile{Workspace: dir, Access: spec.AccessReadOnly}, "cat file; touch new 2>/dev/null || echo refused", "content\nrefused\n"},
		"read-write": {spec.Profile{Workspace: dir, Access: spec.AccessReadWrite}, "cat file; touch new && echo written; ls -n new | cut -d' ' -f3", "content\nwritten\n" + strconv.Itoa(os.Getuid()) + "\n"},
		"mounts": {
			spec.Profile{Workspace: dir, Access: spec.AccessReadOnly, Mounts: []spec.Mount{{Source: other, Target: "/opt/other", Writable: true, NoExec: true}, {Source: "/no/such", Optional: true}}},
			"touch /opt/other/new && echo written; /opt/other/tool 2>/dev/null || echo refused", "written\nrefused\n",
		},
		"home": {
			spec.Profile{Home: "/home/agent"}, "cd; pwd; touch x && ls -A", "/home/agent\nx\n",
		},
		"a mount below the workspace": {
			spec.Profile{Workspace: dir, Access: spec.AccessReadOnly, Mounts: []spec.Mount{{Source: other, Target: dir + "/below"}}},
			"ls " + dir + "/below | grep -v new", "tool\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "a mount below the workspace" {
				if err := os.MkdirAll(dir+"/below", 0o755); err != nil {
					t.Fatal(err)
				}
			}
			s := shell(&c.profile, "cd "+dir+" 2>/dev/null; "+c.script)
			s.Env = append(s.Env, "HOME=/home/agent")
			out, errs, _ := run(t, l, s)
			if out != c.want {
				t.Errorf("output = %q (%s), want %q", out, errs, c.want)
			}
		})
	}
}

func TestTheHostIsNotSeen(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	write(t, os.Getenv("HOME")+"/.netrc", "secret")
	s := shell(&spec.Profile{}, "ls -A $HOME; ls /; hostname; ps -e | wc -l")
	s.Env = append(s.Env, "HOME="+os.Getenv("HOME"))
	out, errs, _ := run(t, sandboxed(t), s)
	for _, hidden := range []string{".netrc", "srv", "boot", "media", "\nsys", "work"} {
		if strings.Contains(out, hidden) {
			t.Errorf("%q is seen:\n%s", hidden, out)
		}
	}
	if !strings.Contains(out, "sandbox\n") || errs != "" {
		t.Errorf("output = %q, %q", out, errs)
	}
}

func TestProtectedPathsCannotBeChangedOrRead(t *testing.T) {
	l := sandboxed(t)
	dir := workspace(t)
	p := &spec.Profile{Workspace: dir, Access: spec.AccessReadWrite}
	out, _, _ := run(t, l, shell(p, "echo stands")) // before the files are there
	if out != "stands\n" {
		t.Fatalf("output = %q", out)
	}
	write(t, dir+"/.git/config", "[core]\n")
	write(t, dir+"/.git/hooks/pre-commit", "#!/bin/sh\n")
	write(t, dir+"/deep/down/.env", "TOKEN=secret\n")
	write(t, dir+"/keys/id", "secret\n")
	if err := os.Symlink("deep/down/.env", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	err := l.Protect(t.Context(), []string{dir + "/.git/config", dir + "/.git/hooks", dir + "/absent"},
		[]string{dir + "/deep/down/.env", dir + "/keys", dir + "/link", "/no/such/file"})
	if err != nil {
		t.Fatal(err)
	}
	later := &spec.Profile{Workspace: dir, Access: spec.AccessReadWrite, Group: "a sandbox that comes later"}
	for _, p := range []*spec.Profile{p, later} {
		out, _, _ := run(t, l, shell(p, "exec 2>&1; cd "+dir+`
			echo evil >> .git/config; echo evil > .git/hooks/new; rm -rf .git; mv .git away; mv .git/hooks .git/h
			cat deep/down/.env keys/id link; ls keys; ln deep/down/.env hard; cp -r deep copied; cat copied/down/.env
			mv deep moved; cat moved/down/.env; cat /proc/self/root/`+dir+`/deep/down/.env
			grep -r secret . ; echo done`))
		if strings.Contains(out, "secret\n") || strings.Contains(out, "TOKEN") || !strings.HasSuffix(out, "done\n") {
			t.Errorf("something was read:\n%s", out)
		}
	}
	if got := read(t, dir+"/.git/config") + read(t, dir+"/.git/hooks/pre-commit") + read(t, dir+"/keys/id"); got != "[core]\n#!/bin/sh\nsecret\n" {
		t.Errorf("changed: %q", got)
	}
	if list, err := os.ReadDir(dir + "/.git/hooks"); err != nil || len(list) != 1 {
		t.Errorf("hooks: %v, %v", list, err)
	}
	if out, _, _ := run(t, l, shell(p, "cd "+dir+"; echo x > .git/index && mkdir .git/objects && mv .git/index .git/objects/ && echo works")); out != "works\n" {
		t.Errorf("the rest of .git cannot be used: %q", out)
	}
}

// A program in a folder that another tool may write to is protected as well, and so
// are the folders on the way to it.
func TestAProtectedFileInAWritableMountCannotBeReplaced(t *testing.T) {
	l := sandboxed(t)
	dir := workspace(t)
	write(t, dir+"/lib/bin/tool", "own\n")
	p := &spec.Profile{Mounts: []spec.Mount{{Source: dir, Writable: true}}}
	if err := l.Protect(t.Context(), []string{dir + "/lib/bin/tool"}, nil); err != nil {
		t.Fatal(err)
	}
	out, _, _ := run(t, l, shell(p, "exec 2>&1; cd "+dir+`
		echo evil > lib/bin/tool; mv lib/bin/tool x; rm -rf lib; mv lib away; mv lib/bin lib/b; ln -sf /bin/true lib/bin/tool
		echo new > lib/bin/other && echo done`))
	if got := read(t, dir+"/lib/bin/tool"); got != "own\n" || !strings.HasSuffix(out, "done\n") {
		t.Errorf("the file is %q; %s", got, out)
	}
}

func TestProtectDoesNotFollowLinksOutOfTheWorkspace(t *testing.T) {
	l := sandboxed(t)
	dir := workspace(t)
	p := &spec.Profile{Workspace: dir, Access: spec.AccessReadWrite}
	run(t, l, shell(p, "cd "+dir+" && mkdir real && echo x > real/config && ln -s real .git && ln -s real/config config"))
	for _, path := range []string{"/.git/config", "/config"} {
		err := l.Protect(t.Context(), []string{dir + path}, nil)
		if err == nil || reason.Of(err) != reason.IsolationUnavailable || !strings.Contains(err.Error(), "can be replaced") && !strings.Contains(err.Error(), "too many levels") {
			t.Errorf("a path through a link was taken: %v", err)
		}
	}
}

func TestProtectTakesManyPaths(t *testing.T) {
	l := sandboxed(t)
	dir := workspace(t)
	var masked []string
	for i := range 1500 {
		name := fmt.Sprintf("%s/%s-%d", dir, strings.Repeat("n", 100), i)
		if i%100 == 0 {
			write(t, name, "secret\n")
		}
		masked = append(masked, name)
	}
	if err := l.Protect(t.Context(), nil, masked); err != nil {
		t.Fatal(err)
	}
	out, errs, _ := run(t, l, shell(&spec.Profile{Workspace: dir, Access: spec.AccessReadOnly}, "cat "+dir+"/*"))
	if out != "" || strings.Count(errs, "Permission denied") != 15 {
		t.Errorf("output %q, %q", out, errs)
	}
}

func TestDaemonsInASandboxDieWithTheirProgram(t *testing.T) {
	l := sandboxed(t)
	p := &spec.Profile{}
	other, err := l.Start(t.Context(), shell(p, "exec sleep 300")) // another program, which must live on
	if err != nil {
		t.Fatal(err)
	}
	awaitProgram(t, l, p, "sleep 300")
	for name, end := range map[string]string{"killed": "exec sleep 300", "ended by itself": "exit 9"} {
		t.Run(name, func(t *testing.T) {
			var out buffer
			s := shell(p, daemons+end)
			s.Stdout = &out
			proc, err := l.Start(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			if name == "killed" {
				said(t, &out, 4)
				proc.Kill(0)
			}
			exit := proc.Wait()
			if (name == "killed") != (exit.Signal == "killed") || (name != "killed" && exit.Code != 9) {
				t.Errorf("exit = %v", exit)
			}
			left, _, _ := run(t, l, shell(p, "ps -e -o stat=,comm= | grep -v ^Z | grep -c sleep"))
			if left != "1\n" {
				t.Errorf("%s sleeps are left, want that of the other program", left)
			}
		})
	}
	select {
	case <-other.Done():
		t.Error("the other program was killed too")
	default:
	}
}

func TestStraysDieWithTheLastProgram(t *testing.T) {
	l := sandboxed(t)
	p := &spec.Profile{}
	var out buffer
	s := shell(p, `(setsid bash -c 'ulimit -R 1000000 && (setsid sleep 300 &) ; echo off; touch /tmp/off' &); until [ -e /tmp/off ]; do sleep 0.01; done`) // neither mark nor parent
	s.Stdout = &out
	proc, err := l.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	proc.Wait()
	if out.String() != "off\n" {
		t.Errorf("output = %q, want the mark taken off", out.String())
	}
	if left, _, _ := run(t, l, shell(p, "ps -e -o stat=,comm= | grep -v ^Z | grep -c sleep")); left != "0\n" {
		t.Errorf("%s sleeps are left", left)
	}
}

// A process that leaves its parents and throws its mark away ends with its program,
// also while others run in the sandbox.
func TestStraysDieBesideOtherPrograms(t *testing.T) {
	l := sandboxed(t)
	p := &spec.Profile{}
	other, err := l.Start(t.Context(), shell(p, "(setsid sleep 1234 &); exec sleep 300"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Kill(0)
	awaitProgram(t, l, p, "sleep 1234")
	for _, script := range []string{
		"(setsid bash -c 'ulimit -SHR 77; (setsid sleep 4321 & echo $! > /tmp/pid)' &); while [ ! -s /tmp/pid ]; do sleep 0.01; done",
		"ulimit -SHR 78; (setsid sleep 4321 >/dev/null 2>&1 &); echo done",
	} {
		s := shell(p, "")
		s.Argv = []string{"/bin/bash", "-c", "rm -f /tmp/pid; " + script}
		if _, errs, _ := run(t, l, s); errs != "" {
			t.Fatalf("%s: %s", script, errs)
		}
		if out, _, _ := run(t, l, shell(p, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")); strings.Contains(out, "sleep 4321") {
			t.Errorf("%s: something outlived its program: %s", script, out)
		} else if !strings.Contains(out, "sleep 1234") {
			t.Errorf("%s: what belongs to another program was ended: %s", script, out)
		}
	}
}

// awaitProgram waits until a program runs in the sandbox: the one that starts it may not
// have come to it.
func awaitProgram(t *testing.T, l *Launcher, p *spec.Profile, line string) {
	t.Helper()
	var out string
	waitFor(t, func() bool {
		out, _, _ = run(t, l, shell(p, "ps -e -o args="))
		return slices.Contains(strings.Split(out, "\n"), line)
	}, func() string { return "it does not run: " + line + "\n" + out })
}

func TestKillInASandboxAsksFirst(t *testing.T) {
	l := sandboxed(t)
	var out buffer
	s := shell(&spec.Profile{}, `trap 'echo bye; exit 5' TERM; echo 1; while :; do sleep 0.01; done`)
	s.Stdout = &out
	proc, err := l.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	said(t, &out, 1)
	proc.Kill(patience)
	if exit := proc.Wait(); exit.Code != 5 || out.String() != "1\nbye\n" {
		t.Errorf("exit %v, output %q, want a chance to say bye", exit, out.String())
	}
}

func TestAFreshSandboxEndsWithItsProgram(t *testing.T) {
	l := sandboxed(t)
	s := shell(&spec.Profile{}, "(setsid sleep 300 &); exit 4")
	s.Fresh = true
	if _, _, exit := run(t, l, s); exit.Code != 4 {
		t.Errorf("exit = %v", exit)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.instances) != 0 {
		t.Errorf("%d sandboxes stand", len(l.instances))
	}
}

func TestAKilledSandboxTakesItsProgramsAlongAndTheNextOneStands(t *testing.T) {
	l := sandboxed(t)
	p := &spec.Profile{}
	proc, err := l.Start(t.Context(), shell(p, "sleep 300"))
	if err != nil {
		t.Fatal(err)
	}
	if err := proc.inner.instance.proc.Kill(); err != nil {
		t.Fatal(err)
	}
	if exit := proc.Wait(); exit.Signal != "killed" {
		t.Errorf("exit = %v", exit)
	}
	<-proc.inner.instance.gone
	if out, _, _ := run(t, l, shell(p, "echo again")); out != "again\n" {
		t.Errorf("output = %q", out)
	}
}

func TestCloseEndsEverySandbox(t *testing.T) {
	needed(t)
	l := New(Options{})
	var ps []*Process
	for i := range 4 {
		p, err := l.Start(t.Context(), shell(&spec.Profile{Group: strconv.Itoa(i % 2)}, "sleep 300"))
		if err != nil {
			t.Fatal(err)
		}
		ps = append(ps, p)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, p := range ps {
		select {
		case <-p.Done():
		default:
			t.Errorf("process %d is left", p.PID())
		}
	}
	if _, err := l.Start(t.Context(), shell(&spec.Profile{}, "true")); !errors.Is(err, errClosed) {
		t.Errorf("start after Close: %v", err)
	}
}

func TestAStartInASandboxCanBeGivenUp(t *testing.T) {
	l := sandboxed(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Start(ctx, shell(&spec.Profile{}, "true")); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v", err)
	}
	if out, _, _ := run(t, l, shell(&spec.Profile{}, "echo ok")); out != "ok\n" {
		t.Errorf("output = %q", out)
	}
}

// marked counts the processes of this host whose environment has the marker.
func marked(marker string) (n int) {
	for _, pid := range pids() {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && bytes.Contains(b, []byte("MARKER="+marker)) && alive(pid) {
			n++
		}
	}
	return n
}

func TestNobodyOutlivesAKilledRunner(t *testing.T) {
	marker := filepath.Base(workspace(t)) + strconv.Itoa(os.Getpid()) + t.Name()
	var out buffer
	r, err := sandboxed(t).Start(t.Context(), Spec{
		Argv: []string{self(t), "be-a-sandboxed-runner", marker}, Dir: "/", Stdout: &out, Stderr: &out,
		Env: []string{"PATH=/usr/bin:/bin", "AGENTCTL_LIBEXEC=" + os.Getenv("AGENTCTL_LIBEXEC"), "TMPDIR=" + t.TempDir()},
	})
	if err != nil {
		t.Fatal(err)
	}
	said(t, &out, 1)
	waitFor(t, func() bool { return marked(marker) >= 15 }, func() string { return fmt.Sprintf("%d processes, %s", marked(marker), out.String()) })
	if err := syscall.Kill(r.PID(), syscall.SIGKILL); err != nil { // the runner only
		t.Fatal(err)
	}
	waitFor(t, func() bool { return marked(marker) == 0 }, func() string { return fmt.Sprintf("%d processes are left", marked(marker)) })
}

func waitFor(t *testing.T, ok func() bool, what func() string) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatal(what())
}

func TestAHundredStartsLeaveNothing(t *testing.T) {
	needed(t)
	temp := workspace(t)
	count := func() (fds, mounts, folders int) {
		list, _ := os.ReadDir("/proc/self/fd")
		left, _ := os.ReadDir(scratchHome(temp))
		return len(list), strings.Count(read(t, "/proc/self/mountinfo"), temp), len(left)
	}
	round := func(n int) {
		l := New(Options{TempDir: temp})
		for i := range n {
			s := shell(&spec.Profile{}, "(setsid sleep 300 &)")
			s.Fresh = i%2 == 0
			run(t, l, s)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	round(2)
	fds, mounts, _ := count()
	round(100)
	fdsAfter, mountsAfter, folders := count()
	if fdsAfter > fds || mountsAfter > mounts || folders != 0 {
		t.Errorf("descriptors %d → %d, mounts %d → %d, %d folders left", fds, fdsAfter, mounts, mountsAfter, folders)
	}
	for _, q := range processes(pids()) {
		if q.parent == os.Getpid() && q.state == 'Z' {
			t.Errorf("zombie %d", q.pid)
		}
	}
}

func TestFoldersOfKilledRunnersAreSwept(t *testing.T) {
	needed(t)
	temp := workspace(t)
	home := scratchHome(temp)
	dead, other := filepath.Join(home, scratchName+"dead"), filepath.Join(home, "other")
	write(t, dead+"/s/1/plugin", "")
	write(t, other+"/file", "")
	stands, err := newScratch(temp)
	if err != nil {
		t.Fatal(err)
	}
	defer stands.remove()
	l := New(Options{TempDir: temp}) // the first sandbox of a launcher sweeps
	run(t, l, shell(&spec.Profile{}, "true"))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dead); err == nil {
		t.Error("the folder of a dead runner is left")
	}
	for _, dir := range []string{stands.dir, other} {
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("%s was swept: %v", dir, err)
		}
	}
}

func TestAFolderOfSomebodyElseIsNotTrusted(t *testing.T) {
	temp := workspace(t)
	mine := scratchHome(temp)
	if err := os.Chmod(mine, 0o777); err != nil { //nolint:gosec // that is what is tested
		t.Fatal(err)
	}
	if got := scratchHome(temp); got != "" {
		t.Errorf("%s was taken although others may write there", got)
	}
	s, err := newScratch(temp)
	if err != nil {
		t.Fatal(err)
	}
	defer s.remove()
	if filepath.Dir(s.dir) != temp {
		t.Errorf("%s lies in the folder of others", s.dir)
	}
}

func TestACheckedProgramIsTheOneThatWasChecked(t *testing.T) {
	l := sandboxed(t)
	dir := workspace(t)
	script, binary := dir+"/script", dir+"/binary"
	write(t, script, "#!/bin/sh\necho checked $1; cat $0 >/dev/null && echo readable\n")
	write(t, binary, read(t, "/bin/echo"))
	for path, want := range map[string]string{script: "checked x\nreadable\n", binary: "x\n"} {
		sum := sha256.Sum256([]byte(read(t, path)))
		out, errs, _ := run(t, l, Spec{Argv: []string{path, "x"}, Sha256: hex.EncodeToString(sum[:]), Env: []string{"PATH=/usr/bin:/bin"}, Profile: &spec.Profile{}})
		if out != want {
			t.Errorf("%s: %q (%s), want %q", path, out, errs, want)
		}
	}
	// Inside, the path shows another file.
	fake := dir + "/fake"
	write(t, fake, "#!/bin/sh\necho fake\n")
	sum := sha256.Sum256([]byte(read(t, script)))
	_, err := l.Start(t.Context(), Spec{
		Argv: []string{script}, Dir: "/", Sha256: hex.EncodeToString(sum[:]),
		Profile: &spec.Profile{Mounts: []spec.Mount{{Source: fake, Target: script}}},
	})
	if err == nil || !strings.Contains(err.Error(), "not the file whose checksum was taken") {
		t.Errorf("another program was started: %v", err)
	}
}

// A program that can write to its own file could plant itself on the host.
func TestAProgramCannotRewriteItself(t *testing.T) {
	l := sandboxed(t)
	dir := workspace(t)
	tool := dir + "/tool"
	write(t, tool, read(t, "/bin/sh"))
	sum := sha256.Sum256([]byte(read(t, tool)))
	out, errs, _ := run(t, l, Spec{
		Argv: []string{tool, "-c", `exec 9</proc/self/exe; exec /bin/sh -c 'echo evil >/proc/self/fd/9 || echo refused; echo evil > ` + tool + ` || echo refused'`},
		Env:  []string{"PATH=/usr/bin:/bin"}, Sha256: hex.EncodeToString(sum[:]), Profile: &spec.Profile{},
	})
	if out != "refused\nrefused\n" || strings.Count(errs, "Read-only file system") != 2 {
		t.Errorf("output %q, %q", out, errs)
	}
	if read(t, tool) != read(t, "/bin/sh") {
		t.Error("the program was changed")
	}
}

func TestLimitsAreInForceOrNamed(t *testing.T) {
	l := sandboxed(t)
	p := &spec.Profile{Limits: spec.Limits{Memory: 128 << 20, Pids: 20, CPU: 500, Files: 64, FileSize: 1 << 20, Scratch: 1 << 20}}
	// Of a program that takes too much, its own limit or that of all programs together
	// comes first, as the machine is fast or slow: it fails, or it is killed.
	for name, c := range map[string]struct{ script, want string }{
		"files":     {"ulimit -n", "64"},
		"core":      {"ulimit -c", "0"},
		"file size": {"head -c 2000000 /dev/zero > /dev/shm/f; echo $?; stat -c %s /dev/shm/f", "1048576"},
		"memory":    {"head -c 400000000 /dev/zero | tail -c 300000000 >/dev/null; case $? in 1 | 137) echo ended ;; esac", "ended"},
		"scratch":   {"head -c 900000 /dev/zero > /tmp/a; head -c 900000 /dev/zero > /tmp/b || echo full", "full"},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, _ := run(t, l, shell(p, c.script))
			if !strings.Contains(out+"\n", c.want+"\n") {
				t.Errorf("output %q, %q, want %q", out, errs, c.want)
			}
		})
	}
	bomb := shell(p, `for i in $(seq 60); do sleep 5 & done 2>&1; echo $(jobs -p | wc -l)`)
	var out buffer
	bomb.Stdout = &out
	proc, err := l.Start(t.Context(), bomb)
	if err != nil {
		t.Fatal(err)
	}
	proc.Wait()
	named := strings.Join(proc.Unenforced(), "; ")
	if os.Getuid() == 0 {
		if !strings.Contains(named, "pids") {
			t.Errorf("pids of root are not named: %q", named)
		}
	} else if !strings.Contains(out.String(), "Cannot fork") && !strings.Contains(out.String(), "Resource temporarily unavailable") && out.String() != "" {
		t.Errorf("60 processes under a limit of 20: %q", out.String())
	}
	for _, want := range []string{"memory: no cgroup", "cpu: no cgroup"} {
		if !strings.Contains(named, want) {
			t.Errorf("unenforced = %q, want %q", named, want)
		}
	}
	if out, _, _ := run(t, l, shell(p, "echo alive")); out != "alive\n" {
		t.Error("the sandbox did not survive")
	}
}

func TestTheProxyIsServedFromOutside(t *testing.T) {
	needed(t)
	served := make(chan string, 8)
	l := New(Options{Serve: func(ctx context.Context, ln net.Listener, p *spec.Profile) {
		stop := context.AfterFunc(ctx, func() { _ = ln.Close() })
		defer stop()
		for {
			c, err := ln.Accept()
			if err != nil {
				served <- "closed"
				return
			}
			b := make([]byte, 64)
			n, _ := c.Read(b)
			served <- string(b[:n]) + " " + strings.Join(p.Allow, ",")
			_, _ = c.Write([]byte("answer\n"))
			_ = c.Close()
		}
	}})
	p := &spec.Profile{Network: spec.NetworkProxy, Allow: []string{"example.com:443"}}
	s := Spec{
		Argv: []string{"/bin/bash", "-c", `exec 3<>/dev/tcp/127.0.0.1/3128; printf hello >&3; cat <&3; env | grep -i _proxy | sort`},
		Env:  []string{"PATH=/usr/bin:/bin", "HTTP_PROXY=http://declared"}, Profile: p,
	}
	out, errs, _ := run(t, l, s)
	const proxy = "=http://127.0.0.1:3128\n"
	want := "answer\nALL_PROXY" + proxy + "HTTPS_PROXY" + proxy + "HTTP_PROXY=http://declared\nall_proxy" + proxy + "http_proxy" + proxy + "https_proxy" + proxy
	if out != want {
		t.Errorf("output %q (%s), want %q", out, errs, want)
	}
	if got := <-served; got != "hello example.com:443" {
		t.Errorf("served %q", got)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if got := <-served; got != "closed" { // Close waits for the server
		t.Errorf("served %q", got)
	}
}

func TestLoopbackWorksInsideAnEmptyNetwork(t *testing.T) {
	out, errs, _ := run(t, sandboxed(t), Spec{
		Argv: []string{"/bin/bash", "-c", `(exec 3<>/dev/tcp/127.0.0.1/1) 2>&1; (exec 3<>/dev/tcp/192.0.2.1/80) 2>&1; cat /proc/net/dev | wc -l`},
		Env:  []string{"PATH=/usr/bin:/bin"}, Profile: &spec.Profile{},
	})
	if !strings.Contains(out, "Connection refused") || !strings.Contains(out, "Network is unreachable") || !strings.Contains(out, "\n3\n") {
		t.Errorf("output %q (%s)", out, errs)
	}
}

// A program inside could put a link in the place of a socket that was checked.
func TestASocketIsTakenAwayBeforeItIsLookedAt(t *testing.T) {
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
	folder := fmt.Sprintf("/proc/self/fd/%d", p.folder.open.Fd())
	socket, err := net.Listen("unix", folder+"/real")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.Close() }()
	_, path, err := p.PluginToHost("unix", p.socketDir+"/real")
	if err != nil || filepath.Dir(path) != fmt.Sprintf("/proc/self/fd/%d", r.dir.sockets.Fd()) {
		t.Fatalf("path %q, %v", path, err)
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatalf("connect to the socket where it is now: %v", err)
	}
	_ = c.Close()
	if _, err := os.Lstat(folder + "/real"); err == nil {
		t.Error("programs inside still see the socket")
	}
	if err := os.Symlink("/run/docker.sock", folder+"/link"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link", "none"} {
		if _, got, err := p.PluginToHost("unix", p.socketDir+"/"+name); err == nil {
			t.Errorf("%s was taken as %q", name, got)
		}
	}
}

// What a tool can write besides the files of the run is in memory and bounded, in
// bytes and in files.
func TestEveryPlaceOfASandboxHasABound(t *testing.T) {
	l := sandboxed(t)
	p := &spec.Profile{Home: "/home/agent", Limits: spec.Limits{Scratch: 4 << 20}}
	for place, most := range map[string]int64{spec.SocketDir: spec.SocketSpace, "/tmp": 4 << 20, "/var/tmp": 4 << 20, "/home/agent": 4 << 20, "/dev/shm": 64 << 20} {
		s := shell(p, "cd "+place+" && head -c 80000000 /dev/zero > full; stat -c %s full; stat -f -c %c .; rm full")
		out, errs, _ := run(t, l, s)
		var size, files int64
		if _, err := fmt.Sscan(out, &size, &files); err != nil {
			t.Fatalf("%s: %q %q", place, out, errs)
		}
		if size > most || files <= 0 || files > 1<<17 || !strings.Contains(errs, "No space left") {
			t.Errorf("%s holds %d bytes, want at most %d, and %d files (%s)", place, size, most, files, errs)
		}
	}
	places, _, _ := run(t, l, shell(p, `for d in / /run /etc /usr /dev /proc /sys /home /mnt; do touch $d/new 2>/dev/null && echo $d; done; cat /proc/mounts`))
	for line := range strings.Lines(places) {
		f := strings.Fields(line)
		if len(f) == 1 {
			t.Errorf("%s can be written to", f[0])
		} else if f[2] != "tmpfs" && strings.HasPrefix(f[3], "rw") {
			t.Errorf("%s is on the host and can be written to: %s", f[1], line)
		}
	}
}

// The folders of killed runners could not be removed because a program had made a
// folder below a folder, 20,000 times. Now nothing of a program is in them.
func TestNothingOfAProgramIsLeftOnTheHost(t *testing.T) {
	l := sandboxed(t)
	s := shell(&spec.Profile{}, "cd "+spec.SocketDir+"; while mkdir d 2>/dev/null && cd d; do :; done; echo done")
	s.Fresh = true
	r, err := l.house(t.Context(), &s)
	if err != nil {
		t.Fatal(err)
	}
	var out buffer
	s.Stdout = &out
	p, err := l.startIn(t.Context(), r, s)
	if err != nil {
		t.Fatal(err)
	}
	p.Wait()
	if out.String() != "done\n" {
		t.Errorf("output %q", out.String())
	}
	if _, err := os.Lstat(r.dir.dir); err == nil {
		list, _ := os.ReadDir(r.dir.dir)
		t.Errorf("%s is left with %v", r.dir.dir, list)
	}
}

func TestPluginsInASandbox(t *testing.T) {
	t.Parallel()
	l := sandboxed(t)
	command := []string{self(t), "serve-fixtures"}
	env := []string{"DECLARED=yes", "PATH=/usr/bin:/bin"}
	p := &spec.Profile{Mounts: []spec.Mount{{Source: command[0]}}}
	sdktest.RunFixtures(t, sdktest.Program{
		Command: command, Env: env,
		Launch: l.PluginRunner(Spec{Argv: command, Env: env, Dir: "/tmp", Profile: p}),
		Alive: func(pid int) bool {
			out, _, _ := run(t, l, shell(p, "cat /proc/"+strconv.Itoa(pid)+"/stat"))
			return out != "" && !strings.Contains(out, ") Z ") // it may not have been collected yet
		},
	})
}

// A descriptor that the runner was started with, as make and CI do, is none of
// the program's.
func TestInheritedDescriptorsEndAtTheHelper(t *testing.T) {
	l := sandboxed(t)
	fd, err := unix.Open("/etc", unix.O_RDONLY|unix.O_DIRECTORY, 0) // not closed on exec
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Dup2(fd, 42); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(42) }()
	out, errs, _ := run(t, l, shell(&spec.Profile{}, "ls /proc/self/fd/; ls /proc/self/fd/42/"))
	if strings.Contains(out, "42") || !strings.Contains(errs, "No such file") {
		t.Errorf("descriptors %q, %q", out, errs)
	}
}
