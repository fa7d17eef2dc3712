package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// base returns the image to build on. A layout in a tar is unpacked below dir.
func (o *Options) base(ctx context.Context, dir string) (v1.Image, error) {
	if o.scratch() {
		return nothing(), nil
	}
	file, sum, _ := strings.Cut(strings.TrimPrefix(o.Base, "oci:"), "@")
	img, err := o.layout(ctx, dir, file, sum)
	if err != nil {
		return nil, fmt.Errorf("base %s: %w", o.Base, err)
	}
	// An index or a config of another make becomes one of OCI; layers stay.
	return mutate.ConfigMediaType(mutate.MediaType(img, types.OCIManifestSchema1), types.OCIConfigJSON), nil
}

func (o *Options) layout(ctx context.Context, dir, file, sum string) (v1.Image, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	folder := file
	if !info.IsDir() {
		folder = filepath.Join(dir, "base")
		if err := unpack(ctx, file, folder); err != nil {
			return nil, err
		}
	}
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return nil, fmt.Errorf("it is no OCI layout: %w", err)
	}
	return o.choose(index, sum, 0)
}

// maxIndexes bounds how deep indexes may be nested.
const maxIndexes = 4

// choose returns the image of the digest, or without one the only image for the
// architecture.
func (o *Options) choose(index v1.ImageIndex, sum string, depth int) (v1.Image, error) {
	m, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("read its index: %w", err)
	}
	if depth > maxIndexes {
		return nil, errors.New("its indexes lie in one another too deep")
	}
	var found []v1.Descriptor
	for _, d := range m.Manifests {
		fits := d.Platform == nil || d.Platform.OS == "linux" && d.Platform.Architecture == o.Architecture
		if d.Digest.String() == sum || sum == "" && fits {
			found = append(found, d)
		}
	}
	switch {
	case len(found) == 0 && sum != "":
		return nil, fmt.Errorf("it has no image %s", sum)
	case len(found) == 0:
		return nil, fmt.Errorf("it has no image for linux/%s", o.Architecture)
	case len(found) > 1:
		return nil, fmt.Errorf("it has %d images: name one as PATH@%s", len(found), found[0].Digest)
	}
	if found[0].MediaType.IsIndex() {
		below, err := index.ImageIndex(found[0].Digest)
		if err != nil {
			return nil, err
		}
		return o.choose(below, "", depth+1)
	}
	return index.Image(found[0].Digest)
}

// unpack writes the files of a layout's tar below folder: those and no others,
// by their own names.
func unpack(ctx context.Context, file, folder string) (err error) {
	in, err := os.Open(file) //nolint:gosec // the user names the layout
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Join(folder, "blobs", "sha256"), 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	left := int64(maxBytes)
	for r, n := tar.NewReader(in), 0; ; n++ {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = context.Cause(ctx)
		}
		if err == nil && n > maxFiles {
			err = fmt.Errorf("more than %d files", maxFiles)
		}
		if err != nil {
			return fmt.Errorf("read it as a tar: %w", err)
		}
		name := path.Clean(h.Name)
		if h.Typeflag != tar.TypeReg || !ofLayout(name) {
			continue
		}
		if left -= h.Size; left < 0 {
			return fmt.Errorf("more than %d bytes", int64(maxBytes))
		}
		if err := unpackFile(root, name, io.LimitReader(r, h.Size)); err != nil {
			return err
		}
	}
}

// ofLayout reports whether a file belongs to a layout.
func ofLayout(name string) bool {
	hex, blob := strings.CutPrefix(name, "blobs/sha256/")
	return name == "index.json" || name == "oci-layout" || blob && len(hex) == 64 && strings.Trim(hex, "0123456789abcdef") == ""
}

func unpackFile(root *os.Root, name string, r io.Reader) (err error) {
	f, err := root.OpenFile(filepath.FromSlash(name), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = io.Copy(f, r)
	return err
}
