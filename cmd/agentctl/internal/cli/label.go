package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/client"
)

// labelOptions are those of label and of annotate, which differ in the field and
// in what a value may be.
type labelOptions struct {
	target
	field     string // labels or annotations
	done      string // labeled or annotated
	selector  string
	all       bool
	overwrite bool
	dryRun    choice
}

func (a *app) labelCmd() *cobra.Command {
	o := &labelOptions{target: target{app: a}, field: "labels", done: "labeled", dryRun: newChoice(dryNone, dryClient, dryServer)}
	return o.command("label", "Set or remove labels of objects of a control plane", `  agentctl label agent reviewer team=web
  agentctl label agent reviewer team-
  agentctl label tools --all tier=test --overwrite`)
}

func (a *app) annotateCmd() *cobra.Command {
	o := &labelOptions{target: target{app: a}, field: "annotations", done: "annotated", dryRun: newChoice(dryNone, dryClient, dryServer)}
	return o.command("annotate", "Set or remove annotations of objects of a control plane", `  agentctl annotate agent reviewer owner='the web team'
  agentctl annotate agent/reviewer owner-`)
}

func (o *labelOptions) command(verb, short, example string) *cobra.Command {
	cmd := &cobra.Command{
		Use:               verb + " KIND NAME... | KIND/NAME... KEY=VALUE... KEY-...",
		Short:             short,
		Example:           example,
		GroupID:           groupObject,
		Args:              someObject,
		ValidArgsFunction: o.app.completeObjects,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.runLabel(cmd.Context(), args) },
	}
	selectorFlag(cmd, &o.selector)
	cmd.Flags().BoolVar(&o.all, "all", false, "every object of the kind in the namespace")
	cmd.Flags().BoolVar(&o.overwrite, "overwrite", false, "also change what has another value")
	dryRunFlag(cmd, &o.dryRun)
	o.flags(cmd)
	return cmd
}

// pairs splits words into those that name objects and the changes behind them;
// a nil value removes a key.
func (o *labelOptions) pairs(args []string) (objects []string, changes map[string]any, err error) {
	changes = map[string]any{}
	for i, arg := range args {
		key, value, set := strings.Cut(arg, "=")
		bare, remove := strings.CutSuffix(arg, "-")
		switch {
		case set:
		case remove && i > 0:
			key = bare
		case len(changes) > 0:
			return nil, nil, usagef("%q is neither KEY=VALUE nor KEY-", arg)
		default:
			objects = append(objects, arg)
			continue
		}
		if _, twice := changes[key]; twice {
			return nil, nil, usagef("%q is given twice", key)
		}
		if errs := validation.IsQualifiedName(strings.ToLower(key)); len(errs) > 0 {
			return nil, nil, usagef("%q is not a name of %s: letters, digits, - _ . between them, at most 63", key, o.field)
		}
		if errs := validation.IsValidLabelValue(value); set && o.field == "labels" && len(errs) > 0 {
			return nil, nil, usagef("%q is not a value of a label: letters, digits, - _ . between them, at most 63", value)
		}
		changes[key] = nil
		if set {
			changes[key] = value
		}
	}
	if len(changes) == 0 {
		return nil, nil, usagef("say what to set: KEY=VALUE, or KEY- to remove it")
	}
	return objects, changes, nil
}

func (o *labelOptions) runLabel(ctx context.Context, args []string) error {
	words, changes, err := o.pairs(args)
	if err != nil {
		return err
	}
	get := getOptions{target: o.target, selector: o.selector}
	w, err := get.wanted(words)
	if err != nil {
		return err
	}
	if len(w.refs) == 0 && o.selector == "" && !o.all {
		return usagef("say which %s: a name, -l or --all", plural(w.kinds[0]))
	}
	c, err := o.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	found, missing, err := get.fetch(ctx, c, w)
	if err != nil {
		return err
	}
	if len(found) == 0 && len(missing) == 0 {
		display.Notice(o.app.stderr(), get.nothing(c, w))
		return nil
	}
	failed := missing
	for _, x := range found {
		if err := o.change(ctx, c, x, changes); err != nil {
			failed = append(failed, err)
		}
	}
	o.app.complain(failed...)
	if len(failed) > 0 {
		return exit(1)
	}
	return nil
}

// change patches one object. The version it was seen at goes along, so that a
// value that somebody sets in between is not overwritten unseen.
func (o *labelOptions) change(ctx context.Context, c *client.Client, x client.Object, changes map[string]any) error {
	done := o.done
	_, err := c.Change(ctx, x, func(now client.Object) (client.Object, error) {
		same, err := o.same(now, changes)
		if err != nil {
			return nil, err
		}
		if same {
			done = "not " + o.done
			return now, nil
		}
		if o.dryRun.value == dryClient {
			return now, nil
		}
		meta := map[string]any{o.field: changes, "resourceVersion": now.ResourceVersion()}
		return c.Merge(ctx, now.Ref(), map[string]any{"metadata": meta}, client.WriteOptions{DryRun: o.dryRun.value == dryServer, As: "label"})
	})
	if err != nil {
		return err
	}
	return display.Text(o.app.stdout(), x.Ref().String()+" "+done+dryWord(o.dryRun.value)+"\n")
}

// same reports whether an object is as the changes would make it; what it has
// already under another value is an error without --overwrite.
func (o *labelOptions) same(x client.Object, changes map[string]any) (bool, error) {
	have := x.Labels()
	if o.field == "annotations" {
		have = x.Annotations()
	}
	same := true
	for key, value := range changes {
		old, there := have[key]
		switch {
		case value == nil && there:
			same = false
		case value != nil && old != value:
			if there && !o.overwrite {
				return false, fmt.Errorf("%s: %s is %q already; --overwrite changes it", x.Ref(), key, old)
			}
			same = false
		}
	}
	return same, nil
}
