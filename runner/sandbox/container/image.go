package container

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/containerd/errdefs"
	"github.com/containerd/platforms"
	"github.com/opencontainers/image-spec/identity"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"agentctl.dev/agentctl/api/reason"
)

// image is an image that is unpacked: all a container needs to know of it.
type image struct {
	name    string
	parent  string // the snapshot its containers stand on
	digest  string
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

// Pull sees to it that an image is there and unpacked, so that a container of it
// starts at once. It asks a registry only if containerd has no image of the digest.
func (r *Runtime) Pull(ctx context.Context, ref string) error {
	_, err := r.image(ctx, ref)
	return err
}

// image returns an unpacked image. Errors are not kept: the next call tries anew.
func (r *Runtime) image(ctx context.Context, text string) (*image, error) {
	ref, err := ParseReference(text)
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
			// The one who pulled gave up; that is not our answer.
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
func (r *Runtime) ensure(ctx context.Context, ref Reference) (*image, error) {
	client, err := r.connected(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.context(ctx), pullTime)
	defer cancel()
	record, err := stored(ctx, client, ref)
	if err != nil {
		return nil, fmt.Errorf("look for image %s: %w", ref, err)
	}
	if record == nil || !complete(ctx, client, *record) {
		// The lease keeps blobs that nothing refers to yet from being collected.
		ctx, release, err := client.WithLease(ctx, leases.WithRandomID(), leases.WithExpiration(pullTime))
		if err != nil {
			return nil, fmt.Errorf("fetch image %s: %w", ref, err)
		}
		record, err = fetch(ctx, client, ref)
		if releaseErr := release(context.WithoutCancel(ctx)); releaseErr != nil {
			r.opts.Log.Warn("a lease of containerd is left until it ends by itself", "image", ref.String(), "error", releaseErr)
		}
		if err != nil {
			return nil, err
		}
	}
	return r.unpack(ctx, client, ref, *record)
}

// stored finds an image by its digest, whatever its name; nil is none.
func stored(ctx context.Context, client *containerd.Client, ref Reference) (*images.Image, error) {
	found, err := client.ImageService().List(ctx, "target.digest=="+ref.Digest.String())
	if err != nil || len(found) == 0 {
		return nil, err
	}
	for _, i := range found {
		if i.Name == ref.record() {
			return &i, nil
		}
	}
	return &found[0], nil
}

// complete says whether every blob for this machine is there: somebody may have
// imported the image for another.
func complete(ctx context.Context, client *containerd.Client, i images.Image) bool {
	available, _, _, missing, err := images.Check(ctx, client.ContentStore(), i.Target, platforms.Default())
	return err == nil && available && len(missing) == 0
}

// fetch copies an image into containerd and gives it a name.
func fetch(ctx context.Context, client *containerd.Client, ref Reference) (*images.Image, error) {
	fetcher, target, done, err := source(ctx, ref)
	if err != nil {
		return nil, notFound(ref, err)
	}
	defer done()
	store := client.ContentStore()
	var total int64
	var mu sync.Mutex
	sized := images.HandlerFunc(func(_ context.Context, d ocispec.Descriptor) ([]ocispec.Descriptor, error) {
		if !images.IsLayerType(d.MediaType) && d.Size > maxManifest {
			return nil, fmt.Errorf("%s %s is over %d bytes", d.MediaType, d.Digest, maxManifest)
		}
		mu.Lock()
		defer mu.Unlock()
		if total += d.Size; total > maxImage || d.Size < 0 {
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
	record := images.Image{Name: ref.record(), Target: target, Labels: map[string]string{labelMade: "true"}}
	created, err := client.ImageService().Create(ctx, record)
	if errdefs.IsAlreadyExists(err) { // another runner was as fast
		created, err = client.ImageService().Get(ctx, record.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("name image %s: %w", ref, err)
	}
	return &created, nil
}

// source opens where the blobs come from and describes the first of them.
func source(ctx context.Context, ref Reference) (remotes.Fetcher, ocispec.Descriptor, func(), error) {
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
		docker.WithPlainHTTP(docker.MatchLocalhost), // everywhere else TLS, or nothing
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
func notFound(ref Reference, err error) error {
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

// unpack makes the snapshot on which containers of the image stand.
func (r *Runtime) unpack(ctx context.Context, client *containerd.Client, ref Reference, record images.Image) (*image, error) {
	img := containerd.NewImage(client, record)
	snapshotter := r.info.Snapshotter
	if ok, err := img.IsUnpacked(ctx, snapshotter); err != nil {
		return nil, fmt.Errorf("image %s: %w", ref, err)
	} else if !ok {
		if err := img.Unpack(ctx, snapshotter); err != nil {
			return nil, fmt.Errorf("unpack image %s: %w", ref, err)
		}
	}
	layers, err := img.RootFS(ctx)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", ref, err)
	}
	desc, err := img.Config(ctx)
	if err != nil {
		return nil, fmt.Errorf("image %s: config: %w", ref, err)
	}
	text, err := content.ReadBlob(ctx, client.ContentStore(), desc)
	if err != nil {
		return nil, fmt.Errorf("image %s: config: %w", ref, err)
	}
	var config ocispec.Image
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, fmt.Errorf("image %s: config: %w", ref, err)
	}
	return &image{
		name: record.Name, parent: identity.ChainID(layers).String(), digest: ref.Digest.String(), config: config.Config,
		command: append(append([]string{}, config.Config.Entrypoint...), config.Config.Cmd...),
	}, nil
}
