//go:build linux

package container_test

import (
	"archive/tar"
	"context"
	"errors"
	"io/fs"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	imagelayout "github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/image/reference"
	"agentctl.dev/agentctl/runner/sandbox/container"
)

// pushed brings an image into a registry on this host.
func pushed(t testing.TB, img v1.Image) (server *httptest.Server, ref string) {
	t.Helper()
	server = httptest.NewServer(registry.New(registry.Logger(log.New(t.Output(), "", 0))))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	tag, err := name.NewTag(host + "/team/tool:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, img); err != nil {
		t.Fatal(err)
	}
	sum, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return server, host + "/team/tool@" + sum.String()
}

// other is an image that differs from the shared one by its label.
func other(t testing.TB, label string) v1.Image {
	t.Helper()
	config, err := shared.image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.Config.Labels = map[string]string{"test": label}
	img, err := mutate.ConfigFile(shared.image, config)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func runs(t testing.TB, r *container.Runtime, ref string) {
	t.Helper()
	out, info := output(t, r, container.Spec{Image: ref, Argv: []string{"/tool", "echo", "FROM_IMAGE"}})
	if out != "FROM_IMAGE=yes\n" || info.Code != 0 {
		t.Errorf("%s: got %q, %v", ref, out, info)
	}
}

func TestAnImageOfARegistryIsFetchedOnce(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	server, ref := pushed(t, other(t, t.Name()))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := r.Pull(t.Context(), ref); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	server.Close()
	runs(t, r, ref) // what is there needs no registry
	again, err := container.New(container.Options{Address: shared.daemon.Address, StateDir: filepath.Join(shared.dir, "state"), Entry: shared.entry, Namespace: r.Namespace(), CloseTime: patience})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	runs(t, again, strings.Replace(ref, "@", ":v2@", 1)) // nor for another process, whatever the tag
}

func TestAnImageOfALayoutNeedsNoRegistry(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	folder := filepath.Join(t.TempDir(), "folder")
	ref, err := writeLayout(folder, other(t, t.Name()))
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "layout.tar")
	f, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(f)
	if err := errors.Join(w.AddFS(os.DirFS(folder)), w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	runs(t, r, strings.Replace(ref, folder, archive, 1))
	fresh := newRuntime(t, alone(t))
	runs(t, fresh, ref)
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	runs(t, fresh, ref)
}

func TestOfAnIndexTheImageForThisMachineIsTaken(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	foreign, err := mutate.Config(empty.Image, v1.Config{Cmd: []string{"/none"}})
	if err != nil {
		t.Fatal(err)
	}
	index := mutate.AppendManifests(empty.Index,
		mutate.IndexAddendum{Add: foreign, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "s390x"}}},
		mutate.IndexAddendum{Add: other(t, t.Name()), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}}})
	dir := t.TempDir()
	if _, err := imagelayout.Write(dir, empty.Index); err != nil {
		t.Fatal(err)
	}
	if err := imagelayout.Path(dir).AppendIndex(index); err != nil {
		t.Fatal(err)
	}
	sum, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	runs(t, r, reference.LayoutPrefix+dir+"@"+sum.String())
	only := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: foreign, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "s390x"}}})
	if err := imagelayout.Path(dir).AppendIndex(only); err != nil {
		t.Fatal(err)
	}
	if sum, err = only.Digest(); err != nil {
		t.Fatal(err)
	}
	if err := r.Pull(t.Context(), reference.LayoutPrefix+dir+"@"+sum.String()); err == nil || !strings.Contains(err.Error(), "no match for platform") {
		t.Errorf("an image of another machine: %v", err)
	}
}

func TestAnImageThatCannotBeHadIsExplained(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	_, ref := pushed(t, shared.image)
	zero := "@sha256:" + strings.Repeat("0", 64)
	repo, digest, _ := strings.Cut(ref, "@")
	lying := filepath.Join(t.TempDir(), "lying")
	// Of its own layer: one that containerd has is not fetched again.
	img, err := imageOf(map[string]string{"another": shared.tool}, []string{"/another"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := writeLayout(lying, img); err != nil {
		t.Fatal(err)
	}
	sum, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(filepath.Join(lying, "blobs"), func(p string, e fs.DirEntry, err error) error {
		if info, infoErr := e.Info(); infoErr == nil && e.Type().IsRegular() && info.Size() > 1<<20 {
			text, _ := os.ReadFile(p)
			text[len(text)/2] ^= 1
			return os.WriteFile(p, text, 0o600)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("this is no tar of anything, only text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[string]string{
		repo + zero:                            "not found",
		"127.0.0.1:1/team/tool@" + digest + "": "connection refused",
		"oci:/no/such/folder" + zero:           "no such file",
		"oci:" + file + zero:                   "as a tar of an OCI layout",
		"oci:" + lying + zero:                  "it has " + sum.String(),
		"oci:" + lying + "@" + sum.String():    "sha256",
		"oci:/dev/null" + zero:                 "neither a folder nor a tar",
	} {
		if strings.HasPrefix(ref, "127.0.0.1:1/") { // of which containerd has no copy
			ref = strings.Split(ref, "@")[0] + zero
		}
		err := r.Pull(t.Context(), ref)
		bad, ok := errors.AsType[*reason.Error](err)
		if !ok || bad.Reason != reason.IsolationUnavailable || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "image not found: "+ref) {
			t.Errorf("%s: got %v, want %q", ref, err, want)
		} else if !strings.Contains(bad.Hint, "images import") {
			t.Errorf("hint: %s", bad.Hint)
		}
	}
}

func TestAPullThatIsGivenUpIsNotTheAnswerOfAnother(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	_, ref := pushed(t, other(t, t.Name()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := r.Pull(ctx, ref); !errors.Is(err, context.Canceled) {
			t.Errorf("the one that gave up: %v", err)
		}
	})
	wg.Go(func() {
		if err := r.Pull(t.Context(), ref); err != nil {
			t.Errorf("the other: %v", err)
		}
	})
	wg.Wait()
}

func TestALayoutThatIsWrongIsRefused(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	sum := strings.Repeat("ab", 32)
	zero := "@sha256:" + sum
	for want, files := range map[string]map[string]string{
		"no such file":           {},
		"index.json":             {"index.json": "{"},
		"no manifest at all":     {"index.json": "{}"},
		"is neither a manifest":  {"index.json": "{}", "blobs/sha256/" + sum: `{"mediaType": "text/plain"}`},
		"over 4194304 bytes":     {"index.json": strings.Repeat(" ", 5<<20)},
		"has 2 bytes, not 100":   {"index.json": `{"manifests": [{"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": "sha256:` + sum + `", "size": 100}]}`, "blobs/sha256/" + sum: "{}"},
		"unexpected commit":      {"index.json": `{"manifests": [{"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": "sha256:` + sum + `", "size": 2}]}`, "blobs/sha256/" + sum: "{}"},
		"path escapes from pare": {"index.json": "{}", "blobs/sha256/" + sum: "link"},
		"is over":                {"index.json": `{"manifests": [{"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": "sha256:` + sum + `", "size": 99999999}]}`},
	} {
		dir := t.TempDir()
		for name, text := range files {
			path := filepath.Join(dir, name)
			err := os.MkdirAll(filepath.Dir(path), 0o755)
			if text == "link" {
				err = errors.Join(err, os.Symlink("/etc/passwd", path))
			} else {
				err = errors.Join(err, os.WriteFile(path, []byte(text), 0o600))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Pull(t.Context(), reference.LayoutPrefix+dir+zero); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
