package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"agentctl.dev/agentctl/runner/image"
)

// imageName is what containerd calls an imported image.
const imageName = "agentctl.dev/agentctl"

// image writes the programs for Linux as one OCI image for all architectures, below
// /usr/local and with nothing beside them.
func (o *Options) image(ctx context.Context, src *source, built []binary, work, file string) (err error) {
	var images []*image.Image
	defer func() {
		for _, i := range images {
			err = errors.Join(err, i.Close())
		}
	}()
	for _, p := range o.Platforms {
		if p.OS != "linux" {
			continue
		}
		root := filepath.Join(work, "image_"+p.Arch)
		entrypoint := ""
		for i := range built {
			b := &built[i]
			if b.Platform != p {
				continue
			}
			place := filepath.Join(root, "usr", "local", filepath.FromSlash(b.path()))
			if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
				return err
			}
			if err := os.Link(b.File, place); err != nil {
				return err
			}
			if entrypoint == "" {
				entrypoint = "/usr/local/" + b.path()
			}
		}
		img, err := image.Build(ctx, image.Options{Folder: root, Entrypoint: []string{entrypoint}, Architecture: p.Arch, TempDir: work, Labels: map[string]string{
			"org.opencontainers.image.title": "agentctl", "org.opencontainers.image.version": o.Version,
			"org.opencontainers.image.revision": src.Commit, "org.opencontainers.image.licenses": "Apache-2.0",
		}})
		if err != nil {
			return fmt.Errorf("image for %s: %w", p, err)
		}
		images = append(images, img)
	}
	return image.WriteIndex(ctx, file, imageName+":"+o.Version, images...)
}
