package image

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// pushTime bounds one push.
const pushTime = 30 * time.Minute

// Push uploads the image to a repository, such as registry.example.com/team/tool:1,
// and returns the reference under which a Tool finds it. Credentials are those
// that "docker login" has stored. Only a registry on this host is spoken to in
// plain HTTP.
func (i *Image) Push(ctx context.Context, repository string) (ref string, err error) {
	to, err := i.destination(repository)
	if err != nil {
		return "", &RepositoryError{repository, err}
	}
	ctx, cancel := context.WithTimeout(ctx, pushTime)
	defer cancel()
	err = remote.Write(to, i.img, remote.WithContext(ctx), remote.WithTransport(homely{remote.DefaultTransport}), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return "", fmt.Errorf("push the image to %s: %w", to.Context(), err)
	}
	return to.Context().Name() + "@" + i.digest, nil
}

// destination reads a repository with its registry. Without a tag the digest is
// the only name the image gets, which is all a Tool needs.
func (i *Image) destination(repository string) (name.Reference, error) {
	registry, _, ok := strings.Cut(repository, "/")
	if !ok || !strings.ContainsAny(registry, ".:") && registry != "localhost" {
		return nil, errors.New("it names no registry")
	}
	if strings.Contains(repository, "@") {
		return nil, errors.New("it has a digest, which is what the push finds out")
	}
	if strings.LastIndexByte(repository, ':') > strings.LastIndexByte(repository, '/') {
		return name.NewTag(repository, name.StrictValidation)
	}
	repo, err := name.NewRepository(repository, name.StrictValidation)
	if err != nil {
		return nil, err
	}
	return repo.Digest(i.digest), nil
}

// RepositoryError is the error of a text that is not the name of a repository.
type RepositoryError struct {
	Repository string
	Err        error
}

func (e *RepositoryError) Error() string {
	return fmt.Sprintf("%q is no repository such as registry.example.com/team/tool:1: %v", e.Repository, e.Err)
}

func (e *RepositoryError) Unwrap() error { return e.Err }

// errPlain is a problem that only the owner of the registry can fix.
var errPlain = errors.New("the registry speaks plain HTTP, which only a registry on this host may: whoever stands between could exchange the image and read the credentials")

// homely sends plain HTTP to this host only. The library below would fall back
// to it for every private address.
type homely struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (h homely) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" && !loopback(r.URL.Hostname()) {
		return nil, errPlain
	}
	return h.next.RoundTrip(r)
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
