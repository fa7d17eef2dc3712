package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/semver"
)

// Options are those of one release.
type Options struct {
	// Version is a semantic version with a v. Required.
	Version string
	// Source is the git repository whose HEAD is built. Required.
	Source string
	// Out is the folder that is written, whole or not at all. Required.
	Out string
	// Programs and Platforms are what is built for what. Required.
	Programs  []Program
	Platforms []Platform
	// Key is a file with the private key for the provenance; "" leaves it unsigned.
	Key string
	// Builder is the URI of who builds.
	Builder string
	// Log is told what is being done. Required.
	Log io.Writer
}

// checksumsName is the file of checksums, which is also the mark of a folder that a release
// may be written to again.
const checksumsName = "checksums.txt"

// Build makes a release.
func Build(ctx context.Context, o Options) (err error) {
	if !semver.IsValid(o.Version) || semver.Canonical(o.Version) != o.Version {
		return fmt.Errorf("version %q: write a semantic version such as v0.1.0: make release VERSION=v0.1.0", o.Version)
	}
	out, err := filepath.Abs(o.Out)
	if err != nil {
		return err
	}
	if err := replaceable(out); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "agentctl-release-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	src, err := checkOut(ctx, o.Source, filepath.Join(work, "source"), o.Version)
	if err != nil {
		return err
	}
	if err := o.checkRequired(src); err != nil {
		return err
	}
	fmt.Fprintf(o.Log, "building %s from commit %s\n", o.Version, src.Commit)
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	next, err := os.MkdirTemp(filepath.Dir(out), ".dist-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(next)) }()
	if err := os.Chmod(next, 0o755); err != nil { //nolint:gosec // a release is for everybody
		return err
	}
	if err := o.write(ctx, src, work, next); err != nil {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	return os.Rename(next, out)
}

// replaceable refuses to remove a folder that no release has written.
func replaceable(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case len(entries) == 0:
		return nil
	}
	if _, err := os.Stat(filepath.Join(dir, checksumsName)); err != nil {
		return fmt.Errorf("%s holds files that are not of a release: remove it, or name another folder", dir)
	}
	return nil
}

// write writes the files of a release, those that name others last.
func (o *Options) write(ctx context.Context, src *source, work, out string) error {
	var built []binary
	for _, p := range o.Platforms {
		fmt.Fprintf(o.Log, "  %s\n", p)
		b, err := o.compile(ctx, src, p, filepath.Join(work, "programs"))
		if err != nil {
			return err
		}
		if len(b) == 0 {
			continue
		}
		built = append(built, b...)
		if err := archive(filepath.Join(out, o.archiveName(p)), src, o.folderName(p), b); err != nil {
			return err
		}
	}
	if err := o.image(ctx, src, built, work, filepath.Join(out, "agentctl-image.tar")); err != nil {
		return err
	}
	if err := o.modules(src, filepath.Join(out, "modules")); err != nil {
		return err
	}
	if err := o.inventory(src, built, filepath.Join(out, o.name()+".cdx.json")); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "install.sh"), []byte(strings.ReplaceAll(installer, "@VERSION@", o.Version)), 0o755); err != nil { //nolint:gosec // a program
		return err
	}
	if err := writeChecksums(out); err != nil {
		return err
	}
	return o.provenance(ctx, src, out)
}

func (o *Options) name() string { return "agentctl_" + o.Version }

func (o *Options) folderName(p Platform) string { return o.name() + "_" + p.OS + "_" + p.Arch }

func (o *Options) archiveName(p Platform) string { return o.folderName(p) + ".tar.gz" }
