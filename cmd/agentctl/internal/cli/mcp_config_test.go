package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const servedAgent = `apiVersion: agentctl.dev/v1alpha1
kind: Agent
metadata: {name: my.coder}
spec: {modelRef: {name: m}}
---
apiVersion: agentctl.dev/v1alpha1
kind: Model
metadata: {name: m}
spec: {provider: scripted, scripted: {steps: []}}
`

// configOf is what --print-config prints for manifests in a folder whose name every
// format has to escape.
func configOf(t *testing.T, host string, more ...string) (dir, text string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), `a "b" \c`+"\td")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "agent.yaml"), []byte(servedAgent), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	args := append([]string{"mcp", "serve", "-f", dir, "--print-config", host}, more...)
	if code := Main(args, Streams{In: strings.NewReader(""), Out: &out, Err: &errs}); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	return dir, out.String()
}

func TestConfigurationsOfHostsStartThisServer(t *testing.T) {
	flags := []string{"--tools", "--in-place", "--approve", "client"}
	wanted := func(t *testing.T, dir string, args []string) {
		t.Helper()
		want := []string{"mcp", "serve", "--tools", "-f", dir, "--in-place", "--approve", "client"}
		if !slices.Equal(args, want) {
			t.Errorf("arguments %q, want %q", args, want)
		}
	}
	t.Run("claude", func(t *testing.T) {
		dir, text := configOf(t, "claude", flags...)
		var c struct {
			MCPServers map[string]struct {
				Type, Command string
				Args          []string
			}
		}
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			t.Fatal(err)
		}
		s := c.MCPServers["my-coder"]
		if s.Type != "stdio" || !filepath.IsAbs(s.Command) {
			t.Errorf("the server is %+v", s)
		}
		wanted(t, dir, s.Args)
	})
	t.Run("opencode", func(t *testing.T) {
		dir, text := configOf(t, "opencode", flags...)
		var c struct {
			MCP map[string]struct {
				Type    string
				Command []string
			}
		}
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			t.Fatal(err)
		}
		s := c.MCP["my-coder"]
		if s.Type != "local" || len(s.Command) == 0 {
			t.Fatalf("the server is %+v", s)
		}
		wanted(t, dir, s.Command[1:])
	})
	t.Run("codex", func(t *testing.T) {
		dir, text := configOf(t, "codex", flags...)
		lines := strings.Split(strings.TrimSpace(text), "\n")
		if lines[0] != "[mcp_servers.my-coder]" {
			t.Errorf("the table is %s", lines[0])
		}
		if !slices.ContainsFunc(lines, regexp.MustCompile(`^command = "/.*"$`).MatchString) {
			t.Errorf("no command: %s", text)
		}
		// Strings of this kind mean the same in TOML and in JSON.
		var args []string
		for _, l := range lines {
			if raw, ok := strings.CutPrefix(l, "args = "); ok {
				if err := json.Unmarshal([]byte(raw), &args); err != nil {
					t.Fatal(err)
				}
			}
		}
		wanted(t, dir, args)
	})
}

func TestConfigurationsOfHostsNameTheTokenAndDoNotHoldIt(t *testing.T) {
	t.Setenv("TEAM_TOKEN", "0123456789abcdefsecret")
	for host, want := range map[string]string{"claude": "${TEAM_TOKEN}", "codex": `bearer_token_env_var = "TEAM_TOKEN"`, "opencode": "{env:TEAM_TOKEN}"} {
		_, text := configOf(t, host, "--listen", "127.0.0.1:8099", "--token-env", "TEAM_TOKEN")
		if !strings.Contains(text, want) || !strings.Contains(text, `"http://127.0.0.1:8099/mcp"`) || strings.Contains(text, "secret") {
			t.Errorf("%s: %s", host, text)
		}
	}
}
