package image

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// program is a small static program for Linux: the head of an ELF file is all
// that anybody here reads.
func program(t testing.TB) string {
	t.Helper()
	return write(t, filepath.Join(t.TempDir(), "my-tool"), elfHead(t, 62), 0o755)
}

// elfHead is an ELF file without sections for a machine.
func elfHead(t testing.TB, machine byte) string {
	t.Helper()
	head := make([]byte, 64)
	copy(head, "\x7fELF\x02\x01\x01")
	head[16], head[18], head[20], head[52] = 2, machine, 1, 64
	return string(head) + "the program"
}

func write(t testing.TB, file, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, mode); err != nil {
		t.Fatal(err)
	}
	return file
}

func build(t testing.TB, o Options) *Image {
	t.Helper()
	o.TempDir = t.TempDir()
	i, err := Build(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if left, _ := os.ReadDir(o.TempDir); len(left) != 0 {
			t.Errorf("%v is left behind", left)
		}
	})
	return i
}

// entries lists the last layer: mode, owner, time, name and link of each file.
func entries(t testing.TB, img v1.Image) map[string]tar.Header {
	t.Helper()
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	r, err := layers[len(layers)-1].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all := map[string]tar.Header{}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(time.Unix(0, 0)) || h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" || len(h.PAXRecords) != 0 {
			t.Errorf("%s tells of the host: %+v", h.Name, h)
		}
		all[h.Name] = tar.Header{Mode: h.Mode, Size: h.Size, Linkname: h.Linkname}
	}
}

func TestImageOfAProgram(t *testing.T) {
	i := build(t, Options{Program: program(t), Labels: map[string]string{"a": "b"}})
	if err := sound(i.img); err != nil {
		t.Error(err)
	}
	c, err := i.img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c.OS != "linux" || c.Architecture != "amd64" || !c.Created.Equal(time.Unix(0, 0)) {
		t.Errorf("got %s/%s of %s", c.OS, c.Architecture, c.Created)
	}
	want := v1.Config{Entrypoint: []string{"/my-tool"}, User: "65534:65534", Labels: map[string]string{"a": "b"}}
	if diff := cmp.Diff(want, c.Config); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]tar.Header{"my-tool": {Mode: 0o755, Size: 75}}, entries(t, i.img)); diff != "" {
		t.Error(diff)
	}
	if mt, _ := i.img.MediaType(); mt != types.OCIManifestSchema1 {
		t.Errorf("the manifest is %s", mt)
	}
	if i.Size() < 75 {
		t.Errorf("size %d", i.Size())
	}
}

// TestSameFilesAreTheSameImage: another folder, other times, other modes of the
// same meaning, another order of making them, and another tar.
func TestSameFilesAreTheSameImage(t *testing.T) {
	tree := func(order []string, mode os.FileMode, at time.Time) string {
		dir := t.TempDir()
		for _, name := range order {
			m := mode
			if name == "bin/tool" {
				m |= 0o100
			}
			write(t, filepath.Join(dir, name), map[string]string{"bin/tool": elfHead(t, 62), "lib/a.txt": "a", "lib/sub/b.txt": "b"}[name], m)
			if err := os.Chtimes(filepath.Join(dir, name), at, at); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink("a.txt", filepath.Join(dir, "lib/link")); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	a := build(t, Options{Folder: tree([]string{"bin/tool", "lib/a.txt", "lib/sub/b.txt"}, 0o600, time.Unix(1e9, 5)), Entrypoint: []string{"/bin/tool", "serve"}})
	b := build(t, Options{Folder: tree([]string{"lib/sub/b.txt", "lib/a.txt", "bin/tool"}, 0o664, time.Unix(2e9, 7)), Entrypoint: []string{"/bin/tool", "serve"}})
	if a.Digest() != b.Digest() {
		t.Errorf("%s and %s", a.Digest(), b.Digest())
	}
	want := map[string]tar.Header{
		"bin/": {Mode: 0o755}, "bin/tool": {Mode: 0o755, Size: 75}, "lib/": {Mode: 0o755}, "lib/a.txt": {Mode: 0o644, Size: 1},
		"lib/link": {Mode: 0o777, Linkname: "a.txt"}, "lib/sub/": {Mode: 0o755}, "lib/sub/b.txt": {Mode: 0o644, Size: 1},
	}
	if diff := cmp.Diff(want, entries(t, a.img)); diff != "" {
		t.Error(diff)
	}
	dir := t.TempDir()
	for name, i := range map[string]*Image{"a.tar": a, "b.tar": b} {
		if _, err := i.Write(t.Context(), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if one, two := read(t, filepath.Join(dir, "a.tar")), read(t, filepath.Join(dir, "b.tar")); !bytes.Equal(one, two) {
		t.Error("the archives differ")
	}
}

// TestDigestStaysFromVersionToVersion holds the digest still: manifests pin it.
func TestDigestStaysFromVersionToVersion(t *testing.T) {
	const want = "sha256:1aeacea072976e656a60ed2e643c1c94fa2469946344919c6e8eb6b203dfebbc"
	got := build(t, Options{Program: program(t)}).Digest()
	if got != want {
		t.Errorf("got %s, want %s: digests in manifests are void after this change", got, want)
	}
}

// sound holds the layers of an image against its manifest and its config. The
// library's own check knows compressed layers only.
func sound(img v1.Image) error {
	if err := validate.Image(img, validate.Fast); err != nil {
		return err
	}
	c, err := img.ConfigFile()
	if err != nil {
		return err
	}
	layers, err := img.Layers()
	if err != nil {
		return err
	}
	for n, l := range layers {
		digest, _ := l.Digest()
		for want, open := range map[v1.Hash]func() (io.ReadCloser, error){digest: l.Compressed, c.RootFS.DiffIDs[n]: l.Uncompressed} {
			r, err := open()
			if err != nil {
				return err
			}
			got, _, err := v1.SHA256(r)
			if err != nil || got != want {
				return fmt.Errorf("layer %d: got %s, %w, want %s", n, got, err, want)
			}
			_ = r.Close()
		}
	}
	return nil
}

func hash(t testing.TB, text string) v1.Hash {
	t.Helper()
	h, err := v1.NewHash(text)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestProgramsThatCannotRunAreRefused(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string { return write(t, filepath.Join(dir, name), text, 0o755) }
	folder := func(name string, files map[string]string) string {
		for f, text := range files {
			write(t, filepath.Join(dir, name, f), text, 0o644)
		}
		return filepath.Join(dir, name)
	}
	if err := syscall.Mkfifo(filepath.Join(folder("pipe", map[string]string{"a": elfHead(t, 62)}), "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		o    Options
		want string
	}{
		"nothing":              {Options{}, "a program or of a folder"},
		"both":                 {Options{Program: "a", Folder: "b"}, "a program or of a folder"},
		"no such program":      {Options{Program: filepath.Join(dir, "none")}, "no such file"},
		"folder as a program":  {Options{Program: dir}, "is a folder"},
		"pipe as a program":    {Options{Program: filepath.Join(dir, "pipe/fifo")}, "not a regular file"},
		"no such folder":       {Options{Folder: filepath.Join(dir, "none"), Entrypoint: []string{"/a"}}, "no such file"},
		"empty folder":         {Options{Folder: filepath.Join(dir, "empty"), Entrypoint: []string{"/a"}}, "empty"},
		"file as a folder":     {Options{Folder: file("x", "x"), Entrypoint: []string{"/a"}}, "no folder"},
		"pipe in a folder":     {Options{Folder: filepath.Join(dir, "pipe"), Entrypoint: []string{"/a"}}, "neither a file"},
		"deleting name":        {Options{Folder: folder("wh", map[string]string{"bin/.wh.sh": ""}), Entrypoint: []string{"/a"}}, ".wh."},
		"no UTF-8":             {Options{Folder: folder("utf", map[string]string{"a\xff": ""}), Entrypoint: []string{"/a"}}, "UTF-8"},
		"text":                 {Options{Program: file("text", "hello")}, "neither an ELF file nor a script"},
		"empty program":        {Options{Program: file("nil", "")}, "neither an ELF file nor a script"},
		"script":               {Options{Program: file("sh", "#!/usr/bin/env python3\n")}, "is a script for /usr/bin/env"},
		"script without":       {Options{Program: file("sh0", "#!\n")}, "without an interpreter"},
		"unknown machine":      {Options{Program: file("m", elfHead(t, 99))}, "unknown"},
		"other machine":        {Options{Program: file("arm", elfHead(t, 183)), Architecture: "amd64"}, "is for arm64, not for amd64"},
		"no entrypoint":        {Options{Folder: folder("ok", map[string]string{"a": elfHead(t, 62)})}, "needs its entrypoint"},
		"relative entrypoint":  {Options{Folder: folder("ok", nil), Entrypoint: []string{"a"}}, "such as /a"},
		"dotted entrypoint":    {Options{Folder: folder("ok", nil), Entrypoint: []string{"/../a"}}, "such as /a"},
		"missing entrypoint":   {Options{Folder: folder("ok", nil), Entrypoint: []string{"/b"}}, "not among the files"},
		"bad label":            {Options{Program: program(t), Labels: map[string]string{"": "x"}}, "label"},
		"no such base":         {Options{Program: program(t), Base: filepath.Join(dir, "none")}, "no such file"},
		"base that is none":    {Options{Program: program(t), Base: filepath.Join(dir, "ok")}, "no OCI layout"},
		"base that is no tar":  {Options{Program: program(t), Base: file("notar", strings.Repeat("x", 2000))}, "read it as a tar"},
		"base that is nothing": {Options{Program: program(t), Base: file("notar0", "")}, "no OCI layout"},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.TempDir = t.TempDir()
			i, err := Build(t.Context(), c.o)
			if err == nil {
				_ = i.Close()
				t.Fatalf("built; want an error with %q", c.want)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %q, want something with %q", err, c.want)
			}
			if left, _ := os.ReadDir(c.o.TempDir); len(left) != 0 {
				t.Errorf("%v is left behind", left)
			}
		})
	}
}

func TestDynamicProgramNeedsABase(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc, which makes a dynamically linked program")
	}
	dir := t.TempDir()
	source := write(t, filepath.Join(dir, "a.c"), "int main(void){return 0;}", 0o600)
	if out, err := exec.CommandContext(t.Context(), gcc, "-o", filepath.Join(dir, "a"), source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, err = Build(t.Context(), Options{Program: filepath.Join(dir, "a"), TempDir: dir})
	if needs, ok := errors.AsType[*NeedsError](err); !ok || needs.Script || !strings.Contains(needs.Needs, "ld") {
		t.Errorf("got %v", err)
	}
}

// baseLayout writes a layout of random images, one for each architecture.
func baseLayout(t testing.TB, archs ...string) string {
	t.Helper()
	dir := t.TempDir()
	p, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range archs {
		img, err := random.Image(300, 2)
		if err != nil {
			t.Fatal(err)
		}
		c, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		c = c.DeepCopy()
		c.OS, c.Architecture = "linux", arch
		c.Config = v1.Config{User: "7", Env: []string{"PATH=/bin"}, Cmd: []string{"sh"}, Labels: map[string]string{"base": "1"}}
		if img, err = mutate.ConfigFile(img, c); err != nil {
			t.Fatal(err)
		}
		if err := p.AppendImage(img, layout.WithPlatform(v1.Platform{OS: "linux", Architecture: arch})); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// tarOf packs a folder.
func tarOf(t testing.TB, dir string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "base.tar")
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.AddFS(os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	// What does not belong there is not unpacked.
	_ = w.WriteHeader(&tar.Header{Name: "../../evil", Typeflag: tar.TypeReg, Mode: 0o644})
	_ = w.WriteHeader(&tar.Header{Name: "blobs/sha256/" + strings.Repeat("a", 64), Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return write(t, file, b.String(), 0o600)
}

func TestImageOnABase(t *testing.T) {
	dir := baseLayout(t, "amd64", "arm64")
	want := v1.Config{Entrypoint: []string{"/my-tool"}, User: "7", Env: []string{"PATH=/bin"}, Labels: map[string]string{"base": "1", "mine": "2"}}
	var digest string
	for _, base := range []string{dir, tarOf(t, dir), "oci:" + dir} {
		i := build(t, Options{Program: program(t), Base: base, Labels: map[string]string{"mine": "2"}})
		if err := sound(i.img); err != nil {
			t.Error(err)
		}
		c, err := i.img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, c.Config); diff != "" || c.Architecture != "amd64" || len(c.RootFS.DiffIDs) != 3 {
			t.Errorf("%s: %s\n%s, %d layers", base, diff, c.Architecture, len(c.RootFS.DiffIDs))
		}
		if digest == "" {
			digest = i.Digest()
		}
		if i.Digest() != digest {
			t.Errorf("%s: %s, before %s", base, i.Digest(), digest)
		}
	}
	// A script runs on a base that may have its interpreter.
	build(t, Options{Program: write(t, filepath.Join(t.TempDir(), "x.py"), "#!/usr/bin/python3\n", 0o644), Base: dir})
	build(t, Options{Folder: filepath.Dir(program(t)), Base: dir, Entrypoint: []string{"/bin/sh", "/my-tool"}})
}

func TestBaseIsChosenByArchitectureOrDigest(t *testing.T) {
	two := baseLayout(t, "amd64", "amd64")
	index, err := layout.ImageIndexFromPath(two)
	if err != nil {
		t.Fatal(err)
	}
	m, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	build(t, Options{Program: program(t), Base: two + "@" + m.Manifests[1].Digest.String()})
	for base, want := range map[string]string{
		two: "it has 2 images: name one as PATH@sha256:", baseLayout(t, "arm64"): "no image for linux/amd64", two + "@sha256:" + strings.Repeat("0", 64): "it has no image sha256:",
	} {
		if _, err := Build(t.Context(), Options{Program: program(t), Base: base, TempDir: t.TempDir()}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want something with %q", err, want)
		}
	}
}

func TestDamagedBaseIsNotWritten(t *testing.T) {
	dir := baseLayout(t, "amd64")
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	m, _ := index.IndexManifest()
	img, err := index.Image(m.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	of, _ := img.Manifest()
	damaged := filepath.Join(dir, "blobs/sha256", of.Layers[0].Digest.Hex)
	write(t, damaged, strings.Repeat("x", int(of.Layers[0].Size)), 0o600)
	to := filepath.Join(t.TempDir(), "out.tar")
	_, err = build(t, Options{Program: program(t), Base: dir}).Write(t.Context(), to)
	if err == nil || !strings.Contains(err.Error(), "its content has the digest") {
		t.Errorf("got %v", err)
	}
	if left, _ := os.ReadDir(filepath.Dir(to)); len(left) != 0 {
		t.Errorf("%v is left behind", left)
	}
}

func TestArchiveIsALayout(t *testing.T) {
	i := build(t, Options{Program: program(t)})
	file := filepath.Join(t.TempDir(), "tool.tar")
	ref, err := i.Write(t.Context(), file)
	if want := "oci:" + file + "@" + i.Digest(); err != nil || ref != want {
		t.Fatalf("got %q, %v, want %q", ref, err, want)
	}
	dir := t.TempDir()
	if err := unpack(t.Context(), file, dir); err != nil {
		t.Fatal(err)
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if img, err := index.Image(hash(t, i.Digest())); err != nil || sound(img) != nil {
		t.Error(err, sound(img))
	}
	var version struct{ ImageLayoutVersion string }
	if err := json.Unmarshal(read(t, filepath.Join(dir, "oci-layout")), &version); err != nil || version.ImageLayoutVersion != "1.0.0" {
		t.Errorf("got %+v, %v", version, err)
	}
	// What was written is a base, too.
	build(t, Options{Program: program(t), Base: strings.TrimPrefix(ref, "oci:")})
	for name, to := range map[string]string{"no such file": filepath.Join(dir, "none/x.tar"), "space": filepath.Join(dir, "a b.tar"), "@": filepath.Join(dir, "a@b.tar"), "file exists": dir} {
		if _, err := i.Write(t.Context(), to); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v, want something with %q", to, err, name)
		}
	}
}

func TestBuildStopsWhenItIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	dir := t.TempDir()
	if _, err := Build(ctx, Options{Program: program(t), TempDir: dir}); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("got %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("%v is left behind", left)
	}
}

func TestPushKeepsTheDigest(t *testing.T) {
	s := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(s.Close)
	i := build(t, Options{Program: program(t), Base: baseLayout(t, "amd64")})
	host := s.Listener.Addr().String()
	for _, to := range []string{host + "/team/tool:1", host + "/team/tool", strings.Replace(host, "127.0.0.1", "localhost", 1) + "/other"} {
		ref, err := i.Push(t.Context(), to)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(ref, "@"+i.Digest()) || strings.Contains(ref, ":1@") {
			t.Errorf("pushed as %s", ref)
		}
		d, err := name.NewDigest(ref)
		if err != nil {
			t.Fatal(err)
		}
		img, err := remote.Image(d)
		if err != nil {
			t.Fatal(err)
		}
		if err := sound(img); err != nil {
			t.Errorf("%s: %v", ref, err)
		}
	}
}

func TestPushIsRefused(t *testing.T) {
	i := build(t, Options{Program: program(t)})
	for to, want := range map[string]string{
		"tool": "names no registry", "team/tool:1": "names no registry", "": "names no registry", "localhost:5000/a@sha256:" + strings.Repeat("0", 64): "digest",
		"localhost:5000/UPPER": "no repository", "localhost:5000/a:b c": "no repository", "https://localhost:5000/a": "no repository",
	} {
		if _, err := i.Push(t.Context(), to); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want something with %q", to, err, want)
		}
	}
}

// TestPlainHTTPStaysOnThisHost: a registry at a private address answers in plain
// HTTP only, and one on this host leads there.
func TestPlainHTTPStaysOnThisHost(t *testing.T) {
	asked := 0
	next := roundTrip(func(r *http.Request) (*http.Response, error) {
		asked++
		return nil, &net.OpError{Op: "dial", Err: errors.New(r.URL.Host)}
	})
	for url, plain := range map[string]bool{
		"http://localhost:5000/v2/": true, "http://127.0.0.1/v2/": true, "http://[::1]:80/v2/": true, "http://[::ffff:127.0.0.1]/v2/": true, "https://registry.example.com/v2/": true,
		"http://10.0.0.1/v2/": false, "http://registry.local/v2/": false, "http://localhost.example.com/v2/": false, "http://192.168.1.1:5000/v2/": false, "http://0.0.0.0/v2/": false,
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		_, err := homely{next}.RoundTrip(r)
		if errors.Is(err, errPlain) == plain {
			t.Errorf("%s: got %v", url, err)
		}
	}
	if asked != 5 {
		t.Errorf("%d requests went out, want 5", asked)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestArchitectureIsTheProgramsOwn(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	k, err := inspect(self)
	if err != nil || k.arch != runtime.GOARCH {
		t.Errorf("got %+v, %v", k, err)
	}
	i := build(t, Options{Program: write(t, filepath.Join(t.TempDir(), "arm"), elfHead(t, 183), 0o755)})
	if c, _ := i.img.ConfigFile(); c == nil || c.Architecture != "arm64" {
		t.Errorf("got %+v", c)
	}
}

func BenchmarkBuild13MB(b *testing.B) {
	file := write(b, filepath.Join(b.TempDir(), "tool"), elfHead(b, 62)+strings.Repeat("0123456789abcdef", 13<<16), 0o755)
	for b.Loop() {
		i, err := Build(b.Context(), Options{Program: file, TempDir: b.TempDir()})
		if err != nil {
			b.Fatal(err)
		}
		if err := i.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
