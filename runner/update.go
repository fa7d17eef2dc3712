package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/approval"
	"agentctl.dev/agentctl/runner/cassette"
	"agentctl.dev/agentctl/runner/prompt"
	"agentctl.dev/agentctl/runner/replay"
	"agentctl.dev/agentctl/runner/statedir"
	"agentctl.dev/agentctl/runner/tool/source/sources"
	"agentctl.dev/agentctl/runner/workspace"
)

// UpdateOptions say which cassette is recorded anew, and how the run goes. File is
// required.
type UpdateOptions struct {
	// File is the cassette.
	File string
	// Run is how the run goes. Without Paths it is of the recorded manifests; the
	// prompt and the inputs are the recorded ones, and so is the workspace unless it
	// is set. Record is not read.
	Run RunOptions
}

// Updated is a cassette that was recorded anew.
type Updated struct {
	// Outcome is that of the new run. Its Unrecorded is set when the cassette was
	// left as it was.
	*Outcome
	Change replay.Change
}

// Update runs a recorded run for real once more and records it in the place of the
// old one, when it came to an end that is worth keeping. Errors are those of Run
// and of Replay.
func Update(ctx context.Context, o UpdateOptions) (*Updated, error) {
	c, err := openCassette(o.File)
	if err != nil {
		return nil, err
	}
	was, err := recordedPlan(c)
	if err != nil {
		return nil, err
	}
	before := &view.Run{}
	for _, e := range c.Life() {
		if err := before.Apply(e.Event); err != nil {
			before.Warnings = append(before.Warnings, err.Error())
		}
	}
	run := o.Run
	run.Record, run.renew, run.retold = o.File, true, messagesOf(c)
	if run.Workspace == "" {
		if run.Workspace, err = recordedSource(before); err != nil {
			return nil, err
		}
	}
	var out *Outcome
	if len(run.Paths) > 0 {
		out, err = was.runManifests(ctx, c, run)
	} else {
		out, err = was.runAgain(ctx, c, run)
	}
	if err != nil {
		return nil, err
	}
	change := replay.Compare(before, out.Run)
	change.File, change.Written, change.Result = o.File, out.Unrecorded == nil, out.Result()
	return &Updated{Outcome: out, Change: change}, nil
}

// recordedSource is the folder the recorded run has worked for.
func recordedSource(v *view.Run) (string, error) {
	w := v.Started.Workspace
	if w.Source == "" {
		return "", nil
	}
	if _, err := os.Stat(w.Source); err != nil {
		return "", reason.Usagef("the recorded workspace %s is not there", w.Source).WithHint("name the folder to work on with --workspace")
	}
	return w.Source, nil
}

// runManifests runs what manifests say today on the recorded prompt.
func (v *relived) runManifests(ctx context.Context, c *cassette.Cassette, o RunOptions) (*Outcome, error) {
	if o.Prompt == "" { // what was filled in is data, and is not filled in again
		o.Prompt = prompt.Escape(v.prompt)
	}
	o.inputs, o.attached = v.inputs, attachments(c)
	o.FailOnDenied = o.FailOnDenied || v.record.FailOnDenied
	if o.Agent == "" && !slices.Contains(o.Paths, "-") {
		_, catalog, _ := admission.Read(ctx, o.Paths, nil, admission.Options{Tools: sources.All()})
		if _, ok := catalog.Agents[v.Agent.Name]; ok {
			o.Agent = v.Agent.Name
		}
	}
	return Run(ctx, o)
}

// runAgain runs the recorded plan.
func (v *relived) runAgain(ctx context.Context, c *cassette.Cassette, o RunOptions) (*Outcome, error) {
	state, err := statedir.Find(o.State)
	if err != nil {
		return nil, err
	}
	o.State = state
	o.FailOnDenied = o.FailOnDenied || v.record.FailOnDenied
	o.AllowUnsandboxed = o.AllowUnsandboxed || v.record.AllowUnsandboxed
	rec, err := newRecording(o.Record)
	if err != nil {
		return nil, err
	}
	rec.renew = true
	p, err := v.fresh(c, &o)
	if err != nil {
		return nil, err
	}
	s := newSession(o)
	s.recording = rec
	s.launcher.Prepare()
	if err = s.pool.Contain(p.tools); err == nil {
		err = s.open(ctx, p)
	}
	if err != nil {
		return nil, errors.Join(err, s.stop(), s.moveOut())
	}
	return s.run(ctx)
}

// fresh is the recorded plan as that of a new run.
func (v *relived) fresh(c *cassette.Cassette, o *RunOptions) (*plan, error) {
	r := v.record
	p := &plan{
		Plan: r.Plan, compiled: r.Compiled(), prompt: v.prompt, inputs: v.inputs, manifests: r.Manifests, attached: attachments(c),
		files: workspace.Spec{Strategy: r.Strategy, Exclude: r.Exclude, SizeLimit: r.SizeLimit, GrowthLimit: r.GrowthLimit, Skip: []string{o.State}},
	}
	var err error
	if p.tools, err = define(r.Plan); err != nil {
		return nil, err
	}
	if p.instructions, err = prompt.Fill(p.Agent.Spec.Instructions, p.inputs); err != nil {
		return nil, reason.Usagef("agent %q: spec.instructions: %w", p.Agent.Name, err)
	}
	if p.answers, err = approval.Parse(o.Approve); err != nil {
		return nil, &reason.UsageError{Err: err}
	}
	if o.Workspace != "" {
		if p.files.Source, err = filepath.EvalSymlinks(o.Workspace); err == nil {
			p.files.Source, err = filepath.Abs(p.files.Source)
		}
		if err != nil {
			return nil, reason.Usagef("workspace %s: %w", o.Workspace, err).WithHint("name an existing folder with --workspace")
		}
	}
	return p, p.usable()
}

// attachments are the files that went to the model with the recorded prompt.
func attachments(c *cassette.Cassette) (all []attachment) {
	started, _ := c.Events[0].Data.(event.RunStarted) // reading has seen to it
	for _, f := range started.Files {
		i := slices.IndexFunc(c.Blobs, func(b cassette.Blob) bool { return "blob:"+b.ID == f.URL })
		if i >= 0 {
			all = append(all, attachment{f, c.Blobs[i].Content})
		}
	}
	return all
}

// worthKeeping says why a run takes no recording's place: it failed for reasons
// that have nothing to do with the agent.
func worthKeeping(f *event.RunFinished) error {
	switch r := reason.Reason(f.Reason); r {
	case reason.CredentialMissing, reason.CredentialRejected, reason.ProviderUnavailable, reason.IsolationUnavailable, reason.WorkspaceUnavailable, reason.Cancelled, reason.Internal:
		return fmt.Errorf("the run ended %s: the cassette stays as it was", r)
	default:
		return nil
	}
}
