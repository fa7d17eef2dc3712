package runner

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/connect"
)

// Whoever may write down a Tool must not get a secret of this host sent to a URL of their
// choice before a run is started.
func TestAProbeSendsNoSecret(t *testing.T) {
	var reached atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(server.Close)
	t.Setenv("PROBED", "a-secret-of-this-host")
	from := v1alpha1.ValueFrom{Env: "PROBED"}
	for name, at := range map[string]*v1alpha1.MCPHTTP{
		"header": {URL: server.URL + "/mcp", Headers: []v1alpha1.Header{{Name: "X-Key", ValueFrom: from}}},
		"client": {URL: server.URL + "/mcp", Auth: &v1alpha1.MCPAuth{ClientCredentials: &v1alpha1.ClientCredentials{
			ClientID: "me", ClientSecret: v1alpha1.ValueSource{ValueFrom: from}, TokenURL: server.URL + "/token",
		}}},
	} {
		probed := &v1alpha1.Tool{Spec: v1alpha1.ToolSpec{CallName: "s", Source: v1alpha1.ToolSource{MCP: &v1alpha1.MCPSource{HTTP: at}}}}
		probed.Name = "s"
		found, err := connect.Probe(t.Context(), connect.ProbeOptions{State: t.TempDir(), Tool: probed})
		if err != nil || found.Digest != "" || len(found.Functions) > 0 {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
	}
	if n := reached.Load(); n > 0 {
		t.Errorf("the server got %d requests", n)
	}
}
