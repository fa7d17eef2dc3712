package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"agentctl.dev/agentctl/plugins/sdk"
)

// userAgent names this program to servers.
const userAgent = "agentctl-webfetch (+https://agentctl.dev)"

// proxyOf is the proxy that the sandbox sets; no other way leads to the network.
func proxyOf(env func(string) string) *url.URL {
	u, err := url.Parse(env("HTTPS_PROXY"))
	if err != nil || u.Scheme != "http" || u.Host == "" {
		return nil
	}
	return u
}

// client sends the requests of one call. It keeps no cookies and follows no redirect by
// itself. Close it.
type client struct {
	http      *http.Client
	transport *http.Transport
}

func (s *set) client(tool string) (*client, error) {
	if s.proxy == nil {
		return nil, sdk.Errorf("%s reaches servers only through the proxy of its sandbox, and there is none: it needs a host with sandboxes (agentctl doctor), and network {mode: Proxy} in its Tool", tool)
	}
	t := &http.Transport{
		Proxy:                  http.ProxyURL(s.proxy),
		TLSClientConfig:        &tls.Config{RootCAs: s.roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    15 * time.Second,
		ResponseHeaderTimeout:  s.limits.mostTime,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true, // unpacked here, within limits
		MaxConnsPerHost:        2,
		ForceAttemptHTTP2:      true,
	}
	return &client{transport: t, http: &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func (c *client) close() { c.transport.CloseIdleConnections() }

// get asks for an address, and nothing else that the server says to.
func (c *client) get(ctx context.Context, u *url.URL, header ...http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	for _, h := range header {
		req.Header = h.Clone()
	}
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Accept-Encoding", "gzip")
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "text/html, text/markdown;q=0.9, text/plain;q=0.8, */*;q=0.5")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, plain(ctx, err)
	}
	return resp, denial(resp)
}

// plain is the reason of a failed request, without what the caller says anyway.
func plain(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errSlow
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	return errors.New(brief(err.Error()))
}

var errSlow = errors.New("no answer in time")

// maxDenial is how much of an answer is looked at for the words of the proxy.
const maxDenial = 1 << 10

// denial is the proxy's refusal of a request without encryption: an answer in place of the
// server's. A refused tunnel is an error of the request already.
func denial(resp *http.Response) error {
	if resp.Request.URL.Scheme != "http" || resp.StatusCode != http.StatusForbidden && resp.StatusCode != http.StatusBadGateway {
		return nil
	}
	text := make([]byte, maxDenial)
	n, _ := io.ReadFull(resp.Body, text) // what is wrong with the rest, its reader finds
	text = text[:n]
	if !strings.HasPrefix(string(text), "NetworkDenied: ") && !strings.HasPrefix(string(text), "NetworkFailed: ") {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(strings.NewReader(string(text)), resp.Body), resp.Body}
		return nil
	}
	_ = resp.Body.Close()
	return errors.New(brief(string(text)))
}

// redirected is where an answer sends to; nil if it names no address that can be read.
func redirected(resp *http.Response, from *url.URL) (to *url.URL, ok bool) {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, false
	}
	location := resp.Header.Get("Location")
	if location == "" || len(location) > maxURL {
		return nil, true
	}
	to, err := from.Parse(location)
	if err != nil || to.User != nil || to.Opaque != "" {
		return nil, true
	}
	to.Fragment, to.RawFragment = "", ""
	return to, true
}

// elsewhere refuses a redirect to another server: the call was not judged for it.
func elsewhere(from, to *url.URL, status int) error {
	return sdk.Errorf("%s redirects (%d) to %s, which is another server: it was not followed. If that is what you want, call webfetch with that address; the call is then judged like any other", from, status, fmt.Sprintf("%q", brief(to.String())))
}
