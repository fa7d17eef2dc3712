package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner"
	"agentctl.dev/agentctl/runner/client"
)

type deleteOptions struct {
	target
	files     []string
	recursive bool
	selector  string
	all       bool
	cascade   choice
	wait      bool
	timeout   time.Duration
	missingOK bool
	dryRun    choice
	limits    pruneLimits
}

// The values of --cascade.
const (
	cascadeBackground = "background"
	cascadeForeground = "foreground"
	cascadeOrphan     = "orphan"
)

func (a *app) deleteCmd() *cobra.Command {
	o := &deleteOptions{
		target: target{app: a}, dryRun: newChoice(dryNone, dryClient, dryServer),
		cascade: newChoice(cascadeBackground, cascadeForeground, cascadeOrphan),
	}
	cmd := &cobra.Command{
		Use:   "delete KIND NAME... | KIND/NAME... | KIND -l LABELS | -f FILE",
		Short: "Delete objects of a control plane, and runs",
		Long: `Delete objects of a control plane, and wait until they are gone.

A run of the state folder is deleted with its journal and files, by its whole id or
@latest. "delete runs" with --older-than, --keep or --max-size deletes the runs that
one of them rules out, the oldest first, and Run objects of the local control plane
with them; with --context or -n, the Run objects there. A run that is in progress,
is suspended or waits for an approval is never deleted.

Exit code 0: they are gone. 1: one was not there, or not deleted. 124: one was
still there when --timeout had passed.`,
		Example: `  agentctl delete agent reviewer
  agentctl delete -f manifests/hello
  agentctl delete runs -l team=web --wait=false
  agentctl delete runs --older-than 30d --dry-run
  agentctl delete runs --keep 100 --max-size 10Gi`,
		GroupID:           groupObject,
		ValidArgsFunction: a.completeObjects,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.runDelete(cmd.Context(), args) },
	}
	files(cmd, &o.files)
	cmd.Flags().BoolVarP(&o.recursive, "recursive", "R", false, "also take the folders below a folder")
	selectorFlag(cmd, &o.selector)
	cmd.Flags().BoolVar(&o.all, "all", false, "every object of the kind in the namespace")
	cmd.Flags().Var(&o.cascade, "cascade", "what becomes of objects that it owns: "+o.cascade.list())
	_ = cmd.RegisterFlagCompletionFunc("cascade", o.cascade.complete) // fails only for a flag that is not there
	cmd.Flags().BoolVar(&o.wait, "wait", true, "wait until they are gone")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 0, "how long to wait at most; 0: as long as it takes")
	cmd.Flags().BoolVar(&o.missingOK, "ignore-not-found", false, "ignore objects that do not exist")
	dryRunFlag(cmd, &o.dryRun)
	o.limits.flags(cmd)
	o.flags(cmd)
	return cmd
}

func (o *deleteOptions) check(args []string) error {
	switch {
	case len(o.files) > 0 && len(args) > 0:
		return usagef("-f and names exclude each other")
	case len(o.files) > 0 && (o.selector != "" || o.all):
		return usagef("-f excludes -l and --all")
	case len(o.files) > 0:
		return needFiles(o.files)
	case len(args) == 0:
		return usagef("say which objects: KIND NAME, KIND/NAME or -f FILE")
	case o.selector != "" && o.all:
		return usagef("-l and --all exclude each other")
	case o.timeout < 0:
		return usagef("--timeout %s: a time cannot be negative", o.timeout)
	}
	return nil
}

// wanted are the objects that are meant; those of a selector are found later.
func (o *deleteOptions) wanted(ctx context.Context, args []string) (*wanted, error) {
	if err := o.check(args); err != nil {
		return nil, err
	}
	if len(o.files) > 0 {
		return o.declared(ctx)
	}
	if _, err := parseSelector(o.selector); err != nil {
		return nil, err
	}
	w, err := parseWanted(args, o.namespace)
	if err != nil {
		return nil, err
	}
	picks := o.selector != "" || o.all
	switch {
	case len(w.refs) == 0 && !picks:
		return nil, usagef("say which %s: a name, -l or --all", plural(w.kinds[0]))
	case len(w.refs) > 0 && picks:
		return nil, usagef("names exclude -l and --all")
	}
	return w, nil
}

func (o *deleteOptions) declared(ctx context.Context) (*wanted, error) {
	return o.target.declared(ctx, o.files, o.recursive)
}

// declared are the objects that manifests name.
func (t *target) declared(ctx context.Context, files []string, recursive bool) (*wanted, error) {
	if err := needFiles(files); err != nil {
		return nil, err
	}
	d, err := runner.Declare(ctx, runner.DeclareOptions{Paths: files, Stdin: t.app.In, Recursive: recursive})
	if err != nil {
		return nil, err
	}
	w := &wanted{single: len(d.Objects) == 1}
	for _, x := range d.Objects {
		ref := client.Ref{Kind: x.Kind, Namespace: x.Namespace, Name: x.Name}
		if ref.Namespace == "" {
			ref.Namespace = t.namespace
		}
		if w.refs = append(w.refs, ref); !slices.Contains(w.kinds, x.Kind) {
			w.kinds = append(w.kinds, x.Kind)
		}
	}
	return w, nil
}

func (o *deleteOptions) runDelete(ctx context.Context, args []string) error {
	named, ok := runWordsOf(args)
	switch {
	case o.limits.set() && (!ok || len(named) > 0 || len(o.files) > 0 || o.selector != "" || o.all):
		return usagef("--older-than, --keep and --max-size are for all runs").try("agentctl delete runs --older-than 30d")
	case o.limits.set():
		return o.prune(ctx)
	case ok && len(named) > 0 && len(o.files) == 0 && o.selector == "" && !o.all && !o.meant():
		return o.deleteNamed(ctx, named)
	}
	return o.deleteObjects(ctx, args)
}

// deleteObjects deletes objects of a control plane, and starts it where that is the
// local one.
func (o *deleteOptions) deleteObjects(ctx context.Context, args []string) error {
	w, err := o.wanted(ctx, args)
	if err != nil {
		return err
	}
	if o.dryRun.value == dryClient && len(w.refs) > 0 {
		return o.report(w.refs, " (dry run)")
	}
	c, err := o.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if o.selector != "" || o.all {
		get := getOptions{target: o.target, selector: o.selector}
		found, _, err := get.fetch(ctx, c, w)
		if err != nil {
			return err
		}
		for _, x := range found {
			w.refs = append(w.refs, x.Ref())
		}
		if len(w.refs) == 0 {
			display.Notice(o.app.stderr(), get.nothing(c, w))
			return nil
		}
		if o.dryRun.value == dryClient {
			return o.report(w.refs, " (dry run)")
		}
	}
	return o.remove(ctx, c, w.refs)
}

func (o *deleteOptions) report(refs []client.Ref, more string) error {
	for _, ref := range refs {
		if err := display.Text(o.app.stdout(), ref.String()+" deleted"+more+"\n"); err != nil {
			return fmt.Errorf("write the list: %w", err)
		}
	}
	return nil
}

// remove asks for the end of every object first, and then waits for all of them.
func (o *deleteOptions) remove(ctx context.Context, c *client.Client, refs []client.Ref) error {
	options := client.DeleteOptions{DryRun: o.dryRun.value == dryServer}
	options.Propagation = map[string]client.Propagation{
		cascadeBackground: client.Background, cascadeForeground: client.Foreground, cascadeOrphan: client.Orphan,
	}[o.cascade.value]
	more := ""
	if options.DryRun {
		more = " (server dry run)"
	}
	var failed []error
	var leaving []client.Ref
	for _, ref := range refs {
		err := c.Delete(ctx, ref, options)
		switch {
		case client.Missing(err) && o.missingOK:
		case err != nil:
			failed = append(failed, err)
		default:
			leaving = append(leaving, ref)
			if err := o.report([]client.Ref{ref}, more); err != nil {
				return err
			}
		}
	}
	o.app.complain(failed...)
	if o.wait && !options.DryRun {
		if err := o.await(ctx, c, leaving); err != nil {
			return err
		}
	}
	if len(failed) > 0 {
		return exit(1)
	}
	return nil
}

func (o *deleteOptions) await(ctx context.Context, c *client.Client, refs []client.Ref) error {
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	for _, ref := range refs {
		err := c.Await(ctx, ref, client.Gone)
		if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return timedOut(ref, "deleted", o.timeout, "")
		}
		if err != nil {
			return fmt.Errorf("wait for the end of %s: %w", ref, err)
		}
	}
	return nil
}
