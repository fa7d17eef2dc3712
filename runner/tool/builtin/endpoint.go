package builtin

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// Server is the server that a Tool names for a shipped tool which asks one, as the
// program reads it: scheme, host and port. It is nil where there is none, or where it is
// not one.
func Server(s *v1alpha1.ToolSpec) *url.URL {
	t, ok := Lookup(Named(&s.Source))
	if !ok || t.Endpoint == "" {
		return nil
	}
	i := slices.IndexFunc(s.Env, func(e v1alpha1.EnvVar) bool { return e.Name == t.Endpoint })
	if i < 0 || s.Env[i].Value == nil {
		return nil
	}
	u, err := url.Parse(strings.TrimSpace(*s.Env[i].Value))
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil || u.Opaque != "" {
		return nil
	}
	if u.Scheme == "http" && cmp.Or(u.Port(), "80") == "80" {
		return nil
	}
	return &url.URL{Scheme: u.Scheme, Host: strings.ToLower(u.Hostname()) + ":" + cmp.Or(u.Port(), "443")}
}
