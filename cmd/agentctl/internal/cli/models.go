package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/model/provider"
)

type modelsOptions struct {
	app    *app
	output choice
}

func (a *app) modelsCmd() *cobra.Command {
	o := &modelsOptions{app: a, output: newChoice(display.FormatText, display.FormatWide, display.FormatJSON)}
	cmd := &cobra.Command{
		Use:   "models [PROVIDER|MODEL...]",
		Short: "List well-known models with their prices and limits",
		Long: `List well-known models with their prices and limits: all, or those of the
providers and models that are named.

The list is part of agentctl and never fetched; each line has the date of its
prices. They apply at the provider's own address. What a Model declares
(spec.pricing, spec.contextWindow) overrides them. A model that is not listed can
be used, too.`,
		Example: `  agentctl models
  agentctl models anthropic
  agentctl models gpt-5-mini gemini-2.5-pro -o wide
  agentctl models -o json`,
		GroupID:           groupManifest,
		ValidArgsFunction: completeModels,
		RunE:              func(_ *cobra.Command, args []string) error { return o.runModels(args) },
	}
	output(cmd, &o.output, "format: a table, a wider one, or one object: "+o.output.list())
	return cmd
}

// modelList is what programs read of the snapshot.
type modelList struct {
	Providers []provider.Vendor `json:"providers"`
	Models    []provider.Model  `json:"models"`
}

func (o *modelsOptions) runModels(names []string) error {
	listed, err := provider.Models(names...)
	if err != nil {
		return err
	}
	providers := slices.DeleteFunc(provider.Vendors(), func(p provider.Vendor) bool {
		return !slices.ContainsFunc(listed, func(m provider.Model) bool { return m.Provider == p.Name })
	})
	if o.output.value == display.FormatJSON {
		err = display.WriteObject(o.app.stdout(), modelList{providers, listed})
	} else {
		err = shownModels(providers, listed, o.output.value).Write(o.app.stdout())
	}
	if err != nil {
		return fmt.Errorf("write the list: %w", err)
	}
	return nil
}

func shownModels(providers []provider.Vendor, listed []provider.Model, format string) display.ModelList {
	list := display.ModelList{Format: format}
	for _, p := range providers {
		list.Providers = append(list.Providers, display.ListedProvider{Name: p.Name, BaseURL: p.BaseURL, KeyVariable: p.KeyVariable})
	}
	for i := range listed {
		m := &listed[i]
		shown := display.ListedModel{
			Provider: m.Provider, Model: m.Model, Context: m.ContextWindow, MaxInput: m.MaxInput, MaxOutput: m.MaxOutput,
			Input: string(m.Pricing.Input), CacheRead: string(m.Pricing.CacheRead), CacheWrite: string(m.Pricing.CacheWrite), Output: string(m.Pricing.Output),
			Capabilities: m.Capabilities, AsOf: m.AsOf, Source: m.Source,
		}
		if m.Long != nil {
			shown.LongAbove, shown.LongInput, shown.LongOutput = m.Long.AboveTokens, string(m.Long.Input), string(m.Long.Output)
		}
		list.Models = append(list.Models, shown)
	}
	return list
}

func completeModels(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, p := range provider.Vendors() {
		names = append(names, p.Name)
	}
	all, _ := provider.Models() // it fails only for names
	for i := range all {
		names = append(names, all[i].Model)
	}
	return slices.DeleteFunc(names, func(n string) bool { return slices.Contains(args, n) }), cobra.ShellCompDirectiveNoFileComp
}
