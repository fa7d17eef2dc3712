package oauth

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

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
