// Package oauth obtains the access tokens for an MCP server: by client credentials, or by the login of a person.
//
// Where tokens are issued is found by the metadata of the server, which is foreign: a
// client's secret is sent only to a host that the manifest names, a token only to the host
// of the server, and no metadata leads to a machine that only this host can reach.
package oauth

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"agentctl.dev/agentctl/api/safetext"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// authField is the field of a manifest that declares how tokens are obtained.
const authField = "spec.source.mcp.http.auth"

// ClientSecret is the name of the client's secret among the secrets of a Tool. No header
// has it.
const ClientSecret = "client secret"

// Options name a server, and how its tokens are obtained. Tool, Server and Learn are
// required.
type Options struct {
	// Tool is the call name of the Tool.
	Tool string
	// Server is the server as the manifest declares it, with Auth.
	Server *v1alpha1.MCPHTTP
	// Secret of the client; "" where the manifest declares none.
	Secret string
	// Learn is called with each secret that is obtained, before it is used: it removes the
	// value from all that is written.
	Learn func(value string)
	// Store keeps logins; nil: there are none.
	Store Store
	// Now is the clock; default time.Now.
	Now func() time.Time
}

// Store keeps the documents of logins, each as a whole or not at all, so that others cannot
// read them.
type Store interface {
	// Get returns a document; false reports that there is none.
	Get(name string) (document string, found bool, err error)
	Set(name, document string) error
	// Remove forgets a document. One that is not there is not an error.
	Remove(name string) error
	Names() ([]string, error)
	// Lock waits until no other process changes a document, at most until ctx ends.
	Lock(ctx context.Context, name string) (unlock func(), err error)
}

// grant is a way to obtain access tokens. Its methods may be called by many goroutines.
type grant interface {
	// current is the token to send with a request; "" before the server has asked for one.
	current(ctx context.Context) (string, error)
	// next is the token to send after the server has refused a request that had the used
	// one.
	next(ctx context.Context, used string, status int, challenges []oauthex.Challenge) (string, error)
	// reject is the error of a token that the server refuses though it is new.
	reject(ctx context.Context, status int) error
}

// Tokens are the access tokens for one server. The connections of a run share them.
type Tokens struct {
	at    *url.URL
	grant grant
}

// New returns the tokens of a run.
func New(o Options) (*Tokens, error) {
	at, err := o.check()
	if err != nil {
		return nil, err
	}
	var g grant
	if o.Server.Auth.ClientCredentials != nil {
		g, err = newCredentials(o, at)
	} else {
		g, err = newSession(o, at)
	}
	if err != nil {
		return nil, err
	}
	return &Tokens{at, g}, nil
}

// check refuses options by which a token or a secret would be seen by others.
func (o *Options) check() (*url.URL, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	at, err := url.Parse(o.Server.URL)
	if err != nil {
		return nil, fmt.Errorf("tool %q: %w", o.Tool, err)
	}
	if wrong := Exposed(o.Server); len(wrong) > 0 {
		return nil, fmt.Errorf("tool %q: %s: %s", o.Tool, wrong[0].Field, wrong[0].Problem)
	}
	if o.Learn == nil {
		return nil, fmt.Errorf("tool %q: %s: nothing here removes the token from what is written", o.Tool, o.field())
	}
	return at, nil
}

// field is the field of the manifest that declares the grant.
func (o *Options) field() string {
	if o.Server.Auth.ClientCredentials != nil {
		return authField + ".clientCredentials"
	}
	return authField + ".authorizationCode"
}

// Fault is a field by which a secret or a token would be seen by others, or not be sent.
type Fault struct{ Field, Problem, Hint string }

// Exposed are the fields by which a secret or a token would be sent in the clear, or a
// token not at all.
func Exposed(h *v1alpha1.MCPHTTP) (all []Fault) {
	urls := []struct{ field, url string }{{"spec.source.mcp.http.url", h.URL}}
	if c := h.Auth.ClientCredentials; c != nil {
		urls = append(urls, []struct{ field, url string }{
			{authField + ".clientCredentials.issuer", c.Issuer}, {authField + ".clientCredentials.tokenURL", c.TokenURL},
		}...)
	}
	if c := h.Auth.AuthorizationCode; c != nil {
		urls = append(urls, struct{ field, url string }{authField + ".authorizationCode.issuer", c.Issuer})
	}
	for _, u := range urls {
		if u.url != "" && confidential(u.url) != nil {
			all = append(all, Fault{Field: u.field, Problem: "a secret would be sent there in the clear", Hint: "write a URL with https"})
		}
	}
	for i, header := range h.Headers {
		if strings.EqualFold(header.Name, "Authorization") {
			all = append(all, Fault{
				Field: fmt.Sprintf("spec.source.mcp.http.headers[%d].name", i), Problem: "Authorization has the access token of auth", Hint: "remove the header, or auth",
			})
		}
	}
	return all
}

// confidential refuses a URL by which a secret would be sent in the clear.
func confidential(raw string) error {
	u, err := url.Parse(raw)
	if err != nil {
		return err
	}
	if u.Host == "" || u.Scheme != "https" && !(u.Scheme == "http" && loopback(u.Hostname())) {
		return fmt.Errorf("%q is not an https URL: a secret is sent there", raw)
	}
	return nil
}

// SameHost refuses a URL of another host than that of the server.
func SameHost(at, other *url.URL) error {
	if other.Scheme != at.Scheme || other.Host != at.Host {
		return fmt.Errorf("the server leads to %s://%s, which spec.source.mcp.http.url does not name", other.Scheme, other.Host)
	}
	return nil
}

// clean is one line of foreign text without what a terminal would obey.
func clean(s string) string {
	return safetext.Visible(strings.ReplaceAll(s, "\n", " "), safetext.Writing)
}

// Transport returns what sends requests with an access token, over base, to the host of
// the server only.
func (t *Tokens) Transport(base http.RoundTripper) http.RoundTripper {
	return &authorized{base: base, at: t.at, grant: t.grant}
}
