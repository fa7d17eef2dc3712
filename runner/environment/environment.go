package environment

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/secret"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/workspace"
	"agentctl.dev/agentctl/runner/workspace/gitguard"
)

// Options are what an Environment is built from. All but Pins, Snapshot and Manifests
// are required.
type Options struct {
	// Run and Agent are ids that are passed to programs; Dir is the run's folder.
	Run, Agent, Dir string
	// Tools of the run. They belong to the environment, which asks their programs for
	// what their manifests leave out.
	Tools []tool.Definition
	// Models whose keys are resolved, the agent's own first.
	Models []*v1alpha1.Model
	// Workspace says which files the run works on, and where its copy is.
	Workspace workspace.Spec
	// Manifests of the run that lie in the workspace, as paths in it.
	Manifests []string
	// Pins are what programs must report about tools, by call name.
	Pins map[string]string

	// Resumed says that the files of an interrupted run are opened again, Snapshot is
	// the recorded state of them before its first program ran; "" is not recorded.
	Resumed  bool
	Snapshot string

	Journal Journal
	NewID   func(kind string) string
	// OnSecrets is called with the redactor as soon as the secrets are known.
	OnSecrets func(*secret.Redactor)
	// Past, History and Ask are those of tool.Pool.
	Past    func() []tool.Past
	History func(ctx context.Context, most int) ([]host.Message, error)
	Ask     func(ctx context.Context, call string, q host.Question) (string, error)
}

// Environment is what the calls of a run work in. Open it, and end it with EndPrograms
// and CloseFiles.
type Environment struct {
	Options
	host    *Host
	files   *workspace.Workspace
	secrets *Secrets

	// guarded is what git would run of files worked on in place, as it was before the
	// first program ran; nil for a copy. guardGit records it, once.
	guarded  *gitguard.Guard
	guardGit func() error
	// snapshot records the state of the files before the first program runs, once.
	snapshot func() error
	// touched says that a program has run and files may have changed.
	touched atomic.Bool
	// release ends what Toolbox has begun in the background.
	release []func()
}

// Judge decides which files programs may see.
type Judge interface {
	// Unreadable returns those of some files that a call must not read.
	Unreadable(ctx context.Context, call message.ToolCall, files []string) ([]string, error)
	// Masked returns those of some files that no call may read.
	Masked(ctx context.Context, files []string) ([]string, error)
}

// New returns an environment in which nothing was started.
func New(h *Host, o Options) *Environment {
	e := &Environment{Options: o, host: h}
	e.guardGit = sync.OnceValue(e.takeGit)
	e.snapshot = sync.OnceValue(e.recordFiles)
	return e
}

// Open makes the environment ready: it checks that the tools can be isolated, resolves
// the secrets, begins to copy the files and to start the shipped tools, and asks other
// programs for what their manifests leave out.
func (e *Environment) Open(ctx context.Context) error {
	e.host.report.open(e.Journal)
	if err := e.require(ctx); err != nil {
		return err
	}
	var err error
	if e.secrets, err = e.resolve(ctx); err != nil {
		return err
	}
	e.OnSecrets(e.secrets.Redactor)
	if err := e.openFiles(ctx); err != nil {
		return unprepared(err)
	}
	if err := e.host.isolate(e.Tools, e.Workspace); err != nil {
		return err
	}
	pool := e.host.pool
	pool.Dir, pool.Env, pool.Pins = e.Root(), e.secrets.env, maps.Clone(e.Pins)
	pool.Past, pool.History, pool.Ask = e.Past, e.History, e.Ask
	pool.Start(ctx, shipped(e.Tools))
	return e.describe(ctx)
}

// Keys are the API keys of the models, once the environment is open.
func (e *Environment) Keys() Keys { return e.secrets.Keys }

// Toolbox returns what checks and runs the calls. Programs that see files are started
// once the judge has decided which.
func (e *Environment) Toolbox(ctx context.Context, judge Judge) (*tool.Registry, error) {
	files, release := e.protect(ctx, judge)
	e.release = append(e.release, release)
	pool := e.host.pool
	pool.Start(ctx, foreign(e.Tools))
	ahead, cancel := context.WithCancel(ctx)
	e.release = append(e.release, cancel)
	pool.Begin(ahead, e.Tools)
	free := tool.FreeSpace(e.Root())
	return tool.NewRegistry(tool.Options{
		Tools: e.Tools, Serve: pool.Serve, Workspace: files, Blobs: e.Journal, Now: time.Now,
		Redactor: e.secrets.Redactor, Run: e.Run, Agent: e.Agent,
		Unreadable: judge.Unreadable, Masked: judge.Masked, Unseen: e.host.hidden(),
		Space: free, Growth: &tool.Growth{Limit: e.files.GrowthLimit(), Measure: e.files.Growth, Free: free},
	})
}

// Release ends what Toolbox has begun in the background and waits for its end.
func (e *Environment) Release() {
	for _, release := range slices.Backward(e.release) {
		release()
	}
	e.release = nil
}

// describe asks the programs of tools whose manifests leave out what they take.
func (e *Environment) describe(ctx context.Context) error {
	for i := range e.Tools {
		if len(e.Tools[i].Parameters) > 0 {
			continue
		}
		err := e.host.pool.Describe(ctx, &e.Tools[i])
		if reason.Of(err) == reason.ToolChanged { // a run ends with a reason of runs
			err = reason.New(reason.ToolError, "%s: %w", reason.ToolChanged, err).WithHint("%s", reason.Hint(err))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Root is the folder that the tools see.
func (e *Environment) Root() string { return Root(e.Workspace) }

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

// EndPrograms returns when no program of the run is left. What then remains of their
// sandboxes is removed beside other work; the function waits for that.
func (e *Environment) EndPrograms() (removed func() error) { return e.host.endPrograms() }

// Check reports why a tool cannot be isolated as it demands, in an environment without a
// run.
func (e *Environment) Check(ctx context.Context) error {
	if err := e.require(ctx); err != nil {
		return err
	}
	return e.host.isolate(e.Tools, e.Workspace)
}

// Describe asks the programs of the tools what they take, after a Check; for other tools
// it looks for their programs.
func (e *Environment) Describe(ctx context.Context) error {
	pool := e.host.pool
	pool.Dir = e.Root()
	for i := range e.Tools {
		d := &e.Tools[i]
		var err error
		if d.Describes {
			err = pool.Describe(ctx, d)
		} else {
			_, err = pool.Functions(ctx, d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
