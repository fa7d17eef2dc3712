//go:build linux

package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/sandbox"
	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// counted is the variable with the folder for the coverage of a helper of the
// tests. asked is the file that asks the helper to end, which is when a program
// writes its coverage.
const (
	counted = "/var/counted"
	asked   = counted + "/asked"
)

// TestMain makes the test's own binary the helper, so that what it does counts.
func TestMain(m *testing.M) {
	switch {
	case os.Getpid() == 1 && os.Args[0] == sandbox.Helper:
		_ = os.Setenv("GOCOVERDIR", counted)
		go func() { // signals from inside do not reach it
			for range time.Tick(2 * time.Millisecond) {
				if os.Remove(asked) == nil {
					os.Exit(0)
				}
			}
		}()
		os.Exit(run())
	case len(os.Args) > 1 && os.Args[1] == spec.ForkArg:
		os.Exit(run())
	}
	os.Exit(m.Run())
}

// box is a launcher whose helper is this test, and the mount in which it
// reports its actions.
type box struct {
	*sandbox.Launcher
	t     *testing.T
	count spec.Mount
}

func newBox(t *testing.T, o sandbox.Options) *box {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if f := flag.Lookup("test.gocoverdir"); f != nil && f.Value.String() != "" {
		dir = f.Value.String()
	}
	o.Helper = exe
	if err := sandbox.New(o).Require("x", v1alpha1.IsolationSandbox, v1alpha1.NetworkNone); err != nil {
		t.Skip(err)
	}
	b := &box{sandbox.New(o), t, spec.Mount{Source: dir, Target: counted, Writable: true}}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// run starts a program and returns what it wrote.
func (b *box) run(s sandbox.Spec) (string, error) {
	b.t.Helper()
	s.Profile.Mounts = append(s.Profile.Mounts[:len(s.Profile.Mounts):len(s.Profile.Mounts)], b.count)
	if s.Dir == "" {
		s.Dir = "/"
	}
	s.Env = append(s.Env, "PATH=/usr/bin:/bin", "HOME=/home/agent")
	var out bytes.Buffer
	s.Stdout, s.Stderr = &out, nil
	p, err := b.Start(b.t.Context(), s)
	if err != nil {
		return "", err
	}
	p.Wait()
	return out.String(), nil
}

// sh runs a script.
func (b *box) sh(p spec.Profile, script string) string {
	b.t.Helper()
	out, err := b.run(sandbox.Spec{Argv: []string{"/bin/bash", "-c", "exec 2>&1; " + script}, Profile: &p})
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

// end ends a sandbox so that what its helper did counts.
func (b *box) end(p spec.Profile) {
	b.t.Helper()
	_, _ = b.run(sandbox.Spec{Argv: []string{"/bin/sh", "-c", "touch " + asked + "; sleep 10"}, Profile: &p}) // it ends under the program
}

func TestASandboxIsWhatItsProfileSays(t *testing.T) {
	b := newBox(t, sandbox.Options{Serve: func(ctx context.Context, l net.Listener, _ *spec.Profile) {
		defer context.AfterFunc(ctx, func() { _ = l.Close() })()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "proxy\n")
			_ = c.Close()
		}
	}})
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"deep/fixed", "deep/secret", "secrets/key"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(ws, f)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(ws, f), []byte(f+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := spec.Profile{
		Workspace: ws, Access: spec.AccessReadWrite, Network: spec.NetworkProxy,
		Mounts:   []spec.Mount{{Source: "/etc/hostname", Target: "/opt/name", NoExec: true, Optional: true}, {Source: "/no/such", Optional: true}},
		ReadOnly: []string{ws + "/deep/fixed"}, Masked: []string{ws + "/deep/secret", ws + "/secrets", ws + "/absent"},
		// So much, for the helper is this test, and the race detector is generous.
		Limits: spec.Limits{Memory: 64 << 30, Pids: 100, CPU: 1000, Scratch: 4 << 20},
	}
	got := b.sh(p, "cd "+ws+`; cat <>/dev/tcp/127.0.0.1/3128; cat deep/fixed; touch deep/fixed; cat deep/secret; ls secrets; touch new ~/x /tmp/x && echo written
		echo $PWD; hostname; grep -c . /etc/resolv.conf; ls /; setsid sleep 100 & disown; sleep 0.01`)
	b.end(p)
	for _, want := range []string{"proxy\ndeep/fixed\n", "'deep/fixed': Read-only", "deep/secret: Permission denied", "'secrets': Permission denied", "written\n" + ws + "\nsandbox\n1\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in:\n%s", want, got)
		}
	}
	host := b.sh(spec.Profile{Network: spec.NetworkHost}, "cat /etc/hosts")
	b.end(spec.Profile{Network: spec.NetworkHost})
	if want, err := os.ReadFile("/etc/hosts"); err == nil && host != string(want) {
		t.Errorf("hosts = %q, want the host's", host)
	}
}

func TestAProgramInASandboxIsStartedSignalledAndSwept(t *testing.T) {
	b := newBox(t, sandbox.Options{})
	p := spec.Profile{}
	env := []string{"PATH=/usr/bin:/bin", "HOME=/home/agent"}
	shared := &spec.Profile{Mounts: []spec.Mount{b.count}}
	keep, err := b.Start(t.Context(), sandbox.Spec{Argv: []string{"/bin/sleep", "100"}, Dir: "/", Env: env, Profile: shared})
	if err != nil {
		t.Fatal(err)
	}
	trapped, said := io.Pipe()
	one, err := b.Start(t.Context(), sandbox.Spec{
		Argv: []string{"/bin/sh", "-c", "trap 'exit 7' TERM; (setsid sleep 100 &); echo on; while :; do sleep 0.01; done"},
		Dir:  "/", Env: env, Profile: shared, Stdout: said,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := trapped.Read(make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	one.Kill(time.Minute)
	if exit := one.Wait(); exit.Code != 7 {
		t.Errorf("exit = %v, want what it says at a SIGTERM", exit)
	}
	if got := b.sh(p, "ps -e -o stat=,comm= | grep -v ^Z | grep -c sleep"); got != "1\n" {
		t.Errorf("%q sleeps are left, want the other program's", got)
	}
	keep.Kill(0)
	if exit := keep.Wait(); exit.Signal != "killed" {
		t.Errorf("exit = %v", exit)
	}
	for want, s := range map[string]sandbox.Spec{
		"no such file or directory": {Argv: []string{"/bin/true"}, Dir: "/no/such"},
		"not a directory":           {Argv: []string{"/bin/true"}, Dir: "/etc/passwd"},
		"its sha256 is":             {Argv: []string{"/bin/true"}, Dir: "/", Sha256: strings.Repeat("0", 64)},
		"bind /no/such":             {Argv: []string{"/bin/true"}, Profile: &spec.Profile{Mounts: []spec.Mount{{Source: "/no/such"}}}},
		"is a link":                 {Argv: []string{"/bin/true"}, Profile: &spec.Profile{Mounts: []spec.Mount{{Source: "/usr/bin/true", Target: "/bin/x"}}}},
	} {
		if s.Profile == nil {
			s.Profile = &spec.Profile{}
		}
		if out, err := b.run(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q, %v, want %q", out, err, want)
		}
	}
	b.end(p)
}

func TestTheHelperIsNotForPeople(t *testing.T) {
	if code := run(); code != 2 {
		t.Errorf("exit code %d, want 2", code)
	}
}
