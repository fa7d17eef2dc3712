package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner"
	"agentctl.dev/agentctl/runner/mcpserver"
	"agentctl.dev/agentctl/runner/statedir"
)

type mcpServeOptions struct {
	app *app

	files            []string
	tools            bool
	agent            string
	inputs           []string
	workspace        string
	noRepository     bool
	inPlace          bool
	approve          string
	timeout          time.Duration
	parallel         int
	allowUnsandboxed bool
	containerd       string

	listen    string
	hosts     []string
	tokenEnv  string
	tokenFile string
	config    choice
}

// approveClient is the value of --approve that lets clients answer.
const approveClient = "client"

// defaultParallel is how many runs a server has at the same time.
const defaultParallel = 4

// noConfig is the value of --print-config without the flag.
const noConfig = "none"

func (a *app) mcpServeCmd() *cobra.Command {
	o := &mcpServeOptions{app: a, config: newChoice(noConfig, "claude", "codex", "opencode")}
	cmd := &cobra.Command{
		Use:   "serve -f FILE|FOLDER",
		Short: "Serve agents, or the tools of one agent, to Claude Code, Codex, OpenCode and other hosts",
		Long: `Serve agents, or the tools of one agent, over the Model Context Protocol.

Each agent of the manifests is a tool that takes a prompt: a call runs the agent
and returns its answer, the id of the run and how it ended. Ending the call ends
the run.

With --tools the host's own model uses the tools of one agent. Each call is
checked against the tool's schema, judged by the agent's policies, asked about
where a rule says so, run in the tool's sandbox and written to a journal, like a
call of a run: "agentctl logs", "events", "diff" and "auth can-i" work as ever.
The agent's model is not used and needs no key. All calls of one server are one
run; it ends when the host closes the connection.

The files are a copy of the workspace, as in "agentctl run"; --in-place works on
the folder itself, which is what a coding host expects.

What rules ask about is answered by "agentctl approve" from another terminal, if
the agent has approvals.onAsk: Wait; else it is refused. With --approve client the
host's user may answer, in hosts that show such questions. Nothing that a client
sends can change a policy.

The protocol is on stdin and stdout; what happens is shown on stderr. --listen
serves over HTTP instead, at http://ADDRESS/mcp, for clients that send the token of
--token-file or --token-env. --print-config prints the configuration for a host.

The limits of the tools and limits.maxParallelTools hold. limits.maxSteps, timeout
and the loop guard bound a model that works alone; with --tools the host has the
model, and they do not apply. limits.maxTokens and maxCost bound the subagents of
the agent together. --timeout ends the session, after 7 days by default.`,
		Example: `  agentctl mcp serve -f manifests/hello
  agentctl mcp serve --tools -f agent.yaml --in-place
  agentctl mcp serve --tools -f manifests/ --agent coder --workspace ~/src/repo --in-place
  agentctl mcp serve --tools -f agent.yaml --listen 127.0.0.1:8099 --token-env MCP_TOKEN
  agentctl mcp serve --tools -f agent.yaml --in-place --print-config claude > .mcp.json`,
		Args: filesOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			if o.config.value != noConfig {
				return o.printConfig(cmd.Context())
			}
			if o.tools {
				return o.serveTools(cmd.Context())
			}
			return o.serveAgents(cmd.Context())
		},
	}
	o.flags(cmd)
	return cmd
}

func (o *mcpServeOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	files(cmd, &o.files)
	f.BoolVar(&o.tools, "tools", false, "serve the tools of one agent instead of agents")
	f.StringVar(&o.agent, "agent", "", "`name` of the Agent: with --tools whose tools, else the only one to serve")
	f.StringArrayVar(&o.inputs, "input", nil, "with --tools: `key=value` that policies read as run.inputs; may be repeated")
	f.StringVar(&o.workspace, "workspace", "", "`folder` to work on (default the Run's, else the current folder)")
	noRepositoryPolicies(cmd, &o.noRepository)
	f.BoolVar(&o.inPlace, "in-place", false, "work on the folder itself instead of a copy")
	f.StringVar(&o.approve, "approve", "", "who answers questions: `never|client|all|FILE`; all,R3 also for what cannot be undone (default as the agent declares)")
	f.DurationVar(&o.timeout, "timeout", 0, "end the session, or with agents each run, after this time")
	f.IntVar(&o.parallel, "parallel", defaultParallel, "without --tools: `number` of runs at the same time")
	f.BoolVar(&o.allowUnsandboxed, "allow-unsandboxed", false, "run tools that ask for a sandbox without one")
	containerd(cmd, &o.containerd)
	f.StringVar(&o.listen, "listen", "", "serve over HTTP on `address:port` instead of stdin and stdout")
	f.StringVar(&o.tokenEnv, "token-env", "", "with --listen: `variable` that holds the token which clients send")
	f.StringVar(&o.tokenFile, "token-file", "", "with --listen: `file` that holds the token which clients send")
	f.StringArrayVar(&o.hosts, "host", nil, "with --listen: further host `name` under which clients reach the server; needed beyond this machine")
	f.Var(&o.config, "print-config", "print the configuration for a `host` and serve nothing: claude, codex or opencode")
	o.app.stateFlag(cmd)
	_ = cmd.MarkFlagDirname("workspace") // these fail only for a flag that is not there
	_ = cmd.MarkFlagFilename("token-file")
	_ = cmd.RegisterFlagCompletionFunc("agent", o.app.completeDeclared(v1alpha1.KindAgent))
	_ = cmd.RegisterFlagCompletionFunc("print-config", cobra.FixedCompletions(o.config.allowed[1:], cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("approve", cobra.FixedCompletions([]string{"never", approveClient, "all", "all,R3"}, cobra.ShellCompDirectiveDefault))
	for _, name := range []string{"input", "timeout", "parallel", "listen", "token-env", "host"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

// check refuses flags that do not go together.
func (o *mcpServeOptions) check(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	if err := needFiles(o.files); err != nil {
		return err
	}
	if slices.Contains(o.files, "-") {
		return usagef("-f - cannot be used here: a host starts the server again and again, and stdin is the protocol")
	}
	switch {
	case changed("timeout") && o.timeout <= 0:
		return usagef("--timeout must be longer than 0")
	case o.parallel < 1 || o.parallel > 64:
		return usagef("--parallel must be from 1 to 64")
	case o.tools && changed("parallel"):
		return usagef("--parallel is about runs of agents: with --tools, limits.maxParallelTools of the agent bounds the calls")
	case !o.tools && changed("input"):
		return usagef("--input is for --tools: a client that runs an agent sends its inputs")
	case !o.tools && o.approve == approveClient:
		return usagef("--approve client is for --tools: a run of an agent is answered by agentctl approve")
	case o.approve == "prompt":
		return usagef("--approve prompt: there is no terminal behind the protocol; use --approve client, or agentctl approve from another terminal")
	}
	return o.checkListen(changed)
}

func (o *mcpServeOptions) checkListen(changed func(string) bool) error {
	if o.listen == "" {
		for _, name := range []string{"token-env", "token-file", "host"} {
			if changed(name) {
				return usagef("--%s is for --listen", name)
			}
		}
		return nil
	}
	switch {
	case (o.tokenEnv == "") == (o.tokenFile == ""):
		return usagef("--listen needs one of --token-env and --token-file: without a token every program and web page of this machine could call the tools")
	case !mcpserver.Loopback(o.listen) && len(o.hosts) == 0:
		return usagef("--listen %s is reached from other machines: name the host by which clients know it with --host, and put TLS in front; or listen on 127.0.0.1", o.listen)
	}
	return nil
}

// confirms reports whether clients may answer questions.
func (o *mcpServeOptions) confirms() bool { return o.approve == approveClient }

// options are those of a run that serves.
func (o *mcpServeOptions) options() (runner.RunOptions, error) {
	dir, err := statedir.Find(o.app.state)
	if err != nil {
		return runner.RunOptions{}, err
	}
	answers := o.approve
	if o.confirms() {
		answers = ""
	}
	return runner.RunOptions{
		Paths: o.files, Agent: o.agent, Workspace: o.workspace, WithoutRepository: o.noRepository, InPlace: o.inPlace, State: dir, Approve: answers, Timeout: o.timeout,
		AllowUnsandboxed: o.allowUnsandboxed, Containerd: o.containerd, Version: readVersion().Version,
	}, nil
}

// serveTools serves the tools of one agent. The run is the session.
func (o *mcpServeOptions) serveTools(ctx context.Context) error {
	ro, err := o.options()
	if err != nil {
		return err
	}
	if ro.Inputs, err = inputs(o.inputs); err != nil {
		return err
	}
	transport, err := o.transport(ctx)
	if err != nil {
		return err
	}
	ro.Caller, ro.Telemetry = runner.NewCaller(), o.app.openTelemetry()
	return o.app.show(ctx, showing{
		telemetry: ro.Telemetry,
		format:    display.FormatText, mute: true,
		execute: func(ctx context.Context, see watcher, kill <-chan struct{}) (*runner.Outcome, error) {
			running, stop := stopLater(ctx, ro.Caller)
			defer stop()
			serving, end := context.WithCancel(ctx)
			served := make(chan error, 1)
			go func() {
				defer ro.Caller.Close()
				served <- o.serveCaller(serving, ro.Caller, transport)
			}()
			ro.Events, ro.Children, ro.Kill = see.run, see.below, kill
			out, err := runner.Run(running, ro)
			end()
			if failed := <-served; err == nil && failed != nil {
				display.Error(o.app.stderr(), fmt.Errorf("serve: %w", failed), display.Advice{})
			}
			return out, err
		},
	})
}

// stopTime is how long a run may take to end by itself after a signal.
const stopTime = 500 * time.Millisecond

// stopLater returns a context for the run of a server. Hosts end a server by a signal,
// which is not a failure of a run in which no call is in progress: first no more calls are
// accepted, and only then is the run cancelled.
func stopLater(ctx context.Context, c *runner.Caller) (context.Context, func()) {
	running, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-ctx.Done():
		case <-running.Done():
			return
		}
		c.Close()
		late := time.NewTimer(stopTime)
		defer late.Stop()
		select {
		case <-late.C:
			cancel(context.Cause(ctx))
		case <-running.Done():
		}
	}()
	return running, func() {
		cancel(nil)
		<-done
	}
}

// serveCaller serves what a run offers until clients have gone, or the run has ended.
func (o *mcpServeOptions) serveCaller(ctx context.Context, c *runner.Caller, t *transport) error {
	offer, err := c.Offer(ctx)
	if err != nil {
		return t.close() // the run did not begin, and says why
	}
	server, err := mcpserver.New(mcpserver.Options{
		Name: "agentctl", Version: readVersion().Version, Tools: mcpserver.ToolsOf(c, offer, o.confirms()),
		Instructions: "Each call is judged by a policy and recorded. A refused call names its rule; do not try to get around it. The files are in " + offer.Files + ".",
	})
	if err != nil {
		return errors.Join(err, t.close())
	}
	text := fmt.Sprintf("serving %s of run %s %s\n", counted(len(offer.Tools), "tool"), offer.Run, t)
	if offer.Source != "" {
		text += fmt.Sprintf("the files are a copy of %s: agentctl diff %s, agentctl apply-changes %s\n", offer.Source, offer.Run, offer.Run)
	}
	if err := display.Text(o.app.stderr(), text); err != nil {
		return errors.Join(err, t.close())
	}
	return t.serve(ctx, server)
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// serveAgents serves each agent as a tool that runs it.
func (o *mcpServeOptions) serveAgents(ctx context.Context) error {
	ro, err := o.options()
	if err != nil {
		return err
	}
	agents, err := o.agents(ctx)
	if err != nil {
		return err
	}
	transport, err := o.transport(ctx)
	if err != nil {
		return err
	}
	ro.Telemetry = o.app.openTelemetry()
	defer o.app.closeTelemetry(ctx, ro.Telemetry)
	ctx, signals := watch(ctx, func(int) {})
	defer signals.stop()
	server, err := mcpserver.New(mcpserver.Options{
		Name: "agentctl", Version: readVersion().Version,
		Tools: mcpserver.Agents(agents, o.parallel, func(ctx context.Context, t mcpserver.Task) (view.Result, error) {
			return o.runTask(ctx, ro, t, signals.kill)
		}),
	})
	if err != nil {
		return errors.Join(err, transport.close())
	}
	if err := display.Text(o.app.stderr(), fmt.Sprintf("serving %s %s\n", counted(len(agents), "agent"), transport)); err != nil {
		return errors.Join(err, transport.close())
	}
	err = transport.serve(ctx, server)
	if cause := context.Cause(ctx); cause != nil {
		return letGo(ctx, cause)
	}
	return err
}

// agents are those that are served.
func (o *mcpServeOptions) agents(ctx context.Context) ([]mcpserver.Agent, error) {
	all, err := runner.Agents(ctx, runner.ValidateOptions{Paths: o.files})
	if err != nil {
		return nil, err
	}
	var agents []mcpserver.Agent
	var names []string
	for _, a := range all {
		names = append(names, a.Name)
		if o.agent == "" || o.agent == a.Name {
			agents = append(agents, mcpserver.Agent{Name: a.Name, Description: a.Description, Inputs: a.Inputs, Output: a.Output})
		}
	}
	if len(agents) == 0 {
		return nil, usagef("there is no agent %q: the manifests have %s", o.agent, strings.Join(names, ", "))
	}
	return agents, nil
}

// runTask runs an agent for a client.
func (o *mcpServeOptions) runTask(ctx context.Context, ro runner.RunOptions, t mcpserver.Task, kill <-chan struct{}) (view.Result, error) {
	ro.Agent, ro.Prompt, ro.Values, ro.Kill = t.Agent, t.Prompt, t.Inputs, kill
	steps := display.NewSteps(o.app.stderr())
	ro.Events = func(e event.Event) {
		if line := steps.Event(e); line != "" {
			t.Progress(line)
		}
	}
	out, err := runner.Run(ctx, ro)
	if err != nil {
		return view.Result{}, err
	}
	return out.Result(), nil
}

// transport is how clients reach the server.
type transport struct {
	app      *app
	listener net.Listener // nil: standard input and output
	token    string
	hosts    []string
}

// transport opens what clients reach, before anything else is begun.
func (o *mcpServeOptions) transport(ctx context.Context) (*transport, error) {
	t := &transport{app: o.app, hosts: o.hosts}
	if o.listen == "" {
		return t, nil
	}
	var err error
	if t.token, err = o.token(); err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	if t.listener, err = lc.Listen(ctx, "tcp", o.listen); err != nil {
		return nil, usagef("--listen: %w", err)
	}
	return t, nil
}

// shortestToken is the least length of a token that cannot be guessed.
const shortestToken = 16

func (o *mcpServeOptions) token() (string, error) {
	var token, from string
	if o.tokenEnv != "" {
		token, from = o.app.getenv(o.tokenEnv), "the variable "+o.tokenEnv
	} else {
		text, err := promptFile(o.tokenFile)
		if err != nil {
			return "", usagef("--token-file: %w", err)
		}
		token, from = text, o.tokenFile
	}
	token = strings.TrimSpace(token)
	if len(token) < shortestToken {
		return "", usagef("the token in %s is shorter than %d characters: make one with, for example, openssl rand -hex 32", from, shortestToken)
	}
	return token, nil
}

// String says where clients reach the server.
func (t *transport) String() string {
	if t.listener == nil {
		return "on stdin and stdout"
	}
	return "at http://" + t.listener.Addr().String() + mcpserver.Path
}

func (t *transport) serve(ctx context.Context, s *mcpserver.Server) error {
	if t.listener != nil {
		return s.HTTP(ctx, t.listener, mcpserver.HTTPOptions{Token: t.token, Hosts: t.hosts})
	}
	if f, ok := t.app.In.(*os.File); ok && isTerminal(f) {
		_ = display.Text(t.app.stderr(), "stdin is a terminal: this is for a host that starts the server; see agentctl mcp serve --help\n")
	}
	return s.Stdio(ctx, t.app.In, t.app.Out)
}

func (t *transport) close() error {
	if t.listener == nil {
		return nil
	}
	return t.listener.Close()
}
