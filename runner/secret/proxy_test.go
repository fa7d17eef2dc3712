package secret

import (
	"strings"
	"testing"
)

func TestProxyPasswordsAreSecrets(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://me:canary-of%20a-proxy@proxy.example:3128")
	t.Setenv("https_proxy", "http://user-only@proxy.example:3128")
	t.Setenv("HTTP_PROXY", "://%zz")
	t.Setenv("http_proxy", "")
	r := NewRedactor(ProxyPasswords()...)
	if got := r.String("login me:canary-of a-proxy and me:canary-of%20a-proxy"); strings.Contains(got, "canary") || !strings.Contains(got, "me:***") {
		t.Errorf("shown: %s", got)
	}
}
