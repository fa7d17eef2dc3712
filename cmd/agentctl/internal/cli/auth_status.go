package cli

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/connect"
)

type authStatusOptions struct {
	app    *app
	output choice
}

func (a *app) authStatusCmd() *cobra.Command {
	o := &authStatusOptions{app: a, output: newChoice(display.FormatText, display.FormatJSON)}
	cmd := &cobra.Command{
		Use:   "status [TOOL]",
		Short: "List the logins at MCP servers, and whether runs can use them",
		Long: `List the logins at MCP servers that "agentctl auth login" has stored, and whether
runs can use them. No token is shown, and nobody is asked: an authorization server
may have ended a login that is Valid here.

Exit codes: 0; 4 where TOOL is named and has no login that runs can use.`,
		Example: `  agentctl auth status
  agentctl auth status tickets -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("unexpected argument %q: one Tool is named", args[1])
			}
			return nil
		},
		ValidArgsFunction: a.completeLogins,
		RunE:              func(_ *cobra.Command, args []string) error { return o.runStatus(args) },
	}
	output(cmd, &o.output, "format: a table, or objects")
	a.stateFlag(cmd)
	return cmd
}

// loginList is what programs read of logins.
type loginList struct {
	Items []connect.Login `json:"items"`
}

func (o *authStatusOptions) runStatus(args []string) error {
	all, err := connect.Logins(o.app.state)
	if err != nil {
		return err
	}
	if len(args) == 1 {
		all = slices.DeleteFunc(all, func(l connect.Login) bool { return l.Tool != args[0] })
	}
	switch {
	case o.output.value == display.FormatJSON:
		err = display.WriteObject(o.app.stdout(), loginList{all})
	case len(all) == 0:
		display.Notice(o.app.stderr(), "there is no such login; agentctl auth login TOOL -f FILE makes one")
	default:
		list := display.LoginList{Now: time.Now()}
		for _, l := range all {
			list.Logins = append(list.Logins, shownLogin(l))
		}
		err = list.Write(o.app.stdout())
	}
	if err != nil {
		return fmt.Errorf("write the list: %w", err)
	}
	if len(args) == 1 && !slices.ContainsFunc(all, func(l connect.Login) bool { return l.State == connect.LoginValid }) {
		return exit(reason.ExitCredential)
	}
	return nil
}

func (a *app) completeLogins(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all, _ := connect.Logins(a.state) // none where they cannot be read
	var names []string
	for _, l := range all {
		names = append(names, l.Tool)
	}
	names = slices.Compact(names)
	return names[:min(len(names), maxCompletions)], cobra.ShellCompDirectiveNoFileComp
}
