package oauth

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

func TestOnlyAddressesOfTheInternetArePublic(t *testing.T) {
	for text, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true,
		"127.0.0.1": false, "::1": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false,
		"100.64.0.1": false, "0.0.0.0": false, "::": false, "fe80::1": false, "fd00::1": false, "224.0.0.1": false, "255.255.255.255": false,
		"::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "64:ff9b::a00:1": false, "2002:a00:1::": false, "198.18.0.1": false,
		"168.63.129.16": false, "192.0.2.1": false, "192.88.99.1": false, "203.0.113.9": false, "::7f00:1": false, "fec0::1": false, "2001:db8::1": false, "3fff::1": false,
	} {
		if got := public(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

// Metadata of a server elsewhere cannot make this host ask its own services, by whatever
// name they have.
func TestForeignMetadataReachNoServiceOfThisHost(t *testing.T) {
	var reached atomic.Int32
	local := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(local.Close)
	port := local.URL[strings.LastIndexByte(local.URL, ':'):]
	at := &url.URL{Scheme: "https", Host: "mcp.example.com"}
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]"} {
		resp, err := newClient(at).Get("http://" + host + port) //nolint:noctx // a test's own server
		if err == nil {
			_ = resp.Body.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "not a public address") {
			t.Errorf("%s: %v", host, err)
		}
	}
	if n := reached.Load(); n > 0 {
		t.Errorf("%d requests", n)
	}
	resp, err := newClient(at, local.URL).Get(local.URL) //nolint:noctx // the manifest names it
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if reached.Load() != 1 {
		t.Error("a host that the manifest names was not reached")
	}
}
