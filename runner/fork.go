package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/audit/trail"
	"agentctl.dev/agentctl/runner/environment"
	"agentctl.dev/agentctl/runner/execution"
	"agentctl.dev/agentctl/runner/export"
	"agentctl.dev/agentctl/runner/fork"
	"agentctl.dev/agentctl/runner/fstree"
	"agentctl.dev/agentctl/runner/inbox"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/moment"
	"agentctl.dev/agentctl/runner/plan"
	"agentctl.dev/agentctl/runner/runs"
	"agentctl.dev/agentctl/runner/statedir"
	"agentctl.dev/agentctl/runner/workspace"
	"agentctl.dev/agentctl/runner/workspace/giturl"
)

// ForkOptions name the run that is forked, and the place. Ref is required.
type ForkOptions struct {
	// RunOptions are those of the new run. Paths, Manifests, Agent, Model and Policies declare
	// what goes on from the place; without them it is what the run had declared. Prompt is
	// the next message to the model.
	RunOptions
	// Ref is the run as Resume takes it, At the place as moment.Find takes it: the new run
	// begins before that message or call; "" is its end.
	Ref, At string
	// Export is where the run is, in place of State and Ref. Its change is then for the folder
	// Workspace; default the current one.
	Export *export.Opened
	// TrustManifests lets the manifests in an export declare what goes on, where Paths and
	// Manifests do not: they may start any program, with or without a sandbox.
	TrustManifests bool
	// OutsideKept accepts that what the run did outside before the place stays done.
	OutsideKept bool
	// Begun is called with the id of the new run and a sentence for people when it is there
	// and nothing of it was executed. Optional.
	Begun func(id, text string)
}

// OutsideError reports that a run that is forked has done something outside.
type OutsideError = fork.OutsideError

// Fork begins a run with everything that another one had said and done before a place, and
// with its files as they were then. Nothing of that is executed again, and nobody is asked
// again. What was allowed for always stays behind, and a run that worked in place is
// forked into a copy. Errors are those of Run, and a *reason.UsageError with an
// *OutsideError.
func Fork(ctx context.Context, o ForkOptions) (*Outcome, error) {
	state, err := statedir.Find(o.State)
	if err != nil {
		return nil, err
	}
	o.State = state
	from, ref := state, o.Ref
	if o.Export != nil {
		from, ref = o.Export.State, o.Export.Run
	}
	found, err := journal.FindRun(from, ref)
	if err != nil {
		return nil, (&reason.UsageError{Err: err}).WithHint("agentctl get runs lists the runs")
	}
	if journal.Held(found.Dir) {
		return nil, reason.Usagef("run %s cannot be forked: a process executes it", found.ID).WithHint("wait until it has ended, or stop it: agentctl cancel run/" + found.ID)
	}
	m, err := moment.Find(ctx, found, o.At)
	if err != nil {
		return nil, err
	}
	effects, err := o.forkable(found, m)
	if err != nil {
		return nil, err
	}
	id, err := o.forked(ctx, found, m)
	if err != nil {
		return nil, err
	}
	o.Workspace = ""
	if o.Begun != nil {
		o.Begun(id, fork.Notice(found.ID, m, effects))
	}
	out, err := o.goOnForked(ctx, id, m)
	if err != nil && out == nil { // nothing was begun: a fork of nothing is of no use
		err = errors.Join(err, fstree.Remove(journal.Dir(state, id)))
	}
	return out, err
}

// forkable refuses what cannot be forked. It returns the effects outside before the place.
func (o *ForkOptions) forkable(found journal.Found, m *moment.Moment) ([]moment.Effect, error) {
	refused := func(format string, args ...any) *reason.UsageError {
		return reason.Usagef("run %s cannot be forked: %s", found.ID, fmt.Sprintf(format, args...))
	}
	v := m.Run
	if p := v.Started.Parent; p != nil {
		return nil, refused("it was started by a call of run %s", p.Run).WithHint(fmt.Sprintf("fork that one: agentctl fork run/%s --at %s", p.Run, p.Call))
	}
	record, err := plan.ReadRecord(found.Dir, v)
	if err != nil {
		return nil, err
	}
	switch over := m.Before.Finished != nil && m.Before.Phase != view.Suspended; {
	case record.Served:
		return nil, refused("clients made its calls, and no model")
	case o.Export == nil && o.Workspace != "":
		return nil, refused("its change is for the folder that it began with").WithHint("--workspace is for a run that was exported")
	case o.Export != nil && len(o.Paths) == 0 && o.Manifests == nil && !o.TrustManifests:
		return nil, refused("manifests that came with an export may start any program, and are not taken as yours").
			WithHint("name your own with -f, or accept them with --trust-manifests if you trust who has made the export")
	case o.Export != nil && o.Export.Files == "" && m.Folder() != "":
		return nil, refused("the export has no files").WithHint("export it with them: agentctl export run/" + found.ID)
	case m.Files.Unknown != "":
		return nil, refused("how its files were there is not known: %s", m.Files.Unknown).WithHint("choose the answer with the call: --at " + m.Message)
	case over && o.Prompt == "" && o.Command == "" && m.Message == "":
		return nil, refused("it has ended there, and goes on with a prompt").WithHint("say it with -p TEXT, or name an earlier place with --at")
	}
	p, err := record.Recorded(v.Started, registries())
	if err != nil {
		return nil, err
	}
	declared := map[string][]v1alpha1.Effect{}
	for _, d := range p.Definitions {
		declared[d.Name] = d.Spec.Effects
	}
	effects := moment.Effects(m.Events, declared, record.Strategy == v1alpha1.StrategyInPlace)
	if len(effects) > 0 && !o.OutsideKept {
		return nil, (&reason.UsageError{Err: &OutsideError{Run: found.ID, Effects: effects}}).WithHint("if that is no harm: --outside-kept")
	}
	return effects, nil
}

// forked makes the folder of the new run.
func (o *ForkOptions) forked(ctx context.Context, found journal.Found, m *moment.Moment) (id string, err error) {
	id = cmp.Or(o.ID, execution.RunID(m.Begin.Agent, execution.NewIDs(time.Now)))
	dir := journal.Dir(o.State, id)
	record, err := plan.ReadRecord(found.Dir, m.Run)
	if err != nil {
		return "", err
	}
	begin, w := m.Begin, m.Begin.Workspace
	if o.Export != nil && w.Source != "" && w.Git == nil { // that of another machine
		if w.Source, err = filepath.Abs(o.Workspace); err != nil {
			return "", err
		}
	}
	files := environment.CopyDir(dir, id, w.Source)
	if w.Git != nil {
		files = environment.CopyDir(dir, id, giturl.Name(w.Git.URL))
		w.Source = files
	}
	if w.Strategy == string(v1alpha1.StrategyInPlace) {
		w.Strategy = string(v1alpha1.StrategyCopy)
	}
	w.Dir, w.Apply, w.Retain = files, "", "" // what becomes of the copy was declared for the other one
	begin.Workspace, begin.Audit, begin.User, begin.Version = w, trail.Begin(), o.user(), o.Version
	begin.ForkedFrom = &event.Forked{Run: found.ID, Message: m.Message, Call: m.Call, Seq: m.Seq, Hash: m.Hash}
	if m.Seq == 0 && o.Prompt != "" {
		begin.Prompt, begin.Origin = o.Prompt, nil
	}
	fo := fork.Options{
		From: found, At: m, ID: id, Dir: dir, Begin: begin,
		Files: workspace.Spec{Dir: files, Exclude: record.Exclude, SizeLimit: record.SizeLimit, Skip: []string{o.State}},
	}
	if o.Export != nil {
		fo.Folder, fo.Without = o.Export.Files, o.Export.LeavesOut
	}
	err = fork.Make(ctx, fo)
	if unkept, ok := errors.AsType[*workspace.UnkeptError](err); ok {
		return "", reason.Usagef("run %s cannot be forked there: %w", found.ID, unkept).WithHint("name a later place with --at: agentctl events run/" + found.ID)
	}
	return id, err
}

// goOnForked executes a run that was forked.
func (o *ForkOptions) goOnForked(ctx context.Context, id string, m *moment.Moment) (*Outcome, error) {
	if m.Before.Finished != nil && m.Before.Phase != view.Suspended { // the next turn
		if o.Prompt == "" && o.Command == "" {
			o.Verbatim = true
			for _, t := range m.Run.Turns {
				if t.Message == m.Message {
					o.Prompt = t.Prompt
				}
			}
		}
		o.Continue, o.ID = id, ""
		return Run(ctx, o.RunOptions)
	}
	if o.Prompt != "" && m.Seq > 0 {
		if err := inbox.New(id, journal.Dir(o.State, id)).Open(); err != nil {
			return nil, err
		}
		if _, err := runs.Send(ctx, runs.SendOptions{Ref: id, State: o.State, Text: o.Prompt, By: cmp.Or(o.user(), "unknown")}); err != nil {
			return nil, err
		}
	}
	if len(o.Paths) == 0 && o.Manifests == nil && o.Agent == "" && o.Model == "" && len(o.Policies) == 0 {
		return Resume(ctx, ResumeOptions{
			Ref: id, State: o.State, Approve: o.Approve, Terminal: o.Terminal, Containerd: o.Containerd, Version: o.Version, Events: o.Events, Children: o.Children,
			Kill: o.Kill, Leave: o.Leave, Drain: o.Drain, Telemetry: o.Telemetry, Timeout: o.Timeout,
		})
	}
	found := journal.Found{ID: id, Dir: journal.Dir(o.State, id)}
	earlier, err := readTurns(ctx, found)
	if err != nil {
		return nil, err
	}
	ro := o.RunOptions
	ro.Prompt, ro.Verbatim, ro.ID = earlier.Run.Started.Prompt, true, ""
	p, err := ro.turn(ctx, earlier)
	if err != nil {
		return nil, err
	}
	files := p.Workspace
	files.Dir = environment.FilesDir(found.Dir, found.ID, files.Source, files.Cloned)
	return ro.executeTurn(ctx, found, p, earlier, files, turnKind{forked: true}, nil)
}
