package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/mcpserver"
)

// printConfig prints what a host needs to use this server.
func (o *mcpServeOptions) printConfig(ctx context.Context) error {
	agents, err := o.agents(ctx)
	if err != nil {
		return err
	}
	if o.tools && len(agents) > 1 {
		return usagef("the manifests hold %d agents: name one with --agent", len(agents))
	}
	name := "agentctl"
	if len(agents) == 1 {
		name = strings.ReplaceAll(agents[0].Name, ".", "-")
	}
	var text string
	switch o.config.value {
	case "claude":
		text, err = o.claude(name)
	case "codex":
		text, err = o.codex(name)
	default:
		text, err = o.opencode(name)
	}
	if err != nil {
		return err
	}
	return display.Text(o.app.stdout(), text)
}

// program is this program, as a host starts it.
func program() string {
	path, err := os.Executable()
	return cmp.Or(map[bool]string{true: path}[err == nil], "agentctl")
}

// arguments are those of a server with the same flags. Paths are absolute: a host starts
// it in a folder of its own choice.
func (o *mcpServeOptions) arguments() ([]string, error) {
	args := []string{"mcp", "serve"}
	if o.tools {
		args = append(args, "--tools")
	}
	for _, p := range o.files {
		abs, err := filepath.Abs(p)
		if err != nil {
			return nil, err
		}
		args = append(args, "-f", abs)
	}
	flag := func(name, value string) {
		if value != "" {
			args = append(args, name, value)
		}
	}
	flag("--agent", o.agent)
	for _, in := range o.inputs {
		flag("--input", in)
	}
	workspace := o.workspace
	if workspace != "" {
		abs, err := filepath.Abs(workspace)
		if err != nil {
			return nil, err
		}
		workspace = abs
	}
	flag("--workspace", workspace)
	if o.inPlace {
		args = append(args, "--in-place")
	}
	flag("--approve", o.approve)
	if o.timeout > 0 {
		flag("--timeout", o.timeout.String())
	}
	if !o.tools && o.parallel != defaultParallel {
		flag("--parallel", strconv.Itoa(o.parallel))
	}
	if o.allowUnsandboxed {
		args = append(args, "--allow-unsandboxed")
	}
	flag("--containerd-address", o.containerd)
	flag("--state", o.app.state)
	return args, nil
}

// url is where a server that listens is reached.
func (o *mcpServeOptions) url() string { return "http://" + o.listen + mcpserver.Path }

// tokenVariable is the variable from which a host takes the token.
func (o *mcpServeOptions) tokenVariable() string { return cmp.Or(o.tokenEnv, "AGENTCTL_MCP_TOKEN") }

// claude is a file .mcp.json of Claude Code.
func (o *mcpServeOptions) claude(name string) (string, error) {
	args, err := o.arguments()
	if err != nil {
		return "", err
	}
	server := map[string]any{"type": "stdio", "command": program(), "args": args}
	if o.listen != "" {
		server = map[string]any{"type": "http", "url": o.url(), "headers": map[string]string{"Authorization": "Bearer ${" + o.tokenVariable() + "}"}}
	}
	return indented(map[string]any{"mcpServers": map[string]any{name: server}})
}

// opencode is a part of opencode.json.
func (o *mcpServeOptions) opencode(name string) (string, error) {
	args, err := o.arguments()
	if err != nil {
		return "", err
	}
	server := map[string]any{"type": "local", "command": append([]string{program()}, args...), "enabled": true}
	if o.listen != "" {
		server = map[string]any{"type": "remote", "url": o.url(), "enabled": true, "headers": map[string]string{"Authorization": "Bearer {env:" + o.tokenVariable() + "}"}}
	}
	return indented(map[string]any{"$schema": "https://opencode.ai/config.json", "mcp": map[string]any{name: server}})
}

func indented(v any) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.String(), err
}

// codex is a part of ~/.codex/config.toml.
func (o *mcpServeOptions) codex(name string) (string, error) {
	text := "[mcp_servers." + name + "]\n"
	if o.listen != "" {
		return text + "url = " + quoted(o.url()) + "\nbearer_token_env_var = " + quoted(o.tokenVariable()) + "\ntool_timeout_sec = 600\n", nil
	}
	args, err := o.arguments()
	if err != nil {
		return "", err
	}
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = quoted(a)
	}
	return text + "command = " + quoted(program()) + "\nargs = [" + strings.Join(words, ", ") + "]\ntool_timeout_sec = 600\n", nil
}

// quoted is a basic string of TOML.
func quoted(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			b.WriteString(`\u` + strings.Repeat("0", 4-len(strconv.FormatInt(int64(r), 16))) + strconv.FormatInt(int64(r), 16))
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
