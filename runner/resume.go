package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sync/atomic"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/audit/trail"
	"agentctl.dev/agentctl/runner/environment"
	"agentctl.dev/agentctl/runner/execution"
	"agentctl.dev/agentctl/runner/image/artifact"
	"agentctl.dev/agentctl/runner/inbox"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/plan"
	"agentctl.dev/agentctl/runner/prompt"
	"agentctl.dev/agentctl/runner/runs"
	"agentctl.dev/agentctl/runner/sandbox"
	"agentctl.dev/agentctl/runner/secret"
	"agentctl.dev/agentctl/runner/statedir"
	"agentctl.dev/agentctl/runner/telemetry"
	"agentctl.dev/agentctl/runner/workspace"
)

// ResumeOptions name the run to continue, and how. Ref is required. Everything
// else that a run needs is in its journal: the manifests are not read again.
type ResumeOptions struct {
	// Ref is the id of the run, with or without run/, a unique beginning of it,
	// or @latest.
	Ref string

	// State, Approve, Terminal, Containerd, Version, Events, Children, Kill,
	// Leave and Drain are those of RunOptions. Events is called only with events from now
	// on.
	State      string
	Approve    string
	Terminal   *Terminal
	Containerd string
	Version    string
	Events     func(event.Event)
	Children   func(event.Event)
	Kill       <-chan struct{}
	Leave      <-chan struct{}
	Drain      <-chan struct{}

	// Telemetry is that of RunOptions.
	Telemetry *telemetry.Client

	// Parked is set for a run that waited for a person in a process that still counts:
	// a question that is asked again keeps the deadline that it had. Default: it gets
	// a new one, because no process counted in between.
	Parked bool

	// Present is that of RunOptions.
	Present PresentPolicies

	// Record is that of RunOptions: the cassette holds the whole run.
	Record string

	// Timeout ends the run permanently after this time, if its own limit does
	// not end it sooner; 0: only its own limit counts.
	Timeout time.Duration

	disk disk
}

// Resume continues a run that was killed or suspended. Calls that have a result
// are not repeated. A run that has finished is returned as it is: nothing is
// started and no questions are asked.
//
//	the run                    Resume returns
//	finished                   its Outcome
//	interrupted, suspended     the Outcome of the whole run, once it has ended
//	the same, and the end of   the same, with a warning that begins with
//	its journal is damaged     JournalDamaged
//	finished, and its end was  an error: its result cannot be relied on
//	changed
//	never began                a *reason.UsageError: there is nothing to resume
//	driven by another process  a *reason.UsageError that names it
func Resume(ctx context.Context, o ResumeOptions) (*Outcome, error) {
	state, err := statedir.Find(o.State)
	if err != nil {
		return nil, err
	}
	o.State = state
	rec, err := newRecording(o.Record)
	if err != nil {
		return nil, err
	}
	found, err := journal.FindRun(state, o.Ref)
	if err != nil {
		return nil, nothing(err)
	}
	// Without the lock first: a finished run is only read.
	seen := &view.Run{}
	err = runs.Fold(ctx, found, seen)
	if _, end := journal.DamagedAtEnd(err); end && seen.ID != "" && !over(seen) {
		err = nil // reopen records it
	}
	if err != nil {
		if _, ok := errors.AsType[*reason.UsageError](err); ok {
			err = nothing(err)
		}
		return nil, err
	}
	if over(seen) {
		seal(ctx, found, seen)
		return ended(ctx, rec, found, seen, &o), nil
	}
	if p := seen.Started.Parent; p != nil {
		return nil, reason.Usagef("run %s was started by a call of run %s, which waits for it", found.ID, p.Run).
			WithHint("continue both with: agentctl resume run/" + p.Root)
	}
	r := &run{tree: &tree{}}
	if err := r.reopen(ctx, found, seen, o.running()); err != nil {
		return nil, err
	}
	r.parked = o.Parked
	if over(r.exec.View) { // another process has ended it meanwhile
		err := errors.Join(r.exec.Abandon(ctx, o.Kill), r.host.Close())
		return ended(ctx, rec, found, r.exec.View, &o), err
	}
	r.recording = rec
	if err := r.resume(); err != nil {
		return nil, errors.Join(err, r.exec.Abandon(ctx, o.Kill), r.host.Close())
	}
	return r.execute(ctx)
}

// goOn adds a turn to a run that has ended, and executes it.
//
//	the run                         the error is a *reason.UsageError
//	has ended                       nil; the Outcome is of the whole conversation
//	is executed                     that names agentctl send and attach
//	was interrupted, is suspended   that names agentctl resume
//	was started by a call, served   that says so
//	files were not kept             that says so
func goOn(ctx context.Context, o *RunOptions, rec *recording) (*Outcome, error) {
	found, err := journal.FindRun(o.State, o.Continue)
	if err != nil {
		return nil, (&reason.UsageError{Err: err}).WithHint("agentctl get runs lists the runs")
	}
	seen := &view.Run{}
	if err := runs.Fold(ctx, found, seen); err != nil {
		return nil, err
	}
	if err := answerable(found, seen); err != nil {
		return nil, err
	}
	record, err := plan.ReadRecord(found.Dir, seen)
	if err != nil {
		return nil, err
	}
	earlier := &plan.Earlier{Run: seen, Record: record}
	if begun := seen.Started.Workspace; record.Strategy != v1alpha1.StrategyInPlace && seen.Snapshot != "" && !seen.InSource {
		earlier.Files = environment.FilesDir(found.Dir, found.ID, begun.Source, begun.Git != nil)
	}
	p, err := o.turn(ctx, earlier)
	if err != nil {
		return nil, err
	}
	files := p.Workspace
	files.Dir = environment.FilesDir(found.Dir, found.ID, files.Source, files.Cloned)
	fresh := files.Strategy == v1alpha1.StrategyInPlace || seen.Snapshot == "" || seen.InSource
	if _, err := os.Lstat(files.Dir); err != nil && (!fresh || files.Cloned) {
		return nil, reason.Usagef("run %s cannot go on: its files were removed at its end, as spec.workspace.retain says", found.ID).
			WithHint("agentctl apply-changes run/" + found.ID + " applies its change: then it goes on with the files of its source")
	}
	return o.executeTurn(ctx, found, p, earlier, files, turnKind{fresh: fresh}, rec)
}

// turnKind is how a turn begins: with the files of the source as they are, or in the middle
// of the turn that a run was forked in.
type turnKind struct{ fresh, forked bool }

// executeTurn adds a turn to a run that no process executes, and executes it.
func (o *RunOptions) executeTurn(ctx context.Context, found journal.Found, p *plan.Plan, earlier *plan.Earlier, files workspace.Spec, kind turnKind, rec *recording) (*Outcome, error) {
	r := &run{opts: o, host: environment.NewHost(o.host()), folder: &folder{id: found.ID, dir: found.Dir}, newID: execution.NewIDs(time.Now), tree: &tree{}, redactor: &atomic.Pointer[secret.Redactor]{}}
	r.policies = policyNames(p.Policies)
	j, _, err := trail.Open(ctx, r.journaling())
	if err != nil {
		return nil, errors.Join(held(err), r.host.Close())
	}
	r.exec = execution.New(j, found.ID, found.Dir, r.newID, r.watch(earlier.Run))
	if err := r.addTurn(ctx, found, p, earlier, files, kind); err != nil {
		return nil, errors.Join(err, r.exec.Abandon(ctx, o.Kill), r.host.Close())
	}
	r.recording = rec
	return r.execute(ctx)
}

// readTurns reads what a run has done so far, and what its newest turn has declared.
func readTurns(ctx context.Context, found journal.Found) (*plan.Earlier, error) {
	seen := &view.Run{}
	if err := runs.Fold(ctx, found, seen); err != nil {
		return nil, err
	}
	record, err := plan.ReadRecord(found.Dir, seen)
	return &plan.Earlier{Run: seen, Record: record}, err
}

// answerable refuses a run that cannot go on with another turn.
func answerable(found journal.Found, v *view.Run) error {
	refused := func(format string, args ...any) *reason.UsageError {
		return reason.Usagef("run %s cannot go on: %s", found.ID, fmt.Sprintf(format, args...))
	}
	switch p := v.Started.Parent; {
	case p != nil:
		return refused("it was started by a call of run %s", p.Run).WithHint("agentctl run --continue run/" + p.Root + " -p TEXT")
	case v.Phase == view.Suspended && v.Finished != nil:
		return refused("its turn is suspended").WithHint("answer what it waits for (agentctl approve), then: agentctl resume run/" + found.ID)
	case v.Finished == nil && journal.Held(found.Dir):
		return refused("its turn is not over").WithHint("agentctl send run/" + found.ID + " TEXT sends it a message; agentctl attach run/" + found.ID + " shows it")
	case v.Finished == nil:
		return refused("its turn was interrupted").WithHint("end it with: agentctl resume run/" + found.ID)
	}
	return nil
}

// turn makes the plan of another turn.
func (o *RunOptions) turn(ctx context.Context, e *plan.Earlier) (*plan.Plan, error) {
	id := e.Run.ID
	switch {
	case o.Prompt == "" && o.Command == "":
		return nil, reason.Usagef("run %s goes on with a prompt", id).WithHint("say it with -p TEXT")
	case e.Record.Served:
		return nil, reason.Usagef("run %s cannot go on: clients made its calls, and no model", id)
	case o.Skill != "" || o.Workspace != "" || o.InPlace || o.ID != "" || o.Caller != nil || len(o.Documents) > 0:
		return nil, reason.Usagef("run %s goes on as it began: its files, its name and its model cannot be replaced by another kind", id)
	}
	if len(o.Paths) == 0 && o.Manifests == nil {
		if o.Paths = e.Record.Paths; len(o.Paths) == 0 {
			return nil, reason.Usagef("run %s: where its manifests were read from is not known", id).WithHint("name them with -f")
		}
		for _, path := range o.Paths {
			if _, err := os.Stat(path); err != nil {
				return nil, reason.Usagef("run %s: the manifests of the turn before: %w", id, err).WithHint("name them with -f")
			}
		}
	}
	if o.Verbatim {
		o.Prompt = prompt.Escape(o.Prompt)
	}
	planning := o.planning(nil)
	planning.Earlier, planning.Prefer = e, e.Run.Started.Agent
	p, err := planned(ctx, planning)
	if err != nil {
		return nil, err
	}
	if p.Carried != nil {
		return nil, reason.Usagef("run %s cannot go on: the manifests have the plan of a skill carried out, which takes no prompt", id)
	}
	if o.Pinned {
		if err := p.RequirePinned(); err != nil {
			return nil, err
		}
	}
	if o.locked != nil {
		if err := o.unmoved(p.Plan); err != nil {
			return nil, err
		}
	}
	return p, p.AdmitAttached(ctx)
}

// addTurn durably records that the run goes on, before anything else happens. No other process
// writes its journal.
func (r *run) addTurn(ctx context.Context, found journal.Found, p *plan.Plan, e *plan.Earlier, files workspace.Spec, kind turnKind) error {
	if err := runs.Fold(ctx, found, r.exec.View, r.exec.Recorder.Run()); err != nil {
		return err
	}
	if r.exec.View.LastSeq != e.Run.LastSeq {
		return reason.Usagef("run %s has changed at this moment", found.ID).WithHint("agentctl get run/" + found.ID + " shows its state; try again")
	}
	r.plan = p.Lean()
	d, err := r.declared(ctx, p, files)
	if err != nil {
		return err
	}
	changes := p.Since(e)
	for _, text := range changes.Texts {
		if changes.Rules && len(e.Run.Remembered) > 0 {
			r.warnings = append(r.warnings, "what was approved for always is asked about again: "+text)
			break
		}
	}
	turn := &event.Turn{
		Number: len(e.Run.Turns) + 1, Agent: d.Agent, Model: d.Model, Prompt: d.Prompt, Files: d.Files, Expansions: d.Expansions, Inputs: d.Inputs, Origin: d.Origin, InputOrigins: d.InputOrigins,
		Plan: d.Plan, Mode: d.Mode, Tools: d.Tools, ToolIsolation: d.ToolIsolation, User: d.User, RepositoryPolicies: d.RepositoryPolicies, Limits: d.Limits,
		Changed: changes.Texts, Forgets: changes.Rules, Fresh: kind.fresh,
	}
	resumed := event.RunResumed{Isolation: d.Isolation, OuterIsolation: d.OuterIsolation, Version: d.Version, Prices: d.Prices, Turn: turn}
	if kind.forked { // in the turn that it is in
		turn.Number--
		resumed.Turn, resumed.Fork = nil, turn
	}
	if err := r.exec.Resume(resumed, ""); err != nil {
		return err
	}
	r.connect(environment.Options{Workspace: files, Resumed: true, Snapshot: r.exec.View.Snapshot, State: r.exec.View.FilesState, StateUnknown: r.exec.View.FilesUnknown})
	return nil
}

// ended is the outcome of a run that had ended before.
func ended(ctx context.Context, rec *recording, found journal.Found, v *view.Run, o *ResumeOptions) *Outcome {
	out := &Outcome{Run: v, Journal: found.Dir}
	if rec != nil {
		out.Unrecorded = recordEnded(ctx, rec, found, v, o)
	}
	return out
}

// seal closes the journal of a run that was killed after its end was recorded
// and before the journal was closed. The result exists with or without it: a
// folder that cannot be written to, or whose own process is about to close the
// journal, is left alone.
func seal(ctx context.Context, found journal.Found, v *view.Run) {
	if report, err := journal.Verify(ctx, found.Dir); err != nil || report.Anchored {
		return
	}
	w, _, err := trail.Open(ctx, journal.Options{Dir: found.Dir, Run: found.ID})
	if err != nil {
		return
	}
	_ = workspace.Forget(environment.FilesDir(found.Dir, found.ID, v.Started.Workspace.Source, v.Started.Workspace.Git != nil))
	inbox.New(found.ID, found.Dir).Discard()
	_ = w.Close()
}

// over reports whether a run needs no process any more.
func over(v *view.Run) bool { return v.Finished != nil && v.Phase != view.Suspended }

// nothing is the error for a run of which nothing was kept.
func nothing(err error) error {
	return &reason.UsageError{Err: fmt.Errorf("nothing to resume: %w", err), Hint: "agentctl run starts a run; its id stands in each event"}
}

// running are the options with which the run continues.
func (o *ResumeOptions) running() *RunOptions {
	return &RunOptions{
		State: o.State, Approve: o.Approve, Terminal: o.Terminal, Version: o.Version, Events: o.Events, Children: o.Children, Kill: o.Kill, Leave: o.Leave, Drain: o.Drain, Present: o.Present,
		Timeout: o.Timeout, Containerd: o.Containerd, Telemetry: o.Telemetry, disk: o.disk,
	}
}

// reopen opens the journal of a run for writing, with everything that is in it.
func (r *run) reopen(ctx context.Context, found journal.Found, seen *view.Run, opts *RunOptions) error {
	record, err := plan.ReadRecord(found.Dir, seen)
	if err != nil {
		return err
	}
	opts.AllowUnsandboxed, opts.FailOnDenied = record.AllowUnsandboxed, record.FailOnDenied
	r.opts, r.host, r.redactor = opts, environment.NewHost(opts.host()), &atomic.Pointer[secret.Redactor]{}
	r.newID, r.system = execution.NewIDs(time.Now), record.System
	if r.folder == nil {
		r.folder = &folder{id: found.ID, dir: found.Dir}
	}
	if r.plan, err = record.Restore(seen, restoring(opts)); err != nil {
		return errors.Join(err, r.host.Close())
	}
	if err := r.plan.FetchSkills(ctx, artifact.OfSkills(opts.State, false)); err != nil {
		return errors.Join(err, r.host.Close())
	}
	r.policies = policyNames(r.plan.Policies)
	journaling := r.journaling()
	journaling.AcceptEnd = true // and a warning reports it
	j, repaired, err := trail.Open(ctx, journaling)
	if err != nil {
		return errors.Join(held(err), r.host.Close())
	}
	// From here on no other process writes; what was written since is read now.
	r.exec = execution.New(j, found.ID, found.Dir, r.newID, r.watch(seen))
	err = runs.Fold(ctx, found, r.exec.View, r.exec.Recorder.Run())
	if _, end := journal.DamagedAtEnd(err); end && j.Damage() != nil {
		err = nil
	}
	if err != nil {
		return errors.Join(err, r.exec.Abandon(ctx, opts.Kill), r.host.Close())
	}
	r.damage, r.repaired = j.Damage(), repaired
	return nil
}

// restoring are the options with which the plan of a run is restored.
func restoring(o *RunOptions) plan.Options {
	return plan.Options{State: o.State, Approve: o.Approve, Registries: registries()}
}

func held(err error) error {
	if _, ok := errors.AsType[*journal.HeldError](err); ok {
		return &reason.UsageError{Err: err, Hint: "it goes on there: wait until it has ended, or stop that process first"}
	}
	return err
}

// resume durably records that the run continues, before anything else happens.
func (r *run) resume() error {
	warning := ""
	if r.damage != nil {
		warning = damagedEnd(r.damage)
	}
	resumed := event.RunResumed{Isolation: string(r.host.Level()), OuterIsolation: sandbox.OuterIsolation(), Version: r.opts.Version}
	if basis := r.plan.Models().Basis(); !reflect.DeepEqual(basis, r.exec.View.Started.Prices) { // another version may know others
		resumed.Prices = basis
	}
	err := r.exec.Resume(resumed, warning)
	if err != nil {
		return err
	}
	if text := r.repaired.Warning(); text != "" {
		if err := r.exec.Recorder.Record(event.Warning{Message: text}); err != nil {
			return err
		}
	}
	files := r.plan.Workspace
	files.Dir, files.From = environment.FilesDir(r.folder.dir, r.folder.id, files.Source, files.Cloned), r.folder.from
	if r.folder.lent != nil {
		files = *r.folder.lent
	}
	r.connect(environment.Options{Workspace: files, Resumed: true, Snapshot: r.exec.View.Snapshot, State: r.exec.View.FilesState, StateUnknown: r.exec.View.FilesUnknown})
	return nil
}

// damagedEnd is the warning of a run that continues although the end of its
// journal is damaged.
func damagedEnd(d *journal.CorruptError) string {
	text := runs.Damaged + ": the end of the journal of this run is damaged (" + d.Error() + ")"
	if d.Missing > 0 {
		return fmt.Sprintf("%s; what the %d missing events recorded is lost: a call that they hold may have run, and may run again", text, d.Missing)
	}
	return text + "; the run continues from what is left"
}

// PathsOf are the paths that the manifests of the newest turn of a run were read from; none
// where they are not known.
func PathsOf(state, run string) []string {
	found, err := journal.FindRun(state, run)
	if err != nil {
		return nil
	}
	earlier, err := readTurns(context.Background(), found)
	if err != nil {
		return nil
	}
	return earlier.Record.Paths
}
