package image

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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

// Write writes the image as a tar of an OCI layout, whole or not at all, and
// returns the reference under which a Tool finds it: oci:PATH@sha256:...
func (i *Image) Write(ctx context.Context, file string) (ref string, err error) {
	file, err = filepath.Abs(file)
	if err != nil {
		return "", fmt.Errorf("write the image: %w", err)
	}
	if strings.ContainsFunc(file, func(r rune) bool { return r <= ' ' || r == '@' || r == 0x7f }) {
		return "", fmt.Errorf("write the image: %q cannot stand in a reference: it holds a space or an @", file)
	}
	out, err := os.CreateTemp(filepath.Dir(file), ".image-*")
	if err != nil {
		return "", fmt.Errorf("write the image: %w", err)
	}
	defer func() {
		if err != nil {
			_ = out.Close()
			_ = os.Remove(out.Name())
		}
	}()
	if err := i.archive(ctx, out); err != nil {
		return "", fmt.Errorf("write the image: %w", err)
	}
	if err := errors.Join(out.Chmod(0o644), out.Close()); err != nil {
		return "", fmt.Errorf("write the image: %w", err)
	}
	if err := os.Rename(out.Name(), file); err != nil {
		return "", fmt.Errorf("write the image: %w", err)
	}
	return "oci:" + file + "@" + i.digest, nil
}

// archive writes the layout: the same bytes for the same image.
func (i *Image) archive(ctx context.Context, out io.Writer) error {
	manifest, err := i.img.RawManifest()
	if err != nil {
		return err
	}
	m, err := i.img.Manifest()
	if err != nil {
		return err
	}
	config, err := i.img.RawConfigFile()
	if err != nil {
		return err
	}
	layers, err := i.img.Layers()
	if err != nil {
		return err
	}
	c, err := i.img.ConfigFile()
	if err != nil {
		return err
	}
	sum, err := v1.NewHash(i.digest)
	if err != nil {
		return err
	}
	index, err := json.Marshal(v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{{
		MediaType: types.OCIManifestSchema1, Digest: sum, Size: int64(len(manifest)), Platform: &v1.Platform{OS: c.OS, Architecture: c.Architecture},
	}}})
	if err != nil {
		return err
	}
	w := tar.NewWriter(out)
	for _, f := range []struct {
		name string
		text []byte
	}{
		{"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		{"index.json", index},
		{blob(sum), manifest},
		{blob(m.Config.Digest), config},
	} {
		if err := add(w, f.name, int64(len(f.text)), strings.NewReader(string(f.text))); err != nil {
			return err
		}
	}
	written := map[v1.Hash]bool{}
	for n, l := range layers {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		d := m.Layers[n]
		if written[d.Digest] {
			continue
		}
		written[d.Digest] = true
		if err := addLayer(w, l, d); err != nil {
			return fmt.Errorf("layer %s: %w", d.Digest, err)
		}
	}
	return w.Close()
}

func blob(h v1.Hash) string { return "blobs/sha256/" + h.Hex }

func add(w *tar.Writer, name string, size int64, r io.Reader) error {
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: size, ModTime: time.Unix(0, 0)}); err != nil {
		return err
	}
	_, err := io.Copy(w, r)
	return err
}

// addLayer copies a layer and holds it against its digest: a base may be damaged.
func addLayer(w *tar.Writer, l v1.Layer, d v1.Descriptor) error {
	r, err := l.Compressed()
	if err != nil {
		return err
	}
	defer r.Close()
	sum := sha256.New()
	if err := add(w, blob(d.Digest), d.Size, io.TeeReader(r, sum)); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != d.Digest.Hex {
		return fmt.Errorf("its content has the digest sha256:%s", got)
	}
	return nil
}
