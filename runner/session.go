package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/fstree"
	"agentctl.dev/agentctl/runner/inbox"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/loop"
	"agentctl.dev/agentctl/runner/model/httpapi"
	"agentctl.dev/agentctl/runner/prompt"
	"agentctl.dev/agentctl/runner/sandbox"
	"agentctl.dev/agentctl/runner/secret"
	"agentctl.dev/agentctl/runner/statedir"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/tool/source/sources"
	"agentctl.dev/agentctl/runner/workspace"
	"agentctl.dev/agentctl/runner/workspace/gitguard"
)

// session is one run from its first event to its last.
type session struct {
	*plan
	opts RunOptions
	id   string
	dir  string // the run's folder
	// housed says that this process has made the run's folder.
	housed bool
	// policyNames are those of the plan.
	policyNames []string
	// taken says that the folder was there before: another run's, if it has a journal.
	taken bool
	// view is the loop's own fold of the run; the recorder has another, which
	// goes on while the loop thinks.
	view *view.Run
	ids  func(kind string) string
	// parked is that of ResumeOptions.
	parked bool

	journal  *journal.Writer
	recorder *recorder
	redactor atomic.Pointer[secret.Redactor]
	launcher *sandbox.Launcher
	pool     *tool.Pool
	files    *workspace.Workspace
	// transport is the one way to every model: a run keeps one connection to an
	// endpoint, whoever asks.
	transport *http.Transport

	// guarding is what git would run of files worked on in place, as it was before
	// the first program ran; nil for a copy. guardGit establishes it, once.
	guarding *gitguard.Guard
	guardGit func() error
	// recording is the cassette the run is to leave behind; nil is none.
	recording *recording
	// inbox is where messages to the run are left.
	inbox *inbox.Inbox
	// shortfalls are limits of tools that this host does not enforce.
	shortfalls shortfalls
	// touched says that a program has run and files may have changed.
	touched atomic.Bool
	// snapshot records the state of the files before the first program runs.
	snapshot func() error
}

// Run runs what the options say. The error is set only when no run came about:
// an *InvalidError or a *reason.UsageError (exit code 2), or a state folder that cannot
// be written. Everything that happens from there on is an Outcome with a reason.
func Run(ctx context.Context, o RunOptions) (*Outcome, error) {
	state, err := statedir.Find(o.State)
	if err != nil {
		return nil, err
	}
	o.State = state
	rec, err := newRecording(o.Record)
	if err != nil {
		return nil, err
	}
	s := newSession(o)
	if s.recording = rec; rec != nil {
		rec.renew = o.renew
	}
	if o.Shared == nil { // where there are many runs, that one starts early helps nobody
		s.launcher.Prepare()
	}
	p, err := newPlan(ctx, &s.opts, func(p *plan) {
		if s.pool.Contain(p.tools) == nil && s.settleIn(p) == nil && s.hold(p) == nil {
			s.pool.StartShipped(ctx, p.tools)
		}
	})
	if err == nil {
		err = s.open(ctx, p)
	}
	if err != nil {
		return nil, errors.Join(err, s.stop(), s.moveOut())
	}
	return s.run(ctx)
}

// settleIn gives a run its name and its folders; a second time is none. Errors
// of a run that cannot be written down are told when it is opened.
func (s *session) settleIn(p *plan) error {
	if s.id == "" {
		s.id = cmp.Or(s.opts.ID, runID(p.Agent.Name, s.ids))
		s.dir = journal.Dir(s.opts.State, s.id)
		_, err := os.Lstat(s.dir)
		s.taken = err == nil
	}
	p.files.Dir = folder(s.dir, s.id, p.files.Source)
	err := workspace.MakeDir(p.files)
	s.housed = err == nil && !s.taken
	return err
}

// moveOut takes the folders of a run away that never began.
func (s *session) moveOut() error {
	if !s.housed || s.journal != nil {
		return nil
	}
	return fstree.Remove(s.dir)
}

// newSession returns a session that has not begun.
func newSession(o RunOptions) *session {
	s := &session{opts: o, ids: newIDs(time.Now)}
	s.guardGit = sync.OnceValue(s.takeGit)
	s.launcher = sandbox.New(sandbox.Options{AllowUnsandboxed: o.AllowUnsandboxed, Outer: sandbox.OuterIsolation(), State: sandbox.ScratchDir(), Serve: s.serveSandbox, Lacks: s.lacking, Exceeded: s.exceeded})
	s.transport = httpapi.NewTransport()
	s.pool = tool.NewPool(tool.PoolOptions{Kinds: sources.All(), Launcher: s.launcher})
	return s
}

// run lives a run whose journal is open, and closes it.
func (s *session) run(ctx context.Context) (*Outcome, error) {
	left, limit := s.deadline()-s.view.Worked(time.Now()), fmt.Sprintf("limits.timeout of %s", s.deadline())
	if o := s.opts.Timeout; o > 0 && o < left {
		left, limit = o, fmt.Sprintf("--timeout of %s", o)
	}
	cause := reason.New(reason.DeadlineExceeded, "%s passed", limit).
		WithHint("raise spec.limits.timeout of the agent, or --timeout")
	live, cancel := context.WithTimeoutCause(ctx, left, cause)
	defer cancel()
	stop := s.killOnDemand() // programs are also waited for when the loop has ended
	defer stop()
	live, stay := s.leaveOnDemand(live)
	defer stay()
	end, err := s.live(live)
	if err != nil {
		end = loop.End{Reason: reason.Of(err), Message: err.Error(), Hint: reason.Hint(err)}
	}
	return s.close(ctx, end)
}

// open begins the journal; live sees to it that its first event is durable.
func (s *session) open(ctx context.Context, p *plan) error {
	s.plan = p
	s.snapshot = sync.OnceValue(s.recordFiles)
	if err := s.settleIn(p); err != nil {
		return fmt.Errorf("begin the run: %w", err)
	}
	err := s.admitAttached(ctx)
	if err != nil {
		return err
	}
	s.journal, err = journal.Create(ctx, s.journaling())
	if err != nil {
		return fmt.Errorf("begin the journal of run %s: %w", s.id, err)
	}
	s.recorder = newRecorder(s.journal, s.dir, s.opts.Events)
	if err := s.begin(ctx); err != nil {
		s.recorder.end(ctx, s.opts.Kill)
		return errors.Join(err, s.journal.Close())
	}
	return nil
}

func (s *session) journaling() journal.Options {
	return journal.Options{Dir: s.dir, Run: s.id, Write: s.opts.disk.write, Sync: s.opts.disk.sync, Redact: func(b []byte) []byte {
		return s.redactor.Load().JSON(b)
	}}
}

func (s *session) begin(ctx context.Context) error {
	inputs, err := json.Marshal(s.inputs)
	if err != nil {
		return fmt.Errorf("write down the inputs: %w", err)
	}
	files, err := s.keepAttached()
	if err != nil {
		return err
	}
	s.system = s.systemPrompt(ctx)
	record, err := s.record()
	if err != nil {
		return err
	}
	id, err := s.journal.PutBlob(record)
	if err != nil {
		return fmt.Errorf("write down the plan: %w", err)
	}
	if err := s.hears(); err != nil {
		return err
	}
	// A run may wait for hours. Its policies are written down, and judge compiled.
	s.policyNames = policyNames(s.Policies)
	s.Policies = nil
	maps.DeleteFunc(s.Sources, func(key, _ string) bool { return !admission.IsRuleKey(key) }) // refusals name their rules' lines
	started, err := s.recorder.Append(event.Event{Message: s.ids("msg"), Part: s.ids("part"), Data: event.RunStarted{
		Agent: s.Agent.Name, Model: refOf(s.Model), Prompt: s.prompt, Files: files, Inputs: inputs, Plan: id,
		Mode: string(s.Agent.Spec.Mode), Tools: s.callNames(),
		Workspace: event.Workspace{Source: s.plan.files.Source, Dir: s.root(), Strategy: string(s.plan.files.Strategy)},
		Isolation: string(s.launcher.Level()), ToolIsolation: otherLevels(s.tools, s.launcher.Level()), OuterIsolation: sandbox.OuterIsolation(),
		Version: s.opts.Version, User: s.opts.user(),
	}})
	if err != nil {
		return err
	}
	s.view = &view.Run{}
	if err := s.view.Apply(started); err != nil {
		return err
	}
	return nil
}

func policyNames(policies []*v1alpha1.Policy) []string {
	names := make([]string, len(policies))
	for i, p := range policies {
		names[i] = p.Name
	}
	return names
}

// settle makes durable what has been written so far, beside other work. The
// function it returns waits for that.
func (s *session) settle() (wait func() error) {
	done := make(chan error, 1)
	go func() { done <- s.recorder.Sync() }()
	return sync.OnceValue(func() error { return <-done })
}

// live prepares what the loop needs and lets it run. Whatever takes time and is
// needed only by a tool call goes on behind the first model request.
func (s *session) live(ctx context.Context) (loop.End, error) {
	begun := s.settle()
	defer func() { _ = begun() }() // nobody is left behind by an early return
	for _, w := range s.warnings {
		if err := s.recorder.tell(event.Warning{Message: w}); err != nil {
			return loop.End{}, err
		}
	}
	s.shortfalls.open(func(text string) { _ = s.recorder.tell(event.Warning{Message: text}) })
	if err := s.containable(ctx); err != nil {
		return loop.End{}, err
	}
	keys, err := s.secrets(ctx)
	if err != nil {
		return loop.End{}, err
	}
	if err := s.prepare(ctx); err != nil {
		return loop.End{}, unprepared(err)
	}
	if err := s.hold(s.plan); err != nil {
		return loop.End{}, err
	}
	s.pool.Pins = maps.Clone(s.Pins)
	s.pool.Past, s.pool.History = s.recorder.past, s.history
	s.pool.Start(ctx, shipped(s.tools))
	if err := s.describe(ctx); err != nil {
		return loop.End{}, err
	}
	gate, err := s.gate()
	if err != nil {
		return loop.End{}, err
	}
	files, release := s.fence(ctx, gate.Engine)
	defer release()
	s.pool.Start(ctx, foreign(s.tools)) // they are shown files, and so wait for the judge
	ahead, cancel := context.WithCancel(ctx)
	defer cancel()
	s.pool.Begin(ahead, s.tools)
	free := tool.FreeSpace(s.root())
	toolbox, err := tool.NewRegistry(tool.Options{
		Tools: s.tools, Serve: s.pool.Serve, Workspace: files, Blobs: s.journal, Now: time.Now,
		Redactor: s.redactor.Load(), Run: s.id, Agent: s.Agent.Name,
		Unreadable: gate.Unreadable, Masked: gate.Masked, Unseen: s.unseen(), Space: free, Growth: &tool.Growth{Limit: s.files.GrowthLimit(), Measure: s.files.Growth, Free: free},
	})
	if err != nil {
		return loop.End{}, err
	}
	offered := message.Prompt{System: s.system, Tools: toolbox.Specs(gate.HiddenTools()), Output: s.outputSchema(), CacheKey: "agentctl-" + s.Agent.Name}
	conversation, err := s.conversation(keys, offered)
	if err != nil {
		return loop.End{}, err
	}
	defer s.transport.CloseIdleConnections()
	defer closing(conversation)()
	approver, wait, dismiss := s.approver()
	defer dismiss()
	cfg := loop.Config{
		Model: discreetly(conversation, s.redactor.Load()), Gate: placedGate{gate, s.plan}, Approver: approver, Toolbox: toolbox, Journal: s.recorder,
		Inbox: s.hearing(), Files: workspaceState{s}, View: s.view, Now: time.Now, AskTime: wait, Parked: s.parked, NewID: s.ids, Limits: s.limits(), Guard: s.guard(),
		Context: s.context(offered),
	}
	hangUp, err := s.summarizer(keys, &cfg.Context)
	if err != nil {
		return loop.End{}, err
	}
	defer hangUp()
	if cfg.Answer, err = s.answer(); err != nil {
		return loop.End{}, err
	}
	if s.recording != nil {
		s.recording.observe(&cfg, gate.HiddenTools(), s.prices())
	}
	if err := begun(); err != nil { // a model is asked only in a run that can be found again
		return loop.End{}, err
	}
	if err := s.files.Ready(ctx); err != nil { // and only for files that are there
		return loop.End{}, unprepared(err)
	}
	return loop.Run(ctx, cfg)
}

// folder is where a run copies the files of a source folder; "" is none.
func folder(runDir, id, source string) string {
	name := "empty"
	if source != "" {
		name = filepath.Base(source)
	}
	return filepath.Join(runDir, "workspace", name+"_"+id)
}

// root is the folder the tools see.
func (s *session) root() string {
	if s.plan.files.Strategy == v1alpha1.StrategyInPlace {
		return s.plan.files.Source
	}
	return s.plan.files.Dir
}

// killOnDemand ends every program at once when the second signal comes.
func (s *session) killOnDemand() (stop func()) {
	if s.opts.Kill == nil {
		return func() {} // nobody can ask: no goroutine that waits for it
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-s.opts.Kill:
			_ = s.launcher.Close()
		case <-done:
		}
	})
	return func() { close(done); wg.Wait() }
}

// describe asks the plugins whose manifests do not say what they take.
func (s *session) describe(ctx context.Context) error {
	for i := range s.tools {
		if len(s.tools[i].Parameters) > 0 {
			continue
		}
		err := s.pool.Describe(ctx, &s.tools[i])
		if reason.Of(err) == reason.ToolChanged { // a run ends with a reason of runs
			err = reason.New(reason.ToolError, "%s: %w", reason.ToolChanged, err).WithHint("%s", reason.Hint(err))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// workspace waits for the files; the first to ask records their state.
func (s *session) workspace(ctx context.Context) (string, error) {
	if err := s.files.Ready(ctx); err != nil {
		return "", unprepared(err)
	}
	if err := s.snapshot(); err != nil { // once
		return "", err
	}
	s.touched.Store(true)
	return s.files.Dir(), nil
}

// prepare gives the run its files, or takes up those of an interrupted run.
func (s *session) prepare(ctx context.Context) (err error) {
	s.plan.files.Blobs, s.plan.files.MaxListed = s.journal, s.opts.maxListed
	if s.view.Attempt > 1 {
		return s.reopen(ctx)
	}
	s.files, err = workspace.Prepare(ctx, s.plan.files)
	return err
}

func (s *session) recordFiles() error {
	if s.plan.files.Strategy == v1alpha1.StrategyInPlace {
		if err := s.guardGit(); err != nil {
			return err
		}
	}
	base := s.files.Base()
	id, err := base.Record(s.journal)
	if err != nil {
		return reason.New(reason.WorkspaceUnavailable, "record the state of the workspace: %w", err)
	}
	for _, note := range s.files.Notes() {
		if err := s.recorder.tell(event.Warning{Message: "workspace: " + note}); err != nil {
			return err
		}
	}
	_, err = s.recorder.Append(event.Event{Part: s.ids("part"), Data: event.WorkspaceSnapshot{Snapshot: id, Files: base.Files, Bytes: base.Bytes}})
	if err == nil && s.plan.files.Strategy == v1alpha1.StrategyInPlace {
		// Nothing but this tells what stood there before the run: a copy could be
		// made anew after a crash of the machine.
		err = s.recorder.Sync()
	}
	return err
}

func unprepared(err error) error {
	if errors.Is(err, workspace.ErrUnsupported) {
		return reason.New(reason.IsolationUnavailable, "%w", err).WithHint("use spec.workspace.strategy Copy, InPlace or Empty")
	}
	if _, ok := errors.AsType[*reason.Error](err); ok || errors.Is(err, context.Canceled) {
		return err
	}
	out := reason.New(reason.WorkspaceUnavailable, "%w", err)
	switch {
	case errors.Is(err, workspace.ErrTooLarge):
		return out.WithHint("raise spec.workspace.sizeLimit, or leave folders out with spec.workspace.exclude")
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return out.WithHint("make room on the disk of the state folder, or choose another with --state")
	case errors.Is(err, fs.ErrPermission):
		return out.WithHint("make the folder readable, or leave it out with spec.workspace.exclude")
	}
	return out
}

// systemPrompt stays the same for the whole run, resumes included.
func (s *session) systemPrompt(ctx context.Context) string {
	return prompt.System{
		Instructions: s.instructions, Workspace: s.root(), Source: s.plan.files.Source, Git: s.git(), Programs: s.surroundings(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Date: time.Now(), ContextFiles: s.Agent.Spec.ContextFiles, Admit: s.admitContext(ctx), Unread: s.leaveOut,
	}.Text()
}
