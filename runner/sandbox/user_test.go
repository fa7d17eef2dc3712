//go:build linux

package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// nobody is the user of the tests that must not be root's.
const nobody = 65534

// lane are the tests that both root and other users run.
const lane = "Sandbox|Escape|LevelLeaves|Unprotected|Protect|Probe|Profile|Proxy|Limits|Checked|Rewrite|Loopback|Seen|TheHost|UserNamespaces|AKilled|HundredStarts|Swept|GivenUp"

// TestAsAnotherUser runs the tests once more as a user without any privileges,
// which is how most people run agents.
func TestAsAnotherUser(t *testing.T) {
	t.Parallel()
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
