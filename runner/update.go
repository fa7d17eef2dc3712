package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/cassette"
	"agentctl.dev/agentctl/runner/environment"
	"agentctl.dev/agentctl/runner/execution"
	"agentctl.dev/agentctl/runner/plan"
	"agentctl.dev/agentctl/runner/prompt"
	"agentctl.dev/agentctl/runner/replay"
	"agentctl.dev/agentctl/runner/statedir"
)

// UpdateOptions name the cassette to record again, and how to run it. File is
// required.
type UpdateOptions struct {
	// File is the cassette.
	File string
	// Run are the options of the run. Without Paths the recorded manifests are
	// used. The prompt and the inputs are the recorded ones, and so is the
	// workspace unless it is set. Record is ignored.
	Run RunOptions
}

// Updated is a cassette that was recorded again.
type Updated struct {
	// Outcome is that of the new run. Its Unrecorded is set when the cassette was
	// left as it was.
	*Outcome
	Change replay.Change
}

// Update executes a recorded run for real again. The new recording replaces the
// old one when the run came to an end that is worth keeping. Errors are those
// of Run and of Replay.
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
	run.Record, run.renew, run.sent = o.File, true, messagesOf(c)
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
	switch {
	case w.Source == "":
		return "", nil
	case w.Git != nil:
		return "", reason.Usagef("the recorded run worked on a clone of %s", w.Git.URL).WithHint("clone it at " + w.Git.Commit + ", and name that folder with --workspace")
	}
	if _, err := os.Stat(w.Source); err != nil {
		return "", reason.Usagef("the recorded workspace %s is not there", w.Source).WithHint("name the folder to work on with --workspace")
	}
	return w.Source, nil
}

// runManifests runs today's manifests on the recorded prompt.
func (r *recorded) runManifests(ctx context.Context, c *cassette.Cassette, o RunOptions) (*Outcome, error) {
	if o.Prompt == "" { // what was filled in is data, and is not filled in again
		o.Prompt, o.origins.Prompt = prompt.Escape(r.Prompt), r.Origins.Prompt
	}
	o.origins.Inputs = r.Origins.Inputs
	o.inputs, o.attached = r.Inputs, attachments(c)
	o.FailOnDenied = o.FailOnDenied || r.record.FailOnDenied
	o.prefer = r.Agent.Name
	return Run(ctx, o)
}

// runAgain runs the recorded plan.
func (r *recorded) runAgain(ctx context.Context, c *cassette.Cassette, o RunOptions) (*Outcome, error) {
	state, err := statedir.Find(o.State)
	if err != nil {
		return nil, err
	}
	o.State = state
	o.FailOnDenied = o.FailOnDenied || r.record.FailOnDenied
	o.AllowUnsandboxed = o.AllowUnsandboxed || r.record.AllowUnsandboxed
	rec, err := newRecording(o.Record)
	if err != nil {
		return nil, err
	}
	rec.renew = true
	o.attached = attachments(c)
	started, _ := c.Events[0].Data.(event.RunStarted) // reading has checked it
	p, err := r.record.Again(started, o.planning(nil))
	if err != nil {
		return nil, err
	}
	host, newID := environment.NewHost(o.host()), execution.NewIDs(time.Now)
	host.Prepare()
	var dir folder
	again := &run{opts: &o, host: host, folder: &dir, newID: newID, tree: &tree{}}
	if err = host.RequireSandboxes(p.Definitions); err == nil {
		err = again.begin(ctx, p, nil)
	}
	if err != nil {
		return nil, errors.Join(err, host.Close(), dir.remove())
	}
	again.recording = rec
	return again.execute(ctx)
}

// attachments are the files that went to the model with the recorded prompt.
func attachments(c *cassette.Cassette) (all []plan.Attachment) {
	started, _ := c.Events[0].Data.(event.RunStarted) // reading has checked it
	for _, f := range started.Files {
		i := slices.IndexFunc(c.Blobs, func(b cassette.Blob) bool { return "blob:"+b.ID == f.URL })
		if i >= 0 {
			all = append(all, plan.Attachment{File: f, Content: c.Blobs[i].Content})
		}
	}
	return all
}

// worthKeeping returns why a run does not replace a recording: it failed for
// reasons that have nothing to do with the agent.
func worthKeeping(f *event.RunFinished) error {
	switch r := reason.Reason(f.Reason); r {
	case reason.CredentialMissing, reason.CredentialRejected, reason.ProviderUnavailable, reason.IsolationUnavailable, reason.WorkspaceUnavailable, reason.Cancelled, reason.Internal:
		return fmt.Errorf("the run ended %s: the cassette stays as it was", r)
	default:
		return nil
	}
}

// messagesOf are the messages that were sent to the recorded run.
func messagesOf(c *cassette.Cassette) (all []execution.Sent) {
	steps := 0
	for _, e := range c.Life() {
		switch d := e.Data.(type) {
		case event.StepStart:
			steps = d.Step
		case event.MessageReceived:
			all = append(all, execution.Sent{Incoming: d.Incoming, Steps: steps})
		}
	}
	return all
}
