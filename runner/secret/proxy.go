package secret

import (
	"net/url"
	"os"
)

// proxyVariables name the proxies that requests to models go through.
var proxyVariables = []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"}

// ProxyPasswords are the secrets in the addresses of proxies: what
// agentctl writes and shows contains none of them, whatever a proxy answers.
func ProxyPasswords() []Value {
	var values []Value
	for _, name := range proxyVariables {
		u, err := url.Parse(os.Getenv(name))
		if err != nil || u.User == nil {
			continue
		}
		if password, ok := u.User.Password(); ok {
			values = append(values, NewValue(password))
		}
	}
	return values
}
