package artifact

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"github.com/opencontainers/go-digest"
)

// layoutSource is an OCI layout on this host: a folder, or a tar of one. Blobs are found by
// their digests; its index is not read.
type layoutSource string

func (l layoutSource) manifest(ctx context.Context, d digest.Digest) ([]byte, error) {
	return l.layer(ctx, d, maxManifest)
}

func (l layoutSource) layer(ctx context.Context, d digest.Digest, most int64) ([]byte, error) {
	name := path.Join("blobs", d.Algorithm().String(), d.Encoded())
	info, err := os.Stat(string(l))
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return l.fromTar(ctx, name, most)
	}
	root, err := os.OpenRoot(string(l))
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // nothing was written
	if info, err := root.Stat(name); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", name)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	return readAtMost(f, name, most)
}

// maxLayout bounds the entries of a tar that are looked at.
const maxLayout = 10_000

func (l layoutSource) fromTar(ctx context.Context, name string, most int64) ([]byte, error) {
	in, err := os.Open(string(l))
	if err != nil {
		return nil, err
	}
	defer in.Close() //nolint:errcheck // nothing was written
	r := tar.NewReader(in)
	for range maxLayout {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read it as a tar: %w", err)
		}
		if h.Typeflag == tar.TypeReg && path.Clean(h.Name) == name {
			return readAtMost(r, name, most)
		}
	}
	return nil, fmt.Errorf("it has no %s", name)
}

func readAtMost(in io.Reader, name string, most int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(in, most+1))
	if err == nil && int64(len(content)) > most {
		err = wrong("%s has more than %d bytes", name, most)
	}
	return content, err
}
