package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/connect"
)

type authLoginOptions struct {
	app             *app
	files           []string
	open, noBrowser bool
	port            int
	output          choice
}

func (a *app) authLoginCmd() *cobra.Command {
	o := &authLoginOptions{app: a, output: newChoice(display.FormatText, display.FormatJSON)}
	cmd := &cobra.Command{
		Use:   "login TOOL",
		Short: "Log in at the MCP server of a Tool, for the runs that use it",
		Long: `Log in at the MCP server of a Tool, for the runs that use it.

The Tool declares spec.source.mcp.http.auth.authorizationCode. The address of the
page to log in at is shown; open it in a browser on this machine, which returns
to the command by itself. With --no-browser the browser may be elsewhere, as over
ssh: it ends at an address of this machine that it cannot open; paste that address
here.

The tokens are stored in the folder logins of the state folder, which only you may
read and no tool can see; they are never shown. Runs with the same state folder use
and renew them. A run never waits for a login: without one it ends with exit code 4.

Exit codes: 0 you are logged in; 2 the command line or a manifest is wrong; 4 the
server or the authorization server has refused, or nobody has logged in within ten
minutes. 130, 143: stopped by a signal.`,
		Example: `  agentctl auth login tickets -f manifests
  agentctl auth login tickets -f manifests --open
  agentctl auth login tickets -f manifests --no-browser    # over ssh
  agentctl auth login tickets -f manifests --port 8123     # where the client is registered with that port`,
		Args:              oneTool,
		ValidArgsFunction: a.completeTool,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.runLogin(cmd.Context(), args[0]) },
	}
	files(cmd, &o.files)
	cmd.Flags().BoolVar(&o.open, "open", false, "open the page with xdg-open")
	cmd.Flags().BoolVar(&o.noBrowser, "no-browser", false, "there is no browser on this machine: read from stdin the address at which it ends")
	cmd.Flags().IntVar(&o.port, "port", 0, "`port` of this machine to which the browser returns (default any)")
	output(cmd, &o.output, "format: a line, or one object")
	a.stateFlag(cmd)
	return cmd
}

// oneTool reads the name of one Tool.
func oneTool(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return usagef("the name of a Tool is missing")
	case len(args) > 1:
		return usagef("unexpected argument %q: one Tool is named", args[1])
	}
	return nil
}

func (a *app) completeTool(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeDeclared(v1alpha1.KindTool)(cmd, args, typed)
}

func (o *authLoginOptions) runLogin(parent context.Context, tool string) error {
	switch {
	case o.open && o.noBrowser:
		return usagef("--open and --no-browser contradict each other")
	case o.port < 0 || o.port > 65535:
		return usagef("--port must be a port")
	case o.noBrowser && slices.Contains(o.files, "-"):
		return usagef("--no-browser reads stdin, and so does -f -: name a file")
	}
	if err := needFiles(o.files); err != nil {
		return err
	}
	person := connect.Person{Visit: o.visit, Port: o.port}
	if o.noBrowser {
		person.Paste = o.paste
	}
	ctx, settle := stoppable(parent)
	in, err := connect.LogIn(ctx, connect.ToolOptions{Paths: o.files, Stdin: o.app.In, Tool: tool, State: o.app.state}, person)
	if err = settle(err); err != nil {
		return err
	}
	if o.output.value == display.FormatJSON {
		err = display.WriteObject(o.app.stdout(), in)
	} else {
		err = display.LoggedIn(o.app.stdout(), shownLogin(in.Login), in.Functions, time.Now())
	}
	if err != nil {
		return fmt.Errorf("write the login: %w", err)
	}
	return nil
}

// visit shows the page to log in at.
func (o *authLoginOptions) visit(ctx context.Context, v connect.Visit) error {
	display.LoginPage(o.app.stderr(), display.Page{URL: v.URL, Issuer: v.Issuer, Server: v.Server, Redirect: v.Redirect, Scopes: v.Scopes, Elsewhere: o.noBrowser})
	if !o.open {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	if err := exec.CommandContext(limited, "xdg-open", v.URL).Run(); err != nil { //nolint:gosec // an https address, which cannot be taken for a flag
		display.Notice(o.app.stderr(), "the page was not opened: "+err.Error()+"; open it yourself")
	}
	return nil
}

// openTime bounds how long a browser takes to start.
const openTime = 15 * time.Second

// maxAddress bounds what is read as an address.
const maxAddress = 64 << 10

func (o *authLoginOptions) paste(ctx context.Context) (string, error) {
	type line struct {
		text string
		err  error
	}
	read := make(chan line, 1)
	go func() { // a read of stdin cannot be ended: it ends with the program
		text, err := bufio.NewReader(io.LimitReader(o.app.In, maxAddress)).ReadString('\n')
		if text = strings.TrimSpace(text); text != "" {
			err = nil
		}
		read <- line{text, err}
	}()
	select {
	case l := <-read:
		if l.err != nil {
			return "", usagef("no address was given on stdin")
		}
		return l.text, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func shownLogin(l connect.Login) display.Login {
	return display.Login{
		Tool: l.Tool, Server: l.Server, Issuer: l.Issuer, State: l.State, Scopes: l.Scopes, Wanted: l.Wanted, Problem: l.Problem,
		Since: l.Since, Expires: l.Expires, Renewable: l.Renewable,
	}
}
