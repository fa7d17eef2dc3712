// Package image makes an OCI image of a tool's program, without Docker and the same to the bit each time.
//
// An image is a base, or nothing, and one layer: files without times and owners
// in a fixed order. The layer is not compressed, so that its digest depends on
// the files alone and not on whose compressor wrote it.
package image

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Scratch is the base that holds nothing.
const Scratch = "scratch"

// Options name what to make an image of: exactly one of Program and Folder.
type Options struct {
	// Program is a file; it becomes /NAME and the entrypoint.
	Program string
	// Folder is what becomes the root of the image's file system.
	Folder string
	// Entrypoint is the command, its first word a path in the image. Required
	// for a Folder; default for a Program is the program.
	Entrypoint []string
	// Base is Scratch, or the path of an OCI layout, a folder or a tar of one,
	// perhaps with @sha256:... for one of several images in it. Default Scratch.
	Base string
	// Architecture in Go's words, such as amd64. Default: the program's own.
	Architecture string
	// Labels of the image.
	Labels map[string]string
	// TempDir holds the layer until Close; "" is that of the system.
	TempDir string
}

// Image is an image that is built. Close it.
type Image struct {
	img    v1.Image
	dir    string
	digest string
	size   int64
}

// user of the program by default: nobody.
const user = "65534:65534"

// Build makes an image. Nothing is left behind when it fails.
func Build(ctx context.Context, o Options) (_ *Image, err error) {
	if (o.Program == "") == (o.Folder == "") {
		return nil, errors.New("an image is made of a program or of a folder")
	}
	dir, err := os.MkdirTemp(o.TempDir, "agentctl-image-")
	if err != nil {
		return nil, fmt.Errorf("build an image: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	files, err := o.files()
	if err != nil {
		return nil, err
	}
	if err := o.settle(files); err != nil {
		return nil, err
	}
	layer, err := writeLayer(ctx, dir, files)
	if err != nil {
		return nil, err
	}
	base, err := o.base(ctx, dir)
	if err != nil {
		return nil, err
	}
	img, err := o.assemble(base, layer)
	if err != nil {
		return nil, fmt.Errorf("assemble the image: %w", err)
	}
	digest, err := img.Digest()
	if err != nil {
		return nil, fmt.Errorf("assemble the image: %w", err)
	}
	m, err := img.Manifest()
	if err != nil {
		return nil, fmt.Errorf("assemble the image: %w", err)
	}
	i := &Image{img: img, dir: dir, digest: digest.String(), size: m.Config.Size}
	for _, l := range m.Layers {
		i.size += l.Size
	}
	return i, nil
}

// settle fills in what follows from the files, and refuses an image that could
// not run.
func (o *Options) settle(files []file) error {
	for name, value := range o.Labels {
		if name == "" || strings.ContainsAny(name+value, "\x00") {
			return fmt.Errorf("label %q=%q: a label has a name, and no zero bytes", name, value)
		}
	}
	if o.Program != "" && len(o.Entrypoint) == 0 {
		o.Entrypoint = []string{files[0].name}
	}
	if len(o.Entrypoint) == 0 {
		return errors.New("an image of a folder needs its entrypoint: the program's path in the folder, such as /bin/tool")
	}
	program := path.Join("/", o.Entrypoint[0])
	if program != o.Entrypoint[0] {
		return fmt.Errorf("entrypoint %q: its first word is an absolute path in the image, such as %s", o.Entrypoint[0], program)
	}
	i := slices.IndexFunc(files, func(f file) bool { return f.name == program })
	if i < 0 || files[i].kind != regular {
		if o.scratch() && (i < 0 || files[i].kind == folder) {
			return fmt.Errorf("entrypoint %s is not among the files of the image", program)
		}
		return o.architecture("")
	}
	kind, err := inspect(files[i].path)
	if err != nil {
		return fmt.Errorf("read %s: %w", files[i].path, err)
	}
	files[i].executable = true // a file that was copied about may have lost it
	if kind.needs != "" && o.scratch() && !slices.ContainsFunc(files, func(f file) bool { return f.name == path.Clean(kind.needs) }) {
		return &NeedsError{File: files[i].path, Needs: kind.needs, Script: kind.script}
	}
	return o.architecture(kind.arch)
}

func (o *Options) scratch() bool { return o.Base == "" || o.Base == Scratch }

// NeedsError is the error of a program that cannot run on its own.
type NeedsError struct {
	// File is the program, Needs the path of what would have to start it.
	File, Needs string
	// Script is set when the program is a script.
	Script bool
}

func (e *NeedsError) Error() string {
	if e.Script {
		return fmt.Sprintf("%s is a script for %s, which an image without a base does not have", e.File, e.Needs)
	}
	return fmt.Sprintf("%s is linked dynamically and needs %s, which an image without a base does not have", e.File, e.Needs)
}

// assemble puts the layer on the base and sets how to start the program.
func (o *Options) assemble(base v1.Image, layer v1.Layer) (v1.Image, error) {
	const by = "agentctl image build"
	epoch := v1.Time{Time: time.Unix(0, 0).UTC()}
	img, err := mutate.Append(base, mutate.Addendum{Layer: layer, History: v1.History{Created: epoch, CreatedBy: by}})
	if err != nil {
		return nil, err
	}
	was, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	c := was.DeepCopy()
	c.Created, c.OS = epoch, "linux"
	if c.Architecture == "" || o.scratch() {
		c.Architecture = o.Architecture
	}
	if c.Architecture != o.Architecture {
		return nil, fmt.Errorf("the base is for %s and the program for %s", c.Architecture, o.Architecture)
	}
	c.Config.Entrypoint, c.Config.Cmd = o.Entrypoint, nil
	if c.Config.User == "" {
		c.Config.User = user
	}
	if len(o.Labels) > 0 {
		c.Config.Labels = maps.Clone(c.Config.Labels)
		if c.Config.Labels == nil {
			c.Config.Labels = map[string]string{}
		}
		maps.Copy(c.Config.Labels, o.Labels)
	}
	return mutate.ConfigFile(img, c)
}

// Digest of the image's manifest, as sha256:...
func (i *Image) Digest() string { return i.digest }

// Size of its config and layers in bytes.
func (i *Image) Size() int64 { return i.size }

// Close removes what was needed to build it.
func (i *Image) Close() error { return os.RemoveAll(i.dir) }

// nothing is the base image of a program without a base.
func nothing() v1.Image {
	return mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
}
