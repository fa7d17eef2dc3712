package environment

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/secret"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/tool/skill"
	"agentctl.dev/agentctl/runner/workspace"
)

// Options are what an Environment is built from. All but Pins, Snapshot, Manifests and
// Ahead are required.
type Options struct {
	// Run and Agent are ids that are passed to programs; Dir is the run's folder.
	Run, Agent, Dir string
	// Tools of the run, as the plan has them.
	Tools []tool.Definition
	// Checks of files that calls have changed. Optional.
	Checks []tool.Check
	// Models whose keys are resolved, the agent's own first.
	Models []*v1alpha1.Model
	// Workspace says which files the run works on, and where its copy is.
	Workspace workspace.Spec
	// Known are secrets that were resolved for the run before.
	Known []secret.Value
	// Resolved are the references that were read before, of Known.
	Resolved []event.SecretResolved
	// Apply and Retain are what becomes of the change and of the copy at the end; ""
	// counts as Manual and Always.
	Apply  v1alpha1.ApplyMode
	Retain v1alpha1.RetainMode
	// Manifests of the run that lie in the workspace, as paths in it.
	Manifests []string
	// RecordPrograms is that of tool.Options.
	RecordPrograms bool
	// Pins are what programs must report about tools, by call name.
	Pins map[string]string
	// Functions are those that an earlier process of the run has recorded, by the call
	// name of their Tool.
	Functions map[string][]tool.Function
	// Ahead is what the host has started already; nil is nothing.
	Ahead *Ahead

	// Lent are the files of the run that has started this one, if it works on them. They
	// stay that run's: it guards them, records what changed, and closes them.
	Lent *Files
	// Subagents is that of tool.Options. Optional.
	Subagents tool.Subagents
	// Copies is that of tool.Options, Changed returns what such a run has changed, by its
	// name. Optional.
	Copies  func(name string) *message.ChildRun
	Changed func(ctx context.Context, run string) (*workspace.Change, workspace.Blobs, error)
	// Relay returns how the programs of coding agents of others ask a model. Required where
	// a tool runs them.
	Relay Relays
	// Skills are those that the agent may load.
	Skills []skill.Entry
	// Items is that of tool.Options.
	Items tool.Items

	// Resumed says that the files of an interrupted run are opened again, Snapshot is
	// the recorded state of them before its first program ran, State the newest recorded
	// one; "" is not recorded. StateUnknown says that a later one could not be recorded.
	Resumed         bool
	Snapshot, State string
	StateUnknown    bool
	// Kept is that of workspace.Spec.
	Kept int64

	Journal Journal
	NewID   func(kind string) string
	// OnSecrets is called with the redactor as soon as the secrets are known.
	OnSecrets func(*secret.Redactor)
	// Past, History and Ask are those of tool.Pool.
	Past    func() []tool.Past
	History func(ctx context.Context, most int) ([]host.Message, error)
	Ask     func(ctx context.Context, call string, q host.Question) (string, error)
	// Todos and Inquire are those of tool.Options.
	Todos   func() message.Todos
	Inquire func(ctx context.Context, call string, in message.Inquiry) (message.Reply, error)
	// Inform is that of tool.Options. Optional.
	Inform func(call, title string, metadata json.RawMessage)
}

// Environment is what the calls of a run work in: its files, and the host that runs its
// programs. End it with EndPrograms and CloseFiles.
type Environment struct {
	*Files
	// Keys are the API keys of the models.
	Keys Keys

	o       *Options
	host    *Host
	secrets *Secrets
}

// Open makes the environment of a run: it checks that the tools can be isolated, resolves
// the secrets, and begins to prepare the files.
func (h *Host) Open(ctx context.Context, o Options) (*Environment, error) {
	h.report.open(o.Journal)
	if err := h.site.Require(ctx, o.programs()); err != nil {
		return nil, err
	}
	secrets, err := h.resolve(ctx, &o)
	if err != nil {
		return nil, err
	}
	o.OnSecrets(secrets.Redactor)
	for _, e := range secrets.resolved {
		if _, err := o.Journal.Append(event.Event{Data: e}); err != nil {
			return nil, err
		}
	}
	files, err := openFiles(ctx, &o)
	if err != nil {
		return nil, unprepared(err)
	}
	return &Environment{Files: files, Keys: secrets.Keys, o: &o, host: h, secrets: secrets}, nil
}

// programs are the definitions of the tools and of the checks.
func (o *Options) programs() []tool.Definition {
	return slices.Concat(o.Tools, tool.Programs(o.Checks))
}

// EndPrograms is that of the host.
func (e *Environment) EndPrograms() (removed func() error) { return e.host.EndPrograms() }

// Warn records a warning of the run, each text once.
func (e *Environment) Warn(text string) { e.host.report.warn(text) }

// Root is the folder that the tools of a run with these files see.
func Root(s workspace.Spec) string {
	if s.Strategy == v1alpha1.StrategyInPlace {
		return s.Source
	}
	return s.Dir
}

// CopyDir is where a run copies the files of a source folder; "" is no source.
func CopyDir(runDir, id, source string) string {
	name := "empty"
	if source != "" {
		name = filepath.Base(source)
	}
	return filepath.Join(runDir, "workspace", name+"_"+id)
}

// FilesDir is where a run has the files of its workspace: those of a clone are where the
// repository was cloned to.
func FilesDir(runDir, id, source string, cloned bool) string {
	if cloned {
		return source
	}
	return CopyDir(runDir, id, source)
}

// Unopened ends a run whose environment could not be opened: programs may have been
// started ahead, and an interrupted run that was resumed may have left files behind.
type Unopened struct {
	*Host
	git *git
}

// Unopened returns what ends a run with these options without its environment.
func (h *Host) Unopened(o *Options) *Unopened { return &Unopened{h, newGit(o)} }

// RestoreGit undoes what programs have done to what git runs.
func (u *Unopened) RestoreGit(done bool) { u.git.restore(done) }

// Changes reports that no program has run.
func (u *Unopened) Changes(context.Context) (event.WorkspacePatch, bool) {
	return event.WorkspacePatch{}, false
}

// FilesDir is "": there are no files.
func (u *Unopened) FilesDir() string { return "" }

// Apply does nothing: no program has run.
func (u *Unopened) Apply(context.Context) (*event.WorkspaceApplied, error) { return nil, nil } //nolint:nilnil // nothing is to be applied

// CloseFiles does nothing: there are no files.
func (u *Unopened) CloseFiles(ended, succeeded bool) error { return nil }
