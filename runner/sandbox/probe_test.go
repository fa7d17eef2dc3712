//go:build linux

package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/sandbox/spec"
)

func TestTheProbeIsKeptUntilTheNextBoot(t *testing.T) {
	needed(t)
	state := workspace(t)
	file := filepath.Join(state, "cache", "sandbox-probes.json")
	l := New(Options{State: state})
	if got := l.Level(); got != v1alpha1.IsolationSandbox {
		t.Fatalf("level = %s: %s", got, l.probe().Missing)
	}
	kept := read(t, file)
	key := l.probeKey()
	if p, ok := recall(file, key); !ok || p.Missing != "" || p.Landlock != l.probe().Landlock {
		t.Errorf("recalled %+v, %v", p, ok)
	}
	if _, ok := recall(file, key+"x"); ok {
		t.Error("the answer of another boot, kernel or helper was taken")
	}
	for name, spoil := range map[string]func() error{
		"garbage":            func() error { return os.WriteFile(file, []byte("{"), 0o600) },
		"empty":              func() error { return os.Truncate(file, 0) },
		"writable by others": func() error { return os.Chmod(file, 0o666) },
		"a link":             func() error { return os.Rename(file, file+"2") },
		"a bad answer": func() error {
			return os.WriteFile(file, []byte(strings.Replace(kept, `"missing":""`, `"missing":"x"`, 1)), 0o600)
		},
		"somebody else's own": func() error { return os.Chown(file, 12345, -1) },
	} {
		if name == "somebody else's own" && os.Getuid() != 0 {
			continue // only root can give a file away
		}
		_ = os.Remove(file)
		if err := os.WriteFile(file, []byte(kept), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if name == "a link" {
			if err := os.Symlink(file+"2", file); err != nil {
				t.Fatal(err)
			}
		}
		if _, ok := recall(file, key); ok {
			t.Errorf("%s: trusted", name)
		}
	}
}

func TestWithoutTheHelperThereIsNoSandbox(t *testing.T) {
	t.Setenv("AGENTCTL_LIBEXEC", "")
	l := New(Options{State: workspace(t)})
	err := l.Require("x", v1alpha1.IsolationSandbox, v1alpha1.NetworkNone)
	if err == nil || reason.Of(err) != reason.IsolationUnavailable || !strings.Contains(err.Error(), "agentctl-sandbox is not in ") || !strings.Contains(reason.Hint(err), "make build") {
		t.Errorf("error = %v, hint %q", err, reason.Hint(err))
	}
	if got := l.Grant(v1alpha1.IsolationSandbox); got != v1alpha1.IsolationNone {
		t.Errorf("granted %s", got)
	}
}

func TestAHelperThatIsNoneIsNamed(t *testing.T) {
	for name, helper := range map[string]string{"another program": "/bin/true", "garbage": workspace(t) + "/garbage", "nothing": "/no/such/helper"} {
		if name == "garbage" {
			write(t, helper, "\x00\x01")
		}
		err := New(Options{Helper: helper}).Require("x", v1alpha1.IsolationSandbox, v1alpha1.NetworkNone)
		if err == nil || reason.Of(err) != reason.IsolationUnavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestProbeNamesEachPart(t *testing.T) {
	needed(t)
	found := map[string]Control{}
	for _, c := range launcher(t).Probe(t.Context()) {
		found[c.Name] = c
		if c.Why == "" || c.OK == (c.Hint != "") {
			t.Errorf("%s: %+v", c.Name, c)
		}
	}
	for _, name := range []string{"sandbox", "user namespaces", "seccomp"} {
		if c, ok := found[name]; !ok || !c.OK || !c.Needed {
			t.Errorf("%s: %+v", name, c)
		}
	}
	for _, name := range []string{"landlock", "limits.memory", "limits.cpu", "limits.pids"} {
		if c, ok := found[name]; !ok || c.Needed {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

func TestBuildsThatTakeTurnsKeepTheirAnswers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cache", "sandbox-probes.json")
	name := func(i int) string { return fmt.Sprint("build ", i) }
	for i := range mostKept + 2 {
		keep(file, name(i), probed{Landlock: i})
	}
	keep(file, name(5), probed{Landlock: 50})
	for i, want := range map[int]int{2: 2, 5: 50, mostKept + 1: mostKept + 1} {
		if p, ok := recall(file, name(i)); !ok || p.Landlock != want {
			t.Errorf("%s: %+v, %v", name(i), p, ok)
		}
	}
	if _, ok := recall(file, name(1)); ok || len(recallAll(file)) != mostKept {
		t.Errorf("%d answers are kept, want the newest %d", len(recallAll(file)), mostKept)
	}
}

// TestAHostWithoutUserNamespaces is such a host: a user namespace of its own in
// which no further one can be made.
func TestAHostWithoutUserNamespaces(t *testing.T) {
	needed(t)
	state := workspace(t) // where a good answer is kept, of before
	if got := New(Options{State: state}).Level(); got != v1alpha1.IsolationSandbox {
		t.Fatalf("level = %s", got)
	}
	cmd := exec.CommandContext(t.Context(), self(t), "be-without-namespaces", state)
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{
		`IsolationUnavailable: tool "x" needs isolation Sandbox, but this host gives None`,
		"user namespaces are switched off (user.max_user_namespaces=0)",
		"sudo sysctl -w user.max_user_namespaces=10000", "--allow-unsandboxed",
		"start: IsolationUnavailable", "control user namespaces: false", "unsandboxed: <nil>",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
}

func beWithoutNamespaces() {
	if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0o600); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	l := New(Options{State: os.Args[2]})
	err := l.Require("x", v1alpha1.IsolationSandbox, v1alpha1.NetworkNone)
	fmt.Printf("%s: %v\nhint: %s\n", reason.Of(err), err, reason.Hint(err))
	_, err = l.Start(context.Background(), shell(&spec.Profile{}, "true"))
	fmt.Printf("start: %s: %v\n", reason.Of(err), err)
	for _, c := range l.Probe(context.Background()) {
		fmt.Printf("control %s: %v %s %s\n", c.Name, c.OK, c.Why, c.Hint)
	}
	fmt.Println("unsandboxed:", New(Options{AllowUnsandboxed: true}).Require("x", v1alpha1.IsolationSandbox, v1alpha1.NetworkNone))
	_ = l.Close()
}

// Who has no sandbox must not be sent to the boot loader for Landlock.
func TestLandlockIsToldAsFarAsItIsKnown(t *testing.T) {
	for _, c := range []struct {
		reason    string
		probed    probed
		ok        bool
		why, hint string
	}{
		{"seen in a sandbox", probed{Landlock: 7}, true, "ABI 7", ""},
		{"not there", probed{}, false, "not in force", "lsm="},
		{"nobody could look", probed{Missing: "no user namespaces"}, false, "not known", ""},
	} {
		got := landlock(c.probed)
		if got.OK != c.ok || !strings.Contains(got.Why, c.why) || !strings.Contains(got.Hint, c.hint) || (got.Hint == "") != (c.hint == "") {
			t.Errorf("%s: %+v", c.reason, got)
		}
	}
}
