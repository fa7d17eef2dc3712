package artifact_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/image/artifact"
)

// served is a registry on this host, which counts the requests it gets.
type served struct {
	host string
	asks atomic.Int64
	// before answers in place of the registry where it returns true.
	before func(w http.ResponseWriter, r *http.Request) bool
}

func serve(t testing.TB) *served {
	t.Helper()
	s := &served{}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.asks.Add(1); s.before != nil && s.before(w, r) {
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.host = strings.TrimPrefix(server.URL, "http://")
	t.Setenv("DOCKER_CONFIG", t.TempDir()) // no credentials of this machine
	return s
}

// push stores an image with some layers and returns its reference.
func (s *served) push(t testing.TB, layers ...mutate.Addendum) string {
	t.Helper()
	img, err := mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1), layers...)
	if err != nil {
		t.Fatal(err)
	}
	return s.pushImage(t, img)
}

func (s *served) pushImage(t testing.TB, img v1.Image) string {
	t.Helper()
	tag, err := name.NewTag(s.host + "/team/skill:1")
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
	return s.host + "/team/skill@" + sum.String()
}

// entry is one of a tar.
type entry struct {
	name, text string
	kind       byte
	mode       int64
}

func tarOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Mode: e.mode, Size: int64(len(e.text))}
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if h.Typeflag == tar.TypeSymlink || h.Typeflag == tar.TypeLink {
			h.Linkname, h.Size, e.text = e.text, 0, ""
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			h = &tar.Header{Typeflag: h.Typeflag, PAXRecords: map[string]string{"comment": "x"}}
		} else if h.Mode == 0 {
			h.Mode = 0o644
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zipped(t testing.TB, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func layer(content []byte, media types.MediaType, annotations ...string) mutate.Addendum {
	a := mutate.Addendum{Layer: static.NewLayer(content, media), MediaType: media}
	for i := 0; i+1 < len(annotations); i += 2 {
		if a.Annotations == nil {
			a.Annotations = map[string]string{}
		}
		a.Annotations[annotations[i]] = annotations[i+1]
	}
	return a
}

const title = "org.opencontainers.image.title"

// filesIn are the files of a folder, with an * behind those that can be executed.
func filesIn(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		if info.Mode()&0o111 != 0 {
			rel += "*"
		}
		all[rel] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestWhatToolsPushIsUnpacked(t *testing.T) {
	s := serve(t)
	script := entry{name: "scripts/execute.sh", text: "echo", mode: 0o755}
	head := entry{name: "SKILL.md", text: "x"}
	want := map[string]string{"SKILL.md": "x", "scripts/execute.sh*": "echo"}
	below := map[string]string{"pdf/SKILL.md": "x", "pdf/scripts/execute.sh*": "echo"}
	dir := func(name string) entry { return entry{name: name, kind: tar.TypeDir, mode: 0o755} }
	for what, c := range map[string]struct {
		layers []mutate.Addendum
		want   map[string]string
	}{
		"a tar, as crane append makes one":  {[]mutate.Addendum{layer(tarOf(t, head, script), types.OCIUncompressedLayer)}, want},
		"with gzip and ./ before its names": {[]mutate.Addendum{layer(zipped(t, tarOf(t, dir("./"), entry{name: "./SKILL.md", text: "x"}, dir("./scripts/"), script)), types.OCILayer)}, want},
		"a folder, as oras push makes one": {[]mutate.Addendum{layer(zipped(t, tarOf(t, dir("pdf"), entry{name: "pdf/SKILL.md", text: "x"}, entry{name: "pdf/scripts/execute.sh", text: "echo", mode: 0o755})),
			types.OCILayer, title, "pdf", "io.deis.oras.content.unpack", "true")}, below},
		"files, as oras push makes them": {
			[]mutate.Addendum{layer([]byte("x"), types.OCIUncompressedLayer, title, "SKILL.md"), layer([]byte("[]"), "application/json", title, "references/a.json")},
			map[string]string{"SKILL.md": "x", "references/a.json": "[]"},
		},
		"two layers, the later file counts": {[]mutate.Addendum{layer(tarOf(t, entry{name: "SKILL.md", text: "old"}, script), types.OCIUncompressedLayer), layer(tarOf(t, head), types.OCIUncompressedLayer)}, want},
		"git archive":                       {[]mutate.Addendum{layer(tarOf(t, entry{name: "pax_global_header", kind: tar.TypeXGlobalHeader}, head, script), "application/vnd.agentskills.skill.content.v1.tar")}, want},
	} {
		t.Run(what, func(t *testing.T) {
			store := artifact.Store{Dir: filepath.Join(t.TempDir(), "new", "skills")}
			ref := s.push(t, c.layers...)
			got, err := store.Folder(t.Context(), ref)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, filesIn(t, got)); diff != "" {
				t.Error(diff)
			}
			asked := s.asks.Load()
			again, err := store.Folder(t.Context(), ref)
			if err != nil || again != got || s.asks.Load() != asked {
				t.Errorf("the second time: %s, %v, after %d requests", again, err, s.asks.Load()-asked)
			}
			if left, _ := filepath.Glob(filepath.Join(store.Dir, ".new-*")); len(left) > 0 {
				t.Errorf("%v is left behind", left)
			}
		})
	}
}

func TestAnIndexIsTheImageForThisHost(t *testing.T) {
	s := serve(t)
	img, err := mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1), layer(tarOf(t, entry{name: "SKILL.md", text: "x"}), types.OCIUncompressedLayer))
	if err != nil {
		t.Fatal(err)
	}
	other, err := mutate.Append(img, layer(tarOf(t, entry{name: "other", text: "x"}), types.OCIUncompressedLayer))
	if err != nil {
		t.Fatal(err)
	}
	index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex),
		mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: runtime.GOARCH}}},
		mutate.IndexAddendum{Add: other, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "s390x"}}},
		mutate.IndexAddendum{Add: other, Descriptor: v1.Descriptor{Annotations: map[string]string{"vnd.docker.reference.type": "attestation-manifest"}}},
	)
	push := func(i v1.ImageIndex) string {
		tag, err := name.NewTag(s.host + "/team/skill:index")
		if err != nil {
			t.Fatal(err)
		}
		sum, err := i.Digest()
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.WriteIndex(tag, i); err != nil {
			t.Fatal(err)
		}
		return s.host + "/team/skill@" + sum.String()
	}
	store := artifact.Store{Dir: t.TempDir()}
	dir, err := store.Folder(t.Context(), push(index))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"SKILL.md": "x"}, filesIn(t, dir)); diff != "" {
		t.Error(diff)
	}
	if _, err := store.Folder(t.Context(), push(index)); err != nil {
		t.Errorf("the second time: %v", err)
	}
	nested := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{Add: index})
	if _, err := store.Folder(t.Context(), push(nested)); err == nil || !strings.Contains(err.Error(), "another index") {
		t.Errorf("an index of an index: %v", err)
	}
}

func TestTheReferenceHasADigest(t *testing.T) {
	s := serve(t)
	for _, ref := range []string{s.host + "/team/skill:1", s.host + "/team/skill", "busybox", "../x@sha256:" + strings.Repeat("0", 64)} {
		if dir, err := (&artifact.Store{Dir: t.TempDir()}).Folder(t.Context(), ref); err == nil {
			t.Errorf("%s is in %s", ref, dir)
		}
	}
	if n := s.asks.Load(); n > 0 {
		t.Errorf("%d requests for what has no digest", n)
	}
}

// TestErrorsOfARegistryHaveANextStep: the reason decides the exit code.
func TestErrorsOfARegistryHaveANextStep(t *testing.T) {
	s := serve(t)
	ref := s.push(t, layer(tarOf(t, entry{name: "SKILL.md", text: "x"}), types.OCIUncompressedLayer))
	nowhere := "localhost:1/team/skill@sha256:" + strings.Repeat("ab", 32)
	for what, c := range map[string]struct {
		ref    string
		before func(w http.ResponseWriter, r *http.Request) bool
		want   reason.Reason
		hint   string
		off    bool
	}{
		"no credentials":    {ref, answer(http.StatusUnauthorized), reason.CredentialRejected, "docker login " + s.host, false},
		"wrong credentials": {ref, answer(http.StatusForbidden), reason.CredentialRejected, "docker login " + s.host, false},
		"no such digest":    {s.host + "/team/skill@sha256:" + strings.Repeat("ab", 32), nil, reason.WorkspaceUnavailable, "crane digest " + s.host + "/team/skill:TAG", false},
		"no registry":       {nowhere, nil, reason.WorkspaceUnavailable, "crane pull --format=oci " + nowhere, false},
		"offline":           {ref, nil, reason.WorkspaceUnavailable, "agentctl validate -f", true},
		"no layout":         {"oci:" + t.TempDir() + "@sha256:" + strings.Repeat("ab", 32), nil, reason.WorkspaceUnavailable, "OCI layout", false},
	} {
		t.Run(what, func(t *testing.T) {
			s.before = c.before
			_, err := (&artifact.Store{Dir: t.TempDir(), Offline: c.off}).Folder(t.Context(), c.ref)
			if got := reason.Of(err); err == nil || got != c.want || !strings.Contains(reason.Hint(err), c.hint) {
				t.Errorf("got %s, %v; next: %s", got, err, reason.Hint(err))
			}
		})
	}
}

func answer(code int) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(code); return true }
}
