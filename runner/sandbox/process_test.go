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
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/reason"
)

// patience ends what hangs. Nothing here is slow when it takes less: machines are
// busy.
const patience = time.Minute

// buffer is a bytes.Buffer for two goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func sh(script string) []string { return []string{"/bin/sh", "-c", script} }

// run starts a program, waits for it and returns what it wrote.
func run(t *testing.T, l *Launcher, spec Spec) (out, errs string, exit ExitInfo) {
	t.Helper()
	var o, e buffer
	spec.Stdout, spec.Stderr = &o, &e
	if spec.Dir == "" {
		spec.Dir = "/"
	}
	p, err := l.Start(t.Context(), spec)
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	exit = p.Wait()
	return o.String(), e.String(), exit
}

func TestEnvironmentIsExactlyTheDeclaredOne(t *testing.T) {
	l := launcher(t)
	for _, env := range [][]string{nil, {}, {"A=1", "B=x y"}} {
		out, _, _ := run(t, l, Spec{Argv: []string{"/usr/bin/env"}, Env: env})
		if want := strings.Join(append(append([]string{}, env...), ""), "\n"); out != want {
			t.Errorf("environment = %q, want %q", out, want)
		}
	}
}

func TestStandardStreams(t *testing.T) {
	l := launcher(t)
	out, errs, exit := run(t, l, Spec{Argv: sh("cat; echo err >&2; pwd; exit 3"), Dir: "/usr", Env: []string{"PATH=/usr/bin:/bin"}, Stdin: strings.NewReader("in\n")})
	if out != "in\n/usr\n" || errs != "err\n" || exit != (ExitInfo{Code: 3}) {
		t.Errorf("out %q, err %q, exit %v", out, errs, exit)
	}
	out, _, _ = run(t, l, Spec{Argv: sh("wc -c; readlink /proc/self/fd/0")})
	if out != "0\n/dev/null\n" {
		t.Errorf("without stdin: %q, want an empty one", out)
	}
	large := strings.Repeat("x", 3<<20)
	if out, _, _ = run(t, l, Spec{Argv: []string{"cat"}, Stdin: strings.NewReader(large)}); out != large {
		t.Errorf("cat returned %d bytes of %d", len(out), len(large))
	}
}

func TestSignalsAreNamed(t *testing.T) {
	_, _, exit := run(t, launcher(t), Spec{Argv: sh("kill -SEGV $$")})
	if exit.Code != -1 || exit.Signal != "segmentation fault" || exit.String() != "signal segmentation fault" {
		t.Errorf("exit = %+v", exit)
	}
	if got := (ExitInfo{Code: 2}).String(); got != "exit code 2" {
		t.Errorf("exit = %q", got)
	}
}

func TestStartSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string, mode os.FileMode) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return p
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o700); err != nil {
		t.Fatal(err)
	}
	loose := func(mode, folder os.FileMode) string {
		at := filepath.Join(t.TempDir(), "below")
		err := errors.Join(os.Mkdir(at, 0o700), os.WriteFile(at+"/program", []byte("#!/bin/sh\n"), 0o700), os.Chmod(at+"/program", mode), os.Chmod(at, folder))
		if err != nil {
			t.Fatal(err)
		}
		return at + "/program"
	}
	l := launcher(t)
	for want, spec := range map[string]Spec{
		"every user of this machine can change it":           {Argv: []string{loose(0o777, 0o700)}, Dir: "/"},
		"every user of this machine can replace it":          {Argv: []string{loose(0o755, 0o777)}, Dir: "/"},
		"every user of this machine can replace it, because": {Argv: []string{"/bin/sh", "-e", loose(0o755, 0o777)}, Dir: "/"},
		"can change it (mode -rwxrwxrwx)":                    {Argv: []string{"/bin/sh", loose(0o777, 0o700)}, Dir: "/"},
		"the command is empty":                               {},
		"no such file":                                       {Argv: []string{"/no/such/program"}, Dir: "/"},
		"no such program in /usr/bin":                        {Argv: []string{"no-such-program"}, Dir: "/", Env: []string{"PATH=/usr/bin"}},
		"no such program in .:relative":                      {Argv: []string{"plain"}, Dir: dir, Env: []string{"PATH=.:relative"}},
		"not executable (mode -rw-------)":                   {Argv: []string{write("plain", "x", 0o600)}, Dir: "/"},
		"is a folder":                                        {Argv: []string{dir}, Dir: "/"},
		"not a regular file":                                 {Argv: []string{filepath.Join(dir, "fifo")}, Dir: "/"},
		"exec format error":                                  {Argv: []string{write("garbage", "\x00\x01garbage", 0o700)}, Dir: "/"},
		"the interpreter it names":                           {Argv: []string{write("orphan", "#!/no/such/interpreter\n", 0o700)}, Dir: "/"},
		"is not absolute":                                    {Argv: []string{"true"}, Dir: "."},
		"working folder":                                     {Argv: []string{"true"}, Dir: "/no/such/folder"},
		"is not a folder":                                    {Argv: []string{"true"}, Dir: "/etc/passwd"},
		"NUL byte":                                           {Argv: []string{"true", "a\x00b"}, Dir: "/"},
	} {
		p, err := l.Start(t.Context(), spec)
		if err == nil {
			p.Kill(0)
			t.Errorf("%v started, want %q", spec, want)
			continue
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %q, want %q", spec.Argv, err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Start(ctx, Spec{Argv: []string{"true"}, Dir: "/"}); !errors.Is(err, context.Canceled) {
		t.Errorf("start in a cancelled context: %v", err)
	}
}

func TestRelativeProgramsStartAtTheFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tool"), []byte("#!/bin/sh\necho $0 $1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	out, _, _ := run(t, launcher(t), Spec{Argv: []string{"./tool", "a"}, Dir: dir})
	if want := dir + "/tool a\n"; out != want {
		t.Errorf("output = %q, want %q", out, want)
	}
}

func TestChecksums(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho checked $1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "binary")
	b, err := os.ReadFile("/bin/echo")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(binary, b, 0o700); err != nil {
		t.Fatal(err)
	}
	l := launcher(t)
	for _, c := range []struct{ path, want string }{{script, "checked x\n"}, {binary, "x\n"}} {
		b, _ := os.ReadFile(c.path)
		sum := sha256.Sum256(b)
		for _, declared := range []string{hex.EncodeToString(sum[:]), "sha256:" + strings.ToUpper(hex.EncodeToString(sum[:]))} {
			out, errs, _ := run(t, l, Spec{Argv: []string{c.path, "x"}, Sha256: declared})
			if out != c.want {
				t.Errorf("%s: %q (%s), want %q", c.path, out, errs, c.want)
			}
		}
		_, err := l.Start(t.Context(), Spec{Argv: []string{c.path}, Dir: "/", Sha256: strings.Repeat("0", 64)})
		if err == nil || reason.Of(err) != reason.ToolError || !strings.Contains(err.Error(), hex.EncodeToString(sum[:])) {
			t.Errorf("wrong checksum: %v, want a ToolError naming the right one", err)
		}
	}
}

func TestAChangedProgramIsNotTakenForTheOldOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tool")
	l := launcher(t)
	old := []byte("#!/bin/sh\necho old\n")
	if err := os.WriteFile(path, old, 0o700); err != nil {
		t.Fatal(err)
	}
	then := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, then, then); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(old)
	declared := hex.EncodeToString(sum[:])
	if out, _, _ := run(t, l, Spec{Argv: []string{path}, Sha256: declared}); out != "old\n" {
		t.Fatalf("output = %q", out)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho new\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, then, then); err != nil { // same size, same mtime
		t.Fatal(err)
	}
	if _, err := l.Start(t.Context(), Spec{Argv: []string{path}, Dir: "/", Sha256: declared}); err == nil {
		t.Error("the changed program was started")
	}
}

// daemons is a script that leaves one of each kind behind and prints their ids.
const daemons = `
sleep 301 & echo $!
setsid sleep 302 & echo $!
(setsid sh -c 'echo $$; exec sleep 303 </dev/null >/dev/null 2>&1' &)
(setsid sh -c '(setsid sh -c "echo \$\$; exec sleep 304 </dev/null >/dev/null 2>&1" &)' &)
`

func said(t *testing.T, out *buffer, n int) []int {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		if f := strings.Fields(out.String()); len(f) >= n {
			ids := make([]int, n)
			for i := range ids {
				ids[i], _ = strconv.Atoi(f[i])
			}
			return ids
		}
	}
	t.Fatalf("the script said %q, want %d process ids", out, n)
	return nil
}

func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	q, ok := parseStat(b)
	return err == nil && ok && q.state != 'Z' && q.state != 'X'
}

func noneAlive(t *testing.T, ids []int) {
	t.Helper()
	for _, pid := range ids {
		if alive(pid) {
			t.Errorf("process %d is left", pid)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func TestDaemonsDieWithTheTree(t *testing.T) {
	l := launcher(t)
	t.Run("killed", func(t *testing.T) {
		var out buffer
		p, err := l.Start(t.Context(), Spec{Argv: sh(daemons + "exec sleep 300"), Dir: "/", Stdout: &out})
		if err != nil {
			t.Fatal(err)
		}
		ids := append(said(t, &out, 4), p.PID())
		for _, pid := range ids {
			if !alive(pid) {
				t.Errorf("process %d does not run", pid)
			}
		}
		p.Kill(0)
		noneAlive(t, ids)
		if exit := p.Wait(); exit.Signal != "killed" {
			t.Errorf("exit = %v", exit)
		}
	})
	t.Run("ended by itself", func(t *testing.T) {
		var out buffer
		r, w := io.Pipe()
		p, err := l.Start(t.Context(), Spec{Argv: sh(daemons + "read x; exit 9"), Dir: "/", Stdout: &out, Stdin: r})
		if err != nil {
			t.Fatal(err)
		}
		ids := said(t, &out, 4)
		_ = w.Close()
		if exit := p.Wait(); exit.Code != 9 {
			t.Errorf("exit = %v", exit)
		}
		noneAlive(t, ids)
	})
}

func TestSomebodyWhoForksFasterDies(t *testing.T) {
	var out buffer
	p, err := launcher(t).Start(t.Context(), Spec{
		Argv: sh(`echo $$; while :; do setsid sh -c 'sleep 0.01; sleep 300' & sleep 0.002; done`), Dir: "/", Stdout: &out,
	})
	if err != nil {
		t.Fatal(err)
	}
	said(t, &out, 1)
	<-time.After(50 * time.Millisecond) // let there be some
	p.Kill(0)
	if left := p.members(); len(left) > 0 {
		t.Errorf("%d processes are left", len(left))
	}
}

func TestStrangersAreNotKilled(t *testing.T) {
	l := launcher(t)
	stranger, err := l.Start(t.Context(), Spec{Argv: []string{"sleep", "300"}, Dir: "/"})
	if err != nil {
		t.Fatal(err)
	}
	run(t, l, Spec{Argv: sh("sleep 0.01")})
	if !alive(stranger.PID()) {
		t.Error("ending one program killed another")
	}
}

func TestKillAsksFirst(t *testing.T) {
	l := launcher(t)
	var out buffer
	p, err := l.Start(t.Context(), Spec{Argv: sh(`trap 'echo bye; exit 5' TERM; echo 1; while :; do sleep 0.01; done`), Dir: "/", Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	said(t, &out, 1)
	p.Kill(patience)
	if exit := p.Wait(); exit.Code != 5 || out.String() != "1\nbye\n" {
		t.Errorf("exit %v, output %q, want a chance to say bye", exit, out.String())
	}
	var deaf buffer
	p, err = l.Start(t.Context(), Spec{Argv: sh(`trap '' TERM; echo 1; while :; do sleep 0.01; done`), Dir: "/", Stdout: &deaf})
	if err != nil {
		t.Fatal(err)
	}
	said(t, &deaf, 1)
	p.Kill(100 * time.Millisecond)
	if exit := p.Wait(); exit.Signal != "killed" {
		t.Errorf("exit %v, want it killed after the grace", exit)
	}
	p.Kill(0) // again: harmless
}

// TestProgramsDieWithTheRunner kills a runner as the kernel would.
func TestProgramsDieWithTheRunner(t *testing.T) {
	var out buffer
	r, err := launcher(t).Start(t.Context(), Spec{Argv: []string{self(t), "be-a-runner"}, Dir: "/", Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	child := said(t, &out, 1)[0]
	if !alive(child) {
		t.Fatalf("program %d of the runner does not run: %q", child, out.String())
	}
	if err := syscall.Kill(r.PID(), syscall.SIGKILL); err != nil { // the runner only
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		if !alive(child) {
			return
		}
	}
	t.Errorf("program %d outlived its runner", child)
}

type failing struct{ n int }

func (f *failing) Write(p []byte) (int, error) {
	f.n++
	return 0, errors.New("disk full")
}

func TestNobodyBlocksTheProgram(t *testing.T) {
	l := launcher(t)
	var f failing
	p, err := l.Start(t.Context(), Spec{Argv: sh("head -c 3000000 /dev/zero; echo x >&2"), Dir: "/", Stdout: &f})
	if err != nil {
		t.Fatal(err)
	}
	if exit := p.Wait(); exit.Code != 0 || f.n != 1 {
		t.Errorf("exit %v after %d writes, want 0 although nobody takes the output", exit, f.n)
	}
	r, w := io.Pipe() // never written to
	p, err = l.Start(t.Context(), Spec{Argv: []string{"true"}, Dir: "/", Stdin: r})
	if err != nil {
		t.Fatal(err)
	}
	if exit := p.Wait(); exit.Code != 0 {
		t.Errorf("exit %v, want 0 although stdin has no end", exit)
	}
	_ = w.Close()
}

func TestCloseEndsEverything(t *testing.T) {
	l := New(Options{})
	var ps []*Process
	for range 5 {
		p, err := l.Start(t.Context(), Spec{Argv: []string{"sleep", "300"}, Dir: "/"})
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
	if _, err := l.Start(t.Context(), Spec{Argv: []string{"true"}, Dir: "/"}); !errors.Is(err, errClosed) {
		t.Errorf("start after Close: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestManyStartAtOnce(t *testing.T) {
	l := launcher(t)
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			if out, _, exit := run(t, l, Spec{Argv: sh("echo $0; exit $1"), Env: nil}); exit.Code == 0 && out == "" {
				t.Errorf("%d: nothing", i)
			}
		})
	}
	wg.Wait()
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("1 (init) S 0 1 1 0 -1"))
	f.Add([]byte("7 (a) b) R 3) Z 5 6 7 8"))
	f.Add([]byte(") "))
	f.Add([]byte(")\x00 0 1 1"))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, b []byte) {
		if q, ok := parseStat(b); ok && q.state == 0 {
			t.Errorf("%q: no state", b)
		}
	})
}

func TestParseStatReadsNamesWithParentheses(t *testing.T) {
	q, ok := parseStat([]byte("7 (a) b) R 3) Z 5 6 7 8"))
	if !ok || q.state != 'Z' || q.parent != 5 || q.session != 7 {
		t.Errorf("parsed %+v, %v", q, ok)
	}
}

func BenchmarkStartWait(b *testing.B) {
	l := launcher(b)
	for b.Loop() {
		p, err := l.Start(context.Background(), Spec{Argv: []string{"/bin/true"}, Dir: "/", Stdout: io.Discard, Stderr: io.Discard})
		if err != nil {
			b.Fatal(err)
		}
		p.Wait()
	}
}
