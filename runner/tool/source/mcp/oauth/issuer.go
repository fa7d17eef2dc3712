package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// origin finds where the tokens for a server are issued.
type origin struct {
	// at is the server, resource its URL as the manifest has it.
	at       *url.URL
	resource string
	// issuer is that of the manifest; "" where it names none. field is its grant.
	issuer, field string
	// secret is set where a client's secret of the manifest is sent to what is found.
	secret bool
	client *http.Client
}

// found is an authorization server of the MCP server.
type found struct {
	issuer string
	server *oauthex.AuthServerMeta
	// resource is how the MCP server names itself: a token is asked for it.
	resource string
	// scopes are those that the metadata of the MCP server lists.
	scopes []string
}

// find looks up where tokens for the server are issued, by its metadata (RFC 9728) and
// that of its authorization server (RFC 8414). The MCP server decides what the metadata
// says, and must not get a client's secret by that: without an issuer in the manifest the
// secret is sent only to an authorization server at the server's own host.
func (o *origin) find(ctx context.Context, challenges []oauthex.Challenge) (*found, error) {
	meta, err := o.metadata(ctx, challenges)
	if err != nil {
		return nil, err
	}
	issuer, err := o.choose(meta.AuthorizationServers)
	if err != nil {
		return nil, err
	}
	server, err := auth.GetAuthServerMetadata(ctx, issuer, o.client)
	if err != nil {
		return nil, fmt.Errorf("the metadata of %s: %w", issuer, err)
	}
	if server == nil || server.TokenEndpoint == "" {
		return nil, fmt.Errorf("%s has no metadata that names a token endpoint", issuer)
	}
	if err := o.issues(issuer, server.TokenEndpoint); err != nil {
		return nil, err
	}
	return &found{issuer: server.Issuer, server: server, resource: meta.Resource, scopes: meta.ScopesSupported[:min(len(meta.ScopesSupported), maxScopes)]}, nil
}

// metadata is what the MCP server says about itself, at one of the places where the
// specification lets it. A server without any is its own authorization server.
func (o *origin) metadata(ctx context.Context, challenges []oauthex.Challenge) (*oauthex.ProtectedResourceMetadata, error) {
	root := url.URL{Scheme: o.at.Scheme, Host: o.at.Host}
	beside, top := root, root
	beside.Path = "/.well-known/oauth-protected-resource/" + strings.TrimLeft(o.at.Path, "/")
	top.Path = "/.well-known/oauth-protected-resource"
	places := []struct{ url, resource string }{{beside.String(), o.resource}, {top.String(), root.String()}}
	for _, c := range challenges {
		named := c.Params["resource_metadata"]
		if named == "" {
			continue
		}
		u, err := url.Parse(named)
		if err != nil {
			return nil, fmt.Errorf("the server names its metadata by a URL that is none: %w", err)
		}
		if err := SameHost(o.at, u); err != nil {
			return nil, err
		}
		places = slices.Insert(places, 0, struct{ url, resource string }{named, o.resource})
		break
	}
	for _, place := range places {
		found, err := oauthex.GetProtectedResourceMetadata(ctx, place.url, place.resource, o.client)
		switch { // the library checks that the metadata is about the resource, and its URLs
		case err == nil && len(found.AuthorizationServers) == 0:
			return nil, errors.New("the server's metadata names no authorization server")
		case err == nil:
			return found, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case !absent(err):
			return nil, err
		}
	}
	own := root.String()
	if o.issuer != "" {
		own = o.issuer
	}
	return &oauthex.ProtectedResourceMetadata{Resource: o.resource, AuthorizationServers: []string{own}}, nil
}

// absent reports whether the server has nothing for this client at a URL. The library
// keeps the status for itself.
func absent(err error) bool { return strings.Contains(err.Error(), "bad status 4") }

// choose chooses among the authorization servers that the MCP server names.
func (o *origin) choose(named []string) (string, error) {
	plain := func(s string) string { return strings.TrimSuffix(s, "/") }
	if o.issuer != "" {
		at := slices.IndexFunc(named, func(s string) bool { return plain(s) == plain(o.issuer) })
		if at < 0 {
			return "", fmt.Errorf("the server names the authorization servers %s, and not that of %s.issuer", clean(strings.Join(named[:min(len(named), 4)], ", ")), o.field)
		}
		return named[at], nil
	}
	for _, s := range named {
		if u, err := url.Parse(s); err == nil && SameHost(o.at, u) == nil {
			return s, nil
		}
	}
	if !o.secret { // the person who logs in is shown where
		return named[0], nil
	}
	return "", fmt.Errorf("the server names the authorization server %s, which is not at its own host: the secret is sent there if it is written as %s.issuer", clean(named[0]), o.field)
}

// issues checks the token endpoint that an authorization server names: one at its own
// host, or any by https for an authorization server that the manifest names, or that gets
// no secret.
func (o *origin) issues(issuer, named string) error {
	from, err := url.Parse(issuer)
	if err != nil {
		return err
	}
	to, err := url.Parse(named)
	if err != nil {
		return fmt.Errorf("%s names a token endpoint that is no URL: %w", issuer, err)
	}
	if to.Scheme == from.Scheme && to.Host == from.Host {
		return nil
	}
	if o.issuer == "" && o.secret || to.Scheme != "https" || loopback(to.Hostname()) && !loopback(from.Hostname()) {
		return fmt.Errorf("%s names the token endpoint %s, which is not at its own host: the secret is sent there if it is written as %s.tokenURL", issuer, clean(named), o.field)
	}
	return nil
}
