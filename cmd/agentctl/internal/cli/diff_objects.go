package cli

import (
	"context"
	"strings"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner"
	"agentctl.dev/agentctl/runner/client"
)

// exitDiffer says that there are differences; an error is more than that, as
// with diff(1).
const exitDiffer = 1

// runDiffObjects shows what an apply would change.
func (o *diffOptions) runDiffObjects(ctx context.Context) error {
	different, err := o.diffObjects(ctx)
	if err != nil {
		return &codeError{err, reason.ExitUsage}
	}
	if different {
		return exit(exitDiffer)
	}
	return nil
}

func (o *diffOptions) diffObjects(ctx context.Context) (different bool, err error) {
	if err := needFiles(o.files); err != nil {
		return false, err
	}
	if o.stat || o.output.value != display.FormatText {
		return false, usagef("--stat and -o are for what a run changed")
	}
	selector, err := parseSelector(o.selector)
	if err != nil {
		return false, err
	}
	config, err := o.config()
	if err != nil {
		return false, err
	}
	declared, err := runner.Declare(ctx, runner.DeclareOptions{Paths: o.files, Stdin: o.app.In, Recursive: o.recursive, Absolute: config.Local()})
	if err != nil {
		return false, err
	}
	apply := applyOptions{target: o.target}
	objects, err := apply.objects(declared.Objects, selector)
	if err != nil {
		return false, err
	}
	c, err := o.connect(ctx)
	if err != nil {
		return false, err
	}
	defer c.Close()
	var failed []error
	for _, x := range objects {
		text, err := o.diffObject(ctx, c, x)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		if text == "" {
			continue
		}
		different = true
		if err := display.WriteDiff(o.app.stdout(), text); err != nil {
			return false, err
		}
	}
	if o.app.complain(failed...); len(failed) > 0 {
		return different, exit(reason.ExitUsage)
	}
	return different, nil
}

// diffAttempts bounds how often an object is compared that changes meanwhile.
const diffAttempts = 5

// diffObject compares what there is with what the server would make of it, so
// defaults are not differences, and neither is what a controller has written in between.
func (o *diffOptions) diffObject(ctx context.Context, c *client.Client, x client.Object) (string, error) {
	var live, merged client.Object
	for range diffAttempts {
		var err error
		if live, err = c.Get(ctx, x.Ref()); err != nil && !client.Missing(err) {
			return "", err
		}
		if merged, err = c.Apply(ctx, x, client.WriteOptions{DryRun: true, Force: o.force}); err != nil {
			return "", err
		}
		if live == nil || version(live) == version(merged) {
			break
		}
	}
	name := strings.ReplaceAll(x.Ref().String(), "/", ".")
	var before any
	if live != nil {
		before = live.Declared()
	}
	return display.ObjectDiff("live/"+name, "applied/"+name, before, merged.Declared())
}

// version is the state of an object at the server that the object, or a trial of a change,
// is based on.
func version(o client.Object) string { return o.Text("metadata", "resourceVersion") }
