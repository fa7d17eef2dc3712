package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/client"
	"agentctl.dev/agentctl/runner/export"
	"agentctl.dev/agentctl/runner/runs"
)

// getOptions are those of get. The verb and its flags are named as kubectl's.
type getOptions struct {
	target
	output     format
	selector   string
	fields     string
	all, watch bool
	sortBy     string
	noHeaders  bool
	showLabels bool
	missingOK  bool
	files      []string
	recursive  bool
}

func (a *app) getCmd() *cobra.Command {
	o := &getOptions{target: target{app: a}}
	cmd := &cobra.Command{
		Use:   "get KIND [NAME...] | KIND/NAME... | -f FILE",
		Short: "List runs, or objects of a control plane",
		Long: `List runs, or objects of a control plane.

"get runs" lists the runs of the state folder and the Run objects of the control
plane that is meant, if it runs, in one table, the newest first; WHERE is where each
of them is. -A lists the Run objects of all namespaces, -o name the names that every
command takes. With --context, -n, -l, --field-selector, --sort-by or -w, and for
every other kind, only the objects of a control plane are listed; -o json and the like
show them whole, also with -A. A run that is named and not in the state folder is
looked for there, too.

A run is named as "agentctl help names" says. A run whose process is gone and that has not ended is Interrupted;
"agentctl resume" continues it, and one that is Suspended.

Kinds are named by their names, short names, a list with commas, or all; agentctl
means the same, here and to kubectl. With -f the objects that manifests name are
listed. Events, which report what happened to objects, are a separate kind.`,
		Example: `  agentctl get runs
  agentctl get run @latest -o json
  agentctl get agents,models -A
  agentctl get -f manifests/hello
  agentctl get agent reviewer -o jsonpath='{.spec.modelRef.name}'
  agentctl get events --field-selector involvedObject.name=reviewer
  agentctl get tools -l team=web -o custom-columns=NAME:.metadata.name,RISK:.spec.risk`,
		GroupID:           groupRun,
		Args:              func(_ *cobra.Command, args []string) error { return o.someResource(args) },
		ValidArgsFunction: a.completeGet,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.runGet(cmd.Context(), args) },
	}
	files(cmd, &o.files)
	recursiveFlag(cmd, &o.recursive)
	formatFlag(cmd, &o.output)
	selectorFlag(cmd, &o.selector)
	cmd.Flags().StringVar(&o.fields, "field-selector", "", "only objects with these `fields`, for example metadata.name=web")
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "objects of every namespace")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "then show changes until stopped")
	cmd.Flags().StringVar(&o.sortBy, "sort-by", "", "order by a `path`, for example .metadata.creationTimestamp")
	cmd.Flags().BoolVar(&o.noHeaders, "no-headers", false, "leave out the names of the columns")
	cmd.Flags().BoolVar(&o.showLabels, "show-labels", false, "add a column with the labels")
	cmd.Flags().BoolVar(&o.missingOK, "ignore-not-found", false, "ignore objects that do not exist")
	o.flags(cmd)
	return cmd
}

// runWords are what runs are called on the command line.
var runWords = []string{"runs", "run"}

// someResource expects a word at least, or manifests.
func (o *getOptions) someResource(args []string) error {
	if len(o.files) > 0 {
		return filesAlone(args, o.selector != "" || o.fields != "" || o.all)
	}
	if len(args) == 0 {
		return usagef("say what to list").try("agentctl get runs")
	}
	return nil
}

// runWordsOf reads words that name runs and nothing else: "runs", "run NAME...",
// "run/NAME..." and the same with the group; @latest alone is a run as well.
func runWordsOf(args []string) (named []string, ok bool) {
	if len(args) == 1 && args[0] == runs.Latest {
		return []string{"run/" + args[0]}, true
	}
	if len(args) > 0 && !slices.ContainsFunc(args, func(arg string) bool { return !export.Is(arg) }) {
		return args, true
	}
	for i, arg := range args {
		kind, name, slash := strings.Cut(arg, "/")
		if i == 0 || strings.Contains(args[0], "/") {
			if k, err := parseKind(kind); err != nil || k != v1alpha1.KindRun || slash != strings.Contains(args[0], "/") || slash && name == "" {
				return nil, false
			}
		} else if slash {
			return nil, false
		}
		switch {
		case slash:
			named = append(named, arg)
		case i > 0:
			named = append(named, "run/"+arg)
		}
	}
	return named, len(args) > 0
}

func (o *getOptions) runGet(ctx context.Context, args []string) error {
	if len(o.files) > 0 {
		return o.runGetDeclared(ctx)
	}
	named, ok := runWordsOf(args)
	// Only objects have these.
	selects := o.watch && len(named) == 0 || o.selector != "" || o.fields != "" || o.sortBy != "" || o.showLabels
	// Programs that name a control plane read whole objects.
	whole := o.output.structured() && (o.all || o.meant())
	there := o.context != "" || o.namespace != ""
	switch {
	case !ok, selects, len(named) > 0 && o.all, len(named) == 0 && (there || whole || !slices.Contains(runWords, args[0])):
		return o.runGetObjects(ctx, args)
	case len(named) == 0:
		return o.runGetRuns(ctx)
	}
	return o.runGetNamed(ctx, named)
}

// runGetNamed shows the runs that words name, each from where it is.
func (o *getOptions) runGetNamed(ctx context.Context, words []string) error {
	var here []runs.Summary
	var there []string
	var failed []error
	for _, word := range words {
		src, err := o.openWord(ctx, word)
		switch {
		case absent(err) && o.missingOK:
			continue
		case err != nil:
			failed = append(failed, err)
			continue
		}
		if src.client != nil {
			src.close()
			there = append(there, src.run.Name)
			continue
		}
		s, err := runs.Get(ctx, src.state, src.id)
		src.close()
		if err != nil {
			return err
		}
		here = append(here, *s)
	}
	switch {
	case len(here) > 0 && len(there) > 0 && o.output.structured():
		return usagef("run/%s is in the state folder and run.agentctl.dev/%s at a control plane: with -o %s they are shown one by one", here[0].Name, there[0], o.output.kind)
	case len(here) > 0 && o.watch:
		return usagef("-w follows objects of a control plane, and run/%s is in the state folder", here[0].Name).try("agentctl attach run/" + here[0].Name)
	}
	if len(here) > 0 {
		if err := o.write(local(here), len(words) == 1, o.app.state); err != nil {
			return err
		}
	}
	if len(there) > 0 {
		if err := o.runGetObjects(ctx, append(runWords[1:2:2], there...)); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// absent reports whether an error says that there is no such run.
func absent(err error) bool {
	if u, ok := errors.AsType[*reason.UsageError](err); ok {
		return u.Hint == "" // a name that fits several runs has one
	}
	return client.Missing(err)
}

// completeGet offers kinds, then names.
func (a *app) completeGet(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	word := ""
	if len(args) > 0 {
		word = args[0]
	} else if kind, _, ok := strings.Cut(typed, "/"); ok {
		word = kind
	}
	if !slices.Contains(runWords, word) {
		words, directive := a.completeObjects(cmd, args, typed)
		if len(args) == 0 && word == "" {
			words = append(words, eventWords[0])
		}
		return words, directive
	}
	refs, directive := a.localRuns(nil), inOrder
	if len(args) == 0 {
		return slices.DeleteFunc(refs, func(r string) bool { return !strings.HasPrefix(r, "run/") }), directive
	}
	for i, r := range refs {
		refs[i] = strings.TrimPrefix(r, "run/")
	}
	return slices.DeleteFunc(refs, func(r string) bool { return slices.Contains(args[1:], r) }), directive
}
