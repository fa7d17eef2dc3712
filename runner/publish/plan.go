package publish

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/image/artifact"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/model/provider"
	"agentctl.dev/agentctl/runner/plan"
	"agentctl.dev/agentctl/runner/publish/delivery"
	"agentctl.dev/agentctl/runner/publish/item"
	"agentctl.dev/agentctl/runner/runs"
	"agentctl.dev/agentctl/runner/tool/source/sources"
	"agentctl.dev/agentctl/runner/workspace"
)

// maxFiles and maxFileBytes bound what a pull request changes.
const (
	maxFiles     = 300
	maxFileBytes = 10 << 20
)

// recorded is a run whose journal is whole.
type recorded struct {
	dir  string
	view *view.Run
	// head is the hash of the event that has ended the run.
	head string
}

// read reads the journal of a run, whose chain must be whole.
func read(ctx context.Context, found journal.Found) (*recorded, error) {
	r := &recorded{dir: found.Dir, view: &view.Run{}}
	end := int64(0)
	report, err := journal.Check(ctx, found.Dir, func(l journal.Line) error {
		if end > 0 && l.Seq == end+1 {
			r.head = l.Prev
		}
		if string(l.Type) == string(event.TypeRunFinished) {
			end, r.head = l.Seq, ""
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("run %s: nothing is published: %w", found.ID, err)
	}
	if r.head == "" && end == report.Events {
		r.head = report.Head
	}
	if err := runs.Fold(ctx, found, r.view); err != nil {
		return nil, err
	}
	v := r.view
	switch {
	case v.Finished == nil || v.Phase == view.Suspended:
		return nil, reason.Usagef("run %s has not ended: what it prepares is published after its end", v.ID).WithHint("go on with: agentctl resume run/" + v.ID)
	case v.Phase != view.Succeeded:
		return nil, reason.Usagef("run %s has not succeeded (%s): what it has prepared is not published", v.ID, v.Finished.Reason)
	case len(v.Publications) == 0:
		return nil, reason.Usagef("run %s has prepared nothing for publication", v.ID)
	}
	return r, nil
}

// plan reads a run and the manifests as they are now, and judges each item by both.
func (o *Options) plan(ctx context.Context, found journal.Found) (*Plan, error) {
	r, err := read(ctx, found)
	if err != nil {
		return nil, err
	}
	known := plan.Registries{Providers: provider.All(), Sources: sources.All()}
	record, err := plan.ReadRecord(r.dir, r.view)
	if err != nil {
		return nil, err
	}
	then, err := record.Restore(r.view, plan.Options{State: o.State, Registries: known})
	if err == nil {
		then.Definitions, err = then.Called()
	}
	if err != nil {
		return nil, fmt.Errorf("plan of run %s: %w", r.view.ID, err)
	}
	now, err := o.present(ctx, then, known)
	if err != nil {
		return nil, err
	}
	return r.items(ctx, then, now)
}

// present is the plan with the manifests as they are now.
func (o *Options) present(ctx context.Context, then *plan.Plan, known plan.Registries) (*plan.Plan, error) {
	admitted, err := plan.Admit(ctx, plan.Options{Paths: o.Paths, Stdin: o.Stdin, Registries: known, Images: artifact.OfSkills(o.State, true)})
	if err != nil {
		return nil, err
	}
	if _, ok := admitted.Catalog.Agents[then.Agent.Name]; !ok {
		return nil, reason.Usagef("the manifests do not declare the agent %q, which has prepared the items", then.Agent.Name).WithHint("name its manifest with -f")
	}
	resolved, err := admitted.Catalog.Resolve(admission.ResolveOptions{Agent: then.Agent.Name, WithoutRun: true, Below: true})
	if err != nil {
		return nil, &reason.UsageError{Err: err, Hint: reason.Hint(err)}
	}
	now, err := then.Present(resolved)
	if err != nil {
		return nil, err
	}
	now.Rules = resolved.Compiled()
	if now.Definitions, err = now.Called(); err != nil {
		return nil, &reason.UsageError{Err: err}
	}
	return now, nil
}

// items are those of a run, as they would be sent now.
func (r *recorded) items(ctx context.Context, then, now *plan.Plan) (*Plan, error) {
	v := r.view
	p := &Plan{Run: v.ID, Agent: v.Started.Agent, Items: []Item{}}
	was, err := then.Targets()
	if err != nil {
		return nil, err
	}
	is, err := now.Targets()
	if err != nil {
		return nil, &reason.UsageError{Err: err}
	}
	judge := newJudge(r, then, now)
	counted := map[string]int32{}
	var hashes []string
	for i := range v.Publications {
		prepared := &v.Publications[i]
		named := func(d v1alpha1.Publication) bool { return d.Name == prepared.Name }
		before, at := slices.IndexFunc(then.Agent.Spec.Publish, named), slices.IndexFunc(now.Agent.Spec.Publish, named)
		switch {
		case before < 0:
			return nil, fmt.Errorf("run %s: the item of call %s belongs to %q, which its agent does not declare", v.ID, prepared.Call, prepared.Name)
		case at < 0:
			return nil, refused(v.ID, prepared.Name, "the agent does not declare it any more")
		case was[before] != is[at]:
			return nil, refused(v.ID, prepared.Name, fmt.Sprintf("it was prepared for %s, and the agent declares %s now", was[before], is[at]))
		}
		declared := now.Agent.Spec.Publish[at]
		declared.Max, declared.MaxBytes = min(declared.Max, then.Agent.Spec.Publish[before].Max), min(declared.MaxBytes, then.Agent.Spec.Publish[before].MaxBytes)
		if counted[prepared.Name]++; counted[prepared.Name] > declared.Max {
			return nil, refused(v.ID, prepared.Name, fmt.Sprintf("there are more items than spec.publish permits (%d)", declared.Max))
		}
		if wrong := item.Check(&declared, &prepared.Publication); wrong != "" {
			return nil, refused(v.ID, prepared.Name, wrong)
		}
		it, err := r.item(prepared, is[at])
		if err != nil {
			return nil, fmt.Errorf("run %s: %s: %w", v.ID, prepared.Name, err)
		}
		it.declared = declared
		if err := judge.decide(ctx, prepared.Call, it); err != nil {
			return nil, err
		}
		p.Items = append(p.Items, *it)
		hashes = append(hashes, it.Hash)
	}
	p.Digest, err = item.Digest(v.ID, r.head, hashes)
	return p, err
}

func refused(run, name, why string) error {
	return reason.New(reason.Denied, "run %s: %s is not published: %s", run, name, why)
}

// item is an item as it is sent.
func (r *recorded) item(prepared *view.Publication, target item.Target) (*Item, error) {
	v := r.view
	key := item.Key(v.ID, r.head, prepared.Call)
	out := &Item{
		Call: prepared.Call, Name: prepared.Name, Type: prepared.Type, Target: target.String(), Key: key, Title: item.Inert(prepared.Title), State: Prepared, Files: []string{},
		item: delivery.Item{Target: target, Key: key, Since: v.EndTime},
	}
	change := ""
	switch target.Type {
	case v1alpha1.PublishWebhook:
		payload, err := item.Payload(&prepared.Publication, v.Started.Agent, v.ID, key)
		if err != nil {
			return nil, err
		}
		out.item.Payload, out.Text = payload, data(payload)
	case v1alpha1.PublishPullRequest:
		files, err := r.files()
		if err != nil {
			return nil, err
		}
		out.item.Files, change = files, v.Changes.Change
		for i := range files {
			out.Files = append(out.Files, files[i].Path)
		}
		fallthrough
	default:
		out.Text = item.Text(prepared.Body, v.Started.Agent, v.ID, key)
		out.item.Title, out.item.Text = out.Title, out.Text
	}
	var err error
	if out.Hash, err = item.Hash(&prepared.Publication, target, change); err != nil {
		return nil, err
	}
	if last := prepared.Last; last != nil {
		out.State, out.URL, out.Error = last.State, last.URL, last.Error
	}
	return out, nil
}

// files are what the run has changed.
func (r *recorded) files() ([]delivery.File, error) {
	v := r.view
	switch {
	case v.Changes.Error != "":
		return nil, fmt.Errorf("what the run changed is not completely known: %s", v.Changes.Error)
	case v.Changes.Change == "":
		return nil, reason.Usagef("the run changed no files: there is nothing for a pull request")
	}
	blobs := journal.Stored(r.dir)
	change, err := workspace.ReadChange(blobs, v.Changes.Change)
	if err != nil {
		return nil, err
	}
	if len(change.Files) > maxFiles {
		return nil, reason.Usagef("the run changed %d files, a pull request takes at most %d", len(change.Files), maxFiles)
	}
	total, all := int64(0), make([]delivery.File, 0, len(change.Files))
	for _, f := range change.Files {
		out := delivery.File{Path: string(f.Path), Deleted: f.New == nil}
		if f.Old != nil {
			out.Old = f.Old.Hash
		}
		for _, version := range []*workspace.Version{f.Old, f.New} {
			if version != nil && version.Type != workspace.TypeFile {
				return nil, reason.Usagef("%q is not a regular file: a pull request takes files alone", out.Path)
			}
		}
		if f.New != nil {
			if f.NotApplicable != "" || f.New.Blob == "" {
				return nil, reason.Usagef("the content of %q was not recorded: %s", out.Path, f.NotApplicable)
			}
			if total += f.New.Size; total > maxFileBytes {
				return nil, reason.Usagef("the run changed more than %d bytes, which a pull request does not take", maxFileBytes)
			}
			if out.Content, err = blobs.GetBlob(f.New.Blob); err != nil {
				return nil, err
			}
			out.Executable = f.New.Mode&0o100 != 0
		}
		all = append(all, out)
	}
	return all, nil
}

// used is what the newest turn of the run has used, for rules that read it.
func used(v *view.Run) plan.Used {
	t := v.Turn()
	return plan.Used{Tokens: t.Tokens.Total(), Steps: int64(v.TurnSteps()), Time: v.TurnWorked(time.Time{}), Cost: t.Cost}
}

// input is the checked call as it was judged in the run.
func input(v *view.Run, call string) (json.RawMessage, int, error) {
	c := v.Call(call)
	if c == nil || len(c.Input) == 0 {
		return nil, 0, fmt.Errorf("run %s: call %s has no arguments", v.ID, call)
	}
	return c.Input, v.Step(call), nil
}
