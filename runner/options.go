package runner

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/agenttest/engine"
	"agentctl.dev/agentctl/runner/approval"
	"agentctl.dev/agentctl/runner/caller"
	"agentctl.dev/agentctl/runner/environment"
	"agentctl.dev/agentctl/runner/execution"
	"agentctl.dev/agentctl/runner/image/artifact"
	"agentctl.dev/agentctl/runner/lock"
	"agentctl.dev/agentctl/runner/loop"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/model/provider"
	"agentctl.dev/agentctl/runner/plan"
	"agentctl.dev/agentctl/runner/policy"
	"agentctl.dev/agentctl/runner/telemetry"
	"agentctl.dev/agentctl/runner/tool/source/sources"
)

// RunOptions are what to run and how. Paths, Documents or Manifests are required.
type RunOptions struct {
	// Paths are files, folders or "-" (Stdin) with manifests.
	Paths []string
	Stdin io.Reader
	// Documents are objects that are in no file, instead of Paths. Their paths
	// are absolute, and a run whose Run object names no workspace has an empty
	// one.
	Documents []Document
	// Manifests were read before, in place of Paths: the runs of one process can share them.
	Manifests *Manifests
	// WithoutRun leaves out the Run objects of the manifests, and what they name.
	WithoutRun bool
	// ID is the id of the run and the name of its folder; "" makes one. A run
	// whose journal exists already is not begun a second time.
	ID string

	// Continue is a run that has ended, named as ResumeOptions.Ref is: the prompt is its next
	// turn, in the same journal and on the same files. Without Paths the manifests are those
	// of the turn before, as they are now. ID, Skill, Workspace, InPlace, Caller and Documents
	// do not go with it. "" begins a run.
	Continue string

	// Agent and Model choose by name where the manifests hold several; Model
	// replaces the agent's own.
	Agent, Model string
	// Models replace those of the agents that the agent starts, by the names of these.
	Models map[string]string
	// Skill is the name of a Skill whose plan is carried out in place of asking the agent's
	// model, which needs no key then; the agent's tools, policies and limits hold. "" is that
	// of the Run object; without one the model is asked.
	Skill string
	// Prompt is the first user message; it replaces the Run object's. "" leaves that.
	Prompt string
	// Authored: the prompt was written by the person that begins the run, so @path, @agent and
	// !`command` in it are done. Data are the parts of it that the person has not written, such
	// as what was pasted: they are neither scanned nor filled in.
	Authored bool
	Data     []Span
	// Command is a command of the Paths (commands/NAME.md) in place of a Prompt, and
	// Arguments are put into its text. "" is none.
	Command   string
	Arguments []string
	// Verbatim: the prompt of a run that goes on is data, and no input is filled into it.
	Verbatim bool
	// Attach are images and PDF files that go to the model with the prompt.
	Attach []string
	// Inputs are data for the agent; they replace single inputs of the Run object.
	Inputs map[string]string

	// Policies are names of policies that narrow the run and every run below it, besides
	// those that the Run object names.
	Policies []string
	// WithoutRepository leaves out the policies that the repository brings which the run
	// works on (.agentctl/policies in its folder). They only tighten.
	WithoutRepository bool

	// Workspace is the folder to work on; "" is the Run object's, else the
	// current folder. InPlace works on the folder itself instead of a copy.
	Workspace string
	InPlace   bool

	// User is who began the run, for rules that read run.user; "" is the local
	// account, and unknown where Documents are given.
	User string

	// State is the folder that holds runs; see statedir.Find.
	State string
	// Approve answers questions: never, prompt, all, "all,R3", or a file of call
	// hashes. "" is prompt where Terminal is set, else never.
	Approve string
	// Answers answers the questions of the run in place of Approve and Terminal. Optional.
	Answers Answers
	// Terminal is where a person can be asked; nil where there is no person.
	Terminal *Terminal

	// Timeout narrows the agent's limits.timeout; 0 leaves it.
	Timeout time.Duration
	// Keys is the state folder whose stored keys are used; "" is State.
	Keys string
	// Volatile writes the journal without waiting for the disk: a run whose journal nobody
	// needs after a crash of the machine takes less time.
	Volatile bool
	// Traced is called with what each policy said about each call and each result, also of
	// the runs below, by several goroutines; nil: rules are not asked a second time.
	Traced func(policy string, t policy.RuleTrace, result bool)
	// AllowUnsandboxed runs tools that ask for a sandbox without one.
	AllowUnsandboxed bool
	// Containerd is the socket of containerd; "" is CONTAINERD_ADDRESS, else the
	// default socket.
	Containerd string
	// FailOnDenied ends a run in which a call was refused with exit code 3.
	FailOnDenied bool

	// Pinned refuses a run that may ask a model whose name has no version.
	Pinned bool

	// Locked is the lock that what the run uses is compared with; "" is none. The run does
	// not begin if it differs: LockDrift.
	Locked string

	// Record is the file for the cassette of the run, written when it has ended;
	// "" records nothing. An existing file is replaced then, atomically.
	Record string

	// Pins are the required descriptions of tools, by call name, as
	// ToolFacts.Digest: a call whose program describes the tool differently is
	// refused with ToolChanged. For a tool without a pin, the first description
	// of its program counts.
	Pins map[string]string

	// Caller carries the calls of clients, which take the place of the agent's model:
	// the model is not opened, and needs no key. The run ends when the Caller is
	// closed. nil: the model is asked.
	Caller *Caller

	// Shared is given to all runs of a process that has many; nil shares nothing.
	Shared *Shared
	// Version of the program, for the journal.
	Version string
	// Events is called with every event once and in order, as soon as it is in
	// the journal, by a goroutine of its own. The run never waits for it. Events
	// that it is too slow for follow later, at the latest when the run has
	// ended, before Run returns. See Outcome.Unseen.
	Events func(event.Event)
	// Children is called with the events of the runs below in the same way, by one
	// goroutine for each of these runs. nil: they are only in their journals.
	Children func(event.Event)
	// Telemetry is sent what the run and the runs below it do; nil sends nothing. The caller
	// closes it.
	Telemetry *telemetry.Client
	// Cloning is called with how far git is when the repository of a workspace is cloned,
	// before the run begins, and that takes long. Optional.
	Cloning func(text string)
	// Kill, when closed, ends the run without any grace: the second Ctrl-C.
	Kill <-chan struct{}
	// Leave, when closed, leaves the run as it is: its programs are ended, and
	// nothing more is written, as if the process had been killed. Resume
	// continues it. Its Outcome has no Finished.
	Leave <-chan struct{}
	// Drain, when closed, leaves the run at the next moment when no call is in
	// progress: what has begun has its result, and nothing further begins.
	Drain <-chan struct{}

	// Present judges calls that have waited for a person also by the policies as they
	// are when they go on, at a control plane. nil: the plan's policies hold.
	Present PresentPolicies

	// Values are data for the agent as JSON; Inputs replace single ones.
	Values map[string]json.RawMessage

	// locked is the lock that Locked names.
	locked *lock.Lock
	disk   disk
	// recordPrograms asks for what the plan asks for where RecordsPrograms.
	recordPrograms bool
	// maxListed bounds the files of which changes are listed; 0 is the usual limit.
	maxListed int
	// renew replaces a cassette only by a run that is worth it; inputs, attached and
	// sent are those of a recorded run.
	renew    bool
	inputs   map[string]json.RawMessage
	attached []plan.Attachment
	origins  plan.Origins
	// expansions are those of a recorded prompt.
	expansions []message.Expansion
	// prefer is the agent where none is named, if the manifests hold it.
	prefer string
	sent   []execution.Sent
}

// Span is a part of a prompt: from a byte to before another one.
type Span = plan.Span

// disk is how the journal reaches the disk, for tests that die on the way; the
// zero value is the system's own way.
type disk struct {
	write func(*os.File, []byte) (int, error)
	sync  func(*os.File) error
}

// Terminal is a place to ask a person.
type Terminal struct {
	In  io.Reader
	Out io.Writer
}

// Outcome is a run that has ended, whatever the end.
type Outcome struct {
	Run *view.Run
	// Journal is the folder of the run: events, blobs, workspace.
	Journal string
	// Unseen is the number of events that RunOptions.Events has not taken: it
	// stood still for ten seconds at the end of the run, one second when the run
	// was stopped, and was given up. Its last call may not have returned yet.
	Unseen int64
	// Unrecorded is why a cassette of the run was requested and could not be
	// written; else nil.
	Unrecorded error
}

// Result is the outcome as one object for programs.
func (o *Outcome) Result() view.Result { return o.Run.Result(o.Journal) }

// ExitCode is the exit code of the command line.
func (o *Outcome) ExitCode() int {
	if o.Run.Finished == nil {
		return 1
	}
	return o.Run.Finished.ExitCode
}

// InvalidError reports that the manifests hold mistakes. No run came about; the command
// line exits with 2.
type InvalidError = manifest.InvalidError

// SignalError is the cause of a context that a signal has ended.
type SignalError = reason.SignalError

// Caller carries calls of clients to a run; see RunOptions.Caller.
type Caller = caller.Caller

// ClientCall is a call of a client.
type ClientCall = caller.Request

// ClientNote is something that happens to a call of a client before its result.
type ClientNote = caller.Note

// NewCaller returns a Caller for one run.
func NewCaller() *Caller { return caller.New() }

// Answers answers questions in place of a person.
type Answers = approval.Person

// Manifests are manifests that were read and judged.
type Manifests = plan.Admitted

// ManifestOptions name manifests that several runs share. Paths are required.
type ManifestOptions struct {
	// Paths and Stdin are those of RunOptions.
	Paths []string
	Stdin io.Reader
	// Policies are shipped policies that runs are given besides those of the manifests.
	Policies []string
	// State is that of ValidateOptions.
	State string
}

// ReadManifests reads manifests for several runs, with the Tests among them. Its errors are
// an *InvalidError or a *reason.UsageError.
func ReadManifests(ctx context.Context, o ManifestOptions) (*Manifests, error) {
	return plan.Admit(ctx, plan.Options{Paths: o.Paths, Stdin: o.Stdin, RunPolicies: o.Policies, Tests: true, Registries: registries(), Images: artifact.OfSkills(o.State, false)})
}

// Document is an object that is in no file, as a control plane stores them.
type Document = plan.Document

// PresentPolicies returns the policies that apply to an agent of a run at this moment.
// planned names those of the run's plan: one of them counts as it is now, unless it was
// deleted.
type PresentPolicies func(ctx context.Context, agent string, planned []string) ([]*v1alpha1.Policy, error)

// Shared is what the runs of one process can have in common, so that a thousand
// of them do not keep the same data a thousand times. The zero value is ready
// and may be used by many runs at once.
type Shared struct {
	policies policy.Shared
	judged   plan.Judged
}

// rules are the policies that were compiled already; nil shares nothing.
func (s *Shared) rules() *policy.Shared {
	if s == nil {
		return nil
	}
	return &s.policies
}

// findings are those of documents that were judged already; nil shares nothing.
func (s *Shared) findings() *plan.Judged {
	if s == nil {
		return nil
	}
	return &s.judged
}

// user is the user that begins a run. Runs of objects begin at a control plane,
// whose account is not that of the user.
func (o *RunOptions) user() string {
	if o.User != "" || len(o.Documents) > 0 {
		return o.User
	}
	return plan.LocalUser()
}

// planning are the options of the run's plan.
func (o *RunOptions) planning(ahead func(*plan.Plan)) plan.Options {
	return plan.Options{
		Paths: o.Paths, Stdin: o.Stdin, Documents: o.Documents, Admitted: o.Manifests, WithoutRun: o.WithoutRun, Models: o.Models, Person: o.Answers, Agent: o.Agent, Prefer: o.prefer, Model: o.Model, Skill: o.Skill, Prompt: o.Prompt, Authored: o.Authored, Data: o.Data, RecordedExpansions: o.expansions, Command: o.Command, Arguments: o.Arguments, Attach: o.Attach, Inputs: o.Inputs,
		Workspace: o.Workspace, InPlace: o.InPlace, State: o.State, Approve: o.Approve, Timeout: o.Timeout, Pins: o.Pins,
		RunPolicies: o.Policies, WithoutRepository: o.WithoutRepository, Policies: o.Shared.rules(), Served: o.Caller != nil, Registries: registries(), RecordedInputs: o.recorded(), RecordedFiles: o.attached, RecordedOrigins: o.origins, Ahead: ahead, Images: artifact.OfSkills(o.State, false),
	}
}

// lock reads the lock of the run, unless it was read before, and pins the functions of its
// tools.
func (o *RunOptions) lock() (err error) {
	if o.locked != nil {
		return nil
	}
	if o.locked, err = lock.Read(o.Locked); err != nil {
		return err
	}
	pins := o.locked.Functions()
	maps.Copy(pins, o.Pins)
	o.Pins = pins
	return nil
}

// unmoved returns an error if what a plan uses is not as the lock of the run pins it.
func (o *RunOptions) unmoved(p *admission.Plan) error {
	r := registries()
	now, err := lock.Of(p, r.Providers, r.Sources)
	if err != nil {
		return err
	}
	return lock.Error(o.Locked, o.locked.Moved(now, false))
}

// endOf is the end of a run because of an error. A program that describes something else
// than the lock pins is a drift.
func (o *RunOptions) endOf(err error) loop.End {
	end := loop.End{Reason: reason.Of(err), Message: err.Error(), Hint: reason.Hint(err)}
	for inner := err; o.locked != nil; {
		known, ok := errors.AsType[*reason.Error](inner)
		if !ok {
			break
		}
		if known.Reason == reason.ToolChanged {
			end.Reason, end.Hint = reason.LockDrift, lock.Hint
			break
		}
		inner = known.Err
	}
	return end
}

// recorded are the inputs that are values already.
func (o *RunOptions) recorded() map[string]json.RawMessage {
	if len(o.Values) == 0 {
		return o.inputs
	}
	all := maps.Clone(o.Values)
	maps.Copy(all, o.inputs)
	return all
}

// journal returns how the journal reaches the disk.
func (o *RunOptions) journal() disk {
	if o.Volatile && o.disk.sync == nil {
		return disk{write: o.disk.write, sync: func(*os.File) error { return nil }}
	}
	return o.disk
}

// host are the options of the programs that the run starts.
func (o *RunOptions) host() environment.HostOptions {
	return environment.HostOptions{Kinds: registries().Sources, State: o.State, Keys: o.Keys, AllowUnsandboxed: o.AllowUnsandboxed, Containerd: o.Containerd}
}

// registries are the model providers and tool sources of this version, which all runs of
// the process read.
var registries = sync.OnceValue(func() plan.Registries {
	return plan.Registries{Providers: provider.All(), Sources: sources.All()}
})

// Commands are the names of the commands in folders of manifests.
func Commands(paths []string) []string { return plan.Commands(paths) }

// Tests returns what executes the cases of tests, for agenttest.Run. The options hold for
// every run: Manifests, which ReadManifests has read, and Keys, Version, Kill, Locked,
// AllowUnsandboxed and Containerd. With Locked it is an error with the reason LockDrift if
// anything that an agent of the manifests uses is not as the lock pins it; what programs
// describe is compared by the runs that start them.
func Tests(o RunOptions) (engine.Engine, error) {
	o.WithoutRun, o.Volatile, o.Shared = true, true, &Shared{}
	if o.Locked != "" {
		if err := o.lock(); err != nil {
			return nil, err
		}
		r := registries()
		now, _, err := lock.OfAll(o.Manifests.Catalog, r.Providers, r.Sources)
		if err != nil {
			return nil, err
		}
		if err := lock.Error(o.Locked, o.locked.Moved(now, false)); err != nil {
			return nil, err
		}
	}
	return &tests{o}, nil
}

// tests executes cases of tests as runs.
type tests struct{ RunOptions }

// Manifests implements engine.Engine.
func (t *tests) Manifests() (*manifest.Set, *admission.Catalog) {
	return t.RunOptions.Manifests.Set, t.RunOptions.Manifests.Catalog
}

// Remote implements engine.Engine.
func (t *tests) Remote(task *engine.Task) ([]*v1alpha1.Model, error) {
	resolved, err := t.RunOptions.Manifests.Catalog.Resolve(admission.ResolveOptions{
		Agent: task.Agent, Model: task.Model, Models: task.Models, Policies: task.Policies, WithoutRun: true,
	})
	if err != nil {
		return nil, &reason.UsageError{Err: err, Hint: reason.Hint(err)}
	}
	return resolved.Asked(registries().Providers), nil
}

// CassetteOf implements engine.Engine.
func (t *tests) CassetteOf(model string) string {
	return t.RunOptions.Manifests.Catalog.CassetteOf(model, registries().Providers)
}

// options are those of the run of a task.
func (t *tests) options(task *engine.Task) RunOptions {
	o := t.RunOptions
	o.Agent, o.Model, o.Models, o.Prompt, o.Values, o.Policies = task.Agent, task.Model, task.Models, task.Prompt, task.Inputs, task.Policies
	o.Authored = true // as all of the manifest of a Test
	o.Workspace, o.State, o.Answers, o.Timeout = task.Workspace, task.State, task.Answers, task.Timeout
	o.Events, o.Children, o.Traced = task.Events, task.Children, task.Traced
	return o
}

// Run implements engine.Engine.
func (t *tests) Run(ctx context.Context, task *engine.Task) (*engine.Ended, error) {
	out, err := Run(ctx, t.options(task))
	if err != nil {
		return nil, err
	}
	return &engine.Ended{Run: out.Run, Dir: out.Journal, Unseen: out.Unseen}, nil
}

// Record implements engine.Engine.
func (t *tests) Record(ctx context.Context, task *engine.Task, file string) (*engine.Recorded, error) {
	out, err := Update(ctx, UpdateOptions{File: file, Run: t.options(task), Replace: true})
	if err != nil {
		return nil, err
	}
	ended := &engine.Ended{Run: out.Run, Dir: out.Journal, Unseen: out.Unseen}
	return &engine.Recorded{Ended: ended, Unrecorded: out.Unrecorded, Unread: out.Unread, Change: out.Change}, nil
}

// Replay implements engine.Engine.
func (t *tests) Replay(ctx context.Context, task *engine.Task, file string) (*engine.Replayed, error) {
	out, err := Replay(ctx, ReplayOptions{
		File: file, Manifests: t.RunOptions.Manifests, WithoutRun: true, Agent: task.Agent, Model: task.Model, Models: task.Models, Events: task.Events,
		Task: &Task{Prompt: task.Prompt, Inputs: task.Inputs},
	})
	if err != nil {
		return nil, err
	}
	return &engine.Replayed{Run: out.Run, Divergence: out.Divergence, Notes: out.Notes}, nil
}
