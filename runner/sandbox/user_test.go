//go:build linux

package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// nobody is the user of the tests that must not run as root.
const nobody = 65534

// lane are the tests that both root and other users run.
const lane = "Sandbox|Escape|LevelLeaves|Unprotected|Protect|Probe|Profile|Proxy|Limits|Checked|Rewrite|Loopback|Seen|TheHost|UserNamespaces|AKilled|HundredStarts|Swept|GivenUp"

// TestAsAnotherUser runs the tests again as a user without any privileges,
// which is how most people run agents.
func TestAsAnotherUser(t *testing.T) {
	t.Parallel()
	needed(t)
	if os.Getuid() != 0 {
		t.Skip("these tests are run by a user who is not root")
	}
	dir, err := os.MkdirTemp("", "agentctl-nobody-")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary, temp := filepath.Join(dir, "sandbox.test"), filepath.Join(dir, "tmp")
	write(t, binary, read(t, self(t))) // go test's own folder is root's
	for _, path := range []string{dir, binary} {
		if err := os.Chmod(path, 0o755); err != nil { //nolint:gosec // another user starts it
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(temp, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, "-test.run="+lane, "-test.v")
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent", "TMPDIR=" + temp, builtHelper + "=" + os.Getenv("AGENTCTL_LIBEXEC")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
	if n := strings.Count(string(out), "--- PASS: Test"); n < 28 {
		t.Errorf("only %d tests ran:\n%s", n, out)
	}
}

// TestRootsToolsAreTheOwnersOfTheWorkspace is a run by root on the files of
// another user, in a folder that only that user may enter.
func TestRootsToolsAreTheOwnersOfTheWorkspace(t *testing.T) {
	needed(t)
	if os.Getuid() != 0 {
		t.Skip("only root can run on files of others")
	}
	home := workspace(t)
	ws := filepath.Join(home, "ws")
	write(t, ws+"/.git/config", "[core]\n")
	write(t, ws+"/.env", "secret\n")
	if out, err := exec.CommandContext(t.Context(), "chown", "-R", "4321:1234", home).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Chmod(home, 0o700); err != nil { //nolint:gosec // it is a folder
		t.Fatal(err)
	}
	l := sandboxed(t)
	p := &spec.Profile{Workspace: ws, Access: spec.AccessReadWrite, ReadOnly: []string{ws + "/.git/config"}, Masked: []string{ws + "/.env"}, Limits: spec.Limits{Pids: 20}}
	s := shell(p, "exec 2>&1; cd "+ws+` && id && id -un && touch new ~/x /tmp/x && stat -c '%u:%g' new ~/x; cat .env; echo x >> .git/config
		for i in $(seq 40); do sleep 1 & done; echo forked`)
	s.Env = append(s.Env, "HOME=/home/agent")
	out, _, _ := run(t, l, s)
	for _, want := range []string{"uid=4321(agent) gid=1234(agent) groups=1234(agent)\nagent\n4321:1234\n4321:1234\n", ".env: Permission denied", ".git/config: Read-only", "Cannot fork"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
	targets := spec.Targets{Inside: true, Workspace: ws, Process: os.Getpid(), Fixed: p.ReadOnly, Masked: p.Masked}
	list, err := l.attempt(t.Context(), p, targets)
	if err != nil || len(list) < 100 {
		t.Errorf("%d attempts, %v", len(list), err)
	}
	for _, a := range list {
		if a.Open {
			t.Errorf("escaped: %s", a.Name)
		}
	}
	plugin := Spec{Argv: []string{self(t), "serve-fixtures"}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/", Profile: p}
	h, err := host.Start(t.Context(), host.Options{Name: "fixtures", Launch: l.PluginRunner(plugin)})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Close(t.Context()); err != nil {
		t.Error(err)
	}
	proc, err := l.Start(t.Context(), shell(p, "setsid sleep 300 & exec sleep 300"))
	if err != nil {
		t.Fatal(err)
	}
	proc.Kill(0) // init is root, they are not
	if exit := proc.Wait(); exit.Signal != "killed" {
		t.Errorf("exit = %v", exit)
	}
}
