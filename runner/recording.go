package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/cassette"
	"agentctl.dev/agentctl/runner/cassette/collect"
	"agentctl.dev/agentctl/runner/environment"
	"agentctl.dev/agentctl/runner/execution"
	"agentctl.dev/agentctl/runner/image/artifact"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/keys"
	"agentctl.dev/agentctl/runner/loop"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/plan"
	"agentctl.dev/agentctl/runner/prompt"
	"agentctl.dev/agentctl/runner/replay"
	"agentctl.dev/agentctl/runner/secret"
	"agentctl.dev/agentctl/runner/statedir"
	"agentctl.dev/agentctl/runner/tool"
)

// recordTime bounds the writing of a cassette when the run has ended.
const recordTime = 30 * time.Second

// recording is the data of a cassette that the journal of the run does not
// have.
type recording struct {
	// name is the path as given, file the absolute path.
	name, file string
	hidden     []string
	facts      cassette.Facts
	// renew keeps a cassette that is there unless the run is worth it.
	renew bool
}

// newRecording refuses a place that cannot be written before anything runs. ""
// records nothing.
func newRecording(name string) (*recording, error) {
	if name == "" {
		return nil, nil //nolint:nilnil // nothing is to be recorded
	}
	file, err := cassette.Place(name)
	if err != nil {
		return nil, reason.Usagef("record the run: %w", err).WithHint("name a file in a folder that can be written with --record")
	}
	if otherFile(file) {
		return nil, reason.Usagef("record the run: %s is there already and is no cassette", name).WithHint("name another file with --record, or remove that one")
	}
	return &recording{name: name, file: file}, nil
}

// otherFile reports whether something other than a cassette is at that path: a
// manifest or a journal that was named by mistake is not overwritten. A damaged
// cassette, or one of another version, is a cassette.
func otherFile(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false // nothing is there, or writing reports the error
	}
	defer f.Close() //nolint:errcheck // nothing was written
	begin := make([]byte, len(cassetteBegins))
	n, err := io.ReadFull(f, begin)
	return !errors.Is(err, io.EOF) && string(begin[:n]) != cassetteBegins
}

// cassetteBegins is how every cassette begins.
const cassetteBegins = `{"cassette":`

// observe notes what the loop was given.
func (r *recording) observe(cfg *loop.Config, hidden []string, prices map[string]model.Price) {
	r.hidden = hidden
	r.facts = cassette.Facts{
		Window: cfg.Context.Window, SummarizerWindow: cfg.Context.SummarizerWindow, ReserveOutput: cfg.Limits.ReserveOutput,
		PromptBytes: cfg.Context.PromptBytes,
		Prices:      make(map[string]cassette.Price, len(prices)),
	}
	for name, p := range prices {
		kept := cassette.Price{Pricing: p.Pricing, LongAbove: p.LongAbove}
		if p.LongAbove > 0 {
			kept.Long = &p.Long
		}
		r.facts.Prices[name] = kept
	}
}

// recordedPrices are the prices of a recording.
func recordedPrices(f cassette.Facts) map[string]model.Price {
	prices := make(map[string]model.Price, len(f.Prices))
	for name, p := range f.Prices {
		known := model.Price{Pricing: p.Pricing, LongAbove: p.LongAbove}
		if p.Long != nil {
			known.Long = *p.Long
		}
		prices[name] = known
	}
	return prices
}

// save writes the cassette of a run whose journal is closed. A run that cannot
// be replayed exactly is not recorded: the file stays as it is.
func (r *recording) save(ctx context.Context, v *view.Run, dir string, tools []tool.Definition, redactor *secret.Redactor, version string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	switch {
	case v.Finished == nil || v.Finished.Phase == view.Suspended:
		return errors.New("the run has not ended: agentctl resume --record FILE records it when it has")
	case !slices.ContainsFunc(v.Said(), func(m *message.Message) bool { return m.Role == message.RoleAssistant }):
		return errors.New("the run ended before the model was asked anything")
	}
	if r.renew {
		if err := worthKeeping(v.Finished); err != nil {
			return err
		}
	}
	c := &cassette.Cassette{Name: r.name, Facts: r.facts, Header: cassette.Header{
		Version: version, Recorded: v.EndTime.UTC().Format(time.RFC3339), Run: v.ID, Agent: v.Started.Agent,
	}}
	plan, err := journal.ReadBlob(dir, v.Started.Plan)
	if err != nil {
		return err
	}
	c.Plan = redactor.JSON(plan)
	for i := range tools {
		d := &tools[i]
		if len(d.Parameters) == 0 {
			return fmt.Errorf("tool %q: only its plugin knows what it takes, and it is not running any more", d.Name)
		}
		c.Tools = append(c.Tools, cassette.Tool{
			Name: d.Name, Description: redactor.String(d.Description), Parameters: redactor.JSON(d.Parameters), Hidden: slices.Contains(r.hidden, d.Name),
			Of: d.Of, Function: ofSeveral(d),
		})
	}
	if c.Blobs, err = collect.Blobs(dir, collect.Files(v), redactor); err != nil {
		return err
	}
	if c.Events, err = collect.Events(ctx, dir, redactor); err != nil {
		return fmt.Errorf("read the journal of run %s: %w", v.ID, err)
	}
	if c, err = proven(ctx, c); err != nil {
		return err
	}
	return c.Save(r.file)
}

// ofSeveral is the name of a function inside its program; "" for a Tool with one function.
func ofSeveral(d *tool.Definition) string {
	if d.Of == "" {
		return ""
	}
	return d.Function
}

// proven reads a cassette back and replays it: a cassette that cannot be
// replayed is useless.
func proven(ctx context.Context, c *cassette.Cassette) (*cassette.Cassette, error) {
	var text bytes.Buffer
	if err := c.Write(&text); err != nil {
		return nil, err
	}
	read, err := cassette.Read(c.Name, &text)
	if err != nil {
		return nil, err
	}
	replayed, err := replayCassette(ctx, read, nil)
	if err != nil {
		return nil, err
	}
	if d := replayed.Divergence; d != nil {
		return nil, fmt.Errorf("its replay goes another way: %w", d)
	}
	return read, nil
}

// recordEnded writes the cassette of a run that had ended before.
func recordEnded(ctx context.Context, rec *recording, found journal.Found, v *view.Run, o *ResumeOptions) error {
	r, err := plan.ReadRecord(found.Dir, v)
	if err != nil {
		return err
	}
	p, err := r.Restore(v, restoring(o.running()))
	if err == nil {
		p.Definitions, err = p.Called()
	}
	if err != nil {
		return err
	}
	cfg := loop.Config{Limits: p.LoopLimits(), Context: p.LoopContext(message.Prompt{})}
	cfg.Context.PromptBytes = 0 // the schemas of that time are not kept
	rec.observe(&cfg, nil, p.Models().Prices())
	redactor, err := hiding(ctx, p, secret.Resolver{Stored: keys.Lookup(o.State)})
	if err != nil {
		return err
	}
	return rec.save(ctx, v, found.Dir, p.Definitions, redactor, o.Version)
}

// hiding returns a redactor of the secrets of a plan, for what its run recorded before
// they were known: its prompt and its inputs. A value that cannot be resolved now cannot
// be searched for either.
func hiding(ctx context.Context, p *plan.Plan, r secret.Resolver) (*secret.Redactor, error) {
	values := secret.ProxyPasswords()
	resolve := func(field string, from *v1alpha1.ValueFrom) error {
		if from == nil {
			return nil
		}
		v, err := r.Resolve(ctx, field, *from)
		if err != nil {
			return fmt.Errorf("its prompt cannot be searched for secrets: %w", err)
		}
		values = append(values, v)
		return nil
	}
	for _, m := range p.Models().All() {
		if m.Spec.APIKey == nil {
			continue
		}
		if err := resolve(fmt.Sprintf("model %q: spec.apiKey", m.Name), &m.Spec.APIKey.ValueFrom); err != nil {
			return nil, err
		}
	}
	for _, d := range p.Definitions {
		for i, v := range d.Spec.Env {
			if err := resolve(fmt.Sprintf("tool %q: spec.env[%d]", d.Name, i), v.ValueFrom); err != nil {
				return nil, err
			}
		}
		for _, s := range d.Secrets {
			if err := resolve(fmt.Sprintf("tool %q: %s", d.Name, s.Field), &s.From); err != nil {
				return nil, err
			}
		}
	}
	return secret.NewRedactor(values...), nil
}

// UpdateOptions name the cassette to record again, and how to run it. File is
// required.
type UpdateOptions struct {
	// File is the cassette.
	File string
	// Run are the options of the run. Without Paths the recorded manifests are
	// used. The prompt and the inputs are the recorded ones, and so is the
	// workspace unless it is set. Record is ignored.
	Run RunOptions
	// Replace makes the run that of the options alone, with their prompt and their values
	// in place of the recorded ones. A cassette that is not there, or cannot be read, is
	// recorded as well.
	Replace bool
}

// Updated is a cassette that was recorded again.
type Updated struct {
	// Outcome is that of the new run. Its Unrecorded is set when the cassette was
	// left as it was.
	*Outcome
	Change replay.Change
	// Unread is why the old cassette could not be compared: it was not there, or is
	// damaged; nil if it was.
	Unread error
}

// Update executes a recorded run for real again. The new recording replaces the
// old one when the run came to an end that is worth keeping. Errors are those
// of Run and of Replay.
func Update(ctx context.Context, o UpdateOptions) (*Updated, error) {
	c, err := openCassette(o.File)
	if err != nil && !o.Replace {
		return nil, err
	}
	if o.Replace {
		return replaceCassette(ctx, c, err, o)
	}
	if n := c.Turns(); n > 1 {
		return nil, reason.Usagef("%s holds a conversation of %d turns, and only its newest one could run again", o.File, n).
			WithHint("record a new one with: agentctl run --continue RUN -p TEXT --record " + o.File)
	}
	was, err := recordedPlan(c)
	if err != nil {
		return nil, err
	}
	before := recordedRun(c)
	run := o.Run
	run.Record, run.renew, run.sent = o.File, true, messagesOf(c)
	if run.Workspace == "" {
		if run.Workspace, err = recordedSource(before); err != nil {
			return nil, err
		}
	}
	var out *Outcome
	if len(run.Paths) > 0 || run.Manifests != nil {
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

// recordedRun is the run of a cassette.
func recordedRun(c *cassette.Cassette) *view.Run {
	v := &view.Run{}
	for _, e := range c.Life() {
		if err := v.Apply(e.Event); err != nil {
			v.Warnings = append(v.Warnings, err.Error())
		}
	}
	return v
}

// replaceCassette runs what the options say, and records it. Unread is why there is no
// recording to compare it with.
func replaceCassette(ctx context.Context, c *cassette.Cassette, unread error, o UpdateOptions) (*Updated, error) {
	run := o.Run
	run.Record, run.renew = o.File, true
	if c != nil {
		run.sent = messagesOf(c)
	}
	out, err := Run(ctx, run)
	if err != nil {
		return nil, err
	}
	u := &Updated{Outcome: out, Unread: unread}
	if c != nil {
		if before := recordedRun(c); before.Finished != nil && out.Run.Finished != nil {
			u.Change = replay.Compare(before, out.Run)
		}
	}
	u.Change.File, u.Change.Written, u.Change.Result = o.File, out.Unrecorded == nil, out.Result()
	return u, nil
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
		o.Authored, o.expansions = false, r.Expansions
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
	if err := p.FetchSkills(ctx, artifact.OfSkills(o.State, false)); err != nil {
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
