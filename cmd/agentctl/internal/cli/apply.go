package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner"
	"agentctl.dev/agentctl/runner/client"
)

type applyOptions struct {
	target
	files     []string
	recursive bool
	selector  string
	prune     bool
	force     bool
	dryRun    choice
	output    choice
}

// The values of --dry-run.
const (
	dryNone   = "none"
	dryClient = "client"
	dryServer = "server"
)

func (a *app) applyCmd() *cobra.Command {
	o := &applyOptions{
		target: target{app: a}, dryRun: newChoice(dryNone, dryClient, dryServer),
		output: newChoice(display.FormatText, display.FormatName, display.FormatJSON, display.FormatYAML),
	}
	cmd := &cobra.Command{
		Use:   "apply -f FILE|FOLDER|-",
		Short: "Have a control plane keep what manifests declare",
		Long: `Have a control plane keep what manifests declare, by server-side apply.

All mistakes are reported first, with their place, and then nothing is sent.
What an object refers to may come later: the order makes no difference. One
line an object goes to stdout; when one is refused the others are kept all the
same, and the exit code is 1.

Fields that somebody else manages are left to them, and the object is refused;
--force-conflicts takes them over. In the context "local" relative paths are
made absolute, from the folder of the manifest.

--prune deletes what was applied before, has the labels of -l and is not among
the manifests any more. With -l only manifests with these labels are applied.

A folder with a kustomization is built, by -k and by -f; only local files are read
for it.

Exit code 0: all is kept. 1: something was refused. 2: mistakes, nothing sent.`,
		Example: `  agentctl apply -f manifests/hello
  agentctl apply -R -f manifests --dry-run=server
  agentctl apply -f team/ --prune -l team=web
  agentctl apply -f agent.yaml -o yaml
  agentctl apply -k overlays/production`,
		GroupID: groupObject,
		Args:    filesOnly,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.runApply(cmd.Context()) },
	}
	files(cmd, &o.files)
	cmd.Flags().BoolVarP(&o.recursive, "recursive", "R", false, "also take the folders below a folder")
	selectorFlag(cmd, &o.selector)
	cmd.Flags().BoolVar(&o.prune, "prune", false, "delete what was applied with these labels and is declared no more; needs -l")
	cmd.Flags().BoolVar(&o.force, "force-conflicts", false, "take over fields that somebody else manages")
	dryRunFlag(cmd, &o.dryRun)
	output(cmd, &o.output, "what stdout holds: a line an object, their names, or the objects as they are kept")
	o.flags(cmd)
	return cmd
}

func selectorFlag(cmd *cobra.Command, selector *string) {
	cmd.Flags().StringVarP(selector, "selector", "l", "", "only objects with these `labels`, for example team=web,tier!=test")
	_ = cmd.RegisterFlagCompletionFunc("selector", cobra.NoFileCompletions) // fails only for a flag that is not there
}

func dryRunFlag(cmd *cobra.Command, c *choice) {
	cmd.Flags().Var(c, "dry-run", "change nothing: client checks the manifests alone, server lets the control plane judge")
	cmd.Flags().Lookup("dry-run").NoOptDefVal = dryClient
	_ = cmd.RegisterFlagCompletionFunc("dry-run", c.complete) // fails only for a flag that is not there
}

// parseSelector reads a selector of labels.
func parseSelector(text string) (labels.Selector, error) {
	s, err := labels.Parse(text)
	if err != nil {
		return nil, usagef("-l %q is not a selector: %w", text, err)
	}
	return s, nil
}

func (o *applyOptions) runApply(ctx context.Context) error {
	if err := needFiles(o.files); err != nil {
		return err
	}
	if o.prune && o.selector == "" {
		return usagef("--prune needs -l: what is to be deleted must be said")
	}
	selector, err := parseSelector(o.selector)
	if err != nil {
		return err
	}
	config, err := o.config()
	if err != nil {
		return err
	}
	declared, err := runner.Declare(ctx, runner.DeclareOptions{
		Paths: o.files, Stdin: o.app.In, Recursive: o.recursive,
		Absolute: config.Local(), Closed: o.dryRun.value == dryClient,
	})
	if err != nil {
		return err
	}
	if err := declared.Warnings.Write(display.Mistakes(o.app.stderr()), maxFindings); err != nil {
		return fmt.Errorf("write the warnings: %w", err)
	}
	objects, err := o.objects(declared.Objects, selector)
	if err != nil {
		return err
	}
	list := &outcomes{app: o.app, dry: o.dryRun.value, format: o.output.value}
	if o.dryRun.value == dryClient {
		for _, x := range objects {
			list.report(client.Outcome{Ref: x.Ref(), Verb: "valid", Object: x})
		}
		return list.err()
	}
	c, err := o.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return o.send(ctx, c, objects, list)
}

// objects are those that are selected, in the namespace that is asked for.
func (o *applyOptions) objects(declared []runner.Declared, selector labels.Selector) ([]client.Object, error) {
	objects := make([]client.Object, 0, len(declared))
	for _, d := range declared {
		x := client.Object(d.Object)
		if !selector.Matches(labels.Set(x.Labels())) {
			continue
		}
		if d.Namespace != "" && o.namespace != "" && d.Namespace != o.namespace {
			return nil, usagef("%s: the namespace %q of %s is not %q, which -n names", d.Place, d.Namespace, x.Ref(), o.namespace)
		}
		if meta, ok := x["metadata"].(map[string]any); ok && d.Namespace == "" && o.namespace != "" {
			meta["namespace"] = o.namespace
		}
		objects = append(objects, x)
	}
	return objects, nil
}

func (o *applyOptions) send(ctx context.Context, c *client.Client, objects []client.Object, list *outcomes) error {
	dry := o.dryRun.value == dryServer
	scope := []string{c.Namespace(o.namespace)}
	keep := make([]client.Ref, 0, len(objects))
	c.ApplyAll(ctx, objects, client.WriteOptions{DryRun: dry, Force: o.force}, func(x client.Outcome) {
		keep = append(keep, x.Ref)
		if !slices.Contains(scope, x.Ref.Namespace) {
			scope = append(scope, x.Ref.Namespace)
		}
		list.report(x)
	})
	if o.prune && list.unsent == 0 {
		if err := c.Prune(ctx, client.PruneOptions{Namespaces: scope, Labels: o.selector, DryRun: dry}, keep, list.report); err != nil {
			return fmt.Errorf("prune: %w", err)
		}
	}
	return list.err()
}

// outcomes reports what happened to objects: what was done on stdout, what was not
// on stderr.
type outcomes struct {
	app    *app
	dry    string
	format string
	kept   []client.Object // for the formats that show them
	failed int
	unsent int
	denied []error
	wrote  error
}

func (l *outcomes) report(x client.Outcome) {
	if errors.Is(x.Err, client.ErrNotSent) {
		l.unsent++
		return
	}
	if x.Err != nil {
		l.failed++
		if _, _, ok := client.Denied(x.Err); ok {
			l.denied = append(l.denied, x.Err) // the others are refused for the same, most likely
			return
		}
		l.app.complain(x.Err)
		return
	}
	text := x.Ref.String()
	switch l.format {
	case display.FormatText:
		text += " " + x.Verb + dryWord(l.dry)
	case display.FormatJSON, display.FormatYAML:
		if x.Object != nil {
			l.kept = append(l.kept, x.Object.WithoutManagedFields())
		}
		return
	}
	if err := display.Text(l.app.stdout(), text+"\n"); err != nil && l.wrote == nil {
		l.wrote = err
	}
}

// dryWord says that nothing was changed.
func dryWord(dry string) string {
	switch dry {
	case dryClient:
		return " (dry run)"
	case dryServer:
		return " (server dry run)"
	}
	return ""
}

// write shows the objects, where they were not reported one by one: one as it is, and
// several as a list.
func (l *outcomes) write() error {
	if l.format != display.FormatJSON && l.format != display.FormatYAML {
		return l.wrote
	}
	get := getOptions{target: target{app: l.app}, output: format{kind: l.format}}
	return get.show(l.kept, len(l.kept) == 1)
}

func (l *outcomes) err() error {
	l.app.complain(l.denied...)
	if l.unsent > 0 {
		display.Notice(l.app.stderr(), fmt.Sprintf("%d more objects were not sent", l.unsent))
	}
	err := l.write()
	switch {
	case err != nil:
		return fmt.Errorf("write the list: %w", err)
	case l.failed > 0, l.unsent > 0:
		return exit(1)
	}
	return nil
}
