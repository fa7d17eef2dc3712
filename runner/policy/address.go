package policy

import (
	"cmp"
	"net"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"

	"golang.org/x/net/idna"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// address is a URL in the parts that a permission is compared with, in the form in which a
// program uses them: however it is written, one server has one form.
type address struct {
	// raw is the URL as the call has it.
	raw                      string
	scheme, user, host, port string
	// path with the query, as it is sent; clean without escapes and dots, as a server may
	// read it.
	path, clean string
}

// addressOf returns the parts of a URL that has a host.
func addressOf(raw string, u *url.URL) address {
	a := address{raw: raw, scheme: strings.ToLower(u.Scheme), host: canonicalHost(u.Hostname())}
	a.port = cmp.Or(u.Port(), defaultPort(a.scheme))
	if u.User != nil {
		a.user = u.User.String() + "@"
	}
	query := ""
	if u.ForceQuery || u.RawQuery != "" {
		query = "?" + u.RawQuery
	}
	a.path = cmp.Or(u.EscapedPath(), "/") + query
	a.clean = path.Clean("/" + u.Path)
	if a.clean != "/" && strings.HasSuffix(u.Path, "/") {
		a.clean += "/"
	}
	a.clean += query
	return a
}

// canonicalHost is the host that is looked up: lower-case, in ASCII, without a final dot.
func canonicalHost(host string) string {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().String()
	}
	if ip, ok := numericHost(host); ok {
		return ip.String()
	}
	if ascii, err := idna.Lookup.ToASCII(host); err == nil {
		host = ascii
	}
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

func defaultPort(scheme string) string {
	return map[string]string{"http": "80", "https": "443", "ssh": "22", "ftp": "21"}[scheme]
}

// begin is scheme and server, without the port that the scheme implies.
func (a *address) begin() string {
	host := a.host
	switch {
	case a.port != defaultPort(a.scheme):
		host = net.JoinHostPort(host, a.port)
	case strings.Contains(host, ":"):
		host = "[" + host + "]"
	}
	if a.scheme == "" {
		return "//" + a.user + host
	}
	return a.scheme + "://" + a.user + host
}

// String is the canonical form: lower-case scheme and host, no port that the scheme
// implies, at least / as path, no fragment.
func (a *address) String() string { return a.begin() + a.path }

// addressPattern is a pattern for addresses, in the parts of one: what stands for a host
// never matches beyond it.
type addressPattern struct {
	scheme, user, host, port string
	// path is "" where every path is meant.
	path string
}

// parseAddressPattern reads SCHEME://HOST[:PORT][/PATH]; *HOST is one of any scheme.
func parseAddressPattern(text string) (p addressPattern, ok bool) {
	scheme, rest, found := strings.Cut(text, "://")
	switch {
	case found:
		p.scheme = strings.ToLower(scheme)
	case strings.HasPrefix(text, "//"):
		rest = text[2:]
	case strings.HasPrefix(text, "*"):
		p.scheme, rest = "*", text
	default:
		return p, false
	}
	server := rest
	if at := strings.IndexAny(rest, "/#"); at >= 0 {
		server, p.path = rest[:at], rest[at:]
	} else if !strings.HasSuffix(rest, "*") {
		p.path = "/"
	}
	if at := strings.LastIndex(server, "@"); at >= 0 {
		p.user, server = server[:at+1], server[at+1:]
	}
	if at := strings.LastIndex(server, ":"); at >= 0 && !strings.Contains(server[at:], "]") {
		server, p.port = server[:at], server[at+1:]
	}
	p.host = patternHost(strings.TrimSuffix(strings.TrimPrefix(server, "["), "]"))
	return p, true
}

// patternHost is a host with wildcards as canonicalHost writes one without.
func patternHost(host string) string {
	if !strings.ContainsAny(host, "*?") {
		return canonicalHost(host)
	}
	labels := strings.Split(host, ".")
	for i, l := range labels {
		if l != "" && !strings.ContainsAny(l, "*?") {
			labels[i] = canonicalHost(l)
		}
	}
	return strings.TrimSuffix(strings.ToLower(strings.Join(labels, ".")), ".")
}

// server reports whether an address is at a server that the pattern names.
func (p *addressPattern) server(a *address) bool {
	port := p.port == "" && a.port == defaultPort(a.scheme) || p.port != "" && glob(p.port, a.port)
	return port && glob(p.scheme, a.scheme) && glob(p.host, a.host) && (p.user == a.user || p.user != "" && glob(p.user, a.user))
}

// matchesAddress compares a pattern with an address. To allow, the pattern must match each
// form of it, part by part; otherwise one form is enough, also as one text.
func (e *entry) matchesAddress(a *address, strict bool) bool {
	if strings.HasSuffix(e.pattern, "*") && glob(e.pattern, a.scheme+"://") {
		return true // whatever has the scheme, as by * and https://*
	}
	p, ok := parseAddressPattern(e.pattern)
	sent, clean := p.path == "" || glob(p.path, a.path), p.path == "" || glob(p.path, a.clean)
	if strict {
		return ok && p.server(a) && sent && clean
	}
	if glob(e.pattern, a.raw) || glob(e.pattern, a.String()) || glob(e.pattern, a.begin()+a.clean) {
		return true
	}
	anybody := *a
	anybody.user, p.user = "", ""
	return ok && p.server(&anybody) && (sent || clean)
}

// aboutAddresses reports whether an entry names some addresses, and not everything.
func (e *entry) aboutAddresses() bool {
	_, ok := parseAddressPattern(e.pattern)
	return ok && e.pattern != "*"
}

// onAddresses is the action of a list for the addresses of a call: the strictest. One that
// cannot be read may be any address, whatever the others are.
func onAddresses(entries []entry, names []string, f *facts) verdict {
	v := all(f.urls, func(a *address) verdict { return onAddress(entries, names, a) })
	if !f.talks || !f.unread {
		return v
	}
	entries = slices.DeleteFunc(slices.Clone(entries), func(e entry) bool { return e.pattern != "*" && !e.aboutAddresses() })
	everything := last(entries, names, func(e *entry) bool { return e.pattern == "*" })
	switch u := unknown(entries, names); {
	case everything == v1alpha1.ActionDeny:
		return everything
	case rank(u) > rank(v):
		return u
	case u == "" && v == v1alpha1.ActionAllow:
		return u
	}
	return v
}

// onAddress is the action of a list for one address. Only a deny matches more than it
// says; an ask does so too where that is stricter.
func onAddress(entries []entry, names []string, a *address) verdict {
	var winner *entry
	for _, strict := range []func(*entry) bool{
		func(e *entry) bool { return e.action != v1alpha1.ActionDeny },
		func(e *entry) bool { return e.action == v1alpha1.ActionAllow },
	} {
		for i := len(entries) - 1; i >= 0; i-- {
			e := &entries[i]
			if !e.concerns(names) || !e.matchesAddress(a, strict(e)) {
				continue
			}
			if winner == nil || rank(e.action) > rank(winner.action) {
				winner = e
			}
			break
		}
	}
	if winner == nil {
		return ""
	}
	return winner.win()
}
