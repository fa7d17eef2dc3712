package httpapi

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"agentctl.dev/agentctl/runner/model"
)

func TestWhatAProxyAnsweredIsNotTheServersWord(t *testing.T) {
	asked := httptest.NewRequest(http.MethodConnect, "http://x", nil)
	asked.Host = "model.example.com:443"
	for status, want := range map[int]model.Kind{407: model.Unavailable, 401: model.Unavailable, 403: model.Unavailable, 404: model.Unavailable, 502: model.Retryable, 504: model.Retryable} {
		err := throughProxy(t.Context(), &url.URL{}, asked, &http.Response{StatusCode: status})
		e, ok := errors.AsType[*model.Error](err)
		if !ok || e.Kind != want || e.Hint == "" || !strings.Contains(err.Error(), "model.example.com:443") {
			t.Errorf("%d: %#v", status, err)
		}
	}
	if err := throughProxy(t.Context(), &url.URL{}, asked, &http.Response{StatusCode: http.StatusOK}); err != nil {
		t.Errorf("200: %v", err)
	}
}

func TestAProxysAddressThatCannotBeReadIsNotPassedBy(t *testing.T) {
	for name, c := range map[string]struct {
		reason, value, to string
		fails             bool
	}{
		"broken":     {"net/http would ask the server directly", "http://me:canary%zz@host", "https://model.example.com", true},
		"other":      {"it is not for http", "http://me:canary%zz@host", "http://model.example.com", false},
		"loopback":   {"this host takes no proxy anyway", "http://me:canary%zz@host", "https://127.0.0.1:8443", false},
		"IPv6":       {"by no name", "http://me:canary%zz@host", "https://[::1]:8443", false},
		"localhost":  {"nor this one", "http://me:canary%zz@host", "https://localhost:8443", false},
		"not given":  {"none is none", "", "https://model.example.com", false},
		"bare":       {"a host and a port are enough", "host:3128", "https://model.example.com", false},
		"with login": {"the usual", "http://me:password@host:3128", "https://model.example.com", false},
	} {
		server, err := url.Parse(c.to)
		if err != nil {
			t.Fatal(err)
		}
		err = passedBy(server, func(name string) string {
			if name == "https_proxy" {
				return c.value
			}
			return ""
		})
		if (err != nil) != c.fails {
			t.Errorf("%s: %v: %s", name, err, c.reason)
		}
		if err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: the error tells the login: %v", name, err)
		}
	}
}
