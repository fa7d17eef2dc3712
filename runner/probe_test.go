package runner

import (
	"encoding/json"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/connect"
	"agentctl.dev/agentctl/runner/manifest"
)

// toolOf reads a Tool with its defaults.
func toolOf(t *testing.T, spec string) *v1alpha1.Tool {
	t.Helper()
	set, found := manifest.Parse(t.Context(), "tool", []byte("apiVersion: agentctl.dev/v1alpha1\nkind: Tool\nmetadata: {name: mine}\nspec: "+spec+"\n"))
	if found.HasErrors() {
		t.Fatal(found)
	}
	return set.Documents[0].Object.(*v1alpha1.Tool)
}

func TestProbeFindsOutWhatAToolIs(t *testing.T) {
	for name, c := range map[string]struct {
		reason, spec, want string
		why                reason.Reason
	}{
		"exec":       {reason: "a program of the host", spec: `{parameters: {type: object}, isolation: {minimum: None}, source: {exec: {command: [cat]}}}`},
		"builtin":    {reason: "a shipped tool", spec: `{isolation: {minimum: None}, source: {builtin: {name: read}}}`},
		"no program": {reason: "it is not there", spec: `{parameters: {type: object}, isolation: {minimum: None}, source: {exec: {command: [/no/such/program]}}}`, why: reason.ToolError, want: "no such file"},
		"no plugin":  {reason: "cat says nothing", spec: `{isolation: {minimum: None}, source: {plugin: {command: [cat]}}}`, why: reason.ToolError, want: "start plugin"},
		"no server":  {reason: "cat is no MCP server", spec: `{isolation: {minimum: None}, source: {mcp: {stdio: {command: [cat]}}}}`, why: reason.ToolError, want: "connect to its MCP server"},
		"plugin changed": {
			reason: "another program than the one whose sum was taken",
			spec:   `{isolation: {minimum: None}, source: {plugin: {command: [/bin/cat], sha256: "` + strings.Repeat("0", 64) + `"}}}`, why: reason.ToolError, want: "sha256",
		},
	} {
		t.Run(name, func(t *testing.T) {
			facts, err := connect.Probe(t.Context(), connect.ProbeOptions{Tool: toolOf(t, c.spec), State: t.TempDir(), AllowUnsandboxed: true})
			if c.want == "" {
				if err != nil || facts.Name != "mine" || !strings.HasPrefix(facts.Digest, "sha256:") {
					t.Errorf("%s: got %+v, %v", c.reason, facts, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || reason.Of(err) != c.why {
				t.Errorf("%s: got %v (%s), want %q (%s)", c.reason, err, reason.Of(err), c.want, c.why)
			}
		})
	}
}

func TestTheDigestOfAToolIsOverWhatItSays(t *testing.T) {
	digest := func(description, parameters string) string {
		spec := `{description: "` + description + `", parameters: ` + parameters + `, isolation: {minimum: None}, source: {exec: {command: [cat]}}}`
		f, err := connect.Probe(t.Context(), connect.ProbeOptions{Tool: toolOf(t, spec), State: t.TempDir(), AllowUnsandboxed: true})
		if err != nil || !json.Valid(f.Parameters) {
			t.Fatal(f, err)
		}
		return f.Digest
	}
	first := digest("one", "{type: object}")
	if digest("one", "{type: object}") != first {
		t.Error("the digest differs from itself")
	}
	if digest("two", "{type: object}") == first || digest("one", "{type: object, required: [a]}") == first {
		t.Error("the digest does not tell tools apart")
	}
}
