package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// enrol chooses the client of a login at an authorization server: the one that the manifest
// names, or one that was registered there at an earlier login, or one that is registered
// now. What was registered elsewhere is never used.
func (l *login) enrol(ctx context.Context, at *found, redirect string) (*kept, error) {
	spec, server := l.Server.Auth.AuthorizationCode, at.server
	k := &kept{
		Tool: l.Tool, Server: l.Server.URL, Resource: at.resource, Issuer: at.issuer, TokenURL: server.TokenEndpoint, RevokeURL: server.RevocationEndpoint,
		ClientID: spec.ClientID, Redirect: redirect, Since: l.Now(),
		InForm: l.Secret == "" || style(server.TokenEndpointAuthMethodsSupported) == styleInForm,
	}
	document := isDocument(spec.ClientID)
	switch {
	case spec.ClientID != "" && !document, document && server.ClientIDMetadataDocumentSupported:
		return k, nil
	case server.RegistrationEndpoint == "" && document:
		return nil, fmt.Errorf("%s does not read client id metadata documents: register a client there, and write its id as %s.clientID", clean(at.issuer), l.field())
	case server.RegistrationEndpoint == "":
		return nil, fmt.Errorf("%s registers no clients by itself: register one there with the redirect %s, and write its id as %s.clientID", clean(at.issuer), redirect, l.field())
	}
	if before := l.before; before != nil && before.Registered && before.Issuer == at.issuer && before.Redirect == redirect && before.TokenURL == k.TokenURL {
		k.Registered, k.ClientID, k.ClientSecret, k.InForm = true, before.ClientID, before.ClientSecret, before.InForm
		return k, nil
	}
	return k, l.register(ctx, k, server)
}

// isDocument reports whether a client id is the URL of a client id metadata document.
func isDocument(id string) bool {
	u, err := url.Parse(id)
	return err == nil && u.Scheme == "https" && u.Host != "" && len(u.Path) > 1
}

// register registers a client for this login (RFC 7591).
func (l *login) register(ctx context.Context, k *kept, server *oauthex.AuthServerMeta) error {
	method := ""
	for _, m := range []string{"none", "client_secret_basic", "client_secret_post"} {
		if supported := server.TokenEndpointAuthMethodsSupported; slices.Contains(supported, m) || len(supported) == 0 && m == "none" {
			method = m
			break
		}
	}
	if method == "" {
		return fmt.Errorf("%s knows clients by none of none, client_secret_basic, client_secret_post", clean(k.Issuer))
	}
	got, err := oauthex.RegisterClient(ctx, server.RegistrationEndpoint, &oauthex.ClientRegistrationMetadata{
		ClientName: "agentctl", RedirectURIs: []string{k.Redirect}, ApplicationType: "native", TokenEndpointAuthMethod: method,
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"}, Scope: strings.Join(l.Server.Auth.AuthorizationCode.Scopes, " "),
	}, l.origin.client)
	if err != nil {
		text := err.Error()
		return fmt.Errorf("register a client at %s: %s", clean(k.Issuer), clean(text[:min(len(text), maxSaid)]))
	}
	if len(got.ClientID) > maxClient || len(got.ClientSecret) > maxToken {
		return errors.New("the client that is registered has an id or a secret that is too long")
	}
	k.Registered, k.ClientID, k.ClientSecret = true, got.ClientID, got.ClientSecret
	if got.TokenEndpointAuthMethod != "" {
		method = got.TokenEndpointAuthMethod
	}
	k.InForm = method != "client_secret_basic" || k.ClientSecret == ""
	if k.ClientSecret != "" {
		l.Learn(k.ClientSecret)
	}
	return nil
}

// maxClient bounds the id of a client.
const maxClient = 4 << 10

// scopesOf are the scopes that a login asks for.
func scopesOf(spec *v1alpha1.AuthorizationCode, before *kept, at *found, challenges []oauthex.Challenge, granted []string) []string {
	if len(spec.Scopes) > 0 {
		return spec.Scopes
	}
	all := demanded(challenges)
	if before != nil && before.Issuer == at.issuer {
		all = union(all, before.Wanted)
	}
	if len(all) == 0 {
		all = at.scopes
	}
	all = union(all, granted)
	if slices.Contains(at.server.ScopesSupported, offlineAccess) {
		all = union(all, []string{offlineAccess})
	}
	return all
}

// offlineAccess is the scope by which a server gives a refresh token.
const offlineAccess = "offline_access"
