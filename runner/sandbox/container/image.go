package container

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	imagesapi "github.com/containerd/containerd/api/services/images/v1"
	"github.com/containerd/containerd/api/types"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/containerd/containerd/v2/pkg/rootfs"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/containerd/platforms"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/identity"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/image/reference"
)

// image is an image that is unpacked: all a container needs to know of it.
type image struct {
	key     string // the reference it was asked for by
	name    string
	parent  string // the snapshot that its containers use
	config  ocispec.ImageConfig
	command []string
}

// shelf holds the images of this process by reference. Two tools of the same image
// wait for the same pull.
type shelf struct {
	mu    sync.Mutex
	byRef map[string]*imageCall
}

type imageCall struct {
	done  chan struct{}
	image *image
	err   error
}

// pullTime bounds the fetching and unpacking of one image.
const pullTime = 10 * time.Minute

// maxImage bounds the compressed layers of an image together.
const maxImage = 8 << 30

// Pull ensures that an image is present and unpacked, so that a container of it
// starts at once. It asks a registry only if containerd has no image of the
// digest.
func (r *Runtime) Pull(ctx context.Context, ref string) error {
	_, err := r.image(ctx, ref)
	return err
}

// image returns an unpacked image. Errors are not kept: the next call tries
// again.
func (r *Runtime) image(ctx context.Context, text string) (*image, error) {
	ref, err := reference.Parse(text)
	if err != nil {
		return nil, reason.New(reason.IsolationUnavailable, "%w", err).
			WithHint("agentctl image build prints the reference of an image it has built")
	}
	for {
		r.shelf.mu.Lock()
		call := r.shelf.byRef[ref.String()]
		mine := call == nil
		if mine {
			call = &imageCall{done: make(chan struct{})}
			r.shelf.byRef[ref.String()] = call
		}
		r.shelf.mu.Unlock()
		if mine {
			call.image, call.err = r.ensure(ctx, ref)
			if call.err != nil {
				r.shelf.forget(ref.String())
			}
			close(call.done)
			return call.image, call.err
		}
		select {
		case <-call.done:
			if call.err == nil || !errors.Is(call.err, context.Canceled) {
				return call.image, call.err
			}
			// The call that pulled was cancelled; this call was not, and tries
			// again.
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (i *shelf) forget(ref string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.byRef, ref)
}

// ensure finds, or fetches, and unpacks.
func (r *Runtime) ensure(ctx context.Context, ref reference.Reference) (*image, error) {
	d, err := r.connected(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.context(ctx), pullTime)
	defer cancel()
	record, err := d.stored(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("look for image %s: %w", ref, err)
	}
	if record == nil || !d.complete(ctx, *record) {
		// The lease keeps blobs that nothing refers to yet from being collected.
		ctx, release, err := d.lease(ctx, pullTime)
		if err != nil {
			return nil, fmt.Errorf("fetch image %s: %w", ref, err)
		}
		record, err = d.fetch(ctx, ref)
		if releaseErr := release(context.WithoutCancel(ctx)); releaseErr != nil {
			r.opts.Log.Warn("a lease of containerd is left until it ends by itself", "image", ref.String(), "error", releaseErr)
		}
		if err != nil {
			return nil, err
		}
	}
	return r.unpack(ctx, d, ref, *record)
}

// stored finds an image by its digest, whatever its name; nil if there is none.
func (d *daemon) stored(ctx context.Context, ref reference.Reference) (*images.Image, error) {
	resp, err := d.images.List(ctx, &imagesapi.ListImagesRequest{Filters: []string{"target.digest==" + ref.Digest.String()}})
	if err != nil || len(resp.GetImages()) == 0 {
		return nil, errgrpc.ToNative(err)
	}
	best := resp.GetImages()[0]
	for _, i := range resp.GetImages() {
		if i.GetName() == recordOf(ref) {
			best = i
		}
	}
	return imageFrom(best), nil
}

// recordOf is the name under which containerd keeps an image. It does not hold a
// layout's path: a moved layout is the same image.
func recordOf(ref reference.Reference) string {
	if ref.Layout != "" {
		return "agentctl.dev/layout@" + ref.Digest.String()
	}
	return ref.String()
}

func imageFrom(i *imagesapi.Image) *images.Image {
	t := i.GetTarget()
	return &images.Image{Name: i.GetName(), Target: ocispec.Descriptor{MediaType: t.GetMediaType(), Digest: digest.Digest(t.GetDigest()), Size: t.GetSize()}}
}

// complete reports whether every blob for this machine is present: the image
// may have been imported for another platform.
func (d *daemon) complete(ctx context.Context, i images.Image) bool {
	available, _, _, missing, err := images.Check(ctx, d.content, i.Target, platforms.Default())
	return err == nil && available && len(missing) == 0
}

// fetch copies an image into containerd and gives it a name.
func (d *daemon) fetch(ctx context.Context, ref reference.Reference) (*images.Image, error) {
	fetcher, target, done, err := source(ctx, ref)
	if err != nil {
		return nil, notFound(ref, err)
	}
	defer done()
	store := d.content
	var total int64
	var mu sync.Mutex
	sized := images.HandlerFunc(func(_ context.Context, desc ocispec.Descriptor) ([]ocispec.Descriptor, error) {
		if !images.IsLayerType(desc.MediaType) && desc.Size > maxManifest {
			return nil, fmt.Errorf("%s %s is over %d bytes", desc.MediaType, desc.Digest, maxManifest)
		}
		mu.Lock()
		defer mu.Unlock()
		if total += desc.Size; total > maxImage || desc.Size < 0 {
			return nil, fmt.Errorf("it is over %d bytes", int64(maxImage))
		}
		return nil, nil
	})
	platform := platforms.Default()
	children := images.SetChildrenMappedLabels(store, images.ChildrenHandler(store), images.ChildGCLabels)
	children = images.LimitManifests(images.FilterPlatforms(children, platform), platform, 1)
	handler := images.Handlers(sized, remotes.FetchHandler(store, fetcher), children)
	if err := images.Dispatch(ctx, handler, nil, target); err != nil {
		return nil, notFound(ref, err)
	}
	_, err = d.images.Create(ctx, &imagesapi.CreateImageRequest{Image: &imagesapi.Image{
		Name: recordOf(ref), Labels: map[string]string{labelMade: "true"},
		Target: &types.Descriptor{MediaType: target.MediaType, Digest: target.Digest.String(), Size: target.Size},
	}})
	if err = errgrpc.ToNative(err); err != nil && !errdefs.IsAlreadyExists(err) { // another runner was as fast
		return nil, fmt.Errorf("name image %s: %w", ref, err)
	}
	return &images.Image{Name: recordOf(ref), Target: target}, nil
}

// source opens where the blobs come from and describes the first of them.
func source(ctx context.Context, ref reference.Reference) (remotes.Fetcher, ocispec.Descriptor, func(), error) {
	none := func() {}
	if ref.Layout != "" {
		l, err := openLayout(ref.Layout)
		if err != nil {
			return nil, ocispec.Descriptor{}, none, err
		}
		target, err := l.Resolve(ref.Digest)
		if err != nil {
			return nil, target, none, errors.Join(err, l.close())
		}
		return l, target, func() { _ = l.close() }, nil
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: time.Minute}
	web := &http.Client{Transport: transport}
	resolver := docker.NewResolver(docker.ResolverOptions{Hosts: docker.ConfigureDefaultRegistries(
		docker.WithClient(web),
		docker.WithPlainHTTP(docker.MatchLocalhost), // TLS everywhere else
		docker.WithAuthorizer(docker.NewDockerAuthorizer(docker.WithAuthClient(web))),
	)})
	name, target, err := resolver.Resolve(ctx, ref.String())
	if err == nil && target.Digest != ref.Digest {
		err = fmt.Errorf("the registry answered with %s", target.Digest)
	}
	if err != nil {
		transport.CloseIdleConnections()
		return nil, target, none, err
	}
	fetcher, err := resolver.Fetcher(ctx, name)
	return fetcher, target, transport.CloseIdleConnections, err
}

// notFound is the error for an image that cannot be had.
func notFound(ref reference.Reference, err error) error {
	if ctxErr := context.Canceled; errors.Is(err, ctxErr) {
		return err
	}
	hint := "see that the digest is that of a manifest or an index of the registry"
	if ref.Layout != "" {
		hint = "see that the path leads to an OCI layout, a folder or a tar file"
	}
	return reason.New(reason.IsolationUnavailable, "image not found: %s: %w", ref, err).
		WithHint("%s, or bring the image in by hand: ctr -n %s images import FILE.tar", hint, DefaultNamespace)
}

// unpack creates the snapshot that containers of the image use.
func (r *Runtime) unpack(ctx context.Context, d *daemon, ref reference.Reference, record images.Image) (*image, error) {
	bad := func(err error) (*image, error) { return nil, fmt.Errorf("unpack image %s: %w", ref, err) }
	manifest, err := images.Manifest(ctx, d.content, record.Target, platforms.Default())
	if err != nil {
		return bad(err)
	}
	text, err := content.ReadBlob(ctx, d.content, manifest.Config)
	if err != nil {
		return bad(err)
	}
	var config ocispec.Image
	if err := json.Unmarshal(text, &config); err != nil {
		return bad(fmt.Errorf("config: %w", err))
	}
	parent := identity.ChainID(config.RootFS.DiffIDs).String()
	if _, err := d.snapshots.Stat(ctx, parent); errdefs.IsNotFound(err) {
		err = d.apply(ctx, r.info.Snapshotter, manifest, config.RootFS.DiffIDs)
		if err != nil {
			return bad(err)
		}
	} else if err != nil {
		return bad(err)
	}
	return &image{
		key: ref.String(), name: record.Name, parent: parent, config: config.Config,
		command: append(append([]string{}, config.Config.Entrypoint...), config.Config.Cmd...),
	}, nil
}

// apply unpacks layer upon layer, and lets the image's config hold the last one:
// containerd would collect it otherwise.
func (d *daemon) apply(ctx context.Context, snapshotter string, manifest ocispec.Manifest, diffs []digest.Digest) error {
	ctx, release, err := d.lease(ctx, pullTime)
	if err != nil {
		return err
	}
	defer func() { _ = release(context.WithoutCancel(ctx)) }() // it ends by itself otherwise
	var blobs []ocispec.Descriptor
	for _, l := range manifest.Layers {
		if images.IsLayerType(l.MediaType) {
			blobs = append(blobs, l)
		}
	}
	if len(blobs) != len(diffs) {
		return fmt.Errorf("its manifest has %d layers and its config %d", len(blobs), len(diffs))
	}
	for i, blob := range blobs {
		layer := rootfs.Layer{Blob: blob, Diff: ocispec.Descriptor{MediaType: ocispec.MediaTypeImageLayer, Digest: diffs[i]}}
		if _, err := rootfs.ApplyLayer(ctx, layer, diffs[:i:i], d.snapshots, d.diff); err != nil {
			return err
		}
	}
	hold := "containerd.io/gc.ref.snapshot." + snapshotter
	_, err = d.content.Update(ctx, content.Info{Digest: manifest.Config.Digest, Labels: map[string]string{hold: identity.ChainID(diffs).String()}}, "labels."+hold)
	return err
}
