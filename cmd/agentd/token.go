package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/runner/control/embedded"
)

func (a *app) tokenCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make, list and revoke tokens",
		Long: `Tokens let people and programs use the API in a role:

  viewer      reads the objects
  runner      begins runs of the agents that are there, and follows runs
  user        also writes them, but neither approvals nor any status
  approver    a user who also decides on approvals
  admin       may do everything that is served
  controller  reads and writes the objects and their status
  worker      reads the runs that its token names and writes their status

A token is shown once: only its hash is kept. A server that runs notices every
change with the next request.`,
		Example: `  agentd token create --role viewer jane
  agentd token create --role worker --run default/fix-1 worker-1
  agentd token rotate jane
  agentd token revoke jane
  agentd token list`,
		Args: subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.tokenCreateCmd(), a.tokenListCmd(), a.tokenRotateCmd(), a.tokenRevokeCmd())
	return cmd
}

func roleNames() []string {
	names := []string{}
	for _, r := range embedded.Roles() {
		names = append(names, string(r))
	}
	return names
}

// roleOf reads a role; empty is none.
func roleOf(name string) (embedded.Role, error) {
	if name != "" && !slices.Contains(roleNames(), name) {
		return "", usagef("there is no role %q; the roles are %s", name, strings.Join(roleNames(), ", "))
	}
	return embedded.Role(name), nil
}

func roleFlag(cmd *cobra.Command, role *string, usage string) {
	cmd.Flags().StringVar(role, "role", "", usage+", a `role`: "+strings.Join(roleNames(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("role", cobra.FixedCompletions(roleNames(), cobra.ShellCompDirectiveNoFileComp)) // fails only for a flag that is not there
}

func (a *app) tokens() (*embedded.Tokens, error) {
	state, err := a.stateDir()
	if err != nil {
		return nil, err
	}
	return embedded.OpenTokens(state, nil)
}

func (a *app) tokenCreateCmd() *cobra.Command {
	var role string
	var runs []string
	var namespace string
	cmd := &cobra.Command{
		Use:   "create NAME --role ROLE",
		Short: "Make a token and print it",
		Example: `  agentd token create --role viewer jane
  agentd token create --role worker --run default/fix-1 worker-1`,
		Args:              exactly(1, "the NAME of the holder"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := roleOf(role)
			if err != nil {
				return err
			}
			if r == "" {
				return usagef("--role is missing; the roles are %s", strings.Join(roleNames(), ", "))
			}
			tokens, err := a.tokens()
			if err != nil {
				return err
			}
			token, err := tokens.Create(cmd.Context(), embedded.Identity{Name: args[0], Role: r, Runs: runs, Namespace: namespace})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.Out, token)
			return err
		},
	}
	roleFlag(cmd, &role, "what the holder may do")
	cmd.Flags().StringVar(&namespace, "namespace", "", "the only `namespace` in which the holder may do anything; default: every one")
	cmd.Flags().StringArrayVar(&runs, "run", nil, "a run that a worker works on, as `NAMESPACE/NAME`; repeatable")
	return cmd
}

func (a *app) tokenRotateCmd() *cobra.Command {
	var role string
	cmd := &cobra.Command{
		Use:     "rotate NAME",
		Short:   "Make a new token for a holder; the old one is void at once",
		Example: "  agentd token rotate jane\n  agentd token rotate --role approver jane",
		Args:    exactly(1, "the NAME of the holder"),

		ValidArgsFunction: a.completeHolders,
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := roleOf(role)
			if err != nil {
				return err
			}
			tokens, err := a.tokens()
			if err != nil {
				return err
			}
			token, err := tokens.Rotate(cmd.Context(), args[0], r)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.Out, token)
			return err
		},
	}
	roleFlag(cmd, &role, "also change what the holder may do")
	return cmd
}

func (a *app) tokenRevokeCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "revoke NAME",
		Short:   "Void the token of a holder",
		Example: "  agentd token revoke jane",
		Args:    exactly(1, "the NAME of the holder"),

		ValidArgsFunction: a.completeHolders,
		RunE: func(cmd *cobra.Command, args []string) error {
			tokens, err := a.tokens()
			if err != nil {
				return err
			}
			return tokens.Revoke(cmd.Context(), args[0])
		},
	}
}

func (a *app) tokenListCmd() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the holders of tokens",
		Example: "  agentd token list\n  agentd token list -o json",
		Args:    exactly(0, ""),

		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			if format != "text" && format != "json" {
				return usagef("--output %q: write text or json", format)
			}
			tokens, err := a.tokens()
			if err != nil {
				return err
			}
			ids, err := tokens.List()
			if err != nil {
				return err
			}
			return a.printIdentities(ids, format)
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "text", "`format`: text or json")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp)) // fails only for a flag that is not there
	return cmd
}

// completeHolders offers those who hold a token. Nothing is made for a completion.
func (a *app) completeHolders(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	state, err := a.stateDir()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if _, err := os.Stat(filepath.Join(state, "control")); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	tokens, err := a.tokens()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ids, _ := tokens.List() // the error cannot be shown
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = id.Name + "\t" + string(id.Role)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) printIdentities(ids []embedded.Identity, format string) error {
	if format == "json" {
		enc := json.NewEncoder(a.Out)
		enc.SetIndent("", "  ")
		return enc.Encode(ids)
	}
	w := tabwriter.NewWriter(a.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "NAME\tROLE\tNAMESPACE\tRUNS\tCREATED")
	for _, id := range ids {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", id.Name, id.Role, cmp.Or(id.Namespace, "-"), cmp.Or(strings.Join(id.Runs, ","), "-"), id.Created.Format(time.RFC3339))
	}
	return w.Flush()
}
