package pluginkit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/image"
	"agentctl.dev/agentctl/runner/sandbox/container"
	"agentctl.dev/agentctl/runner/statedir"
)

// ImageOptions name the program to make an image of, and where the image goes:
// to at most one of Output, Push and Import.
type ImageOptions struct {
	// Program is a file that becomes the program of the image, Folder one that
	// becomes its whole file system. Exactly one of them.
	Program, Folder string
	// Entrypoint is the command that is run: required for a Folder.
	Entrypoint []string
	// Base is "scratch", or the path of an OCI layout. Default scratch.
	Base string
	// Architecture, such as arm64; default that of the program.
	Architecture string
	// Labels of the image.
	Labels map[string]string

	// Output is the file to write, a tar of an OCI layout. Default: the name of
	// the program or folder with .oci.tar in the working folder.
	Output string
	// Push is the repository to upload to, such as registry.example.com/team/tool:1.
	Push string
	// Import hands the image to containerd on this host.
	Import bool
	// State is the folder that holds runs, see statedir.Find, and imported images.
	State string
	// Containerd is its socket for Import; see RunOptions.
	Containerd string
}

// BuiltImage is an image that is built and delivered.
type BuiltImage struct {
	// Reference is what a Tool writes in spec.source.container.image.
	Reference string `json:"reference"`
	// Digest of the image; the same files have the same.
	Digest string `json:"digest"`
	// Size of the config and the layers in bytes.
	Size int64 `json:"size"`
}

// BuildImage makes an OCI image of a tool's program and delivers it. An error
// in the options or the files is a *reason.UsageError.
func BuildImage(ctx context.Context, o ImageOptions) (_ *BuiltImage, err error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	i, err := image.Build(ctx, image.Options{
		Program: o.Program, Folder: o.Folder, Entrypoint: o.Entrypoint, Base: o.Base, Architecture: o.Architecture, Labels: o.Labels,
	})
	if ctx.Err() != nil && err != nil {
		return nil, err
	}
	if needs, ok := errors.AsType[*image.NeedsError](err); ok {
		return nil, reason.Usagef("%w", err).WithHint(wayOut(needs))
	}
	if err != nil {
		return nil, &reason.UsageError{Err: err}
	}
	defer func() { err = errors.Join(err, i.Close()) }()
	ref, err := o.deliver(ctx, i)
	if err != nil {
		return nil, err
	}
	return &BuiltImage{Reference: ref, Digest: i.Digest(), Size: i.Size()}, nil
}

func wayOut(needs *image.NeedsError) string {
	if needs.Script {
		return "name an OCI layout that has it with --base"
	}
	return "build it statically (in Go: CGO_ENABLED=0), or name an OCI layout that has its libraries with --base"
}

func (o *ImageOptions) check() error {
	if (o.Program == "") == (o.Folder == "") {
		return reason.Usagef("an image is made of one program or one folder").WithHint("--from-binary FILE, or --from-folder FOLDER")
	}
	places := 0
	for _, given := range []bool{o.Output != "", o.Push != "", o.Import} {
		if given {
			places++
		}
	}
	if places > 1 {
		return reason.Usagef("an image goes to one place").WithHint("one of --output-file, --push and --import")
	}
	return nil
}

// deliver brings the image to its place and returns its reference.
func (o *ImageOptions) deliver(ctx context.Context, i *image.Image) (string, error) {
	switch {
	case o.Push != "":
		ref, err := i.Push(ctx, o.Push)
		if _, ok := errors.AsType[*image.RepositoryError](err); ok {
			return "", &reason.UsageError{Err: err}
		}
		return ref, err
	case o.Import:
		return o.importInto(ctx, i)
	}
	to := o.Output
	if to == "" {
		from, err := filepath.Abs(o.Program + o.Folder)
		if err != nil {
			return "", fmt.Errorf("write the image: %w", err)
		}
		to = filepath.Base(from) + ".oci.tar"
	}
	return i.Write(ctx, to)
}

// importInto keeps the image as a file and has containerd take it from there. The
// file stays: containerd may forget an image that nothing uses.
func (o *ImageOptions) importInto(ctx context.Context, i *image.Image) (_ string, err error) {
	state, err := statedir.Find(o.State)
	if err != nil {
		return "", err
	}
	runtime, err := container.Open(o.Containerd, state)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, runtime.Close()) }()
	if _, err := runtime.Probe(ctx); err != nil { // before anything is kept
		return "", err
	}
	dir := filepath.Join(state, "cache", "images")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("import the image: %w", err)
	}
	ref, err := i.Write(ctx, filepath.Join(dir, strings.TrimPrefix(i.Digest(), "sha256:")+".tar"))
	if err != nil {
		return "", err
	}
	if err := runtime.Pull(ctx, ref); err != nil {
		return "", fmt.Errorf("import the image: %w", err)
	}
	return ref, nil
}
