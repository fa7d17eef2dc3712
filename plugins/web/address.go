package web

import (
	"net/url"
	"strings"

	"agentctl.dev/agentctl/plugins/sdk"
)

// maxURL is the longest address that is fetched.
const maxURL = 4096

// parseURL reads an address as the rules of policies do, and refuses what these could
// read in another way than the server, or what would carry a secret.
func parseURL(text string) (*url.URL, error) {
	text = strings.TrimSpace(text)
	if len(text) > maxURL {
		return nil, sdk.Errorf("the url has %d bytes, at most %d are sent", len(text), maxURL)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, sdk.Errorf("the url cannot be read: write it as in https://example.com/path")
	case u.Scheme != "https" && u.Scheme != "http", u.Opaque != "", u.Hostname() == "":
		return nil, sdk.Errorf("%q is not a web address: write it as in https://example.com/path", brief(text))
	case u.User != nil:
		return nil, sdk.Errorf("the url holds a user name or a password: credentials are never sent")
	case strings.ContainsFunc(u.Host, func(r rune) bool { return r <= ' ' || r > '~' || r == '%' || r == '\\' }):
		return nil, sdk.Errorf("the host of %q is not ASCII: write its punycode form, xn--…", brief(text))
	case u.Scheme == "http" && (u.Port() == "" || u.Port() == "80"):
		secure := *u
		secure.Scheme, secure.Host = "https", strings.TrimSuffix(u.Host, ":80")
		return nil, sdk.Errorf("http is not encrypted and not fetched on its usual port: call webfetch with %s", secure.String())
	}
	u.Host = strings.ToLower(u.Host)
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// origin is scheme, host and port: what a call was judged for.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.TrimSuffix(strings.ToLower(u.Hostname()), ".") + ":" + port
}

// brief shortens a foreign text to what fits in a message.
func brief(s string) string {
	const most = 200
	s = visible(s)
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
