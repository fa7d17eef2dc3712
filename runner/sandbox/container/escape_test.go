//go:build linux

package container_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/sandbox/container"
	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// leastAttempts is how many ways are tried at least: one that is left out must
// not look like one that was stopped.
const leastAttempts = 152

// harmless are ways that lead nowhere. The files are of the program's own
// process. They can be opened, but without a capability a write can only make
// the kernel prefer to kill that process. The attempt on process 1 looks for it
// by its name in a sandbox; the attempts that follow show that process 1 still
// runs.
var harmless = map[string]bool{"write /proc/self/oom_score_adj": true, "write /proc/self/uid_map": true, "end process 1": true}

// TestNothingEscapesAContainer runs what every sandbox has to withstand inside a
// container, as the program of an image.
func TestNothingEscapesAContainer(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	for name, uid := range map[string]int{"a workspace of root": 0, "a workspace of somebody": somebody} {
		t.Run(name, func(t *testing.T) {
			targets := outside(t, uid)
			list := attempts(t, r, container.Spec{
				Image: escapeImage(t), Workspace: targets.Workspace, Access: v1alpha1.AccessReadWrite, ReadOnly: targets.Fixed, Masked: targets.Masked,
			}, targets)
			if len(list) < leastAttempts {
				t.Errorf("only %d attempts were made", len(list))
			}
			for _, a := range list {
				if a.Open && !harmless[a.Name] {
					t.Errorf("escaped: %s", a.Name)
				}
			}
		})
	}
}

// escapeImage has the program that tries, and a shell's folders to try on.
func escapeImage(t testing.TB) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "agentctl-escape")
	c := exec.CommandContext(t.Context(), "go", "build", "-o", program, "agentctl.dev/agentctl/cmd/agentctl-escape")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	img, err := imageOf(map[string]string{"usr/bin/agentctl-escape": program}, []string{"/usr/bin/agentctl-escape", spec.EscapeArg})
	if err != nil {
		t.Fatal(err)
	}
	ref, err := writeLayout(filepath.Join(t.TempDir(), "escape"), img)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// outside makes what a program must not reach.
func outside(t testing.TB, uid int) spec.Targets {
	t.Helper()
	ws := workspace(t, uid)
	dir := filepath.Dir(ws)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	short, err := os.MkdirTemp("/tmp", "cts-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	targets := spec.Targets{
		File: filepath.Join(dir, "beside"), Socket: filepath.Join(short, "socket"), Process: os.Getpid(), Workspace: ws, Inside: true,
		Abstract: "escape-" + filepath.Base(short), Fixed: []string{ws + "/.git/config"}, Masked: []string{ws + "/secret"},
	}
	if err := os.WriteFile(targets.File, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, at := range [][2]string{{"unix", targets.Socket}, {"unix", "@" + targets.Abstract}, {"tcp4", "127.0.0.1:0"}} {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), at[0], at[1])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		if at[0] == "tcp4" {
			targets.TCP = l.Addr().String()
		}
	}
	u, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.Close() })
	targets.UDP = u.LocalAddr().String()
	return targets
}

func attempts(t testing.TB, r *container.Runtime, s container.Spec, targets spec.Targets) (list []spec.Attempt) {
	t.Helper()
	in, err := json.Marshal(targets)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	s.Stdin, s.Stdout = bytes.NewReader(in), &out
	p, err := r.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	info := wait(t, p)
	for d := json.NewDecoder(&out); d.More(); {
		var a spec.Attempt
		if err := d.Decode(&a); err != nil {
			t.Fatal(errors.Join(err, fmt.Errorf("%s", out.String())))
		}
		list = append(list, a)
	}
	if info.Code != 0 {
		t.Errorf("the attempts ended with %v after %d: %s", info, len(list), p.Stderr())
	}
	return list
}
