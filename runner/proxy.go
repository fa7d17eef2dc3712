package runner

import (
	"net/url"
	"os"

	"agentctl.dev/agentctl/runner/secret"
)

// proxyVariables name the proxies that requests to models go through.
var proxyVariables = []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"}

// proxyPasswords are the secrets that stand in the addresses of proxies: what
// agentctl writes and shows holds none of them, whatever a proxy answers.
func proxyPasswords() []secret.Value {
	var values []secret.Value
	for _, name := range proxyVariables {
		u, err := url.Parse(os.Getenv(name))
		if err != nil || u.User == nil {
			continue
		}
		if password, ok := u.User.Password(); ok {
			values = append(values, secret.NewValue(password))
		}
	}
	return values
}
