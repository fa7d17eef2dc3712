package image

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// layer is a tar on this host. It is written once: the bytes that are stored
// are those that were hashed, even if the files change meanwhile.
type layer struct {
	file   string
	digest v1.Hash
	size   int64
}

// Digest implements v1.Layer.
func (l *layer) Digest() (v1.Hash, error) { return l.digest, nil }

// DiffID implements v1.Layer.
func (l *layer) DiffID() (v1.Hash, error) { return l.digest, nil }

// Compressed implements v1.Layer.
func (l *layer) Compressed() (io.ReadCloser, error) { return os.Open(l.file) }

// Uncompressed implements v1.Layer.
func (l *layer) Uncompressed() (io.ReadCloser, error) { return os.Open(l.file) }

// Size implements v1.Layer.
func (l *layer) Size() (int64, error) { return l.size, nil }

// MediaType implements v1.Layer.
func (l *layer) MediaType() (types.MediaType, error) { return types.OCIUncompressedLayer, nil }

// writeLayer writes the files as a tar below dir.
func writeLayer(ctx context.Context, dir string, files []file) (_ *layer, err error) {
	out, err := os.Create(filepath.Join(dir, "layer.tar"))
	if err != nil {
		return nil, fmt.Errorf("write the layer: %w", err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	sum := sha256.New()
	counted := &counter{w: io.MultiWriter(out, sum)}
	w := tar.NewWriter(counted)
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("write the layer: %w", context.Cause(ctx))
		}
		if err := f.write(w); err != nil {
			return nil, fmt.Errorf("write the layer: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("write the layer: %w", err)
	}
	return &layer{out.Name(), v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum.Sum(nil))}, counted.n}, nil
}

// counter counts what is written.
type counter struct {
	w io.Writer
	n int64
}

// Write implements io.Writer.
func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// write appends one entry: nothing of this host but its content, its name and
// whether it is a program.
func (f *file) write(w *tar.Writer) error {
	h := &tar.Header{Name: strings.TrimPrefix(f.name, "/"), Mode: 0o644, ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
	switch f.kind {
	case folder:
		h.Typeflag, h.Name, h.Mode = tar.TypeDir, h.Name+"/", 0o755
		return w.WriteHeader(h)
	case symlink:
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, f.link, 0o777
		return w.WriteHeader(h)
	case regular:
	}
	if f.executable {
		h.Mode = 0o755
	}
	in, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() != f.size {
		return fmt.Errorf("%s has changed meanwhile", f.path)
	}
	h.Typeflag, h.Size = tar.TypeReg, f.size
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	if _, err := io.CopyN(w, in, f.size); err != nil {
		return fmt.Errorf("read %s: %w", f.path, err)
	}
	return nil
}
