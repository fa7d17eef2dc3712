//go:build linux

package container_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	imagelayout "github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"go.uber.org/goleak"

	"agentctl.dev/agentctl/runner/image/reference"
	"agentctl.dev/agentctl/runner/sandbox/container"
	"agentctl.dev/agentctl/runner/sandbox/container/containerdtest"
)

// patience ends what hangs. Nothing here is slow when it takes less: machines are
// busy.
const patience = time.Minute

// world is what the tests share: programs, an image, and a containerd.
type world struct {
	dir    string
	tool   string
	entry  string
	image  v1.Image
	layout string // a reference
	shell  string // another, of an image with a shell; "" without a busybox
	daemon *containerdtest.Daemon
}

var (
	shared  world
	missing string
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "be-a-runner" {
		beARunner(os.Args[2:])
		return
	}
	if os.Getenv("TEST_AS_NOBODY") != "" || os.Getenv("TEST_AS_SOMEBODY") != "" {
		os.Exit(m.Run())
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	shared.dir, err = os.MkdirTemp("/tmp", "cts-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(shared.dir)
	if err := shared.build(); err != nil {
		return 1, err
	}
	if missing = containerdtest.Missing(); missing == "" {
		if shared.daemon, err = containerdtest.Start(); err != nil {
			return 1, err
		}
		defer func() {
			if stopErr := shared.daemon.Stop(); err == nil {
				err = stopErr
			}
		}()
	}
	before := goleak.IgnoreCurrent() // the daemon's keeper
	code = m.Run()
	if code == 0 {
		if err := goleak.Find(before); err != nil {
			return 1, err
		}
	}
	return code, nil
}

// build makes the programs, static as those of an image from scratch must be,
// and the image of the tests.
func (w *world) build() error {
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for i, p := range []struct {
		to  *string
		pkg string
	}{{&w.tool, "./testdata/tool"}, {&w.entry, "agentctl.dev/agentctl/cmd/agentctl-entry"}} {
		*p.to = filepath.Join(w.dir, filepath.Base(p.pkg))
		wg.Go(func() {
			c := exec.Command("go", "build", "-ldflags=-s -w", "-o", *p.to, p.pkg)
			c.Env = append(os.Environ(), "CGO_ENABLED=0")
			if out, err := c.CombinedOutput(); err != nil {
				errs[i] = fmt.Errorf("build %s: %w: %s", p.pkg, err, out)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	var err error
	if w.image, err = imageOf(map[string]string{"tool": w.tool}, []string{"/tool"}); err != nil {
		return err
	}
	if w.layout, err = writeLayout(filepath.Join(w.dir, "layout"), w.image); err != nil {
		return err
	}
	busybox := "/bin/busybox"
	if _, err := os.Stat(busybox); err != nil {
		return nil //nolint:nilerr // the tests that need it say so
	}
	files := map[string]string{"tool": w.tool}
	for _, name := range []string{"bin/sh", "bin/setsid", "bin/sleep", "bin/cat", "usr/bin/env"} {
		files[name] = busybox
	}
	img, err := imageOf(files, []string{"/tool"})
	if err != nil {
		return err
	}
	w.shell, err = writeLayout(filepath.Join(w.dir, "shell"), img)
	return err
}

// imageOf makes an image of one layer from files of the host.
func imageOf(files map[string]string, command []string) (v1.Image, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, from := range files {
		text, err := os.ReadFile(from)
		if err != nil {
			return nil, err
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
			return nil, err
		}
		if _, err := w.Write(text); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	layer := static.NewLayer(b.Bytes(), types.OCIUncompressedLayer) // to compress takes longer than to copy
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.Architecture, config.OS = "amd64", "linux"
	config.Config.Env = []string{"FROM_IMAGE=yes", "PATH=/bin:/", "PLUGIN_MIN_PORT=1"}
	config.Config.Entrypoint = command
	config.Config.User = "0:0" // which must be ignored
	return mutate.ConfigFile(img, config)
}

func writeLayout(dir string, img v1.Image) (ref string, err error) {
	if _, err := imagelayout.Write(dir, empty.Index); err != nil {
		return "", err
	}
	if err := imagelayout.Path(dir).AppendImage(img); err != nil {
		return "", err
	}
	sum, err := img.Digest()
	return reference.LayoutPrefix + dir + "@" + sum.String(), err
}

// needs skips a test on a host without containerd.
func needs(t testing.TB) {
	t.Helper()
	if missing != "" {
		if os.Getenv("CI") == "true" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
}

// alone is an option: a namespace of this test alone, for a test that counts
// what is left. It has to fetch the image again. The process is part of the
// name, since cgroups have it and those of another run must not be counted.
func alone(t testing.TB) func(*container.Options) {
	t.Helper()
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, t.Name())
	return func(o *container.Options) { o.Namespace += "-" + name[:min(len(name), 50)] }
}

// newRuntime returns a runtime on the shared daemon that is closed with the test,
// which must leave nothing.
func newRuntime(t testing.TB, change ...func(*container.Options)) *container.Runtime {
	t.Helper()
	needs(t)
	o := container.Options{Address: shared.daemon.Address, StateDir: filepath.Join(shared.dir, "state"), Entry: shared.entry, Namespace: fmt.Sprintf("t%d", os.Getpid()), CloseTime: patience}
	for _, f := range change {
		f(&o)
	}
	r, err := container.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return r
}

// output runs a program to its end.
func output(t testing.TB, r *container.Runtime, spec container.Spec) (string, container.ExitInfo) {
	t.Helper()
	var out bytes.Buffer
	spec.Stdout = &out
	if spec.Image == "" {
		spec.Image = shared.layout
	}
	p, err := r.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	info := wait(t, p)
	if s := p.Stderr(); s != "" {
		t.Logf("stderr: %s", s)
	}
	return out.String(), info
}

// wait waits for a process, not for ever.
func wait(t testing.TB, p *container.Process) container.ExitInfo {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(patience):
		t.Error("the process does not end")
		p.Kill(0)
	}
	return p.Wait()
}

// inside is what the test's tool prints of the container it is in.
type inside struct {
	Status   map[string]string
	Env      []string
	Args     []string
	Dir      string
	Mounts   []string
	Links    []string
	Hostname string
	Attempts map[string]string
	Files    map[string]string
	Owners   map[string][2]uint32
	Parent   string
}

func look(t testing.TB, r *container.Runtime, spec container.Spec, attempts ...string) inside {
	t.Helper()
	spec.Argv = append([]string{"/tool", "inside"}, attempts...)
	out, info := output(t, r, spec)
	var in inside
	if err := json.Unmarshal([]byte(out), &in); err != nil {
		t.Fatalf("%v: %v: %q", info, err, out)
	}
	return in
}

// beARunner is another runner, which is killed: it starts containers, prints
// their ids, and waits.
func beARunner(args []string) {
	r, err := container.New(container.Options{Address: args[0], StateDir: args[1], Entry: args[2], Namespace: args[3]})
	if err != nil {
		fmt.Println("error", err)
		return
	}
	for range 2 {
		p, err := r.Start(context.Background(), container.Spec{Image: args[4], Argv: []string{"/tool", "wait"}, Run: "killed", Tool: "wait", Workspace: args[5]})
		if err != nil {
			fmt.Println("error", err)
			return
		}
		fmt.Println("started", p.PID())
	}
	dir, err := r.SocketDir()
	fmt.Println("ready", dir, err)
	select {}
}
