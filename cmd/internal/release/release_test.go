package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	v1 "github.com/in-toto/attestation/go/predicates/provenance/v1"
	attestation "github.com/in-toto/attestation/go/v1"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"golang.org/x/mod/zip"
	"google.golang.org/protobuf/encoding/protojson"
)

const version = "v0.9.1"

// first is a release of one small program, which several tests read.
type first struct{ repository, dir string }

// scratch is removed when the tests have ended.
var scratch string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "release-test-")
	if err != nil {
		panic(err)
	}
	scratch = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

var build = sync.OnceValues(func() (first, error) {
	f := first{filepath.Join(scratch, "repository"), filepath.Join(scratch, "dist")}
	if err := makeRepository(f.repository); err != nil {
		return f, err
	}
	return f, Build(context.Background(), options(f.repository, f.dir))
})

func released(t *testing.T) first {
	t.Helper()
	f, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func options(repository, out string) Options {
	return Options{
		Version: version, Source: repository, Out: out, Builder: builder, Log: io.Discard,
		Programs:  []Program{{Name: "agentctl-entry", Libexec: true}},
		Platforms: []Platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "arm64"}},
	}
}

var required = regexp.MustCompile(regexp.QuoteMeta(sdkModule) + ` v\S*`)

// makeRepository makes a repository with what agentctl-entry is built from, as it is here.
func makeRepository(dir string) error {
	const root = "../../.."
	parts := []string{
		"go.mod", "go.sum", "LICENSE", "README.md", "CHANGELOG.md", "cmd/agentctl-entry", "runner/sandbox/container/entry", "runner/sandbox/initsignal",
		"plugins/sdk", "plugins/examples/go",
	}
	for _, part := range parts {
		err := filepath.WalkDir(filepath.Join(root, part), func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			name, err := filepath.Rel(root, p)
			if err != nil {
				return err
			}
			text, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			if name == "go.mod" {
				text = required.ReplaceAll(text, []byte(sdkModule+" "+version))
			}
			if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, name), text, 0o644)
		})
		if err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "go.work"), []byte("go 1.26.8\n\nuse (\n\t.\n\t./plugins/sdk\n)\n"), 0o644); err != nil {
		return err
	}
	for _, args := range [][]string{{"init", "--quiet"}, {"add", "."}, {"commit", "--quiet", "-m", "all"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com",
			"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z")
		if out, err := cmd.CombinedOutput(); err != nil {
			return errors.Join(err, errors.New(string(out)))
		}
	}
	return nil
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := below(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, name := range files {
		all[name] = string(read(t, filepath.Join(dir, name)))
	}
	return all
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The second folder has another length, is changed and has files that nobody committed; the
// environment has settings that change what the go command builds.
func TestOneCommitGivesTheSameBytes(t *testing.T) {
	want := contents(t, released(t).dir)
	other := filepath.Join(t.TempDir(), "a much longer name", "clone")
	if err := makeRepository(other); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"README.md": "changed", "cmd/agentctl-entry/more.go": "package main\n\nvar _ = 1\n"} {
		if err := os.WriteFile(filepath.Join(other, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{"GOFLAGS": "-buildvcs=false -ldflags=-w", "GOAMD64": "v2", "CGO_ENABLED": "1", "TZ": "Asia/Tokyo", "LC_ALL": "C"} {
		t.Setenv(name, value)
	}
	out := filepath.Join(t.TempDir(), "out")
	if err := Build(t.Context(), options(other, out)); err != nil {
		t.Fatal(err)
	}
	got := contents(t, out)
	for name := range want {
		if want[name] != got[name] {
			t.Errorf("%s differs: %d bytes and %d bytes", name, len(want[name]), len(got[name]))
		}
	}
	if len(want) != len(got) || len(want) != 15 {
		t.Errorf("%d files and %d files, want 15", len(want), len(got))
	}
}

func TestArchivesHoldNothingOfTheMachine(t *testing.T) {
	f := released(t)
	zip, err := gzip.NewReader(bytes.NewReader(read(t, filepath.Join(f.dir, "agentctl_v0.9.1_linux_arm64.tar.gz"))))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, h.Name+" "+h.FileInfo().Mode().String())
		if h.Uid != 0 || h.Gid != 0 || h.Uname+h.Gname != "" || h.ModTime.UTC().Format("2006-01-02T15:04:05") != "2026-01-02T03:04:05" {
			t.Errorf("%s: owner %d/%d %q %q, time %s", h.Name, h.Uid, h.Gid, h.Uname, h.Gname, h.ModTime)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte(scratch)) {
			t.Errorf("%s holds a path of this machine", h.Name)
		}
	}
	want := []string{
		"agentctl_v0.9.1_linux_arm64/ drwxr-xr-x",
		"agentctl_v0.9.1_linux_arm64/CHANGELOG.md -rw-r--r--",
		"agentctl_v0.9.1_linux_arm64/LICENSE -rw-r--r--",
		"agentctl_v0.9.1_linux_arm64/README.md -rw-r--r--",
		"agentctl_v0.9.1_linux_arm64/libexec/ drwxr-xr-x",
		"agentctl_v0.9.1_linux_arm64/libexec/agentctl/ drwxr-xr-x",
		"agentctl_v0.9.1_linux_arm64/libexec/agentctl/agentctl-entry -rwxr-xr-x",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestChecksumsNameEveryFileBeforeThem(t *testing.T) {
	f := released(t)
	var names []string
	for line := range strings.Lines(string(read(t, filepath.Join(f.dir, checksumsName)))) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		names = append(names, name)
		if got := sha256.Sum256(read(t, filepath.Join(f.dir, name))); hex.EncodeToString(got[:]) != sum {
			t.Errorf("%s: wrong checksum", name)
		}
	}
	want := []string{"agentctl-image.tar", "agentctl_v0.9.1.cdx.json", "agentctl_v0.9.1_linux_amd64.tar.gz", "agentctl_v0.9.1_linux_arm64.tar.gz", "install.sh"}
	for _, m := range []string{"agentctl.dev/agentctl/@v/", "agentctl.dev/agentctl/plugins/sdk/@v/"} {
		for _, end := range []string{"list", "v0.9.1.info", "v0.9.1.mod", "v0.9.1.zip"} {
			want = append(want, "modules/"+m+end)
		}
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

func TestInventoryNamesProgramsAndModules(t *testing.T) {
	f := released(t)
	var d document
	if err := json.Unmarshal(read(t, filepath.Join(f.dir, "agentctl_v0.9.1.cdx.json")), &d); err != nil {
		t.Fatal(err)
	}
	known := map[string]component{d.Metadata.Component.Ref: d.Metadata.Component}
	for _, c := range d.Components {
		known[c.Ref] = c
	}
	if c := known["linux/arm64/agentctl-entry"]; len(c.Hashes) != 1 || len(c.Hashes[0].Content) != 64 || c.Version != version {
		t.Errorf("the program for arm64: %+v", c)
	}
	for _, dep := range d.Dependencies {
		for _, ref := range append([]string{dep.Ref}, dep.DependsOn...) {
			if known[ref].Ref == "" {
				t.Errorf("%s is not a component", ref)
			}
		}
	}
	if len(d.Dependencies) != 3 {
		t.Errorf("%d dependencies, want those of the release and of two programs", len(d.Dependencies))
	}
}

func TestProvenanceNamesEveryFileAndTheCommit(t *testing.T) {
	f := released(t)
	checkStatement(t, f, read(t, filepath.Join(f.dir, "agentctl_v0.9.1.provenance.json")), f.dir)
}

// checkStatement reads a statement with the types of in-toto itself.
func checkStatement(t *testing.T, f first, text []byte, dir string) {
	t.Helper()
	var s attestation.Statement
	if err := protojson.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
	raw, err := protojson.Marshal(s.GetPredicate())
	if err != nil {
		t.Fatal(err)
	}
	var p v1.Provenance
	if err := protojson.Unmarshal(raw, &p); err != nil {
		t.Fatal(err)
	}
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
	commit, err := git(t.Context(), f.repository, "rev-parse", "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	if got := p.GetBuildDefinition().GetResolvedDependencies()[0].GetDigest()["gitCommit"]; got != commit {
		t.Errorf("built from %s, want %s", got, commit)
	}
	files := contents(t, dir)
	for _, subject := range s.GetSubject() {
		sum := sha256.Sum256([]byte(files[subject.GetName()]))
		if subject.GetDigest()["sha256"] != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: wrong digest", subject.GetName())
		}
		delete(files, subject.GetName())
	}
	if len(files) != 1 {
		t.Errorf("%d files are not named by it, want 1: itself", len(files))
	}
}

func TestProvenanceIsSignedWithAKey(t *testing.T) {
	f := released(t)
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "release.key")
	if err := os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	o := options(f.repository, filepath.Join(t.TempDir(), "out"))
	o.Key, o.Platforms = key, o.Platforms[:1]
	if err := Build(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	var e dsse.Envelope
	if err := json.Unmarshal(read(t, filepath.Join(o.Out, "agentctl_v0.9.1.intoto.jsonl")), &e); err != nil {
		t.Fatal(err)
	}
	verify := func(e *dsse.Envelope) error {
		v, err := dsse.NewEnvelopeVerifier(verifier{public})
		if err == nil {
			_, err = v.Verify(t.Context(), e)
		}
		return err
	}
	if err := verify(&e); err != nil {
		t.Errorf("the signature is not valid: %v", err)
	}
	payload, err := e.DecodeB64Payload()
	if err != nil {
		t.Fatal(err)
	}
	checkStatement(t, f, payload, o.Out)
	changed := e
	changed.Payload = strings.Replace(e.Payload, "e", "f", 1)
	if verify(&changed) == nil {
		t.Error("a changed statement passes")
	}
}

type verifier struct{ key ed25519.PublicKey }

func (v verifier) Verify(_ context.Context, data, sig []byte) error {
	if !ed25519.Verify(v.key, data, sig) {
		return errors.New("not its signature")
	}
	return nil
}

func (v verifier) KeyID() (string, error)   { return "", nil }
func (v verifier) Public() crypto.PublicKey { return v.key }

func TestImageHasBothArchitectures(t *testing.T) {
	f := released(t)
	dir := t.TempDir()
	if out, err := exec.Command("tar", "-xf", filepath.Join(f.dir, "agentctl-image.tar"), "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	m, err := top.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Manifests) != 1 || m.Manifests[0].Annotations["io.containerd.image.name"] != "agentctl.dev/agentctl:v0.9.1" {
		t.Fatalf("the layout has %+v", m.Manifests)
	}
	index, err := top.ImageIndex(m.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if m, err = index.IndexManifest(); err != nil {
		t.Fatal(err)
	}
	var arches []string
	for _, d := range m.Manifests {
		img, err := index.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		c, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		arches = append(arches, c.Architecture)
		if c.Architecture != d.Platform.Architecture || c.Config.Labels["org.opencontainers.image.version"] != version ||
			!slices.Equal(c.Config.Entrypoint, []string{"/usr/local/libexec/agentctl/agentctl-entry"}) {
			t.Errorf("the config of %s: %+v", d.Platform.Architecture, c)
		}
	}
	if diff := cmp.Diff([]string{"amd64", "arm64"}, arches); diff != "" {
		t.Error(diff)
	}
}

// What the release has of the modules is enough for go install, in a clean GOPATH and without
// go.work. The modules of others come from the cache of this machine.
func TestGoInstallBuildsFromTheModules(t *testing.T) {
	f := released(t)
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	env := append(os.Environ(), "GOPATH="+home, "GOMODCACHE="+filepath.Join(home, "mod"), "GOBIN="+filepath.Join(home, "bin"), "GOWORK=off", "GOFLAGS=-trimpath -modcacherw",
		"GOPROXY=file://"+f.dir+"/modules,file://"+strings.TrimSpace(string(cache))+"/cache/download", "GOSUMDB=off")
	for _, program := range []string{"cmd/agentctl-entry", "plugins/examples/go/wordcount"} {
		cmd := exec.CommandContext(t.Context(), "go", "install", rootModule+"/"+program+"@"+version)
		cmd.Dir, cmd.Env = home, env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	info, err := buildinfo.ReadFile(filepath.Join(home, "bin", "wordcount"))
	if err != nil {
		t.Fatal(err)
	}
	var sdk string
	for _, m := range info.Deps {
		if m.Path == sdkModule {
			sdk = m.Version
		}
	}
	if info.Main.Version != version || sdk != version {
		t.Errorf("built from %s with the SDK %s, want %s of both", info.Main.Version, sdk, version)
	}
}

func TestAReleaseIsRefused(t *testing.T) {
	f := released(t)
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tagged := filepath.Join(t.TempDir(), "tagged")
	if err := makeRepository(tagged); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"tag", version}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "--allow-empty", "-m", "later"}} {
		if _, err := git(t.Context(), tagged, args...); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		reason string
		change func(*Options)
		want   string
	}{
		"no version":     {"a release has one", func(o *Options) { o.Version = "" }, "make release VERSION=v0.1.0"},
		"no v":           {"the go command knows versions with a v only", func(o *Options) { o.Version = "0.9.1" }, "semantic version"},
		"build data":     {"it is part of no module version", func(o *Options) { o.Version = "v0.9.1+x" }, "semantic version"},
		"foreign folder": {"what is written replaces the folder", func(o *Options) { o.Out = foreign }, "not of a release"},
		"no repository":  {"what is built is a commit", func(o *Options) { o.Source = t.TempDir() }, "find the commit"},
		"another SDK":    {"go install would build other bytes", func(o *Options) { o.Version = "v0.9.2" }, "go mod edit -require=agentctl.dev/agentctl/plugins/sdk@v0.9.2"},
		"moved tag":      {"a version is one commit", func(o *Options) { o.Source = tagged }, "tag v0.9.1 is at commit"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(f.repository, filepath.Join(t.TempDir(), "out"))
			c.change(&o)
			if err := Build(t.Context(), o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: error %v, want %q", c.reason, err, c.want)
			}
			if entries, _ := os.ReadDir(filepath.Dir(o.Out)); o.Out != foreign && len(entries) > 0 {
				t.Errorf("%v is left behind", entries)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(foreign, "mine")); err != nil {
		t.Error(err)
	}
}

// The go command refuses a module with a file that some system cannot have, such as one that
// is called nul: then nothing of it can be installed.
func TestTheTreeCanBeAModule(t *testing.T) {
	const root = "../../.."
	for path, folder := range map[string]string{rootModule: ".", sdkModule: sdkFolder} {
		checked, err := zip.CheckDir(filepath.Join(root, folder))
		if err != nil && checked.SizeError == nil { // what was built here counts, too
			t.Errorf("%s: %v", path, err)
		}
		if len(checked.Valid) < 10 {
			t.Errorf("%s has %d files", path, len(checked.Valid))
		}
		for _, f := range checked.Omitted {
			if name := filepath.Base(f.Path); strings.HasSuffix(name, ".go") {
				t.Errorf("%s leaves out %s: %v", path, f.Path, f.Err)
			}
		}
	}
}
