package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/opencontainers/go-digest"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/image/reference"
)

// registry reads the blobs of a repository. Credentials are those that "docker login" has
// stored.
type registry struct {
	repository name.Repository
	puller     *remote.Puller
	transport  *http.Transport
}

func openRegistry(ref reference.Reference) (*registry, error) {
	repository, err := name.NewRepository(ref.Name, name.StrictValidation)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ref, err)
	}
	base := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: 30 * time.Second, ForceAttemptHTTP2: true,
	}
	guarded := &guarded{next: base, plain: loopback(hostOf(repository.RegistryStr()))}
	guarded.left.Store(maxCompressed + maxLayers*maxManifest)
	puller, err := remote.NewPuller(remote.WithTransport(guarded), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ref, err)
	}
	return &registry{repository, puller, base}, nil
}

func (r *registry) close() { r.transport.CloseIdleConnections() }

func (r *registry) manifest(ctx context.Context, d digest.Digest) ([]byte, error) {
	got, err := r.puller.Get(ctx, r.repository.Digest(d.String()))
	if err != nil {
		return nil, err
	}
	if len(got.Manifest) > maxManifest {
		return nil, wrong("its manifest has more than %d bytes", maxManifest)
	}
	return got.Manifest, nil
}

func (r *registry) layer(ctx context.Context, d digest.Digest, most int64) ([]byte, error) {
	l, err := r.puller.Layer(ctx, r.repository.Digest(d.String()))
	if err != nil {
		return nil, err
	}
	in, err := l.Compressed()
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(in, most+1))
	if err = errors.Join(err, in.Close()); err != nil {
		return nil, err
	}
	if int64(len(content)) > most {
		return nil, wrong("it has more than %d bytes, which its manifest says", most)
	}
	return content, nil
}

// guarded is the way to a registry: it bounds all that is read, and sends plain HTTP to a
// registry on this host only. The library would fall back to it for every private address.
type guarded struct {
	next  http.RoundTripper
	plain bool
	left  atomic.Int64
}

var (
	errPlain = errors.New("the registry answers in plain HTTP, which only a registry on this host may: a host between could read the credentials")
	errMuch  = &contentError{fmt.Errorf("it has more than %d MiB", maxCompressed>>20)}
)

// RoundTrip implements http.RoundTripper.
func (g *guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" && (!g.plain || !loopback(r.URL.Hostname())) {
		return nil, errPlain
	}
	resp, err := g.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = &bounded{resp.Body, &g.left}
	return resp, nil
}

// bounded is a body that fails when all bodies together are too large.
type bounded struct {
	io.ReadCloser
	left *atomic.Int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left.Add(-int64(n)) < 0 {
		return 0, errMuch
	}
	return n, err
}

func hostOf(registry string) string {
	if host, _, err := net.SplitHostPort(registry); err == nil {
		return host
	}
	return registry
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// unreachable is the error for an artifact that a registry does not hand out, with what to
// do next.
func unreachable(ctx context.Context, ref reference.Reference, err error) error {
	if known, ok := errors.AsType[*contentError](err); ok {
		return fmt.Errorf("%s: %w", ref, known)
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	host, _ := name.NewRepository(ref.Name)
	why, hint := reason.WorkspaceUnavailable, "see that this host reaches "+host.RegistryStr()+" (HTTPS_PROXY counts); or fetch it where that works, with crane pull --format=oci "+ref.String()+" FOLDER, and name it oci:FOLDER@"+ref.Digest.String()
	if answer, ok := errors.AsType[*transport.Error](err); ok {
		switch answer.StatusCode {
		case http.StatusUnauthorized, http.StatusForbidden:
			why, hint = reason.CredentialRejected, "docker login "+host.RegistryStr()+" stores credentials, which are used; see that they may pull "+ref.Name
		case http.StatusNotFound:
			hint = "see that the digest is that of a manifest or an index: crane digest " + ref.Name + ":TAG prints it"
		}
	}
	return reason.New(why, "fetch %s: %w", ref, err).WithHint("%s", hint)
}
