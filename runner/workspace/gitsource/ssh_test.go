package gitsource

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// program puts a program of a name in front of all others of that name.
func program(t *testing.T, name, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// hostileUser has every variable and file in which a user can name a program for git or
// ssh name one that leaves the mark.
func hostileUser(t *testing.T) (mark string) {
	t.Helper()
	home := t.TempDir()
	mark = filepath.Join(home, "mark")
	touch := filepath.Join(home, "touch")
	write(t, home, map[string]string{
		"touch":      "#!/bin/sh\necho \"$0 $*\" >>" + mark + "\n",
		".gitconfig": "[core]\n\tsshCommand = " + touch + " config\n\tgitProxy = " + touch + "\n\taskPass = " + touch + "\n[credential]\n\thelper = !" + touch + " helper\n",
	})
	if err := os.Chmod(touch, 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	for _, name := range []string{"GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS", "SSH_ASKPASS", "GIT_PROXY_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_EDITOR"} {
		t.Setenv(name, touch)
	}
	t.Setenv("SSH_ASKPASS_REQUIRE", "force")
	t.Setenv("DISPLAY", ":0")
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(home, ".gitconfig"))
	return mark
}

func unmarked(t *testing.T, mark string) {
	t.Helper()
	if b, err := os.ReadFile(mark); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a program of the user was started: %s %v", b, err)
	}
}

func TestSSHIsToldToAskNothingAndToKnowTheHost(t *testing.T) {
	dir := repository(t, nil)
	seen := t.TempDir()
	program(t, "ssh", `printf '%s\n' "$@" >`+seen+`/args; env >`+seen+`/env
for last; do :; done
eval "exec $last"
`)
	mark := hostileUser(t)
	_, at, err := clone(t, v1alpha1.GitSource{URL: "ssh://git@example.com:2222" + dir, Ref: "main"})
	if err != nil {
		t.Fatal(err)
	}
	if got := content(t, filepath.Join(at, "a.txt")); got != "second\n" {
		t.Errorf("the file is %q", got)
	}
	args := "\n" + content(t, filepath.Join(seen, "args"))
	for _, want := range []string{"\n-oBatchMode=yes\n", "\n-oStrictHostKeyChecking=yes\n", "\n-oConnectTimeout=30\n", "\n-p\n2222\n", "\ngit@example.com\n"} {
		if !strings.Contains(args, want) {
			t.Errorf("ssh was not told %q:%s", strings.TrimSpace(want), args)
		}
	}
	env := "\n" + content(t, filepath.Join(seen, "env"))
	for _, want := range []string{"\nGIT_TERMINAL_PROMPT=0\n", "\nSSH_ASKPASS_REQUIRE=never\n", "\nSSH_ASKPASS=\n", "\nHOME=/nonexistent\n"} {
		if !strings.Contains(env, want) {
			t.Errorf("the environment has no %q", strings.TrimSpace(want))
		}
	}
	unmarked(t, mark)
}

// TestACloneEndsItsSSH: what git has started ends with the time of the run.
func TestACloneEndsItsSSH(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	program(t, "ssh", "echo $$ >"+pid+".new; mv "+pid+".new "+pid+"; exec sleep 600\n")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	cause := reason.New(reason.DeadlineExceeded, "limits.timeout of 1s passed")
	var wg sync.WaitGroup
	wg.Go(func() {
		eventually(func() bool { _, err := os.Stat(pid); return err == nil })
		cancel(cause)
	})
	_, err := New(ctx, Options{Source: &v1alpha1.GitSource{URL: "ssh://example.com/r.git"}, Dir: filepath.Join(t.TempDir(), "clone")})
	wg.Wait()
	if reason.Of(err) != reason.DeadlineExceeded {
		t.Errorf("%v", err)
	}
	id, err := strconv.Atoi(strings.TrimSpace(content(t, pid)))
	if err != nil {
		t.Fatal(err)
	}
	if !eventually(func() bool {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(id) + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z ")
	}) {
		t.Error("the ssh of the clone is still there")
	}
}

// eventually reports whether something is so within a minute.
func eventually(is func() bool) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(time.Minute); !is(); {
		select {
		case <-late:
			return false
		case <-tick.C:
		}
	}
	return true
}

// sshHost is a server of OpenSSH, and the keys of a user of it.
type sshHost struct{ dir, address, login string }

// newSSHHost serves this host to its own user. It skips where the programs are missing.
func newSSHHost(t *testing.T) *sshHost {
	t.Helper()
	sshd, err := exec.LookPath("sshd")
	if err != nil {
		sshd = "/usr/sbin/sshd"
	}
	if _, err := os.Stat(sshd); err != nil {
		t.Skip("there is no sshd: .ci/prepare installs it")
	}
	if _, err := os.Stat("/run/sshd"); os.Getuid() == 0 && err != nil {
		t.Skip("sshd of root needs the folder /run/sshd: .ci/prepare creates it")
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	h := &sshHost{dir: t.TempDir(), login: me.Username}
	for _, key := range []string{"host", "user", "other"} {
		if out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", key, "-f", filepath.Join(h.dir, key)).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v\n%s", err, out)
		}
	}
	write(t, h.dir, map[string]string{
		"authorized": content(t, filepath.Join(h.dir, "user.pub")),
		"sshd_config": "HostKey " + h.dir + "/host\nAuthorizedKeysFile " + h.dir + "/authorized\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n" +
			"PasswordAuthentication yes\nKbdInteractiveAuthentication yes\nPidFile none\nLogLevel VERBOSE\n",
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.address = l.Addr().String()
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { h.serve(t, sshd, c.(*net.TCPConn)) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return h
}

// serve has sshd serve one connection.
func (h *sshHost) serve(t *testing.T, sshd string, c *net.TCPConn) {
	t.Helper()
	f, err := c.File()
	_ = c.Close()
	if err != nil {
		return
	}
	defer f.Close()

	cmd := exec.CommandContext(t.Context(), sshd, "-i", "-e", "-f", filepath.Join(h.dir, "sshd_config"))
	var log strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = f, f, &log
	cmd.WaitDelay = giveUp
	if err := cmd.Run(); err != nil && t.Context().Err() == nil {
		t.Logf("sshd: %v\n%s", err, log.String())
	}
}

// client is a user of the server: its key, and which key of the host it knows. What else
// is in its configuration would ask, and would trust any host.
func (h *sshHost) client(t *testing.T, key, known string) {
	t.Helper()
	dir := t.TempDir()
	host, port, err := net.SplitHostPort(h.address)
	if err != nil {
		t.Fatal(err)
	}
	hosts := ""
	if known != "" {
		hosts = "[" + host + "]:" + port + " " + content(t, filepath.Join(h.dir, known+".pub"))
	}
	write(t, dir, map[string]string{
		"known":  hosts,
		"config": "UserKnownHostsFile " + dir + "/known\nGlobalKnownHostsFile /dev/null\nIdentityFile " + filepath.Join(h.dir, key) + "\nIdentitiesOnly yes\nStrictHostKeyChecking no\nBatchMode no\n",
	})
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		t.Skip("there is no ssh")
	}
	// In place of the user's own file, which ssh finds by the account and not by HOME.
	program(t, "ssh", "exec "+ssh+" -F "+dir+"/config \"$@\"\n")
}

func TestAnSSHServerIsKnownOrRefused(t *testing.T) {
	h := newSSHHost(t)
	dir := repository(t, nil)
	src := v1alpha1.GitSource{URL: "ssh://" + h.login + "@" + h.address + dir}
	path := os.Getenv("PATH")
	for name, c := range map[string]struct {
		key, known string
		why        reason.Reason
		hint       string
	}{
		"known":             {"user", "host", "", ""},
		"unknown host":      {"user", "", reason.WorkspaceUnavailable, "known hosts"},
		"another host":      {"user", "other", reason.WorkspaceUnavailable, "known hosts"},
		"a key it does not": {"other", "host", reason.CredentialMissing, "for ssh, add a key to the agent"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PATH", path)
			t.Setenv("SSH_AUTH_SOCK", "")
			mark := hostileUser(t)
			h.client(t, c.key, c.known)
			_, at, err := clone(t, src)
			if reason.Of(err) != c.why && (err != nil || c.why != "") || !strings.Contains(reason.Hint(err), c.hint) {
				t.Errorf("%v (%s), want %s", err, reason.Hint(err), c.why)
			}
			if err == nil && content(t, filepath.Join(at, "a.txt")) != "second\n" {
				t.Error("the clone is another one")
			}
			unmarked(t, mark)
		})
	}
}
