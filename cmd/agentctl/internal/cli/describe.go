package cli

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/client"
)

type describeOptions struct {
	target
	selector string
}

func (a *app) describeCmd() *cobra.Command {
	o := &describeOptions{target: target{app: a}}
	cmd := &cobra.Command{
		Use:   "describe KIND [NAME...] | KIND/NAME...",
		Short: "Tell all about objects of a control plane",
		Long: `Tell all about objects of a control plane: what was declared, how they are, and
what happened to them lately.`,
		Example: `  agentctl describe agent reviewer
  agentctl describe tools -l team=web`,
		GroupID:           groupObject,
		Args:              someObject,
		ValidArgsFunction: a.completeObjects,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.runDescribe(cmd.Context(), args) },
	}
	selectorFlag(cmd, &o.selector)
	o.flags(cmd)
	return cmd
}

// someObject wants a kind or an object.
func someObject(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usagef("say which objects: KIND NAME or KIND/NAME")
	}
	return nil
}

func (o *describeOptions) runDescribe(ctx context.Context, args []string) error {
	get := getOptions{target: o.target, selector: o.selector, output: format{kind: display.FormatText}}
	w, err := get.wanted(args)
	if err != nil {
		return err
	}
	if slices.Contains(w.kinds, client.KindEvent) {
		return usagef("an event has nothing to tell beyond its line").try("agentctl get events")
	}
	c, err := o.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	all, failed, err := get.fetch(ctx, c, w)
	if err != nil {
		return err
	}
	if len(all) == 0 && len(failed) == 0 {
		display.Notice(o.app.stderr(), get.nothing(c, w))
		return nil
	}
	for i, x := range all {
		if i > 0 {
			if err := display.Text(o.app.stdout(), "\n"); err != nil {
				return err
			}
		}
		d := describe(x)
		d.Events = o.happened(ctx, c, x)
		if err := d.Write(o.app.stdout()); err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}

// happened are the events of an object. A server that knows none says nothing
// of them, and one that does not tell is no reason to tell nothing else.
func (o *describeOptions) happened(ctx context.Context, c *client.Client, x client.Object) []display.DescribedEvent {
	events, err := c.ObjectEvents(ctx, x)
	if err != nil {
		display.Notice(o.app.stderr(), "the events are left out: "+err.Error())
	}
	if events == nil {
		return nil
	}
	all := make([]display.DescribedEvent, len(events))
	for i := range events {
		e := &events[i]
		all[i] = display.DescribedEvent{Type: e.Type, Reason: e.Reason, Source: e.Source, Message: e.Message, First: e.First, Last: e.Last, Count: e.Count}
	}
	return all
}

func describe(x client.Object) *display.Description {
	d := &display.Description{
		Kind: x.Kind(), APIVersion: x.Text("apiVersion"), Name: x.Name(), Namespace: x.Namespace(),
		Labels: x.Labels(), Annotations: x.Annotations(), Created: x.Created(), Spec: x.Field("spec"),
		Deleting: x.Text("metadata", "deletionTimestamp") != "", Now: time.Now(),
	}
	finalizers, _ := x.Field("metadata", "finalizers").([]any)
	for _, f := range finalizers {
		if s, ok := f.(string); ok {
			d.Finalizers = append(d.Finalizers, s)
		}
	}
	status, _ := x.Field("status").(map[string]any)
	status = maps.Clone(status)
	delete(status, "conditions")
	d.Status = status
	generation := x.Number("metadata", "generation")
	for _, c := range x.Conditions() {
		d.Conditions = append(d.Conditions, display.DescribedCondition{
			Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message, Since: c.Since,
			Old: c.Generation != 0 && c.Generation < generation,
		})
	}
	return d
}
