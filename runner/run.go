package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/approval"
	"agentctl.dev/agentctl/runner/audit/trail"
	"agentctl.dev/agentctl/runner/caller"
	"agentctl.dev/agentctl/runner/environment"
	"agentctl.dev/agentctl/runner/evidence"
	"agentctl.dev/agentctl/runner/execution"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/loop"
	"agentctl.dev/agentctl/runner/model/httpapi"
	"agentctl.dev/agentctl/runner/plan"
	"agentctl.dev/agentctl/runner/policy"
	"agentctl.dev/agentctl/runner/sandbox"
	"agentctl.dev/agentctl/runner/secret"
	"agentctl.dev/agentctl/runner/statedir"
	"agentctl.dev/agentctl/runner/steps"
	"agentctl.dev/agentctl/runner/telemetry"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/workspace"
)

// run is one run in this process: its three parts and what connects them.
type run struct {
	opts *RunOptions
	plan *plan.Plan
	env  execution.Environment // until it is opened, an environment.Unopened
	exec *execution.Execution

	host      *environment.Host
	opening   environment.Options
	tools     []tool.Definition
	people    *execution.People
	folder    *folder
	redactor  *atomic.Pointer[secret.Redactor]
	transport *http.Transport
	recording *recording // nil: the run leaves no cassette
	// system is the system prompt, policies are the names of the plan's.
	system   string
	policies []string
	warnings []string
	newID    func(kind string) string
	parked   bool
	// files are those of the environment, once it is opened.
	files *environment.Files
	// parent is the run whose call has started this one; nil at the top. budget and tree
	// are shared with it.
	parent *run
	call   string
	// continues is the run whose conversation the prompt of this one holds; "" for none.
	continues string
	budget    *execution.Budget
	tree      *tree
	// damage is what is missing at the end of the journal of a resumed run.
	damage *journal.CorruptError
	// repaired is what was wrong with its audit log.
	repaired trail.Repair
	// traced makes the spans of the run; nil where none are sent.
	traced *telemetry.Run
}

// Run executes what the options name. The error is set only when no run was
// begun: an *InvalidError or a *reason.UsageError (exit code 2), or a state
// folder that cannot be written. Everything after that is an Outcome with a
// reason.
func Run(ctx context.Context, o RunOptions) (*Outcome, error) {
	if o.Caller != nil {
		defer o.Caller.End()
	}
	state, err := statedir.Find(o.State)
	if err != nil {
		return nil, err
	}
	o.State = state
	rec, err := newRecording(o.Record)
	if err != nil {
		return nil, err
	}
	if rec != nil {
		rec.renew = o.renew
	}
	if o.Locked != "" {
		if err := o.lock(); err != nil {
			return nil, err
		}
	}
	if o.Continue != "" {
		return goOn(ctx, &o, rec)
	}
	host, newID := environment.NewHost(o.host()), execution.NewIDs(time.Now)
	if o.Shared == nil { // with many runs in one process an early start gains nothing
		host.Prepare()
	}
	var dir folder
	var ahead *environment.Ahead
	planning := o.planning(func(early *plan.Plan) {
		if host.RequireSandboxes(early.Programs()) != nil {
			return
		}
		if files, err := dir.create(&o, early, newID); err == nil {
			ahead = host.StartShipped(ctx, early.Definitions, early.Checks(), files)
		}
	})
	planning.Clone = func(ctx context.Context, p *plan.Plan, git *v1alpha1.GitSource) (*plan.Repository, error) {
		return dir.clone(ctx, &o, p, git, newID, host)
	}
	p, err := planned(ctx, planning)
	if err == nil && o.Pinned {
		err = p.RequirePinned()
	}
	if err == nil && o.locked != nil {
		err = o.unmoved(p.Plan)
	}
	r := &run{opts: &o, host: host, folder: &dir, newID: newID, tree: &tree{}}
	if err == nil {
		err = r.begin(ctx, p, ahead)
	}
	if err != nil {
		return nil, errors.Join(err, host.Close(), dir.remove())
	}
	r.recording = rec
	return r.execute(ctx)
}

// planned makes the plan of a run on a goroutine of its own: admission needs 32 KB of
// stack, which the goroutine of the run would keep while it waits for a model.
func planned(ctx context.Context, o plan.Options) (p *plan.Plan, err error) {
	var wg sync.WaitGroup
	wg.Go(func() { p, err = plan.New(ctx, o) })
	wg.Wait()
	return p, err
}

// begin begins the journal; execute makes its first event durable.
func (r *run) begin(ctx context.Context, p *plan.Plan, ahead *environment.Ahead) error {
	files, err := r.folder.create(r.opts, p, r.newID)
	if err != nil {
		return fmt.Errorf("begin the run: %w", err)
	}
	if err := p.AdmitAttached(ctx); err != nil {
		return err
	}
	r.plan, r.redactor, r.policies = p.Lean(), &atomic.Pointer[secret.Redactor]{}, policyNames(p.Policies)
	j, err := trail.Create(ctx, r.journaling())
	if err != nil {
		return fmt.Errorf("begin the journal of run %s: %w", r.folder.id, err)
	}
	r.folder.kept = true
	r.exec = execution.New(j, r.folder.id, r.folder.dir, r.newID, r.watch(nil))
	if err := r.start(ctx, p, files); err != nil {
		return errors.Join(err, r.exec.Abandon(ctx, r.opts.Kill))
	}
	r.connect(environment.Options{Workspace: files, Ahead: ahead})
	return nil
}

// watch returns what is called with the events of the run: telemetry first, which never
// waits, and then who asked for them. Before is a resumed run as it was; nil for a new one.
func (r *run) watch(before *view.Run) func(event.Event) {
	o := telemetry.RunOptions{ID: r.folder.id, Call: r.call, Before: before, Redactor: r.redactor.Load}
	if r.parent != nil {
		o.Above = r.parent.traced
	}
	see := r.opts.Events
	if r.traced = r.opts.Telemetry.Begin(o); r.traced == nil {
		return see
	}
	return func(e event.Event) {
		r.traced.Event(e)
		if see != nil {
			see(e)
		}
	}
}

// start records the plan and the first event of the run.
func (r *run) start(ctx context.Context, p *plan.Plan, files workspace.Spec) error {
	started, err := r.declared(ctx, p, files)
	if err != nil {
		return err
	}
	started.Workspace, started.Parent, started.Audit = recordedFiles(p, files, r.opts), r.lineage(), trail.Begin()
	for above := r.parent; above != nil; above = above.parent { // what the run at the top must not change, a copy of its files must not
		if mode := above.exec.View.Started.Workspace.Apply; mode == string(v1alpha1.ApplyNever) {
			started.Workspace.Apply = mode
		}
	}
	return r.exec.Start(started)
}

// declared stores the plan, and returns what the first event of a run, or of a turn, says of it.
func (r *run) declared(ctx context.Context, p *plan.Plan, files workspace.Spec) (started event.RunStarted, err error) {
	inputs, err := json.Marshal(p.Inputs)
	if err != nil {
		return started, fmt.Errorf("write down the inputs: %w", err)
	}
	attached, err := r.storeAttached(p.Attached)
	if err != nil {
		return started, err
	}
	root, level := environment.Root(files), r.host.Level()
	system, warnings := p.SystemPrompt(ctx, root, level)
	r.system, r.warnings = system, append(p.Warnings, warnings...)
	record := p.Record(system)
	record.AllowUnsandboxed, record.FailOnDenied, record.Paths = r.opts.AllowUnsandboxed, r.opts.FailOnDenied, readAgain(r.opts.Paths)
	stored, err := json.Marshal(record)
	if err != nil {
		return started, fmt.Errorf("write down the plan: %w", err)
	}
	id, err := r.exec.Recorder.PutBlob(stored)
	if err != nil {
		return started, fmt.Errorf("write down the plan: %w", err)
	}
	started = event.RunStarted{
		Agent: p.Agent.Name, Model: plan.Asked(p.Model), Prompt: p.Prompt, Files: attached, Expansions: p.Expansions, Inputs: inputs, Plan: id,
		Mode: string(p.Agent.Spec.Mode), Tools: p.CallNames(),
		Isolation: string(level), ToolIsolation: plan.OtherLevels(p.Definitions, level), OuterIsolation: sandbox.OuterIsolation(),
		Version: r.opts.Version, User: r.opts.user(), RepositoryPolicies: p.Repository(), Prices: p.Models().Basis(), Limits: p.RecordedLimits(),
	}
	p.Origins.Record(&started)
	return started, nil
}

// readAgain are the paths from which another turn can read the manifests; none if they came
// from standard input.
func readAgain(paths []string) (all []string) {
	for _, path := range paths {
		abs, err := filepath.Abs(path)
		if path == "-" || err != nil {
			return nil
		}
		all = append(all, abs)
	}
	return all
}

// recordedFiles are the files of a run as its first event names them.
func recordedFiles(p *plan.Plan, files workspace.Spec, o *RunOptions) event.Workspace {
	w := event.Workspace{Git: cloned(p), Source: files.Source, Dir: environment.Root(files), Strategy: string(files.Strategy), Retain: string(p.Retain)}
	if p.Apply != v1alpha1.ApplyManual && !o.renew { // a cassette that is recorded again changes no folder
		w.Apply = string(p.Apply)
	}
	return w
}

// cloned is the repository of the run as its first event names it; nil for another source.
func cloned(p *plan.Plan) *event.GitClone {
	if p.Cloned == nil {
		return nil
	}
	return &p.Cloned.Clone
}

// storeAttached puts the attached files into blobs of the run.
func (r *run) storeAttached(attached []plan.Attachment) ([]message.File, error) {
	var files []message.File
	for _, a := range attached {
		id, err := r.exec.Recorder.PutBlob(a.Content)
		if err != nil {
			return nil, fmt.Errorf("keep the attached file %s: %w", a.Filename, err)
		}
		a.URL = "blob:" + id
		files = append(files, a.File)
	}
	return files, nil
}

func policyNames(policies []*v1alpha1.Policy) []string {
	names := make([]string, len(policies))
	for i, p := range policies {
		names[i] = p.Name
	}
	return names
}

func (r *run) journaling() journal.Options {
	disk := r.opts.journal()
	return journal.Options{Dir: r.folder.dir, Run: r.folder.id, Write: disk.write, Sync: disk.sync, Redact: func(b []byte) []byte {
		return r.redactor.Load().JSON(b)
	}}
}

// connect makes the people of a run whose execution has begun, and completes the options
// of its environment.
func (r *run) connect(o environment.Options) {
	p, x := r.plan, r.exec
	r.transport = httpapi.NewTransport()
	r.people = execution.NewPeople(execution.PeopleOptions{
		Run: x.Run, Dir: x.Dir, Declared: p.Agent.Spec.Approvals, Answers: p.Answers, Terminal: terminal(r.opts.Terminal),
		Agent: p.Agent.Name, Remembered: x.View.Remembered, Recorder: x.Recorder, Above: r.peopleAbove(), Of: r.asSubagent(),
	})
	r.budget = r.newBudget()
	o.Workspace.MaxListed, o.Kept = r.opts.maxListed, x.View.FilesKept
	o.Run, o.Agent, o.Dir, o.Tools, o.Models, o.Manifests = x.Run, p.Agent.Name, x.Dir, p.Definitions, p.Models().All(), p.Manifests
	o.Pins, o.Functions, o.Checks, o.RecordPrograms = p.Pins, p.Functions, p.Checks(), p.RecordsPrograms() || r.opts.recordPrograms
	o.Journal, o.NewID, o.OnSecrets = x.Recorder, r.newID, r.redactor.Store
	o.Past, o.History, o.Ask = x.Recorder.Past, x.Recorder.History, r.people.Ask
	o.Todos, o.Inquire, o.Inform = x.Recorder.Todos, r.people.Inquire, x.Recorder.Inform
	o.Subagents, o.Skills, o.Lent, o.Relay = r.startChild, p.Skills, r.lentFiles(), r.relay
	o.Items = tool.Items{Declared: p.Agent.Spec.Publish, Prepared: x.Recorder.Prepared}
	recorded := x.View.Started.Workspace
	if p.Cloned != nil {
		o.Known = append(o.Known, p.Cloned.Secret)
		if p.Cloned.Resolved != nil {
			o.Resolved = append(o.Resolved, *p.Cloned.Resolved)
		}
	}
	if r.parent != nil { // what the parent's tools were given may be in files that both see
		o.Known = append(o.Known, r.parent.redactor.Load().Values()...)
	}
	o.Apply, o.Retain = v1alpha1.ApplyMode(recorded.Apply), v1alpha1.RetainMode(recorded.Retain)
	o.Copies, o.Changed = x.Recorder.Copy, r.changedBy
	r.opening, r.tools, r.env = o, o.Tools, r.host.Unopened(&o)
}

// terminal asks on the streams of the process where they are a terminal; nil if
// they are not.
func terminal(t *Terminal) *approval.Terminal {
	if t == nil {
		return nil
	}
	in, file := t.In.(*os.File)
	out, files := t.Out.(*os.File)
	if file && files {
		return approval.Stdio(in, out)
	}
	return approval.NewTerminal(t.In, t.Out, nil)
}

// execute executes a run whose journal is open, and closes it.
func (r *run) execute(ctx context.Context) (*Outcome, error) {
	deadline := r.plan.Deadline()
	left, limit := deadline-r.exec.View.TurnWorked(time.Now()), fmt.Sprintf("limits.timeout of %s", deadline)
	if o := r.opts.Timeout; o > 0 && o < left {
		left, limit = o, fmt.Sprintf("--timeout of %s", o)
	}
	cause := reason.New(reason.DeadlineExceeded, "%s passed", limit).
		WithHint("raise spec.limits.timeout of the agent, or --timeout")
	work, cancel := context.WithTimeoutCause(ctx, left, cause)
	defer cancel()
	stop := r.killOnDemand() // programs are also waited for when the loop has ended
	defer stop()
	work, stay := r.exec.Recorder.LeaveOnDemand(work, r.opts.Leave, r.opts.Drain)
	defer stay()
	end, err := r.loop(work)
	if err != nil {
		end = r.opts.endOf(err)
	}
	unseen, err := r.exec.Finish(ctx, end, r.env, execution.FinishOptions{Evidence: r.judgesEvidence(), Priced: r.plan.Models().Priced(), Kill: r.opts.Kill})
	r.traced.End()
	if err != nil {
		return nil, err
	}
	out := &Outcome{Run: r.exec.Recorder.Run(), Journal: r.folder.dir, Unseen: unseen}
	if r.recording != nil && !r.exec.Left() {
		out.Unrecorded = r.recording.save(ctx, out.Run, r.folder.dir, r.tools, r.redactor.Load(), r.opts.Version)
	}
	return out, nil
}

// judgesEvidence judges what the agent declares of its runs; nil where it declares nothing.
func (r *run) judgesEvidence() execution.JudgeEvidence {
	declared, set := r.plan.Evidence(r.tools)
	if len(declared) == 0 {
		return nil
	}
	return func(ctx context.Context, v *view.Run) ([]event.Evidence, error) {
		return evidence.Judge(ctx, declared, set, v, r.exec.Recorder, nil)
	}
}

// killOnDemand ends every program at once when the second signal comes.
func (r *run) killOnDemand() (stop func()) {
	if r.opts.Kill == nil {
		return func() {} // there is no signal to wait for
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-r.opts.Kill:
			r.host.Kill()
		case <-done:
		}
	})
	return func() { close(done); wg.Wait() }
}

// loop prepares what the loop needs and runs it. Slow work that only a tool
// call needs continues during the first model request.
func (r *run) loop(ctx context.Context) (loop.End, error) {
	durable := r.exec.Settle()
	defer func() { _ = durable() }() // an early return leaves no goroutine behind
	defer r.people.Close()
	for _, w := range r.warnings {
		if err := r.exec.Recorder.Record(event.Warning{Message: w}); err != nil {
			return loop.End{}, err
		}
	}
	env, err := r.host.Open(ctx, r.opening)
	if err != nil {
		return loop.End{}, err
	}
	r.env, r.files = env, env.Files
	tools, err := env.Tools(ctx)
	if err != nil {
		return loop.End{}, err
	}
	r.tools = tools.Definitions
	rules, err := r.rules(env)
	if err != nil {
		return loop.End{}, err
	}
	gate := execution.NewGate(rules, r.exec.View, execution.GateOptions{Present: r.present(), Locate: r.locate(rules), Claims: tool.Claims(tools.Definitions)})
	toolbox, err := tools.Toolbox(ctx, gate)
	if err != nil {
		return loop.End{}, err
	}
	defer toolbox.Close()
	p, hidden := r.plan, gate.HiddenTools()
	if named := p.Named(); named != "" && slices.Contains(hidden, "task") {
		return loop.End{}, reason.New(reason.Denied, "the prompt asks for %s, and the policies deny every call of task", named).
			WithHint("add an allow rule for task; @%s in the prompt is only text", named)
	}
	s := execution.Setup{
		Models: r.models(env), Redactor: r.redactor.Load(), Gate: gate, People: r.people, Toolbox: toolbox, Files: env,
		Offered: message.Prompt{System: r.system, Tools: toolbox.Specs(hidden), Output: p.OutputSchema(), CacheKey: "agentctl-" + p.Agent.Name},
		Limits:  p.LoopLimits(), Guard: p.LoopGuard(), Parked: r.parked, Sent: r.opts.sent,
		Ready: func(ctx context.Context) error {
			if err := durable(); err != nil { // a model is asked only in a run that can be found again
				return err
			}
			return env.Prepared(ctx) // and only for files that are there
		},
	}
	if r.parent != nil {
		s.Limits.Budget = r.budget
	}
	s.Context = p.LoopContext(s.Offered)
	if s.Answer, err = p.LoopAnswer(r.opts.FailOnDenied); err != nil {
		return loop.End{}, err
	}
	if r.recording != nil {
		s.Observe = func(cfg *loop.Config) { r.recording.observe(cfg, hidden, p.Models().Prices()) }
	}
	switch {
	case p.Served:
		return r.serve(ctx, s, env.Root())
	case p.Carried != nil:
		return r.carry(ctx, s)
	}
	return r.exec.Loop(ctx, s)
}

// serve runs the loop with clients in place of a model. Without clients, as in a resume,
// it ends what was interrupted.
func (r *run) serve(ctx context.Context, s execution.Setup, files string) (loop.End, error) {
	clients := r.opts.Caller
	if clients == nil {
		clients = caller.New()
		clients.Close()
	}
	defer clients.End()
	s.Model, s.Observe = clients.Model(plan.Ref(r.plan.Model), r.newID), clients.Connect
	offer := caller.Offer{Run: r.exec.Run, Tools: s.Offered.Tools, Files: files, Blob: r.exec.Recorder.GetBlob}
	if r.plan.Workspace.Strategy == v1alpha1.StrategyCopy {
		offer.Source = r.plan.Workspace.Source
	}
	clients.Begin(offer) // calls wait until the run is durable and its files are there
	return r.exec.Loop(ctx, s)
}

// carry runs the loop with the plan of a skill in place of a model.
func (r *run) carry(ctx context.Context, s execution.Setup) (loop.End, error) {
	p := r.plan
	conversation, err := steps.New(steps.Options{
		Skill: p.Carried.Skill, Plan: &p.Carried.Plan, Inputs: p.Inputs, MaxSteps: int(p.Limits.MaxSteps), As: plan.Ref(p.Model),
	})
	if err != nil {
		return loop.End{}, err
	}
	observe := s.Observe
	s.Model, s.Observe = conversation, func(cfg *loop.Config) {
		cfg.Inbox = nil // a plan cannot be sent messages
		if observe != nil {
			observe(cfg)
		}
	}
	return r.exec.Loop(ctx, s)
}

// models are the models of the run, and how they are reached.
func (r *run) models(env *environment.Environment) execution.Models {
	p := r.plan
	return execution.Models{
		Agent: p.Agent.Name, Providers: registries().Providers, Answering: p.Models().Answering(), Summarizer: p.Summarizer, Key: env.Keys.Of, Priced: p.Limits.MaxCost != "",
		Prompt: p.Prompt, Inputs: p.Inputs, Transport: r.transport, Blob: r.exec.Recorder.GetBlob,
	}
}

// unheld are warnings about what this host lacks to hold calls to their facts.
func (r *run) unheld() []string {
	if why := sandbox.Unbound(); why != "" {
		return plan.Unbound(r.tools, why)
	}
	return plan.Unrecorded(r.tools, sandbox.Unrecorded())
}

// rules returns the engine that judges the run's calls.
func (r *run) rules(env *environment.Environment) (*policy.Engine, error) {
	p, level := r.plan, r.host.Level()
	c := p.PolicyContext(r.tools, level)
	for _, text := range append(plan.Reaching(r.tools, level), r.unheld()...) {
		env.Warn(text)
	}
	var err error
	if c.Run.Inputs, err = p.InputValues(); err != nil {
		return nil, err
	}
	c.Run.Name, c.Run.Interactive, c.Run.User = r.exec.Run, r.opts.Terminal != nil, r.exec.View.Started.User
	c.Workspace.Root, c.Ready = env.Root(), env.Ready
	if p.Carried != nil {
		c.Demand = steps.Demand(p.Carried.Skill, &p.Carried.Plan)
	}
	c.Calls, c.Denials = execution.Judged(r.exec.View)
	c.Budget = func() (b policy.Budget) {
		r.exec.Recorder.See(func(v *view.Run) { b = p.Budget(plan.UsedBy(v, time.Now())) })
		return b
	}
	c.Approvals = func() (a policy.Approvals) {
		r.exec.Recorder.See(func(v *view.Run) { a = policy.Approvals{Granted: v.Granted, Refused: v.Refused} })
		return a
	}
	c.Traced = r.opts.Traced
	return policy.NewEngine(p.Rules, c), nil
}

// present returns the rules as they are now, for a run whose policies can change.
func (r *run) present() func(context.Context) ([]*policy.Compiled, error) {
	if r.opts.Present == nil {
		return nil
	}
	return func(ctx context.Context) ([]*policy.Compiled, error) {
		policies, err := r.opts.Present(ctx, r.plan.Agent.Name, r.policies)
		if err != nil {
			return nil, err
		}
		return r.plan.Compile(policies), nil
	}
}

// locate finds where the rule of a decision is written.
func (r *run) locate(rules *policy.Engine) func(context.Context, message.ToolCall, message.Decision) (string, int) {
	all := r.plan.AllRules()
	return func(ctx context.Context, call message.ToolCall, d message.Decision) (string, int) {
		return r.plan.Locate(rules.Origin(ctx, all, call, d))
	}
}
