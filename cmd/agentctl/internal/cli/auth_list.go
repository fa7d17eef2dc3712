package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/keys"
	"agentctl.dev/agentctl/runner/model/provider"
	"agentctl.dev/agentctl/runner/statedir"
)

type authListOptions struct {
	app    *app
	output choice
}

func (a *app) authListCmd() *cobra.Command {
	o := &authListOptions{app: a, output: newChoice(display.FormatText, display.FormatJSON, display.FormatName)}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the keys that are stored, and which value counts",
		Long: `List the keys that are stored, and those of well-known providers that the
environment sets. No value is shown, nor a part of one.`,
		Example: `  agentctl auth list
  agentctl auth list -o json`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return o.runList() },
	}
	output(cmd, &o.output, "format: a table, objects, or names: "+o.output.list())
	a.stateFlag(cmd)
	return cmd
}

// keyList is what programs read of keys.
type keyList struct {
	Items []keys.Key `json:"items"`
}

func (o *authListOptions) runList() error {
	state, err := statedir.Find(o.app.state)
	if err != nil {
		return err
	}
	listed, err := keys.List(state, provider.KeyVariables())
	if err != nil {
		return err
	}
	switch {
	case o.output.value == display.FormatJSON:
		err = display.WriteObject(o.app.stdout(), keyList{listed})
	case len(listed) == 0 && o.output.value == display.FormatText:
		display.Notice(o.app.stderr(), "no keys are stored in "+state)
	default:
		list := display.KeyList{Now: time.Now(), Format: o.output.value}
		for _, k := range listed {
			list.Keys = append(list.Keys, display.ListedKey{
				Name: k.Name, Source: k.Source, EnvironmentWins: k.Source == keys.Both, Set: k.Set, Problem: k.Problem,
			})
		}
		err = list.Write(o.app.stdout())
	}
	if err != nil {
		return fmt.Errorf("write the list: %w", err)
	}
	return nil
}
