package oauth

import (
	"io"
	"net/http"
	"net/url"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"agentctl.dev/agentctl/api/reason"
)

// maxTries bounds how often one request is sent: without a token, with one, and with one
// of more scopes.
const maxTries = 3

// authorized sends requests with an access token, to the host of the Tool's URL only. A
// request that the server refuses for the lack of one is sent again with another.
type authorized struct {
	base  http.RoundTripper
	at    *url.URL
	grant grant
	// over is why no further request can succeed: the library asks in another way after
	// an error, and a person would be asked again.
	over atomic.Pointer[error]
}

// RoundTrip implements http.RoundTripper.
func (a *authorized) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := SameHost(a.at, req.URL); err != nil { // no token is obtained for another host
		return nil, err
	}
	if err := a.over.Load(); err != nil {
		return nil, *err
	}
	token, err := a.grant.current(req.Context())
	if err != nil {
		return nil, a.failed(err)
	}
	for try := 1; ; try++ {
		resp, err := a.send(req, token)
		if err != nil || !demands(resp) || req.Body != nil && req.GetBody == nil {
			return resp, err
		}
		status := resp.StatusCode
		// A challenge that cannot be read is not for this client: the metadata has its own place.
		challenges, _ := oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate"))
		discard(resp)
		used := token
		if try == maxTries || try > 1 && status == http.StatusUnauthorized {
			return nil, a.failed(a.grant.reject(req.Context(), status))
		}
		if token, err = a.grant.next(req.Context(), used, status, challenges); err != nil {
			return nil, a.failed(err)
		}
	}
}

// failed remembers an error that is about the credential.
func (a *authorized) failed(err error) error {
	if r := reason.Of(err); r == reason.CredentialMissing || r == reason.CredentialRejected {
		a.over.Store(&err)
	}
	return err
}

// send sends a request with a token, if there is one. A request that is sent again has
// the same body.
func (a *authorized) send(req *http.Request, token string) (*http.Response, error) {
	again := req.Clone(req.Context())
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		again.Body = body
		_ = req.Body.Close() // it has only a copy
	}
	if token != "" {
		again.Header.Set("Authorization", "Bearer "+token)
	}
	return a.base.RoundTrip(again)
}

// demands reports whether the server wants a token, or one with more scopes. A 403
// without a challenge is an answer.
func demands(resp *http.Response) bool {
	return resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden && resp.Header.Get("WWW-Authenticate") != ""
}

// discard reads the rest of a short body, so that the connection can be used again.
func discard(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	_ = resp.Body.Close()
}
