package policy

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// addresses collects the URLs in arguments, at any depth.
func (f *facts) addresses(v any) {
	switch v := v.(type) {
	case string:
		switch v = strings.TrimSpace(v); {
		case !strings.Contains(v, "://"):
		case len(f.urls) >= urlLimit || strings.ContainsAny(v, " \n\t"):
			f.unread = true
		default:
			f.address(v)
		}
	case []any:
		for _, x := range v {
			f.addresses(x)
		}
	case map[string]any:
		for _, k := range slices.Sorted(keys(v)) {
			if s, ok := v[k].(string); ok && s != "" && f.talks && !strings.Contains(s, "://") && addressed(k) {
				f.address("//" + strings.TrimSpace(s))
				continue
			}
			f.addresses(v[k])
		}
	}
}

// addressed reports whether an argument of that name is an address, also without a scheme.
// It is used for tools that open connections.
func addressed(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"url", "uri", "href", "endpoint", "proxy", "host", "hostname", "server", "address"}, func(s string) bool { return strings.HasSuffix(name, s) })
}

// anywhere reports whether the call may reach a host that it does not name.
func (f *facts) anywhere() bool {
	return f.script.Anywhere || f.talks && (f.unread || len(f.net.Hosts) == 0)
}

func (f *facts) address(text string) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		f.unread = true
		return
	}
	a := addressOf(text, u)
	f.urls = append(f.urls, a)
	if a.scheme != "" {
		f.net.Schemes = add(f.net.Schemes, a.scheme)
	}
	// A rule may name a host as it is written, too.
	f.net.Hosts = add(f.net.Hosts, strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")))
	f.net.Hosts = add(f.net.Hosts, a.host)
	if n, err := strconv.Atoi(a.port); err == nil {
		f.net.Ports = add(f.net.Ports, n)
	}
}
