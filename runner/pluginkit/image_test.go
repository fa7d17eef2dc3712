package pluginkit

import (
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/sandbox/container/containerdtest"
)

// staticProgram is a file that passes for a static program.
func staticProgram(t *testing.T) string {
	t.Helper()
	head := make([]byte, 64)
	copy(head, "\x7fELF\x02\x01\x01")
	head[16], head[18], head[20], head[52] = 2, 62, 1, 64
	file := filepath.Join(t.TempDir(), "my-tool")
	if err := os.WriteFile(file, head, 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestImageGoesToOnePlace(t *testing.T) {
	s := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer s.Close()
	program := staticProgram(t)
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	to := s.Listener.Addr().String() + "/team/tool"
	var digest string
	for name, c := range map[string]struct {
		o    ImageOptions
		want string
	}{
		"default": {ImageOptions{Program: program}, "oci:" + filepath.Join(here, "my-tool.oci.tar")},
		"file":    {ImageOptions{Program: program, Output: "x.tar"}, "oci:" + filepath.Join(here, "x.tar")},
		"push":    {ImageOptions{Program: program, Push: to + ":1"}, to},
		"folder":  {ImageOptions{Folder: filepath.Dir(program), Entrypoint: []string{"/my-tool"}, Output: "y.tar"}, "oci:" + filepath.Join(here, "y.tar")},
	} {
		b, err := BuildImage(t.Context(), c.o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if b.Reference != c.want+"@"+b.Digest || b.Size == 0 {
			t.Errorf("%s: got %+v, want a reference to %s", name, b, c.want)
		}
		if digest == "" {
			digest = b.Digest
		}
		if b.Digest != digest {
			t.Errorf("%s: the same files have the digest %s, before %s", name, b.Digest, digest)
		}
	}
}

func TestImageThatMakesNoSenseIsAUsageError(t *testing.T) {
	script := filepath.Join(t.TempDir(), "x.py")
	if err := os.WriteFile(script, []byte("#!/usr/bin/python3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	program := staticProgram(t)
	for name, c := range map[string]struct {
		o          ImageOptions
		want, hint string
	}{
		"nothing":    {ImageOptions{}, "one program or one folder", "--from-binary"},
		"two places": {ImageOptions{Program: program, Push: "localhost/x", Import: true}, "one place", "--push"},
		"script":     {ImageOptions{Program: script}, "script for /usr/bin/python3", "--base"},
		"no file":    {ImageOptions{Program: "none"}, "no such file", ""},
		"repository": {ImageOptions{Program: program, Push: "tool"}, "names no registry", ""},
	} {
		_, err := BuildImage(t.Context(), c.o)
		u, ok := errors.AsType[*reason.UsageError](err)
		if !ok || !strings.Contains(err.Error(), c.want) || !strings.Contains(u.Hint, c.hint) {
			t.Errorf("%s: got %v (%+v), want a usage error with %q and the hint %q", name, err, u, c.want, c.hint)
		}
	}
}

// TestImportNeedsContainerd: nothing is kept for a containerd that is not there.
func TestImportNeedsContainerd(t *testing.T) {
	state := t.TempDir()
	t.Setenv("AGENTCTL_LIBEXEC", entryBeside(t))
	_, err := BuildImage(t.Context(), ImageOptions{Program: staticProgram(t), Import: true, State: state, Containerd: "/no/such.sock"})
	if reason.Of(err) != reason.IsolationUnavailable || !strings.Contains(err.Error(), "/no/such.sock") {
		t.Errorf("got %v", err)
	}
	if found, _ := filepath.Glob(filepath.Join(state, "cache/images/*")); len(found) != 0 {
		t.Errorf("%v is left", found)
	}
}

// entryBeside builds the first process of containers and returns its folder.
func entryBeside(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "agentctl-entry"), "../../cmd/agentctl-entry")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

func TestImportedImageIsTakenByContainerd(t *testing.T) {
	if missing := containerdtest.Missing(); missing != "" {
		t.Skip(missing)
	}
	d, err := containerdtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Stop(); err != nil {
			t.Errorf("stop containerd: %v", err)
		}
	}()
	t.Setenv("AGENTCTL_LIBEXEC", entryBeside(t))
	o := ImageOptions{Program: staticProgram(t), Import: true, State: t.TempDir(), Containerd: d.Address}
	first, err := BuildImage(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	again, err := BuildImage(t.Context(), o)
	if err != nil || *again != *first {
		t.Errorf("again: got %+v, %v, want %+v", again, err, first)
	}
	path, digest, _ := strings.Cut(strings.TrimPrefix(first.Reference, "oci:"), "@")
	if _, err := os.Stat(path); err != nil || digest != first.Digest {
		t.Errorf("%+v: %v", first, err)
	}
}
