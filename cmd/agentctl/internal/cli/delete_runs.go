package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/cmd/internal/flags"
	"agentctl.dev/agentctl/runner/client"
	"agentctl.dev/agentctl/runner/runs"
	"agentctl.dev/agentctl/runner/statedir"
)

// pruneLimits say which runs "delete runs" leaves.
type pruneLimits struct {
	olderThan, maxSize string
	keep               int
}

func (l *pruneLimits) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&l.olderThan, "older-than", "", "of runs: those that ended longer ago, for example `30d` or 12h")
	cmd.Flags().IntVar(&l.keep, "keep", -1, "of runs: all but the newest `number`")
	cmd.Flags().StringVar(&l.maxSize, "max-size", "", "of runs: the oldest, until the others take at most this `size` on the disk, for example 10Gi")
	for _, name := range []string{"older-than", "keep", "max-size"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions) // fails only for a flag that is not there
	}
}

func (l *pruneLimits) set() bool { return l.olderThan != "" || l.maxSize != "" || l.keep != -1 }

// parse reads the limits.
func (l *pruneLimits) parse() (older time.Duration, size int64, err error) {
	size = -1
	if l.keep < -1 {
		return 0, 0, usagef("--keep %d: a number cannot be negative", l.keep)
	}
	if l.olderThan != "" {
		if older, err = flags.Age(l.olderThan); err != nil {
			return 0, 0, usagef("--older-than %s: it is a time like 30d, 2w or 12h", l.olderThan)
		}
	}
	if l.maxSize != "" {
		q, err := resource.ParseQuantity(l.maxSize)
		if err != nil || q.Sign() < 0 {
			return 0, 0, usagef("--max-size %s: it is a size like 10Gi or 500M", l.maxSize)
		}
		size = q.Value()
	}
	return older, size, nil
}

// deleteNamed deletes the runs that words name, each where it is.
func (o *deleteOptions) deleteNamed(ctx context.Context, words []string) error {
	var objects []string
	var failed []error
	for _, word := range words {
		r, err := parseRun(word)
		if err != nil {
			return err
		}
		src, err := o.locate(ctx, r)
		if err != nil || src.client != nil {
			if err == nil {
				src.close()
			}
			// An object is named as it is, and the error for one that is not there is
			// that of its control plane.
			objects = append(objects, r.name)
			continue
		}
		if src.id != r.name && r.name != runs.Latest {
			failed = append(failed, usagef("%q is not the whole id of a run", word).try("agentctl delete run "+src.id))
			continue
		}
		if owner := o.owner(ctx, src.id); owner != nil {
			owner.close()
			failed = append(failed, usagef("run/%s is that of %s", src.id, owner.run).try("agentctl delete "+owner.run.String()+" -n "+owner.run.Namespace))
			continue
		}
		if err := runs.Delete(ctx, src.state, src.id, o.dryRun.value != dryNone); err != nil {
			failed = append(failed, err)
			continue
		}
		if err := o.handEvents(src.id); err != nil {
			return err
		}
	}
	if len(objects) > 0 {
		failed = append(failed, o.deleteObjects(ctx, append(runWords[1:2:2], objects...)))
	}
	return errors.Join(failed...)
}

func (o *deleteOptions) handEvents(id string) error {
	more := ""
	if o.dryRun.value != dryNone {
		more = " (dry run)"
	}
	return display.Text(o.app.stdout(), "run/"+id+" deleted"+more+"\n")
}

// prune deletes the runs that the limits rule out.
func (o *deleteOptions) prune(ctx context.Context) error {
	older, size, err := o.limits.parse()
	if err != nil {
		return err
	}
	if o.meant() {
		return o.pruneObjects(ctx, older)
	}
	state, err := statedir.Find(o.app.state)
	if err != nil {
		return err
	}
	owners, err := o.owners(ctx)
	if err != nil {
		return err
	}
	defer owners.close()
	dry := o.dryRun.value != dryNone
	var count int
	var freed int64
	var failed []error
	err = runs.Prune(ctx, runs.PruneOptions{
		State: state, OlderThan: older, Keep: o.limits.keep, MaxSize: size, Spare: owners.spare, DryRun: dry, Now: time.Now(),
	}, func(p runs.Pruned) {
		count++
		freed += p.Size
		failed = append(failed, o.handEvents(p.ID), owners.remove(ctx, p.ID, dry))
	})
	if err = errors.Join(append(failed, err)...); err != nil {
		return err
	}
	text := fmt.Sprintf("%d runs, %s", count, display.Size(freed))
	if owners.spared > 0 && owners.client == nil {
		text += fmt.Sprintf("; %d runs of the local control plane are kept while it does not run", owners.spared)
	}
	display.Notice(o.app.stderr(), text)
	return nil
}

// owners are the objects for which runs of the state folder were executed.
type owners struct {
	client *client.Client
	// refs of those that have ended, by their uid; busy are the others.
	refs    map[string]client.Ref
	busy    map[string]bool
	spared  int
	deleted map[string]bool
}

// owners lists the Runs of the local control plane, if it runs.
func (o *deleteOptions) owners(ctx context.Context) (*owners, error) {
	all := &owners{refs: map[string]client.Ref{}, busy: map[string]bool{}, deleted: map[string]bool{}}
	local := target{app: o.app, context: client.LocalContext}
	config, err := local.config()
	if err != nil {
		return nil, err
	}
	c, err := config.Connect(ctx, client.ConnectOptions{OnlyRunning: true})
	if errors.Is(err, client.ErrNotRunning) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	objects, _, err := c.List(ctx, client.ListOptions{Kind: v1alpha1.KindRun, AllNamespaces: true})
	if err != nil {
		c.Close()
		return nil, err
	}
	all.client = c
	for _, x := range objects {
		uid := x.Text("metadata", "uid")
		if settled(x) {
			all.refs[uid] = x.Ref()
		} else {
			all.busy[uid] = true
		}
	}
	return all, nil
}

// settled reports whether a Run has ended and waits for nothing.
func settled(x client.Object) bool {
	return v1alpha1.Phase(x.Text("status", "phase")).Finished() && x.Number("status", "pendingApprovals") == 0
}

// spare keeps the runs of an object that has not ended, and those of which nobody can
// be asked whether the object is there.
func (w *owners) spare(id string) bool {
	name, ok := objectOf(id)
	if !ok {
		return false
	}
	if w.client == nil || w.busy[uidOf(id, name)] {
		w.spared++
		return true
	}
	return false
}

// remove deletes the object of a run that was deleted.
func (w *owners) remove(ctx context.Context, id string, dry bool) error {
	name, ok := objectOf(id)
	uid := uidOf(id, name)
	ref, is := w.refs[uid]
	if !ok || !is || dry || w.deleted[uid] {
		return nil
	}
	w.deleted[uid] = true
	if err := w.client.Delete(ctx, ref, client.DeleteOptions{Propagation: client.Background}); err != nil && !client.Missing(err) {
		return err
	}
	return nil
}

func (w *owners) close() {
	if w.client != nil {
		w.client.Close()
	}
}

// pruneObjects deletes the Runs of a control plane that the limits rule out.
func (o *deleteOptions) pruneObjects(ctx context.Context, older time.Duration) error {
	if o.limits.maxSize != "" {
		return usagef("--max-size is for the runs of the state folder: a control plane does not report how large its runs are")
	}
	c, err := o.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	all, _, err := c.List(ctx, client.ListOptions{Kind: v1alpha1.KindRun, Namespace: o.namespace})
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b client.Object) int { return b.Created().Compare(a.Created()) })
	var refs []client.Ref
	for i, x := range slices.Backward(all) {
		ended := x.Created()
		for _, c := range x.Conditions() {
			if c.Since.After(ended) {
				ended = c.Since
			}
		}
		if out := older > 0 && time.Since(ended) > older || o.limits.keep >= 0 && i >= o.limits.keep; out && settled(x) {
			refs = append(refs, x.Ref())
		}
	}
	if o.dryRun.value == dryClient {
		return o.report(refs, " (dry run)")
	}
	return o.remove(ctx, c, refs)
}
