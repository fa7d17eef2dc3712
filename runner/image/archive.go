package image

import (
	"archive/tar"
	"bytes"
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
	d, err := i.descriptor()
	if err == nil {
		err = writeLayout(ctx, file, []v1.Descriptor{d}, nil, i)
	}
	if err != nil {
		return "", fmt.Errorf("write the image: %w", err)
	}
	return "oci:" + file + "@" + i.digest, nil
}

// WriteIndex writes images of one thing for several architectures as a tar of an OCI layout,
// whole or not at all. Its one entry is their index, which containerd imports under the name.
func WriteIndex(ctx context.Context, file, name string, images ...*Image) error {
	m := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex}
	for _, i := range images {
		d, err := i.descriptor()
		if err != nil {
			return fmt.Errorf("write image %s: %w", name, err)
		}
		m.Manifests = append(m.Manifests, d)
	}
	index, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("write image %s: %w", name, err)
	}
	sum, size, err := v1.SHA256(bytes.NewReader(index))
	if err == nil {
		top := v1.Descriptor{MediaType: types.OCIImageIndex, Digest: sum, Size: size, Annotations: map[string]string{
			"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name[strings.LastIndexByte(name, ':')+1:],
		}}
		err = writeLayout(ctx, file, []v1.Descriptor{top}, []content{{blob(sum), index}}, images...)
	}
	if err != nil {
		return fmt.Errorf("write image %s: %w", name, err)
	}
	return nil
}

// descriptor is how an index names the image.
func (i *Image) descriptor() (v1.Descriptor, error) {
	manifest, err := i.img.RawManifest()
	if err != nil {
		return v1.Descriptor{}, err
	}
	c, err := i.img.ConfigFile()
	if err != nil {
		return v1.Descriptor{}, err
	}
	sum, err := v1.NewHash(i.digest)
	return v1.Descriptor{
		MediaType: types.OCIManifestSchema1, Digest: sum, Size: int64(len(manifest)), Platform: &v1.Platform{OS: c.OS, Architecture: c.Architecture},
	}, err
}

// writeLayout writes a layout to a file, whole or not at all.
func writeLayout(ctx context.Context, file string, top []v1.Descriptor, more []content, images ...*Image) (err error) {
	out, err := os.CreateTemp(filepath.Dir(file), ".image-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = out.Close()
			_ = os.Remove(out.Name())
		}
	}()
	if err := archive(ctx, out, top, more, images); err != nil {
		return err
	}
	if err := errors.Join(out.Chmod(0o644), out.Close()); err != nil {
		return err
	}
	return os.Rename(out.Name(), file)
}

// content is a small file of a layout.
type content struct {
	name string
	text []byte
}

// archive writes the layout: the same bytes for the same images.
func archive(ctx context.Context, out io.Writer, top []v1.Descriptor, more []content, images []*Image) error {
	index, err := json.Marshal(v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: top})
	if err != nil {
		return err
	}
	w := tar.NewWriter(out)
	written := map[string]bool{}
	small := func(files ...content) error {
		for _, f := range files {
			if written[f.name] {
				continue
			}
			written[f.name] = true
			if err := add(w, f.name, int64(len(f.text)), bytes.NewReader(f.text)); err != nil {
				return err
			}
		}
		return nil
	}
	if err := small(append([]content{{"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)}, {"index.json", index}}, more...)...); err != nil {
		return err
	}
	for _, i := range images {
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
		sum, err := v1.NewHash(i.digest)
		if err != nil {
			return err
		}
		if err := small(content{blob(sum), manifest}, content{blob(m.Config.Digest), config}); err != nil {
			return err
		}
		layers, err := i.img.Layers()
		if err != nil {
			return err
		}
		for n, l := range layers {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			d := m.Layers[n]
			if written[blob(d.Digest)] {
				continue
			}
			written[blob(d.Digest)] = true
			if err := addLayer(w, l, d); err != nil {
				return fmt.Errorf("layer %s: %w", d.Digest, err)
			}
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
