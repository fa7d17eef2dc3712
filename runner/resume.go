package runner

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/audit/trail"
	"agentctl.dev/agentctl/runner/environment"
	"agentctl.dev/agentctl/runner/execution"
	"agentctl.dev/agentctl/runner/inbox"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/plan"
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
	if err := r.plan.FetchSkills(ctx, images(opts.State, false)); err != nil {
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
	r.connect(environment.Options{Workspace: files, Resumed: true, Snapshot: r.exec.View.Snapshot})
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
