package oauth

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"agentctl.dev/agentctl/runner/sandbox/egress/ranges"
)

// Bounds of a request to an authorization server, or for metadata.
const (
	dialTime     = 10 * time.Second
	metadataTime = 15 * time.Second
	maxMetadata  = 256 << 10
)

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// client sends requests for metadata, registrations and tokens. It follows no redirect:
// the next host would get the secret. A host that the manifest names may be anywhere;
// another one, which foreign metadata names, must have a public address, so that metadata
// leads to no service of this host or its network. Only a server of this host may name
// others of this host.
type client struct {
	open, guarded *http.Transport
	named         []string
	local         bool
}

// newClient returns a client for a server and the further URLs that the manifest names.
func newClient(at *url.URL, named ...string) *http.Client {
	c := &client{named: []string{at.Host}, local: loopback(at.Hostname())}
	for _, n := range named {
		if u, err := url.Parse(n); err == nil && u.Host != "" {
			c.named = append(c.named, u.Host)
		}
	}
	c.open = transport(&net.Dialer{Timeout: dialTime})
	c.open.Proxy = http.ProxyFromEnvironment
	c.guarded = transport(&net.Dialer{Timeout: dialTime, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		return c.allowed(address)
	}})
	return &http.Client{Transport: c, Timeout: metadataTime, CheckRedirect: func(req *http.Request, _ []*http.Request) error {
		return fmt.Errorf("it redirects to %s, which is refused", clean(req.URL.Host))
	}}
}

// transport keeps no connection: each is judged when it is opened.
func transport(d *net.Dialer) *http.Transport {
	return &http.Transport{
		DialContext: d.DialContext, TLSHandshakeTimeout: dialTime, ForceAttemptHTTP2: true,
		MaxResponseHeaderBytes: 64 << 10, DisableKeepAlives: true,
	}
}

// allowed judges an address that a name has led to: the name may lead elsewhere the next
// time.
func (c *client) allowed(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%s is not an address", address)
	}
	ip := at.Addr().Unmap()
	if ranges.Public(ip) || c.local && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("%s is not a public address, and the manifest does not name the host", ip)
}

// RoundTrip implements http.RoundTripper.
func (c *client) RoundTrip(req *http.Request) (*http.Response, error) {
	send := c.guarded
	if slices.Contains(c.named, req.URL.Host) {
		send = c.open
	} else if proxy, err := http.ProxyFromEnvironment(req); err != nil {
		return nil, err
	} else if proxy != nil { // it looks up the name; an address can be judged here
		if ip, err := netip.ParseAddr(req.URL.Hostname()); err == nil && !ranges.Public(ip) || loopback(req.URL.Hostname()) {
			return nil, fmt.Errorf("%s is not a public address, and the manifest does not name the host", clean(req.URL.Hostname()))
		}
		send = c.open
	}
	resp, err := send.RoundTrip(req)
	if err == nil {
		resp.Body = &limited{ReadCloser: resp.Body, left: maxMetadata}
	}
	return resp, err
}

// limited is a body that fails when it is longer than metadata and tokens are.
type limited struct {
	io.ReadCloser
	left int
}

// Read implements io.Reader.
func (l *limited) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	if l.left -= n; l.left < 0 {
		l.left = 0
		return 0, fmt.Errorf("the answer is longer than %d KiB", maxMetadata>>10)
	}
	return n, err
}
