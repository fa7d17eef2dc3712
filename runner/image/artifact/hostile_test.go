package artifact_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/image/artifact"
)

// refuses requires that nothing of an artifact is written, in the store or beside it.
func refuses(t *testing.T, ref, want string) {
	t.Helper()
	top := t.TempDir()
	store := artifact.Store{Dir: filepath.Join(top, "a", "b")}
	dir, err := store.Folder(t.Context(), ref)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %s, %v, want %q", dir, err, want)
	}
	if err != nil && len(err.Error()) > 1000 {
		t.Errorf("an error of %d bytes", len(err.Error()))
	}
	if left := filesIn(t, top); len(left) > 0 {
		t.Errorf("%d files were written: %.300v", len(left), left)
	}
}

func TestHostileTarsAreRefused(t *testing.T) {
	s := serve(t)
	skill := entry{name: "SKILL.md", text: "x"}
	many := make([]entry, 5000)
	for i := range many {
		many[i] = entry{name: fmt.Sprintf("%d", i)}
	}
	for want, c := range map[string][]entry{
		`"/etc/x" is not a path`:                 {{name: "/etc/x", text: "x"}},
		`"../../x" is not a path`:                {skill, {name: "../../x", text: "x"}},
		`"a/../../../x" is not a path`:           {{name: "a/../../../x", text: "x"}},
		`"a/../b" is not a path`:                 {{name: "a/../b", text: "x"}},
		`"a//b" is not a path`:                   {{name: "a//b", text: "x"}},
		`"../" is not a path`:                    {{name: "../", kind: tar.TypeDir}},
		`"out" is a link`:                        {{name: "out", text: "/etc", kind: tar.TypeSymlink}, {name: "out/passwd", text: "x"}},
		`"in" is a link`:                         {skill, {name: "in", text: "SKILL.md", kind: tar.TypeSymlink}},
		`"hard" is a link`:                       {{name: "hard", text: "/etc/passwd", kind: tar.TypeLink}},
		`"null" is neither a file nor a folder`:  {{name: "null", kind: tar.TypeChar}},
		`"disk" is neither a file nor a folder`:  {{name: "disk", kind: tar.TypeBlock}},
		`"pipe" is neither a file nor a folder`:  {{name: "pipe", kind: tar.TypeFifo}},
		`"a/b" is a file and a folder`:           {{name: "a", text: "x"}, {name: "a/b", text: "x"}},
		`"a" is a file and a folder`:             {{name: "a/b", text: "x"}, {name: "a", text: "x"}},
		`"SKILL.md" is there twice`:              {skill, {name: "SKILL.md", text: "y"}},
		`deletes a file of another layer`:        {{name: "a/.wh.b"}},
		`in more than 16 folders`:                {{name: strings.Repeat("a/", 20) + "b"}},
		`is too long`:                            {{name: strings.Repeat("b", 300)}},
		`with characters that are not printed`:   {{name: "a\x1b[2Jb", text: "x"}},
		`"a\u202eb"`[:2]:                         {{name: "a\u202eb", text: "x"}},
		`it has more than 4096 files`:            many,
		`it has more than 64 MiB`:                {{name: "big", text: strings.Repeat("\x00", 65<<20)}},
		`it holds no files`:                      {{name: "a/", kind: tar.TypeDir}},
		`a" is a name with characters that are `: {{name: "b\\a", text: "x"}},
	} {
		t.Run(want, func(t *testing.T) {
			refuses(t, s.push(t, layer(zipped(t, tarOf(t, c...)), types.OCILayer)), want)
		})
	}
}

func TestHostileLayersAreRefused(t *testing.T) {
	s := serve(t)
	tarred := tarOf(t, entry{name: "SKILL.md", text: "x"})
	for want, layers := range map[string][]mutate.Addendum{
		"is not a tar":            {layer([]byte("text"), types.OCIUncompressedLayer)},
		"gzip: invalid header":    {layer([]byte("\x1f\x8bxxxxxxxxxxxxxxxxxxxx"), types.OCILayer)},
		"unexpected EOF":          {layer(zipped(t, tarred)[:60], types.OCILayer)},
		"zstd":                    {layer([]byte("\x28\xb5\x2f\xfdxxxx"), types.OCILayerZStd)},
		"/etc/cron.d/x":           {layer([]byte("x"), types.OCIUncompressedLayer, title, "/etc/cron.d/x")},
		"../x":                    {layer([]byte("x"), types.OCIUncompressedLayer, title, "../x")},
		"it has no layers":        nil,
		"it has more than 64 MiB": {layer(bomb(t), types.OCILayer)},
		"is a file and a folder":  {layer([]byte("x"), "text/plain", title, "a"), layer([]byte("x"), "text/plain", title, "a/b")},
		"more than 32 layers":     many(40),
		"it has more than 32 MiB": {layer(make([]byte, 33<<20), types.OCIUncompressedLayer)},
		"not a tar, with gzip or without: unexpected EOF": {layer([]byte("x"), "text/plain", title, "a"), layer(cut(t), types.OCIUncompressedLayer)},
	} {
		t.Run(want, func(t *testing.T) {
			refuses(t, s.push(t, layers...), want)
		})
	}
}

// bomb is a tar of 120 headers of nearly 1 MiB each, which are no files.
func bomb(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for range 120 {
		h := &tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "g", PAXRecords: map[string]string{"comment": strings.Repeat("a", 1000<<10)}}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func many(n int) (all []mutate.Addendum) {
	for i := range n {
		all = append(all, layer([]byte{byte(i)}, "text/plain", title, fmt.Sprint("f", i)))
	}
	return all
}

// cut is a tar that ends within a file.
func cut(t *testing.T) []byte {
	t.Helper()
	return tarOf(t, entry{name: "long", text: strings.Repeat("x", 2000)})[:1000]
}

// TestARegistryThatLiesIsFound: what it answers with is compared with the digest, and what
// it never ends is bounded.
func TestARegistryThatLiesIsFound(t *testing.T) {
	s := serve(t)
	ref := s.push(t, layer(tarOf(t, entry{name: "SKILL.md", text: "the true one"}), types.OCIUncompressedLayer))
	endless := func(w http.ResponseWriter) {
		w.WriteHeader(http.StatusOK)
		for {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	}
	for what, c := range map[string]struct {
		path   string
		answer func(w http.ResponseWriter)
		want   string
	}{
		"another manifest": {"/manifests/", func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"layers": []}`) }, "digest"},
		"another layer":    {"/blobs/", func(w http.ResponseWriter) { _, _ = w.Write(make([]byte, 2048)) }, "sha256"},
		"a shorter layer":  {"/blobs/", func(w http.ResponseWriter) { _, _ = io.WriteString(w, "x") }, "sha256"},
		"endless manifest": {"/manifests/", endless, "more than"},
		"endless layer":    {"/blobs/", endless, ""},
	} {
		t.Run(what, func(t *testing.T) {
			s.before = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodGet && strings.Contains(r.URL.Path, c.path) {
					c.answer(w)
					return true
				}
				return false
			}
			refuses(t, ref, c.want)
		})
	}
	s.before = nil
	if _, err := (&artifact.Store{Dir: t.TempDir()}).Folder(t.Context(), ref); err != nil {
		t.Errorf("and the true one: %v", err)
	}
}

// TestPlainHTTPStaysOnThisHost: the library asks every private address without TLS, and
// follows a registry to wherever it redirects.
func TestPlainHTTPStaysOnThisHost(t *testing.T) {
	s := serve(t)
	var asked bool
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	t.Cleanup(proxy.Close)
	t.Setenv("HTTP_PROXY", proxy.URL)
	refuses(t, "10.255.255.1:5000/team/skill@sha256:"+strings.Repeat("ab", 32), "plain HTTP")
	ref := s.push(t, layer(tarOf(t, entry{name: "SKILL.md", text: "x"}), types.OCIUncompressedLayer))
	s.before = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/blobs/") {
			return false
		}
		http.Redirect(w, r, "http://metadata.example/latest", http.StatusTemporaryRedirect)
		return true
	}
	refuses(t, ref, "plain HTTP")
	if asked {
		t.Error("a request went to another host")
	}
}

// TestAKeptArtifactIsCompared: what was changed on this host is not used.
func TestAKeptArtifactIsCompared(t *testing.T) {
	s := serve(t)
	ref := s.push(t, layer(tarOf(t, entry{name: "SKILL.md", text: "x"}, entry{name: "scripts/execute.sh", text: "echo"}), types.OCIUncompressedLayer))
	for what, change := range map[string]func(dir string) error{
		"a file was changed":    func(dir string) error { return os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("y"), 0o600) },
		"a file was added":      func(dir string) error { return os.WriteFile(filepath.Join(dir, "scripts/more"), []byte("y"), 0o600) },
		"a folder was added":    func(dir string) error { return os.Mkdir(filepath.Join(dir, "more"), 0o700) },
		"a file was removed":    func(dir string) error { return os.Remove(filepath.Join(dir, "SKILL.md")) },
		"a file can be run now": func(dir string) error { return os.Chmod(filepath.Join(dir, "SKILL.md"), 0o700) },
		"all files are removed": os.RemoveAll,
		"a file is a link now": func(dir string) error {
			if err := os.Rename(filepath.Join(dir, "SKILL.md"), filepath.Join(dir, "../moved")); err != nil {
				return err
			}
			return os.Symlink("../moved", filepath.Join(dir, "SKILL.md"))
		},
		"a blob was changed": func(dir string) error {
			all, err := filepath.Glob(filepath.Join(dir, "../blobs/*"))
			for _, blob := range all {
				err = os.WriteFile(blob, []byte("{}"), 0o600)
			}
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			store := artifact.Store{Dir: t.TempDir()}
			dir, err := store.Folder(t.Context(), ref)
			if err != nil {
				t.Fatal(err)
			}
			if err := change(dir); err != nil {
				t.Fatal(err)
			}
			_, err = store.Folder(t.Context(), ref)
			if reason.Of(err) != reason.WorkspaceUnavailable || !strings.Contains(err.Error(), "differs from its digest") || !strings.Contains(reason.Hint(err), "remove that folder") {
				t.Errorf("got %v; next: %s", err, reason.Hint(err))
			}
		})
	}
}
