package doctor

import (
	"net"
	"strings"
	"testing"
)

// TestProxies: a proxy that the environment sets is tried, and its password is not shown.
func TestProxies(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		set string
		ok  bool
		why string
	}{
		"none":           {"", true, "none is set: requests to models go directly"},
		"one":            {"http://who:canary@" + l.Addr().String(), true, "HTTPS_PROXY is http://who:xxxxx@" + l.Addr().String()},
		"without scheme": {l.Addr().String(), true, "HTTPS_PROXY is http://" + l.Addr().String()},
		"gone":           {"http://who:canary@" + gone.Addr().String(), false, "HTTPS_PROXY: the proxy at " + gone.Addr().String() + " cannot be reached: "},
		"no address":     {"http://who:canary@%zz", false, "HTTPS_PROXY: it is not the address of a proxy"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, v := range []string{"https_proxy", "HTTP_PROXY", "http_proxy"} {
				t.Setenv(v, "")
			}
			t.Setenv("HTTPS_PROXY", c.set)
			n := proxy(t.Context())
			if n.OK != c.ok || !strings.HasPrefix(n.Why, c.why) || strings.Contains(n.Why+n.Hint, "canary") || n.OK == (n.Hint != "") {
				t.Errorf("got %+v, want %t %q", n, c.ok, c.why)
			}
		})
	}
}

func TestAHostWithoutGit(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if n := git(t.Context()); n.OK || n.Hint == "" || !strings.HasPrefix(n.Why, "it is not installed") {
		t.Errorf("got %+v", n)
	}
}
