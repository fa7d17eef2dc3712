package container

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/containerd/containerd/v2/core/images"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// layout is an OCI image layout: a folder, or a tar of one. It returns blobs by
// digest, as a registry does; the store that receives the blobs checks their
// digests.
type layout struct {
	open  func(name string) (io.ReadCloser, int64, error)
	close func() error
}

// maxLayoutEntries bounds the table of a tar.
const maxLayoutEntries = 100_000

// openLayout opens a layout for reading. Close it.
func openLayout(file string) (*layout, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		root, err := os.OpenRoot(file) // links must not lead out of the folder
		if err != nil {
			return nil, err
		}
		return &layout{open: func(name string) (io.ReadCloser, int64, error) { return openIn(root, name) }, close: root.Close}, nil
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is neither a folder nor a tar file", file)
	}
	return openTar(file)
}

func openIn(root *os.Root, name string) (io.ReadCloser, int64, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s is not a file", name)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// openTar notes where the files of a tar begin; they are read from there.
func openTar(file string) (*layout, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	type place struct{ at, size int64 }
	places := map[string]place{}
	for r, n := tar.NewReader(f), 0; ; n++ {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || n >= maxLayoutEntries {
			_ = f.Close()
			return nil, fmt.Errorf("read %s as a tar of an OCI layout: %w", file, errors.Join(err, limit(n >= maxLayoutEntries, "files", maxLayoutEntries)))
		}
		at, err := f.Seek(0, io.SeekCurrent)
		if err != nil {
			_ = f.Close()
			return nil, err
		}
		if h.Typeflag == tar.TypeReg {
			places[path.Clean(strings.TrimPrefix(h.Name, "./"))] = place{at, h.Size}
		}
	}
	open := func(name string) (io.ReadCloser, int64, error) {
		p, ok := places[name]
		if !ok {
			return nil, 0, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
		}
		return io.NopCloser(io.NewSectionReader(f, p.at, p.size)), p.size, nil
	}
	return &layout{open: open, close: f.Close}, nil
}

func limit(over bool, of string, n int) error {
	if over {
		return fmt.Errorf("it has over %d %s", n, of)
	}
	return nil
}

// maxManifest bounds an index, a manifest or a config, as registries do.
const maxManifest = 4 << 20

// Resolve describes the manifest or index of a digest.
func (l *layout) Resolve(sum digest.Digest) (ocispec.Descriptor, error) {
	none := ocispec.Descriptor{}
	text, err := l.small("index.json")
	if err != nil {
		return none, err
	}
	var index ocispec.Index
	if err := json.Unmarshal(text, &index); err != nil {
		return none, fmt.Errorf("index.json: %w", err)
	}
	for _, d := range index.Manifests {
		if d.Digest == sum {
			return ocispec.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}, nil
		}
	}
	text, err = l.small(blob(sum)) // a manifest below an index of the layout
	if errors.Is(err, fs.ErrNotExist) {
		return none, fmt.Errorf("no %s in it; it has %s", sum, listed(index.Manifests))
	}
	if err != nil {
		return none, err
	}
	var m struct {
		MediaType string          `json:"mediaType"`
		Manifests json.RawMessage `json:"manifests"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return none, fmt.Errorf("%s is neither a manifest nor an index: %w", sum, err)
	}
	if m.MediaType == "" {
		m.MediaType = ocispec.MediaTypeImageManifest
		if m.Manifests != nil {
			m.MediaType = ocispec.MediaTypeImageIndex
		}
	}
	if !images.IsManifestType(m.MediaType) && !images.IsIndexType(m.MediaType) {
		return none, fmt.Errorf("%s is neither a manifest nor an index but %q", sum, m.MediaType)
	}
	return ocispec.Descriptor{MediaType: m.MediaType, Digest: sum, Size: int64(len(text))}, nil
}

func listed(ds []ocispec.Descriptor) string {
	var out []string
	for _, d := range ds[:min(len(ds), 5)] {
		out = append(out, d.Digest.String())
	}
	if len(out) == 0 {
		return "no manifest at all"
	}
	return strings.Join(out, ", ")
}

func blob(sum digest.Digest) string { return "blobs/sha256/" + sum.Encoded() }

// small reads a file that is not a layer.
func (l *layout) small(name string) ([]byte, error) {
	r, size, err := l.open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	if size > maxManifest {
		return nil, fmt.Errorf("%s is over %d bytes", name, maxManifest)
	}
	return io.ReadAll(r)
}

// Fetch implements remotes.Fetcher.
func (l *layout) Fetch(_ context.Context, d ocispec.Descriptor) (io.ReadCloser, error) {
	if err := d.Digest.Validate(); err != nil || d.Digest.Algorithm() != digest.SHA256 {
		return nil, fmt.Errorf("%q is no sha256 digest", d.Digest.String())
	}
	r, size, err := l.open(blob(d.Digest))
	if err != nil {
		return nil, err
	}
	if size != d.Size {
		return nil, errors.Join(fmt.Errorf("blob %s has %d bytes, not %d", d.Digest, size, d.Size), r.Close())
	}
	return r, nil
}
