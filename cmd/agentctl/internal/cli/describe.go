package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/client"
	"agentctl.dev/agentctl/runner/runs"
	"agentctl.dev/agentctl/runner/statedir"
)

type describeOptions struct {
	target
	selector  string
	files     []string
	recursive bool
}

func (a *app) describeCmd() *cobra.Command {
	o := &describeOptions{target: target{app: a}}
	cmd := &cobra.Command{
		Use:   "describe KIND [NAME...] | KIND/NAME... | -f FILE",
		Short: "Show everything about runs, or objects of a control plane",
		Long: `Show everything about objects of a control plane: their spec, status
and latest events. Of a run of the state folder: its inputs and state,
what it asked for, what was refused and by which rule, what it changed,
what it cost, and the evidence for its success. A run is named as
"agentctl help names" says.`,
		Example: `  agentctl describe run @latest
  agentctl describe agent reviewer
  agentctl describe tools -l team=web
  agentctl describe -f manifests/hello`,
		GroupID:           groupObject,
		Args:              func(cmd *cobra.Command, args []string) error { return o.someObject(cmd, args) },
		ValidArgsFunction: a.completeGet,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.runDescribe(cmd.Context(), args) },
	}
	selectorFlag(cmd, &o.selector)
	files(cmd, &o.files)
	recursiveFlag(cmd, &o.recursive)
	o.flags(cmd)
	return cmd
}

// someObject expects a kind, an object or manifests.
func (o *describeOptions) someObject(cmd *cobra.Command, args []string) error {
	if len(o.files) > 0 {
		return filesAlone(args, o.selector != "")
	}
	return someObject(cmd, args)
}

// someObject requires a kind or an object.
func someObject(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usagef("say which objects: KIND NAME or KIND/NAME")
	}
	return nil
}

func (o *describeOptions) runDescribe(ctx context.Context, args []string) error {
	if len(o.files) > 0 {
		w, err := o.declared(ctx, o.files, o.recursive)
		if err != nil {
			return err
		}
		return o.describeWanted(ctx, getOptions{target: o.target, output: format{kind: display.FormatText}}, w)
	}
	named, ok := runWordsOf(args)
	switch {
	case ok && o.selector == "" && len(named) > 0:
		return o.describeRuns(ctx, named)
	case ok && o.selector == "" && !o.meant() && slices.Contains(runWords, args[0]):
		return o.describeAllRuns(ctx)
	}
	return o.describeObjects(ctx, args)
}

// describeAllRuns describes the runs of the state folder.
func (o *describeOptions) describeAllRuns(ctx context.Context) error {
	state, err := statedir.Find(o.app.state)
	if err != nil {
		return err
	}
	ids, err := runs.IDs(state)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		display.Notice(o.app.stderr(), "no runs in "+state)
		return nil
	}
	for i, id := range ids {
		ids[i] = "run/" + id
	}
	return o.describeRuns(ctx, ids)
}

// describeRuns describes the runs that words name, each from where it is.
func (o *describeOptions) describeRuns(ctx context.Context, words []string) error {
	var failed []error
	for i, word := range words {
		if i > 0 {
			if err := display.Text(o.app.stdout(), "\n"); err != nil {
				return err
			}
		}
		src, err := o.openWord(ctx, word)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		if src.client != nil {
			src.close()
			err = o.describeObjects(ctx, []string{runWords[1], src.run.Name})
		} else {
			err = o.describeRun(ctx, src)
			src.close()
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// describeRun describes a run of the state folder.
func (o *describeOptions) describeRun(ctx context.Context, src *source) error {
	s, err := runs.Get(ctx, src.state, src.id)
	if err != nil {
		return err
	}
	d := &display.Description{Kind: v1alpha1.KindRun, Name: s.Name, Place: cmp.Or(src.place.Export, s.Journal), Created: s.StartTime, Now: time.Now()}
	if d.Status, err = plain(s, "name", "startTime", "agent", "model", "source", "journal"); err != nil {
		return err
	}
	below, err := runs.Below(ctx, src.state, src.id)
	if err != nil {
		return err
	}
	if status, ok := d.Status.(map[string]any); ok && len(below) > 0 {
		all := make([]any, len(below))
		for i, r := range below {
			all[i] = map[string]any{"run": r.Name, "agent": r.Agent, "phase": r.Phase, "reason": r.Reason, "steps": r.Steps, "parent": r.Parent}
		}
		status["subagents"] = all
	}
	// What cannot be read the status says.
	if v, err := runs.View(ctx, src.state, src.id); err == nil {
		w := v.Started.Workspace
		d.StartedBy = v.Started.User
		spec := map[string]any{
			"agent": v.Started.Agent, "model": v.Started.Model.Name, "prompt": v.Started.Prompt,
			"workspace": describedFiles(w),
		}
		if f := v.Started.ForkedFrom; f != nil {
			from := map[string]any{"run": f.Run}
			switch {
			case f.Call != "":
				from["before"] = f.Call
			case f.Message != "":
				from["before"] = f.Message
			}
			spec["forkedFrom"] = from
		}
		if p := v.Started.Parent; p != nil {
			above := map[string]any{"run": p.Run, "call": p.Call, "agents": p.Agents}
			if p.Continues != "" {
				above["continues"] = p.Continues
			}
			spec["parent"] = above
		}
		if names := v.Started.RepositoryPolicies; len(names) > 0 {
			spec["repositoryPolicies"] = names
		}
		if v.Started.Isolation != "" {
			spec["isolation"] = v.Started.Isolation
		}
		if variant := v.Started.Model.Variant; variant != "" {
			spec["variant"] = variant
		}
		if status, ok := d.Status.(map[string]any); ok && len(v.Messages) > 0 && v.Messages[0].Recap != nil {
			if status["recap"], err = plain(v.Messages[0].Recap); err != nil {
				return err
			}
		}
		if status, ok := d.Status.(map[string]any); ok {
			if items := v.Result("").Publish; len(items) > 0 {
				all := make([]any, len(items))
				for i := range items {
					if all[i], err = plain(items[i]); err != nil {
						return err
					}
				}
				status["publish"] = all
			}
		}
		d.Spec, d.Run = spec, v
	}
	return d.Write(o.app.stdout())
}

// describedFiles are the files of a run, without what was not declared.
func describedFiles(w event.Workspace) map[string]any {
	all := map[string]any{"source": w.Source, "dir": w.Dir, "strategy": w.Strategy}
	if g := w.Git; g != nil {
		all["git"] = map[string]any{"url": g.URL, "ref": g.Ref, "commit": g.Commit}
		delete(all, "source")
	}
	if w.Apply != "" {
		all["apply"] = w.Apply
	}
	if w.Retain != "" {
		all["retain"] = w.Retain
	}
	if _, err := os.Lstat(w.Dir); errors.Is(err, fs.ErrNotExist) {
		all["removed"] = true
	}
	return all
}

// plain is a value as a description shows it, without some of its fields.
func plain(v any, without ...string) (any, error) {
	text, err := json.Marshal(v)
	var m map[string]any
	numbers := json.NewDecoder(bytes.NewReader(text))
	numbers.UseNumber() // as they are written
	if err = errors.Join(err, numbers.Decode(&m)); err != nil {
		return nil, fmt.Errorf("describe: %w", err)
	}
	for _, name := range without {
		delete(m, name)
	}
	maps.DeleteFunc(m, func(_ string, v any) bool {
		list, ok := v.([]any)
		return v == nil || v == "" || ok && len(list) == 0
	})
	return m, nil
}

func (o *describeOptions) describeObjects(ctx context.Context, args []string) error {
	get := getOptions{target: o.target, selector: o.selector, output: format{kind: display.FormatText}}
	w, err := get.wanted(args)
	if err != nil {
		return err
	}
	if slices.Contains(w.kinds, client.KindEvent) {
		return usagef("an event has no more than its line").try("agentctl get events")
	}
	return o.describeWanted(ctx, get, w)
}

func (o *describeOptions) describeWanted(ctx context.Context, get getOptions, w *wanted) error {
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
	if x.Kind() == v1alpha1.KindRun {
		d.StartedBy = d.Annotations[v1alpha1.AnnotationStartedBy]
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
