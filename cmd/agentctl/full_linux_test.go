package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// fullDisk applies to a control plane whose disk is full: the error says what is
// full, reading goes on, and writing does once there is room again.
func fullDisk(t *testing.T, agentd string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "full-")
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256m,mode=0700"); err != nil {
		t.Skip("a disk of its own cannot be mounted here:", err)
	}
	state, full := filepath.Join(dir, "state"), filepath.Join(dir, "fill")
	t.Cleanup(func() {
		_ = exec.Command(agentd, "stop", "--state", state).Run() //nolint:noctx // the test's context has ended
		if err := errors.Join(unix.Unmount(dir, unix.MNT_DETACH), os.Remove(dir)); err != nil {
			t.Error(err)
		}
	})
	apply := func(words string) (string, error) {
		manifest := "apiVersion: agentctl.dev/v1alpha1\nkind: Model\nmetadata: {name: m}\nspec:\n  provider: scripted\n  scripted: {steps: [{say: " + words + "}]}\n"
		c := exec.CommandContext(t.Context(), "agentctl", "apply", "-f", "-", "--state", state)
		c.Stdin = strings.NewReader(manifest)
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if out, err := apply("one"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := fillUp(full); err != nil {
		t.Fatal(err)
	}
	if out, err := apply("two"); err == nil || !strings.Contains(out, "answered 507: the disk of ") || !strings.Contains(out, "until files are removed from it") {
		t.Errorf("apply to a full disk: %v: %s", err, out)
	}
	get := exec.CommandContext(t.Context(), "agentctl", "get", "models", "--state", state)
	if out, err := get.CombinedOutput(); err != nil || !strings.Contains(string(out), "scripted") {
		t.Errorf("get from a full disk: %v: %s", err, out)
	}
	if err := os.Remove(full); err != nil {
		t.Fatal(err)
	}
	if out, err := apply("two"); err != nil || out != "model.agentctl.dev/m configured\n" {
		t.Errorf("apply once there is room: %v: %s", err, out)
	}
}

// fillUp writes a file until its disk is full.
func fillUp(name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	block := make([]byte, 1<<20)
	for err == nil {
		_, err = f.Write(block)
	}
	if errors.Is(err, unix.ENOSPC) {
		err = nil
	}
	return errors.Join(err, f.Close())
}
