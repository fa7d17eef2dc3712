package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/connect"
	"agentctl.dev/agentctl/runner/pluginkit"
)

type mcpTestOptions struct {
	app     *app
	program pluginFlags
	files   []string
	// containerd is its socket.
	containerd string
	url, name  string
	headers    []string
	call       string
	args       string
	timeout    time.Duration
	answers    []string
	propose    bool
	output     choice
}

func (a *app) mcpTestCmd() *cobra.Command {
	o := &mcpTestOptions{app: a, output: newChoice(display.FormatText, display.FormatJSON)}
	cmd := &cobra.Command{
		Use:   "test {TOOL -f FILE | -- COMMAND [ARGUMENT...] | --url URL}",
		Short: "Show what an MCP server offers, check it, and call it",
		Long: `Show what an MCP server offers, as a run would use it: its functions with the
names that models and rules call them by, and what the server claims about them.
What every run relies on is checked. With --call one function is called, without a
policy or a journal; the server can do whatever you can, unless you start it with
--isolation Sandbox.

A Tool of manifests is tried as a run uses it: in the sandbox that it declares, with
its network, variables and secrets, or with the login that "agentctl auth login" has
stored. There is no policy either: it sees every file of --workspace. A secret that
it shows is removed.

With --propose, a Tool and a Policy with tests are written to stdout instead: what
claims to read is allowed, what claims to destroy is denied, the rest is asked about.
Read them before you use them.

Exit code 0: nothing is wrong. 1: a check or the call failed, or the server could not
be asked. 2: the command line or a manifest is wrong. 4: a credential is missing or
refused. 8: this host gives no sandbox. 130, 143: stopped by a signal.`,
		Example: `  agentctl mcp test tickets -f manifests
  agentctl mcp test -- mcp-server-filesystem .
  agentctl mcp test --call read_text_file --args '{"path": "README.md"}' -- mcp-server-filesystem .
  agentctl mcp test --url https://mcp.example.com/mcp --header "Authorization=Bearer $TOKEN" -o json
  agentctl mcp test --name files --propose -- mcp-server-filesystem . > files.yaml`,
		Args:              o.words,
		ValidArgsFunction: a.completeTool,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.runMCPTest(cmd.Context(), args) },
	}
	o.program.add(cmd, "the current one")
	_ = cmd.Flags().MarkHidden("exec") // fails only for a flag that is not there
	cmd.Flags().StringVar(&o.url, "url", "", "`URL` of a server over HTTP, instead of a command")
	cmd.Flags().StringArrayVar(&o.headers, "header", nil, "a header for --url as `NAME=value`; may be repeated")
	cmd.Flags().StringVar(&o.name, "name", "server", "`name` of the Tool, with which call names begin")
	cmd.Flags().StringVar(&o.call, "call", "", "`function` to call")
	cmd.Flags().StringVar(&o.args, "args", "{}", "arguments of the call: a JSON `object`, or @FILE")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 2*time.Minute, "the call's time")
	cmd.Flags().StringArrayVar(&o.answers, "answer", nil, "`text` to answer the server's next question with; may be repeated")
	cmd.Flags().BoolVar(&o.propose, "propose", false, "write a Tool and a Policy with tests to stdout")
	files(cmd, &o.files)
	containerd(cmd, &o.containerd)
	a.stateFlag(cmd)
	output(cmd, &o.output, "format: a line for each function and check, or one object")
	return cmd
}

func (o *mcpTestOptions) words(cmd *cobra.Command, args []string) error {
	declared := cmd.Flag("file").Changed
	switch {
	case declared && (len(args) != 1 || o.url != ""):
		return usagef("write the name of one Tool of the manifests, and no other server")
	case declared && o.propose:
		return usagef("--propose writes a Tool, and this one is declared already")
	case !declared && len(args) == 1 && o.url == "" && cmd.ArgsLenAtDash() < 0 && !strings.ContainsAny(args[0], "/"):
		return usagef("%q is a Tool of manifests, or a command", args[0]).try("agentctl mcp test " + args[0] + " -f FILE, or: agentctl mcp test -- " + args[0])
	case declared && (cmd.Flag("name").Changed || cmd.Flag("isolation").Changed || cmd.Flag("mount").Changed || cmd.Flag("env").Changed):
		return usagef("--name, --isolation, --mount and --env are for a server that no manifest declares")
	case !declared && (cmd.Flag("containerd-address").Changed || cmd.Flag("state").Changed):
		return usagef("--containerd-address and --state are for a Tool of manifests: name them with -f")
	case len(args) == 0 && o.url == "":
		return usagef("the server is missing: write -- COMMAND, or --url URL")
	case len(args) > 0 && o.url != "":
		return usagef("unexpected argument %q: the server is that of --url", args[0])
	case o.program.exec:
		return usagef("an MCP server is started once: there is no --exec")
	case o.url == "" && len(o.headers) > 0:
		return usagef("--header is for --url")
	case o.propose && o.call != "":
		return usagef("--propose calls nothing: leave out --call")
	case o.timeout <= 0:
		return usagef("--timeout must be more than 0")
	}
	return nil
}

func (o *mcpTestOptions) runMCPTest(parent context.Context, command []string) error {
	args, err := callArguments(o.args)
	if err != nil {
		return err
	}
	opts := pluginkit.MCPOptions{
		Program: o.program.program(command), URL: o.url, Headers: o.headers, Name: o.name,
		Call: o.call, Args: args, Timeout: o.timeout, Answers: o.answers,
		Progress: func(text string) { display.Notice(o.app.stderr(), text) },
	}
	ctx, settle := stoppable(parent)
	report, err := o.try(ctx, command, opts)
	if err = settle(err); err != nil {
		return err
	}
	switch {
	case o.propose:
		err = display.Text(o.app.stdout(), report.Propose(opts))
	case o.output.value == display.FormatJSON:
		err = display.WriteObject(o.app.stdout(), report)
	default:
		err = display.MCPReport(o.app.stdout(), o.app.stderr(), report)
	}
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if report.Failed() {
		return exit(reason.ExitFailed)
	}
	return nil
}

// try tries the server of a command line, or that of a Tool.
func (o *mcpTestOptions) try(ctx context.Context, words []string, opts pluginkit.MCPOptions) (*pluginkit.MCPReport, error) {
	if len(o.files) == 0 {
		return pluginkit.MCP(ctx, opts)
	}
	if err := needFiles(o.files); err != nil {
		return nil, err
	}
	trial := pluginkit.NewTrial(opts)
	err := connect.UseTool(ctx, connect.ToolOptions{
		Paths: o.files, Stdin: o.app.In, Tool: words[0], Workspace: opts.Workspace, State: o.app.state, Containerd: o.containerd,
		LeftOut: trial.LeftOut, Ask: trial.Ask(),
	}, trial.Run)
	return trial.Report, err
}
