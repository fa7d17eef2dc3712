package httpapi

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"

	"agentctl.dev/agentctl/runner/model"
)

// proxyFor is http.ProxyFromEnvironment, but for an address that cannot be read:
// net/http goes to the server directly then, past the proxy that was meant.
func proxyFor(r *http.Request) (*url.URL, error) {
	proxy, err := http.ProxyFromEnvironment(r)
	if proxy != nil || err != nil {
		return proxy, err
	}
	return nil, passedBy(r.URL, os.Getenv)
}

// passedBy returns an error if a variable was meant to name the proxy to a server, and its
// value cannot be parsed.
func passedBy(server *url.URL, getenv func(string) string) error {
	if local(server.Hostname()) {
		return nil
	}
	names := []string{"HTTP_PROXY", "http_proxy"}
	if server.Scheme == "https" {
		names = []string{"HTTPS_PROXY", "https_proxy"}
	}
	for _, name := range names {
		if !readable(getenv(name)) {
			return &model.Error{
				Kind: model.Unavailable, Class: "proxy", Err: fmt.Errorf("%s holds no address of a proxy", name),
				Hint: "it is http://host:port, with user:password@ before the host where the proxy wants a login; other characters in these are written as %XX",
			}
		}
	}
	return nil
}

// readable reports whether net/http can parse a value as an address, as it is or with a
// scheme before it.
func readable(value string) bool {
	_, err := url.Parse(value)
	if err != nil {
		_, err = url.Parse("http://" + value)
	}
	return err == nil
}

// local reports whether net/http uses no proxy for a host, whatever the variables are.
func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// throughProxy turns the answer of a proxy to CONNECT into an error. A refusal by the
// proxy is not a refusal of the model's key.
func throughProxy(_ context.Context, _ *url.URL, asked *http.Request, resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	e := &model.Error{
		Kind: model.Unavailable, Class: strconv.Itoa(resp.StatusCode),
		Err: fmt.Errorf("the proxy answered %d %s when asked for %s", resp.StatusCode, http.StatusText(resp.StatusCode), asked.Host),
	}
	switch {
	case resp.StatusCode == http.StatusProxyAuthRequired:
		e.Hint = model.ProxyLogin
	case resp.StatusCode >= 500:
		e.Kind, e.Hint = model.Retryable, "the proxy of HTTPS_PROXY does not reach the server; NO_PROXY names hosts that are asked directly"
	default:
		e.Hint = "the proxy of HTTPS_PROXY does not let requests to this host through"
	}
	return e
}
