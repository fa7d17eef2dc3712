package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/connect"
	"agentctl.dev/agentctl/runner/pluginkit"
)

// mcpMaterialOptions are those of the commands that get a prompt or a resource of a server.
type mcpMaterialOptions struct {
	app        *app
	files      []string
	workspace  string
	containerd string
	arguments  []string
	file       string
	output     choice
}

func (a *app) mcpPromptCmd() *cobra.Command {
	o := &mcpMaterialOptions{app: a, output: newChoice(display.FormatText, display.FormatJSON)}
	cmd := &cobra.Command{
		Use:   "prompt TOOL [PROMPT] -f FILE",
		Short: "Print a prompt of an MCP server, or list its prompts",
		Long: `Print the text of a prompt that an MCP server has for people, to give it to a run, or
list the prompts of the server with their arguments. The server is that of a Tool of
manifests and is started as a run does: contained, with its network, variables and
secrets. A secret that it shows is removed. Read a prompt before you use it: a server
can write into it whatever it likes.

Exit codes are those of "agentctl mcp test".`,
		Example: `  agentctl mcp prompt tickets -f manifests
  agentctl mcp prompt tickets triage --arg queue=web -f manifests > prompt.txt
  agentctl run -f manifests -p @prompt.txt`,
		Args:              oneOrTwo("write the name of the Tool, and that of a prompt"),
		ValidArgsFunction: a.completeTool,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, given := second(args), map[string]string{}
			for _, arg := range o.arguments {
				key, value, ok := strings.Cut(arg, "=")
				if !ok || key == "" {
					return usagef("--arg %q: write NAME=VALUE", arg)
				}
				given[key] = value
			}
			return o.fetch(cmd.Context(), args[0], pluginkit.MCPWish{Prompt: &name, Arguments: given})
		},
	}
	cmd.Flags().StringArrayVar(&o.arguments, "arg", nil, "an argument of the prompt as `NAME=VALUE`; may be repeated")
	o.flags(cmd)
	return cmd
}

func (a *app) mcpResourceCmd() *cobra.Command {
	o := &mcpMaterialOptions{app: a, output: newChoice(display.FormatText, display.FormatJSON)}
	cmd := &cobra.Command{
		Use:   "resource TOOL [URI] -f FILE",
		Short: "Read a resource of an MCP server, or list its resources",
		Long: `Read a resource of an MCP server, to give it to a run, or list the resources of the
server. The server is that of a Tool of manifests and is started as a run does:
contained, with its network, variables and secrets. A secret that it shows is removed.
Binary content is written to a file, which must not exist.

Exit codes are those of "agentctl mcp test".`,
		Example: `  agentctl mcp resource tickets -f manifests
  agentctl mcp resource tickets ticket://4711 -f manifests > ticket.txt
  agentctl mcp resource tickets ticket://4711/screenshot --output-file shot.png -f manifests
  agentctl run -f manifests -p @ticket.txt --attach shot.png`,
		Args:              oneOrTwo("write the name of the Tool, and the URI of a resource"),
		ValidArgsFunction: a.completeTool,
		RunE: func(cmd *cobra.Command, args []string) error {
			uri := second(args)
			if uri == "" && o.file != "" {
				return usagef("--output-file is for a resource: write its URI")
			}
			return o.fetch(cmd.Context(), args[0], pluginkit.MCPWish{Resource: &uri})
		},
	}
	cmd.Flags().StringVar(&o.file, "output-file", "", "new `file` for the content")
	o.flags(cmd)
	return cmd
}

// flags adds those that both commands have.
func (o *mcpMaterialOptions) flags(cmd *cobra.Command) {
	files(cmd, &o.files)
	cmd.Flags().StringVar(&o.workspace, "workspace", "", "`folder` whose files the server sees (default the current one)")
	_ = cmd.MarkFlagDirname("workspace") // fails only for a flag that is not there
	containerd(cmd, &o.containerd)
	o.app.stateFlag(cmd)
	output(cmd, &o.output, "format: text, or one object")
}

// oneOrTwo expects one argument or two.
func oneOrTwo(text string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < 1 || len(args) > 2 {
			return usagef("%s", text)
		}
		return nil
	}
}

// second is the second argument; "" where there is none.
func second(args []string) string {
	if len(args) < 2 {
		return ""
	}
	return args[1]
}

func (o *mcpMaterialOptions) fetch(parent context.Context, tool string, wish pluginkit.MCPWish) error {
	if err := needFiles(o.files); err != nil {
		return err
	}
	var found pluginkit.MCPMaterial
	ctx, settle := stoppable(parent)
	err := settle(connect.UseTool(ctx, connect.ToolOptions{
		Paths: o.files, Stdin: o.app.In, Tool: tool, Workspace: o.workspace, State: o.app.state, Containerd: o.containerd,
	}, wish.Fetch(&found)))
	switch {
	case err != nil:
		return err
	case o.file != "":
		return o.save(&found)
	case o.output.value == display.FormatJSON:
		err = display.WriteObject(o.app.stdout(), found)
	default:
		for _, c := range found.Contents {
			if len(c.Data) > 0 {
				return usagef("%s is not text but %s: name a file with --output-file", c.URI, c.Type)
			}
		}
		err = display.MCPMaterial(o.app.stdout(), o.app.stderr(), &found)
	}
	if err != nil {
		return fmt.Errorf("write what the server has sent: %w", err)
	}
	return nil
}

// save writes the one content of a resource into a new file.
func (o *mcpMaterialOptions) save(found *pluginkit.MCPMaterial) (err error) {
	if len(found.Contents) != 1 {
		return usagef("the resource has %d contents, and --output-file takes one: look at them with -o json", len(found.Contents))
	}
	f, err := os.OpenFile(o.file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return usagef("--output-file: %w", err)
	}
	content := found.Contents[0].Data
	if len(content) == 0 {
		content = []byte(found.Contents[0].Text)
	}
	_, err = f.Write(content)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", o.file, err)
	}
	return nil
}
