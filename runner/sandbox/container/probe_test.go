//go:build linux

package container_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/sandbox/container"
)

func TestAnAddressIsTheFlagsTheVariablesOrTheUsualOne(t *testing.T) {
	for _, c := range []struct{ flag, env, want string }{
		{"", "", container.DefaultAddress},
		{"", "/e.sock", "/e.sock"},
		{"/f.sock", "/e.sock", "/f.sock"},
		{"/a/../f.sock", "", "/f.sock"},
		{"f.sock", "/e.sock", ""},
		{"", "e.sock", ""},
		{"unix:///run/x", "", ""},
	} {
		got, err := container.Address(c.flag, c.env)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("flag %q, variable %q: got %q, %v; want %q", c.flag, c.env, got, err, c.want)
		}
	}
}

func TestAMissingContainerdIsExplained(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("/tmp", "cts-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	silent := filepath.Join(dir, "silent.sock")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", silent)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	stale := filepath.Join(dir, "stale.sock")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	dead.Close()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		filepath.Join(dir, "absent.sock"): `tool "x" needs isolation Container but no containerd answered at ` + dir + `/absent.sock (no such file)`,
		silent:                            `tool "x" needs isolation Container but what listens at ` + silent + ` is not a containerd endpoint`,
		stale:                             `no containerd answered at ` + stale + ` (nobody listens there)`,
		file:                              `no containerd answered at ` + file,
	} {
		r, err := container.New(container.Options{Address: address, StateDir: dir, Entry: "/entry"})
		if err != nil {
			t.Fatal(err)
		}
		err = r.Require(t.Context(), "x")
		bad, ok := errors.AsType[*reason.Error](err)
		if !ok || bad.Reason != reason.IsolationUnavailable || !strings.HasPrefix(err.Error(), `tool "x" needs isolation Container but `) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
		if ok && (!strings.Contains(bad.Hint, "--containerd-address") || !strings.Contains(bad.Hint, "source.plugin or source.exec")) {
			t.Errorf("hint: %s", bad.Hint)
		}
		if _, err := r.Start(t.Context(), container.Spec{Image: "oci:/x@sha256:" + strings.Repeat("0", 64)}); !errors.As(err, &bad) || bad.Reason != reason.IsolationUnavailable {
			t.Errorf("a start says %v", err)
		}
		if err := r.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}

// TestASocketThatLetsUsNotInIsExplained runs itself as the user nobody.
func TestASocketThatLetsUsNotInIsExplained(t *testing.T) {
	t.Parallel()
	if os.Getenv("TEST_AS_NOBODY") != "" {
		r, err := container.New(container.Options{Address: os.Getenv("TEST_AS_NOBODY"), StateDir: "/tmp", Entry: "/entry"})
		if err != nil {
			t.Fatal(err)
		}
		err = r.Require(context.Background(), "x")
		bad, ok := errors.AsType[*reason.Error](err)
		if !ok {
			t.Fatalf("got %v", err)
		}
		fmt.Printf("error: %v\nhint: %s\n", err, bad.Hint)
		return
	}
	needs(t)
	dir, err := os.MkdirTemp("/tmp", "cts-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "c.sock")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Chmod(socket, 0o660); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "test")
	text, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(binary, text, 0o755); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), binary, "-test.run=^TestASocketThatLetsUsNotInIsExplained$")
	c.Env = []string{"TEST_AS_NOBODY=" + socket}
	c.Dir = dir
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{`error: tool "x" needs isolation Container but the socket ` + socket + " belongs to root:root with mode 0660 and lets uid 65534 not in", "hint: let uid 65534 into the socket's group"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in %s", want, out)
		}
	}
}

func TestAProbeSaysWhatIsThere(t *testing.T) {
	r := newRuntime(t)
	info, err := r.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if info.Address != shared.daemon.Address || info.Version == "" || info.Snapshotter != "overlayfs" {
		t.Errorf("got %+v", info)
	}
	if err := r.Require(t.Context(), "x"); err != nil {
		t.Errorf("require: %v", err)
	}
}
